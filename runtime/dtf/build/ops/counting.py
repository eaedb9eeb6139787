"""Static shapes of the ops that count whole numbers in rows.

Kernels: `run.kernels.counting`; tf.bincount and the histograms are in `math`.
"""

from __future__ import annotations

from typing import Any

from dtf.build.constant import constant_value
from dtf.build.shape_rules import shape_rule, unknown
from dtf.build.tensor import Operation
from dtf.wire.tensor_shape import TensorShape


def _bins(op: Operation, index: int) -> int | None:
    size: Any = constant_value(op.inputs[index])
    return None if size is None else int(size)


@shape_rule("DenseBincount")
def _dense_bincount_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if shape.ndims is None:
        return unknown(op)
    if shape.ndims not in (1, 2):
        raise ValueError(f"Shape must be at most rank 2 but is rank {shape.ndims}")
    return [shape[:-1].concatenate([_bins(op, 1)])]


@shape_rule("RaggedBincount")
def _ragged_bincount_shape(op: Operation) -> list[TensorShape]:
    splits = op.inputs[0].shape.with_rank(1).as_list()[0]
    return [TensorShape([None if splits is None else splits - 1, _bins(op, 2)])]


@shape_rule("SparseBincount")
def _sparse_bincount_shape(op: Operation) -> list[TensorShape]:
    rank = op.inputs[2].shape.with_rank(1).as_list()[0]
    if rank is None:
        return unknown(op)
    return [TensorShape([_bins(op, 3)] if rank == 1 else [None, _bins(op, 3)])]
