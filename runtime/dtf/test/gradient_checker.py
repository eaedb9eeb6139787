"""`tf.test.compute_gradient`: Jacobians by `tf.gradients` and by difference quotients.

To check only whether both agree, use the shorter `tf.testing.check_gradient`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/compute_gradient
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_session
from dtf.build.gradients import gradients
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
    """The derivatives of y's elements with respect to x's, in the default session.

    Args:
      x: a tensor of a floating or complex dtype that can be fed, or a list of them.
      x_shape: its shape, or the list of their shapes.
      y: a tensor of a floating or complex dtype, and
      y_shape: its shape.
      x_init_value: where to take the derivatives: an array, or a list of them; random by default.
      delta: how far to go to both sides for the difference quotients.
      init_targets: operations to run before.
      extra_feed_dict: further feeds that y needs.

    Returns:
      (by tf.gradients, by difference quotients), each [elements of x, elements of y]; a list of pairs for a list.
      A complex number counts as two elements: its real and its imaginary part.

    Raises:
      TypeError: x or y is not of a floating or complex dtype.
      ValueError: there is no default session, or y does not depend on x.
    """
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: use it inside of `with tf.Session():`")
    several = isinstance(x, list | tuple)
    xs, shapes = (list(x), list(x_shape)) if several else ([x], [x_shape])
    starts = list(x_init_value) if several and x_init_value is not None else [x_init_value] * len(xs)
    for each in (*xs, y):
        if not (each.dtype.base_dtype.is_floating or each.dtype.base_dtype.is_complex):
            raise TypeError(f"{each.name} has no derivative: it is of dtype {each.dtype.name}")
    if init_targets is not None:
        session.run(init_targets)
    random = np.random.RandomState(0)
    feeds = dict(extra_feed_dict or {})
    for each, shape, start in zip(xs, shapes, starts, strict=True):
        value = _random(random, tuple(shape), each.dtype.base_dtype) if start is None else start
        feeds[each] = np.array(value, each.dtype.as_numpy_dtype).reshape(tuple(shape))
    with y.graph.as_default():
        seed = array_ops.placeholder(y.dtype.base_dtype, y_shape)
        made = gradients(y, xs, seed)
        pairs = []
        for each, grad in zip(xs, made, strict=True):
            if grad is None:
                raise ValueError(f"{y.name} does not depend on {each.name}")
            exact = _by_gradients(session, convert_to_tensor(grad), seed, feeds[each], y_shape, feeds)
            pairs.append((exact, _by_quotients(session, each, y, y_shape, feeds, delta)))
    return pairs if several else pairs[0]


def _random(random: np.random.RandomState, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    value = random.random_sample(shape)
    return value + 1j * random.random_sample(shape) if dtype.is_complex else value


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
    session: Any, grad: Any, seed: Any, start: np.ndarray, y_shape: Sequence[int], feeds: Mapping[Any, Any]
) -> np.ndarray:
    unit = np.zeros(y_shape, seed.dtype.as_numpy_dtype)
    steps = _parts(unit)
    jacobian = np.zeros([_parts(start).size, steps.size], start.real.dtype)
    for column in range(steps.size):
        steps[column] = 1
        jacobian[:, column] = _parts(np.asarray(session.run(grad, {**feeds, seed: unit}), start.dtype))
        steps[column] = 0
    if not steps.size:
        found = session.run(grad, {**feeds, seed: unit})
        if found.shape != start.shape or found.any():
            raise ValueError(f"{grad.name} of an empty tensor must be zeros of shape {start.shape}, not {found}")
    return jacobian


def _by_quotients(
    session: Any, x: Any, y: Any, y_shape: Sequence[int], feeds: Mapping[Any, Any], delta: float
) -> np.ndarray:
    start = feeds[x]
    y_dtype = np.dtype(y.dtype.as_numpy_dtype)
    jacobian = np.zeros([_parts(start).size, _parts(np.zeros(y_shape, y_dtype)).size], start.real.dtype)
    for row in range(len(jacobian)):
        ends = []
        for sign in (1, -1):
            moved = start.copy()
            _parts(moved)[row] += sign * delta
            ends.append(_parts(np.asarray(session.run(y, {**feeds, x: moved}), y_dtype)))
        jacobian[row] = (ends[0] - ends[1]) / (2 * delta)
    return jacobian


def _parts(array: np.ndarray) -> np.ndarray:
    """A flat view of an array; a complex number is two: its real and its imaginary part."""
    flat = array.reshape(-1)
    return flat.view(array.real.dtype) if array.dtype.kind == "c" else flat
