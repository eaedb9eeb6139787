"""Pooling by windows of differing sizes: the functions of tf.nn, their shape rules. Kernels: the same family.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/fractional_max_pool
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value_as_shape
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["fractional_avg_pool", "fractional_max_pool"]


def fractional_max_pool(
    value: TensorLike, pooling_ratio: Sequence[float], pseudo_random: bool = False, overlapping: bool = False,
    deterministic: bool = False, seed: int = 0, seed2: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """The greatest number of windows whose borders are drawn at random.

    Args:
      value: [batch, height, width, channels].
      pooling_ratio: [1.0, height ratio, width ratio, 1.0]; the ratios are 1 or more.
      pseudo_random: whether the borders come from one number, so that sizes change evenly.
      overlapping: whether neighbours share the row or column at their border.
      deterministic: whether the seeds give the same borders in each step.
      seed, seed2: the seeds; only with `deterministic`.
      name: the name of the operation.

    Returns:
      (output, row_pooling_sequence, col_pooling_sequence): the pooled values, and the borders, int64.
    """
    return _pooled("FractionalMaxPool", locals())


def fractional_avg_pool(
    value: TensorLike, pooling_ratio: Sequence[float], pseudo_random: bool = False, overlapping: bool = False,
    deterministic: bool = False, seed: int = 0, seed2: int = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """The mean of windows whose borders are drawn at random; arguments and results as `fractional_max_pool`."""
    return _pooled("FractionalAvgPool", locals())


def _pooled(op: str, arguments: dict[str, Any]) -> Any:
    name = arguments.pop("name")
    arguments["pooling_ratio"] = [float(each) for each in arguments["pooling_ratio"]]
    return apply_op(op, name, **arguments)


@shape_rule("FractionalMaxPool", "FractionalAvgPool")
def _(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank(4)
    ratios = op.get_attr("pooling_ratio")
    if len(ratios) != 4:
        raise ValueError("pooling_ratio field must specify 4 dimensions")
    for ratio in ratios:
        if not 1 <= ratio < np.inf:
            raise ValueError(f"pooling_ratio cannot be smaller than 1 or infinite, got: {ratio}")
    sizes = [
        None if size is None else int(np.floor(size / np.float32(ratio)))
        for size, ratio in zip(shape.as_list() if shape.ndims else [None] * 4, ratios, strict=True)
    ]
    return [TensorShape(sizes), TensorShape([None]), TensorShape([None])]


@shape_rule("FractionalAvgPoolGrad")
def _(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[0]).merge_with(TensorShape([None] * 4))]


@shape_rule("FractionalMaxPoolGrad")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank(4)]
