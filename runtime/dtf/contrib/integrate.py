"""tf.contrib.integrate: ordinary differential equations, by an explicit method of Dormand and Prince.

Owns the adaptive method (`odeint`) and those of fixed steps (`odeint_fixed`); gradients go through their loops.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/integrate
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = ["odeint", "odeint_fixed"]

# Dormand and Prince (1980): where the slopes are taken, their shares, those of the result and of its error.
_SHARES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_ERROR = (
    35 / 384 - 5179 / 57600, 0.0, 500 / 1113 - 7571 / 16695, 125 / 192 - 393 / 640,
    -2187 / 6784 + 92097 / 339200, 11 / 84 - 187 / 2100, -1 / 40,
)  # fmt: skip


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, rtol: float = 1e-6, atol: float = 1e-12, method: str | None = None,
    options: dict[str, Any] | None = None, full_output: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The solution of dy/dt = func(y, t) at given times, with steps that an estimate of the error chooses.

    Args:
      func: (y, t) -> dy/dt, a tensor of the shape of `y0`.
      y0: the value at the first time, of floating-point numbers.
      t: a vector of increasing times; the first is that of `y0`.
      rtol: the relative error of a step that is taken.
      atol: the absolute error.
      method: only "dopri5".
      options: `first_step`, `safety`, `ifactor`, `dfactor` and `max_num_steps`.
      full_output: return the number of evaluations and steps, too.

    Returns:
      A tensor [len(t), ...] of the solution; with `full_output`, it and a dictionary.

    Raises:
      ValueError: another method or an unknown option is given.
    """
    if method not in (None, "dopri5"):
        raise ValueError(f"Unknown method {method!r}: only 'dopri5' is supported")
    settings = {"first_step": None, "safety": 0.9, "ifactor": 10.0, "dfactor": 0.2, "max_num_steps": 1000}
    unknown = set(options or ()) - set(settings)
    if unknown:
        raise ValueError(f"Unknown options of dopri5: {sorted(unknown)}")
    settings |= options or {}
    with tf.name_scope(name, "odeint", [y0, t]):
        y0 = tf.convert_to_tensor(y0, name="y0")
        times = tf.cast(tf.convert_to_tensor(t, name="t"), tf.float64)
        solver = _Adaptive(func, y0.dtype, rtol, atol, settings)
        first = times[1] - times[0] if settings["first_step"] is None else settings["first_step"]
        count = tf.size(times)
        found = tf.TensorArray(y0.dtype, count, element_shape=y0.shape).write(0, y0)
        zero = tf.constant(0)

        def body(i: Any, y: Any, step: Any, tries: Any, found: Any) -> Any:
            y, step, more = solver.until(y, times[i - 1], times[i], step)
            return i + 1, y, step, tries + more, found.write(i, y)

        state = (tf.constant(1), y0, tf.cast(first, tf.float64), zero, found)
        _, _, _, tries, found = tf.while_loop(lambda i, *_: i < count, body, state)
        solution = found.stack()
        if full_output:
            return solution, {"num_func_evals": tries * 7, "num_steps": tries}
        return solution


