"""`tf.test.compute_gradient`: Jacobians by `tf.gradients` and by difference quotients.

What only asks whether both agree is shorter with `tf.testing.check_gradient`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/compute_gradient
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.gradients import gradients
from dtf.build.graph import get_default_session
from dtf.build.ops import array as array_ops

__all__ = ["compute_gradient", "compute_gradient_error"]

Pair = tuple[np.ndarray, np.ndarray]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Sequence[int],
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Any:
    """The derivatives of the elements of y by those of x, in the default session.

    Args:
      x: a tensor of a floating dtype that can be fed, or a list of them.
      x_shape: its shape, or the list of their shapes.
      y: a tensor of a floating dtype, and
      y_shape: its shape.
      x_init_value: where to take the derivatives: an array, or a list of them; random by default.
      delta: how far to go to both sides for the difference quotients.
      init_targets: operations to run before.
      extra_feed_dict: what else y needs.

    Returns:
      (by tf.gradients, by difference quotients), each [elements of x, elements of y]; a list of such pairs for a list.

    Raises:
      TypeError: x or y is not of a floating dtype.
      ValueError: there is no default session, or y does not depend on x.
    """
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: use it inside of `with tf.Session():`")
    several = isinstance(x, list | tuple)
    xs, shapes = (list(x), list(x_shape)) if several else ([x], [x_shape])
    starts = list(x_init_value) if several and x_init_value is not None else [x_init_value] * len(xs)
    for each in (*xs, y):
        if not each.dtype.base_dtype.is_floating:
            raise TypeError(f"{each.name} has no derivative: it is of dtype {each.dtype.name}")
    if init_targets is not None:
        session.run(init_targets)
    random = np.random.RandomState(0)
    feeds = dict(extra_feed_dict or {})
    for each, shape, start in zip(xs, shapes, starts, strict=True):
        value = random.random_sample(tuple(shape)) if start is None else start
        feeds[each] = np.array(value, each.dtype.as_numpy_dtype).reshape(tuple(shape))
    with y.graph.as_default():
        seed = array_ops.placeholder(y.dtype.base_dtype, y_shape)
        made = gradients(y, xs, seed)
        pairs = []
        for each, grad in zip(xs, made, strict=True):
            if grad is None:
                raise ValueError(f"{y.name} does not depend on {each.name}")
            exact = _by_gradients(session, convert_to_tensor(grad), seed, feeds[each].size, y_shape, feeds)
            pairs.append((exact, _by_quotients(session, each, y, feeds, delta)))
    return pairs if several else pairs[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Sequence[int],
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> float:
    """The largest difference between both ways of `compute_gradient`."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = found if isinstance(x, list | tuple) else [found]
    return max((float(np.abs(one - other).max()) for one, other in pairs if one.size), default=0.0)


def _by_gradients(
    session: Any, grad: Any, seed: Any, size: int, y_shape: Sequence[int], feeds: Mapping[Any, Any]
) -> np.ndarray:
    count = int(np.prod(y_shape))
    jacobian = np.zeros([size, count], grad.dtype.as_numpy_dtype)
    for column in range(count):
        unit = np.zeros(count, seed.dtype.as_numpy_dtype)
        unit[column] = 1
        jacobian[:, column] = np.ravel(session.run(grad, {**feeds, seed: unit.reshape(y_shape)}))
    return jacobian


def _by_quotients(session: Any, x: Any, y: Any, feeds: Mapping[Any, Any], delta: float) -> np.ndarray:
    start = feeds[x]
    rows = []
    for index in np.ndindex(start.shape):
        ends = []
        for sign in (1, -1):
            moved = start.copy()
            moved[index] += sign * delta
            ends.append(np.ravel(session.run(y, {**feeds, x: moved})))
        rows.append((ends[0] - ends[1]) / (2 * delta))
    return np.array(rows, y.dtype.as_numpy_dtype).reshape(start.size, -1)
