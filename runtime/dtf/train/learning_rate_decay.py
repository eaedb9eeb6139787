"""Learning rates that fall with the global step: each function gives a scalar tensor.

`global_step` may be a variable, a tensor or a number, and `decay_steps` counts in it. Each formula follows the page
of the same name under https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import random as random_ops
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * decay_rate ** (global_step / decay_steps), the exponent rounded down if `staircase`.

    Args:
      learning_rate: the first rate, a number or a scalar tensor.
      global_step: the step, which must not be None.
      decay_steps: after how many steps the rate is multiplied by `decay_rate`.
      decay_rate: the factor.
      staircase: change the rate only every `decay_steps` steps.
      name: a name scope.

    Returns:
      A scalar Tensor of the dtype of `learning_rate`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/exponential_decay
    """
    with name_scope(name, "ExponentialDecay", [learning_rate, global_step, decay_steps, decay_rate]) as scope:
        rate = _rate(learning_rate, global_step)
        factor = math_ops.cast(decay_rate, rate.dtype)
        return math_ops.multiply(
            rate, math_ops.pow(factor, _fraction(global_step, decay_steps, rate, staircase)), name=scope
        )


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate * exp(-decay_rate * global_step / decay_steps), the fraction rounded down if `staircase`."""
    with name_scope(name, "NaturalExpDecay", [learning_rate, global_step, decay_rate]) as scope:
        rate = _rate(learning_rate, global_step)
        exponent = math_ops.cast(-decay_rate, rate.dtype) * _fraction(global_step, decay_steps, rate, staircase)
        return math_ops.multiply(rate, math_ops.exp(exponent), name=scope)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """learning_rate / (1 + decay_rate * global_step / decay_steps), the fraction rounded down if `staircase`."""
    with name_scope(name, "InverseTimeDecay", [learning_rate, global_step, decay_rate]) as scope:
        rate = _rate(learning_rate, global_step)
        fraction = _fraction(global_step, decay_steps, rate, staircase)
        denominator = constant(1, dtype=rate.dtype) + math_ops.cast(decay_rate, rate.dtype) * fraction
        return math_ops.divide(rate, denominator, name=scope)


def piecewise_constant(
    x: TensorLike, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """values[i] for boundaries[i - 1] < x <= boundaries[i].

    Args:
      x: a scalar, such as the global step.
      boundaries: rising numbers or scalar tensors of the dtype of `x`.
      values: one more than boundaries, all of one dtype.

    Returns:
      A scalar Tensor of the dtype of `values`.

    Raises:
      ValueError: the numbers of boundaries and values, or the dtypes, do not fit.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/piecewise_constant
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with name_scope(name, "PiecewiseConstant", [x, boundaries, values]):
        x = convert_to_tensor(x)
        limits = [convert_to_tensor(boundary, preferred_dtype=x.dtype.base_dtype) for boundary in boundaries]
        for position, limit in enumerate(limits):
            if limit.dtype.base_dtype == x.dtype.base_dtype:
                continue
            if limit.dtype.base_dtype == dtypes.int32 and x.dtype.base_dtype == dtypes.int64:
                limits[position] = math_ops.cast(limit, dtypes.int64)
            else:
                raise ValueError(
                    f"Boundaries ({limit.dtype.base_dtype}) must have the same dtype as x ({x.dtype.base_dtype})."
                )
        choices = [convert_to_tensor(value) for value in values]
        if len({choice.dtype.base_dtype for choice in choices}) > 1:
            raise ValueError("Values must have elements all with the same dtype.")
        if not limits:
            return choices[0]
        cases = [(x <= limits[0], _giving(choices[0])), (x > limits[-1], _giving(choices[-1]))]
        for low, high, choice in zip(limits[:-1], limits[1:], choices[1:-1], strict=True):
            cases.append((math_ops.logical_and(x > low, x <= high), _giving(choice)))
        return control_flow_ops.case(cases, default=_giving(choices[0]), exclusive=True)


piecewise_constant_decay = piecewise_constant


