"""tf.keras.optimizers: the optimizers of tf.train with Keras's names and defaults.

RMSprop is tf.train's, whose mean of squares begins at 1 rather than 0, so its first steps are smaller than Keras's.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/optimizers
"""

from __future__ import annotations

from typing import Any

from dtf.keras.names import meant
from dtf.train.adagrad import AdagradOptimizer
from dtf.train.adam import AdamOptimizer
from dtf.train.gradient_descent import GradientDescentOptimizer
from dtf.train.momentum import MomentumOptimizer
from dtf.train.optimizer import Optimizer
from dtf.train.rmsprop import RMSPropOptimizer

__all__ = ["Adagrad", "Adam", "RMSprop", "SGD", "get"]

_EPSILON = 1e-7


def SGD(learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False) -> Optimizer:  # noqa: N802
    """Gradient descent, with momentum if it is not 0."""
    if not momentum:
        return GradientDescentOptimizer(learning_rate)
    return MomentumOptimizer(learning_rate, momentum, use_nesterov=nesterov)


def Adam(  # noqa: N802
    learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = _EPSILON
) -> Optimizer:
    """Adam."""
    return AdamOptimizer(learning_rate, beta_1, beta_2, epsilon)


def RMSprop(  # noqa: N802
    learning_rate: float = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = _EPSILON
) -> Optimizer:
    """RMSProp."""
    return RMSPropOptimizer(learning_rate, rho, momentum, epsilon)


def Adagrad(learning_rate: float = 0.001, initial_accumulator_value: float = 0.1) -> Optimizer:  # noqa: N802
    """Adagrad."""
    return AdagradOptimizer(learning_rate, initial_accumulator_value)


def get(identifier: Any) -> Optimizer:
    """The optimizer of a name; a tf.train optimizer unchanged.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not an optimizer.
    """
    if isinstance(identifier, Optimizer):
        return identifier
    if not isinstance(identifier, str):
        raise TypeError(f"An optimizer must be a name or one of tf.train, not {identifier!r}")
    return meant("optimizer", identifier.lower(), {"adagrad": Adagrad, "adam": Adam, "rmsprop": RMSprop, "sgd": SGD})()
