"""tf.keras.optimizers: the optimizers of tf.train with Keras's names and defaults.

RMSprop is tf.train's, whose mean of squares begins at 1 rather than 0, so its first steps are smaller than Keras's.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/optimizers
"""

from __future__ import annotations

from typing import Any

from dtf import logging
from dtf.keras.names import meant
from dtf.train.adadelta import AdadeltaOptimizer
from dtf.train.adagrad import AdagradOptimizer
from dtf.train.adam import AdamOptimizer
from dtf.train.gradient_descent import GradientDescentOptimizer
from dtf.train.momentum import MomentumOptimizer
from dtf.train.optimizer import Optimizer
from dtf.train.rmsprop import RMSPropOptimizer

__all__ = ["Adadelta", "Adagrad", "Adam", "RMSprop", "SGD", "get"]

_EPSILON = 1e-7


def SGD(  # noqa: N802
    learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False, **kwargs: Any
) -> Optimizer:
    """Gradient descent, with momentum if it is not 0."""
    rate = _rate(learning_rate, kwargs)
    if not momentum:
        return GradientDescentOptimizer(rate)
    return MomentumOptimizer(rate, momentum, use_nesterov=nesterov)


def Adam(  # noqa: N802
    learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float | None = None,
    **kwargs: Any,
) -> Optimizer:  # fmt: skip
    """Adam."""
    return AdamOptimizer(_rate(learning_rate, kwargs), beta_1, beta_2, _EPSILON if epsilon is None else epsilon)


def RMSprop(  # noqa: N802
    learning_rate: float = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float | None = None,
    **kwargs: Any,
) -> Optimizer:  # fmt: skip
    """RMSProp."""
    return RMSPropOptimizer(_rate(learning_rate, kwargs), rho, momentum, _EPSILON if epsilon is None else epsilon)


def Adagrad(  # noqa: N802
    learning_rate: float = 0.001, initial_accumulator_value: float = 0.1, **kwargs: Any
) -> Optimizer:
    """Adagrad."""
    return AdagradOptimizer(_rate(learning_rate, kwargs), initial_accumulator_value)


def Adadelta(  # noqa: N802
    learning_rate: float = 1.0, rho: float = 0.95, epsilon: float | None = None, **kwargs: Any
) -> Optimizer:
    """Adadelta."""
    return AdadeltaOptimizer(_rate(learning_rate, kwargs), rho, _EPSILON if epsilon is None else epsilon)


def _rate(learning_rate: float, kwargs: dict[str, Any]) -> float:
    """The learning rate; `lr` is its older name.

    Raises:
      TypeError: there are other arguments.
    """
    rest = dict(kwargs)
    rate: float = rest.pop("lr", learning_rate)
    if rest.pop("decay", 0.0):
        logging.warning("Optimizers of tf.keras do not apply `decay`: the learning rate stays %s", rate)
    rest.pop("amsgrad", False)
    if rest:
        raise TypeError(f"Optimizers of tf.keras do not support {sorted(rest)}; use one of tf.train")
    return rate


def get(identifier: Any) -> Optimizer:
    """The optimizer of a name; a tf.train optimizer unchanged.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not an optimizer.
    """
    if isinstance(identifier, Optimizer):
        return identifier
    if not isinstance(identifier, str):
        raise TypeError(f"An optimizer must be a name or one of tf.train, not {identifier!r}")
    return meant("optimizer", identifier.lower(), _BY_NAME)()


_BY_NAME = {"adadelta": Adadelta, "adagrad": Adagrad, "adam": Adam, "rmsprop": RMSprop, "sgd": SGD}