class _Adaptive:
    """Steps whose length follows the error of the steps before."""

    def __init__(
        self, func: Callable[..., Any], dtype: Any, rtol: float, atol: float, settings: dict[str, Any]
    ) -> None:
        self._func, self._dtype, self._rtol, self._atol = func, dtype, rtol, atol
        self._settings = settings

    def until(self, y: Any, start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
        """(the value at `end`, the next step's length, how many steps were tried)."""
        settings = self._settings

        def body(y: Any, time: Any, step: Any, tries: Any) -> Any:
            allowed = tf.Assert(tries < settings["max_num_steps"], ["max_num_steps exceeded"])
            with tf.control_dependencies([allowed]):
                taken = tf.minimum(step, end - time)
            after, error = self._try(y, time, taken)
            bound = self._atol + self._rtol * tf.maximum(tf.abs(y), tf.abs(after))
            ratio = tf.sqrt(tf.reduce_mean(tf.square(tf.cast(tf.abs(error / bound), tf.float64))))
            is_good = ratio <= 1.0
            wanted = settings["safety"] * tf.pow(tf.maximum(ratio, 1e-12), -0.2)
            least = tf.where(is_good, tf.constant(1.0, tf.float64), tf.constant(settings["dfactor"], tf.float64))
            factor = tf.clip_by_value(wanted, least, tf.constant(settings["ifactor"], tf.float64))
            # The last piece before `end` says little of the length that the function bears.
            longer = tf.where(is_good, tf.maximum(step, taken * factor), taken * factor)
            chosen = tf.cond(is_good, lambda: after, lambda: y)
            return chosen, tf.where(is_good, time + taken, time), longer, tries + 1

        state = (y, start, step, tf.constant(0))
        y, _, step, tries = tf.while_loop(lambda y, time, *_: time < end, body, state)
        return y, step, tries

    def _try(self, y: Any, time: Any, step: Any) -> tuple[Any, Any]:
        length = tf.cast(step, self._dtype)
        slopes = [self._slope(y, time)]
        after = y
        for part, shares in zip(_TIMES, _SHARES, strict=True):
            after = y + length * sum(share * slope for share, slope in zip(shares, slopes, strict=True) if share)
            slopes.append(self._slope(after, time + part * step))
        return after, length * sum(share * slope for share, slope in zip(_ERROR, slopes, strict=True) if share)

    def _slope(self, y: Any, time: Any) -> Any:
        return tf.convert_to_tensor(self._func(y, time), self._dtype)


def odeint_fixed(
    func: Callable[..., Any], y0: Any, t: Any, dt: Any = None, method: str = "rk4", name: str | None = None
) -> Any:
    """The solution of dy/dt = func(y, t) with one step, or steps of about `dt`, between neighbouring times.

    Args:
      func: (y, t) -> dy/dt.
      y0: the value at the first time.
      t: a vector of increasing times.
      dt: the length of a step; by default that between the times.
      method: "euler", "midpoint" or "rk4".

    Returns:
      A tensor [len(t), ...].

    Raises:
      ValueError: an unknown method is given.
    """
    methods: dict[str, Callable[..., Any]] = {"euler": _euler, "midpoint": _midpoint, "rk4": _rk4}
    if method not in methods:
        raise ValueError(f"method not supported: {method!r}; use one of {sorted(methods)}")
    change = methods[method]
    with tf.name_scope(name, "odeint_fixed", [y0, t]):
        y0 = tf.convert_to_tensor(y0, name="y0")
        times = tf.convert_to_tensor(t, preferred_dtype=tf.float64, name="t")

        def between(y: Any, ends: Any) -> Any:
            start, end = ends[0], ends[1]
            length = end - start
            if dt is None:
                return y + change(func, y, start, length)
            count = tf.maximum(tf.cast(tf.ceil(length / tf.cast(dt, times.dtype)), tf.int32), 1)
            step = length / tf.cast(count, times.dtype)
            _, y = tf.while_loop(
                lambda i, y: i < count,
                lambda i, y: (i + 1, y + change(func, y, start + tf.cast(i, times.dtype) * step, step)),
                (tf.constant(0), y),
            )
            return y

        later = tf.scan(between, tf.stack([times[:-1], times[1:]], 1), y0)
        return tf.concat([y0[None], later], 0)


def _euler(func: Callable[..., Any], y: Any, time: Any, step: Any) -> Any:
    return tf.cast(step, y.dtype) * func(y, time)


def _midpoint(func: Callable[..., Any], y: Any, time: Any, step: Any) -> Any:
    length = tf.cast(step, y.dtype)
    return length * func(y + func(y, time) * length / 2, time + step / 2)


def _rk4(func: Callable[..., Any], y: Any, time: Any, step: Any) -> Any:
    length = tf.cast(step, y.dtype)
    first = func(y, time)
    second = func(y + length * first / 2, time + step / 2)
    third = func(y + length * second / 2, time + step / 2)
    fourth = func(y + length * third, time + step)
    return (first + 2 * second + 2 * third + fourth) * length / 6
