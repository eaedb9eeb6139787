"""tensorflow.python.ops.random_ops: the functions that are not in `tf.random`."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.random import op_seeds
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

__all__ = ["parameterized_truncated_normal"]


def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers between two bounds, of one distribution or of one for each row.

    Args:
      shape: an integer vector; its first entry is the number of distributions if the parameters are vectors.
      means, stddevs, minvals, maxvals: scalars or vectors of `dtype`.
      dtype: a floating-point dtype.
      seed: the seed of this operation.
      name: the name of the operation.
    """
    with name_scope(name, "parameterized_truncated_normal") as scope:
        given = {"means": means, "stdevs": stddevs, "minvals": minvals, "maxvals": maxvals}
        tensors = {key: convert_to_tensor(value, dtype=dtype) for key, value in given.items()}
        sizes = convert_to_tensor(shape, dtype=dtypes.int32) if isinstance(shape, list | tuple) else shape
        return apply_op("ParameterizedTruncatedNormal", scope, shape=sizes, **tensors, **op_seeds(seed))
