"""Datasets while they run: sequences of elements, each a tuple of tensors, that transformations make of one another.

`dataset` has what all share, `sources`, `transformations`, `batching`, `functions`, `interleave`, `shuffle` and `cache`
the kinds, `iterator` the resource that steps take elements from. The kernels that bind them to nodes are
`kernels/data_*`.
"""
