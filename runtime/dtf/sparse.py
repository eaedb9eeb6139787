"""The namespace tf.sparse. Only re-exports functions of `ops.sparse*`, `ops.segment` and `ops.data_flow`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.array import sparse_placeholder
from dtf.build.ops.data_flow import SparseConditionalAccumulator
from dtf.build.ops.gathering import sparse_mask
from dtf.build.ops.newer_names import sparse_merge
from dtf.build.ops.segment import sparse_segment_mean as segment_mean
from dtf.build.ops.segment import sparse_segment_sqrt_n as segment_sqrt_n
from dtf.build.ops.segment import sparse_segment_sum as segment_sum
from dtf.build.ops.sparse import cross, cross_hashed, expand_dims, eye, from_dense
from dtf.build.ops.sparse import sparse_concat as concat
from dtf.build.ops.sparse import sparse_fill_empty_rows as fill_empty_rows
from dtf.build.ops.sparse import sparse_reorder as reorder
from dtf.build.ops.sparse import sparse_reshape as reshape
from dtf.build.ops.sparse import sparse_retain as retain
from dtf.build.ops.sparse import sparse_tensor_dense_matmul as sparse_dense_matmul
from dtf.build.ops.sparse import sparse_tensor_to_dense as to_dense
from dtf.build.ops.sparse import sparse_to_indicator as to_indicator
from dtf.build.ops.sparse_arithmetic import sparse_add as add
from dtf.build.ops.sparse_arithmetic import sparse_maximum as maximum
from dtf.build.ops.sparse_arithmetic import sparse_minimum as minimum
from dtf.build.ops.sparse_arithmetic import sparse_reduce_max as reduce_max
from dtf.build.ops.sparse_arithmetic import sparse_reduce_max_sparse as reduce_max_sparse
from dtf.build.ops.sparse_arithmetic import sparse_reduce_sum as reduce_sum
from dtf.build.ops.sparse_arithmetic import sparse_reduce_sum_sparse as reduce_sum_sparse
from dtf.build.ops.sparse_arithmetic import sparse_reset_shape as reset_shape
from dtf.build.ops.sparse_arithmetic import sparse_slice as slice
from dtf.build.ops.sparse_arithmetic import sparse_softmax as softmax
from dtf.build.ops.sparse_arithmetic import sparse_split as split
from dtf.build.ops.sparse_arithmetic import sparse_transpose as transpose
from dtf.build.sparse import SparseTensor

matmul = sparse_dense_matmul
mask = sparse_mask
merge = sparse_merge
placeholder = sparse_placeholder

__all__ = [
    "SparseConditionalAccumulator", "SparseTensor", "add", "concat", "cross", "cross_hashed", "expand_dims", "eye",
    "fill_empty_rows", "from_dense", "mask", "matmul", "maximum", "merge", "minimum", "placeholder", "reduce_max",
    "reduce_max_sparse", "reduce_sum", "reduce_sum_sparse", "reorder", "reset_shape", "reshape", "retain",
    "segment_mean", "segment_sqrt_n", "segment_sum", "slice", "softmax", "sparse_dense_matmul", "split", "to_dense",
    "to_indicator", "transpose",
]  # fmt: skip

__getattr__ = _late.refusals(__name__)