def _giving(value: Tensor) -> Any:
    return lambda: value


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """(learning_rate - end) * (1 - global_step / decay_steps) ** power + end; then end, or again if `cycle`.

    Args:
      learning_rate: the first rate, a number or a scalar tensor.
      global_step: the step, which must not be None.
      decay_steps: after how many steps the last rate is reached.
      end_learning_rate: the last rate.
      power: the power of the polynomial.
      cycle: begin again with a longer period when the step exceeds it.
      name: a name scope.

    Returns:
      A scalar Tensor of the dtype of `learning_rate`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/polynomial_decay
    """
    values = [learning_rate, global_step, decay_steps, end_learning_rate, power]
    with name_scope(name, "PolynomialDecay", values) as scope:
        rate = _rate(learning_rate, global_step)
        end, exponent = math_ops.cast(end_learning_rate, rate.dtype), math_ops.cast(power, rate.dtype)
        step, steps = math_ops.cast(global_step, rate.dtype), math_ops.cast(decay_steps, rate.dtype)
        if cycle:
            # The first cycle counts for step 0 as well.
            one = constant(1.0, dtype=rate.dtype)
            steps = steps * math_ops.maximum(one, math_ops.ceil(step / math_ops.cast(decay_steps, rate.dtype)))
        else:
            step = math_ops.minimum(step, steps)
        left = constant(1.0, dtype=rate.dtype) - step / steps
        return math_ops.add((rate - end) * math_ops.pow(left, exponent), end, name=scope)


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine from learning_rate to alpha * learning_rate. arXiv 1608.03983."""
    with name_scope(name, "CosineDecay", [learning_rate, global_step]):
        rate = _rate(learning_rate, global_step)
        return rate * _above(alpha, _half_cosine(_completed(global_step, decay_steps, rate)))


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """cosine_decay that starts again: each period t_mul times as long, each start m_mul times as high."""
    with name_scope(name, "SGDRDecay", [learning_rate, global_step]):
        rate = _rate(learning_rate, global_step)
        factor = math_ops.cast(t_mul, rate.dtype)
        completed = math_ops.cast(global_step, rate.dtype) / math_ops.cast(first_decay_steps, rate.dtype)
        one = constant(1.0, dtype=rate.dtype)

        def growing() -> list[Tensor]:
            restart = math_ops.floor(math_ops.log(one - completed * (one - factor)) / math_ops.log(factor))
            passed = (one - math_ops.pow(factor, restart)) / (one - factor)
            return [restart, (completed - passed) / math_ops.pow(factor, restart)]

        def equal() -> list[Tensor]:
            restart = math_ops.floor(completed)
            return [restart, completed - restart]

        restart, within = control_flow_ops.cond(math_ops.equal(factor, one), equal, growing)
        height = math_ops.pow(math_ops.cast(m_mul, rate.dtype), restart)
        return rate * _above(alpha, height * _half_cosine(within))


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """learning_rate * ((alpha + linear) * cosine + beta). arXiv 1709.07417."""
    with name_scope(name, "LinearCosineDecay", [learning_rate, global_step]):
        rate = _rate(learning_rate, global_step)
        completed = _completed(global_step, decay_steps, rate)
        return rate * ((alpha + (1 - completed)) * _half_cosine(completed, num_periods) + beta)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """linear_cosine_decay with normal noise in its linear part, of variance initial_variance / (1 + step) ** decay."""
    with name_scope(name, "NoisyLinearCosineDecay", [learning_rate, global_step]):
        rate = _rate(learning_rate, global_step)
        step = math_ops.minimum(
            math_ops.cast(global_step, rate.dtype), math_ops.cast(decay_steps, rate.dtype)
        )
        completed = step / math_ops.cast(decay_steps, rate.dtype)
        variance = initial_variance / math_ops.pow(1.0 + step, constant(variance_decay, dtype=rate.dtype))
        noise = random_ops.random_normal([], stddev=math_ops.sqrt(variance), dtype=rate.dtype)
        return rate * ((alpha + (1 - completed) + noise) * _half_cosine(completed, num_periods) + beta)


def _rate(learning_rate: Any, global_step: Any) -> Tensor:
    if global_step is None:
        raise ValueError("global_step is required for a decaying learning rate.")
    return convert_to_tensor(learning_rate, name="learning_rate")


def _fraction(global_step: Any, decay_steps: Any, rate: Tensor, staircase: bool) -> Tensor:
    fraction = math_ops.cast(global_step, rate.dtype) / math_ops.cast(decay_steps, rate.dtype)
    return math_ops.floor(fraction) if staircase else fraction


def _completed(global_step: Any, decay_steps: Any, rate: Tensor) -> Tensor:
    """The fraction of the decay that is over, at most 1."""
    steps = math_ops.cast(decay_steps, rate.dtype)
    return math_ops.minimum(math_ops.cast(global_step, rate.dtype), steps) / steps


def _half_cosine(completed: Tensor, num_periods: float = 0.5) -> Tensor:
    """From 1 to 0 in half a period."""
    return 0.5 * (1.0 + math_ops.cos(constant(math.pi * 2.0 * num_periods, dtype=completed.dtype) * completed))


def _above(alpha: float, decayed: Tensor) -> Tensor:
    return (1 - alpha) * decayed + alpha
