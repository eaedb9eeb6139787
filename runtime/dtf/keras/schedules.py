"""tf.keras.optimizers.schedules: learning rates as functions of the number of steps.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/optimizers/schedules
"""

from __future__ import annotations

from typing import Any

from dtf.train import learning_rate_decay as decays

__all__ = [
    "ExponentialDecay", "InverseTimeDecay", "LearningRateSchedule", "PiecewiseConstantDecay", "PolynomialDecay",
]  # fmt: skip


class LearningRateSchedule:
    """The base of schedules: subclasses write `__call__`, from a step to a learning rate."""

    def __call__(self, step: Any) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A schedule from the result of `get_config`."""
        return cls(**config)


class ExponentialDecay(LearningRateSchedule):
    """initial_learning_rate * decay_rate ** (step / decay_steps)."""

    def __init__(
        self, initial_learning_rate: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self.initial_learning_rate, self.decay_steps, self.decay_rate = initial_learning_rate, decay_steps, decay_rate
        self.staircase, self.name = staircase, name

    def __call__(self, step: Any) -> Any:
        return decays.exponential_decay(
            self.initial_learning_rate, step, self.decay_steps, self.decay_rate, self.staircase)  # fmt: skip


class InverseTimeDecay(ExponentialDecay):
    """initial_learning_rate / (1 + decay_rate * step / decay_steps)."""

    def __call__(self, step: Any) -> Any:
        return decays.inverse_time_decay(
            self.initial_learning_rate, step, self.decay_steps, self.decay_rate, self.staircase)  # fmt: skip


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] up to the step boundaries[i]."""

    def __init__(self, boundaries: Any, values: Any, name: str | None = None) -> None:
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Any:
        return decays.piecewise_constant(step, self.boundaries, self.values)


class PolynomialDecay(LearningRateSchedule):
    """From initial_learning_rate to end_learning_rate in decay_steps."""

    def __init__(
        self, initial_learning_rate: Any, decay_steps: Any, end_learning_rate: Any = 0.0001, power: Any = 1.0,
        cycle: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power, self.cycle, self.name = end_learning_rate, power, cycle, name

    def __call__(self, step: Any) -> Any:
        return decays.polynomial_decay(
            self.initial_learning_rate, step, self.decay_steps, self.end_learning_rate, self.power,
            self.cycle)  # fmt: skip
