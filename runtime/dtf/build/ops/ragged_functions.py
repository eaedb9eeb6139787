"""The functions of tf.ragged, and those of tf that accept ragged tensors, as one table.

Owns the handlers of `build.dispatch` for RaggedTensor: each family's own table, put together. The container is
`build.ragged`; the families are the modules `ragged_...` beside this one.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ragged
"""

from __future__ import annotations

from dtf.build import dispatch
from dtf.build.ops import ragged_arithmetic, ragged_arrays, ragged_joining, ragged_partitions, ragged_reductions
from dtf.build.ops.ragged_arithmetic import map_flat_values
from dtf.build.ops.ragged_constant import constant, constant_value, placeholder
from dtf.build.ops.ragged_joining import stack
from dtf.build.ops.ragged_partitions import (
    boolean_mask,
    range,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    stack_dynamic_partitions,
)
from dtf.build.ragged import RaggedTensor

__all__ = [
    "boolean_mask", "constant", "constant_value", "map_flat_values", "placeholder", "range",
    "row_splits_to_segment_ids", "segment_ids_to_row_splits", "stack", "stack_dynamic_partitions",
]  # fmt: skip

# `tf.RaggedTensor` is taken from here, so that its handlers are there before its first instance.
_CONTAINER = RaggedTensor

for _family in (ragged_arithmetic, ragged_arrays, ragged_joining, ragged_partitions, ragged_reductions):
    dispatch.HANDLERS.update(_family.HANDLERS)
