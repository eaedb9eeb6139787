"""tensorflow.python.ops.gradient_checker and gradient_checker_v2: derivatives in both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_session
from dtf.session import Session
from dtf.test.gradient_checker import compute_gradient as compute_gradient_of_tensors
from dtf.test.gradient_checker import compute_gradient_error

__all__ = ["compute_gradient", "compute_gradient_error", "max_error"]


def compute_gradient(f: Any, x: Any, y: Any = None, *args: Any, delta: float | None = None, **kwargs: Any) -> Any:
    """`tf.test.compute_gradient`; with a function of tensors and a list of their values, the form of version 2.

    Returns:
      The pair of Jacobians, or for a function (the Jacobians by tf.gradients, those by difference quotients), each
      [elements of y, elements of x].
    """
    if callable(f):
        return _of_function(f, x, delta if delta is not None else y)
    if delta is not None:
        kwargs["delta"] = delta
    return compute_gradient_of_tensors(f, x, y, *args, **kwargs)


def max_error(grad1: Sequence[Any], grad2: Sequence[Any]) -> float:
    """The largest difference of two lists of Jacobians."""
    pairs = zip(grad1, grad2, strict=True)
    return max((float(np.abs(one - other).max()) for one, other in pairs if one.size), default=0.0)


def _of_function(f: Callable[..., Any], values: Sequence[Any], delta: float | None) -> tuple[list[Any], list[Any]]:
    session = get_default_session()
    if session is None:
        with Session():
            return _of_function(f, values, delta)
    xs = [convert_to_tensor(each) for each in values]
    starts = session.run(xs)
    y = f(*xs)
    shape = list(session.run(y).shape)
    delta = 1.0 / 1024 if delta is None else delta
    shapes = [list(start.shape) for start in starts]
    pairs = compute_gradient_of_tensors(xs, shapes, y, shape, starts, delta)
    return [exact.T for exact, _ in pairs], [numeric.T for _, numeric in pairs]
