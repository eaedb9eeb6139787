"""tf.keras.optimizers: optimizers whose learning rate is a variable, with Keras's names and defaults.

An optimizer here makes, in each graph, a variable of its learning rate (`lr`), a counter of its steps (`iterations`),
and the optimizer of tf.train, or of `keras_steps`, that does the updates. Optimizers of tf.train serve as well.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/optimizers
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from dtf import late
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph
from dtf.build.ops import math as math_ops
from dtf.build.ops.clip import clip_by_norm, clip_by_value
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.keras import configs, keras_steps
from dtf.keras.names import meant
from dtf.train import optimizer as train_optimizer
from dtf.train.adadelta import AdadeltaOptimizer
from dtf.train.adagrad import AdagradOptimizer
from dtf.train.adam import AdamOptimizer
from dtf.train.ftrl import FtrlOptimizer
from dtf.train.gradient_descent import GradientDescentOptimizer

__all__ = [
    "Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "Optimizer", "RMSprop", "SGD", "deserialize", "get",
    "serialize",
]  # fmt: skip

_EPSILON = 1e-7


class Optimizer(train_optimizer.Optimizer):
    """The base of Keras's optimizers.

    Args:
      learning_rate: a number, a tensor, or a schedule: a function of the number of steps.
      name: of the optimizer.
      kwargs: lr, the older name of the learning rate; decay, by which it falls; clipnorm, clipvalue.

    Raises:
      TypeError: there are other arguments.
    """

    _hyper: ClassVar[tuple[str, ...]] = ()

    def __init__(self, learning_rate: Any, name: str, kwargs: dict[str, Any]) -> None:
        super().__init__(False, name)
        rest = dict(kwargs)
        self._rate = rest.pop("lr", learning_rate)
        self.decay = float(rest.pop("decay", 0.0) or 0.0)
        self.clipnorm, self.clipvalue = rest.pop("clipnorm", None), rest.pop("clipvalue", None)
        rest.pop("amsgrad", None)
        if rest:
            raise TypeError(f"Optimizers of tf.keras do not support {sorted(rest)}; use one of tf.train")
        self._made: weakref.WeakKeyDictionary[Graph, tuple[Any, Variable, Any]] = weakref.WeakKeyDictionary()

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        raise NotImplementedError

    def _here(self) -> tuple[Any, Variable, Any]:
        """(the rate, the counter, the optimizer that updates) of the default graph."""
        graph = get_default_graph()
        if graph not in self._made:
            counter = Variable(np.int64(0), trainable=False, name=f"{self._name}/iterations")
            rate = self._rate
            if not callable(rate) and not isinstance(rate, Tensor | Variable):
                rate = Variable(np.float32(rate), trainable=False, name=f"{self._name}/learning_rate")
            steps = math_ops.cast(counter.read_value(), "float32")
            current = rate(counter.read_value()) if callable(rate) and not isinstance(rate, Tensor | Variable) else rate
            current = convert_to_tensor(current)
            if self.decay:
                current = current / (1.0 + self.decay * steps)
            self._made[graph] = (rate, counter, self._inner(current))
        return self._made[graph]

    @property
    def lr(self) -> Any:
        """The variable of the learning rate in the default graph, or the schedule."""
        return self._here()[0]

    @lr.setter
    def lr(self, value: Any) -> None:
        from dtf.keras.backend import set_value

        graph = get_default_graph()
        if graph in self._made and isinstance(self._made[graph][0], Variable) and np.isscalar(value):
            set_value(self._made[graph][0], value)
        else:
            self._rate = value
            self._made.pop(graph, None)

    learning_rate = lr

    @property
    def iterations(self) -> Variable:
        """The variable that counts steps, in the default graph."""
        return self._here()[1]

    def minimize(
        self, loss: Any, global_step: Any = None, var_list: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """An op that makes one step towards a smaller loss; `var_list` may also be the second argument."""
        if isinstance(global_step, list | tuple):
            global_step, var_list = None, global_step
        return super().minimize(loss, global_step, var_list, *args, **kwargs)

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Pairs (gradient, variable), clipped by `clipnorm` and `clipvalue`."""
        return [(self._clipped(grad), var) for grad, var in super().compute_gradients(loss, *args, **kwargs)]

    def _clipped(self, grad: Any) -> Any:
        if grad is None:
            return None
        if self.clipnorm is not None:
            grad = clip_by_norm(grad, self.clipnorm)
        if self.clipvalue is not None:
            grad = clip_by_value(grad, -self.clipvalue, self.clipvalue)
        return grad

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that updates the variables and counts the step."""
        from dtf.build.default_graph import control_dependencies
        from dtf.build.ops.ordering import group

        _, counter, inner = self._here()
        updated = inner.apply_gradients(list(grads_and_vars), global_step, name or self._name)
        with control_dependencies([updated]):
            return group(counter.assign_add(1))

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """The gradients of a loss with respect to variables."""
        return [grad for grad, _ in self.compute_gradients(loss, var_list=list(params))]

    def get_updates(self, loss: Any, params: Any) -> list[Any]:
        """The operations of one step."""
        return [self.minimize(loss, var_list=list(params))]

    def variables(self) -> list[Any]:
        """The variables of this optimizer in the default graph."""
        _, counter, inner = self._here()
        return [counter, *inner.variables()]

    @property
    def weights(self) -> list[Any]:
        """`variables()`."""
        return self.variables()

    def get_weights(self) -> list[Any]:
        """The values of `weights`."""
        from dtf.keras.backend import batch_get_value

        return batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Replaces the values of `weights`."""
        from dtf.keras.backend import batch_set_value

        batch_set_value(list(zip(self.weights, weights, strict=True)))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        rate = self._rate
        graph = get_default_graph()
        if graph in self._made and isinstance(self._made[graph][0], Variable):
            from dtf.keras.backend import get_value

            rate = get_value(self._made[graph][0])
        rate = configs.serialize_keras_object(rate) if callable(rate) else float(rate)
        kept = {name: configs.value_of(getattr(self, name)) for name in self._hyper}
        clips = {"clipnorm": self.clipnorm, "clipvalue": self.clipvalue}
        kept |= {name: float(value) for name, value in clips.items() if value is not None}
        return {"name": self._name, "learning_rate": rate, "decay": self.decay, **kept}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An optimizer from the result of `get_config`."""
        given = {key: value for key, value in config.items() if value is not None}
        if isinstance(given.get("learning_rate"), dict):
            schedules = importlib.import_module("dtf.keras.schedules")
            given["learning_rate"] = configs.deserialize_keras_object(given["learning_rate"], vars(schedules))
        return cls(**given)


class SGD(Optimizer):
    """Gradient descent, with momentum if it is not 0."""

    _hyper = ("momentum", "nesterov")

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, name: str = "SGD", **kwargs: Any
    ) -> None:
        super().__init__(learning_rate, name, kwargs)
        self.momentum, self.nesterov = momentum, nesterov

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        if not self.momentum:
            return GradientDescentOptimizer(rate, name=self._name)
        return keras_steps.Momentum(rate, self.momentum, self.nesterov, self._name)


class Adam(Optimizer):
    """Adam."""

    _hyper = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float | None = None,
        amsgrad: bool = False, name: str = "Adam", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name, kwargs)
        if amsgrad:
            raise ValueError("Adam with amsgrad=True is not supported; use amsgrad=False")
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, _EPSILON if epsilon is None else epsilon

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        return AdamOptimizer(rate, self.beta_1, self.beta_2, self.epsilon, name=self._name)


class RMSprop(Optimizer):
    """RMSProp, whose mean of squares begins at 0."""

    _hyper = ("rho", "momentum", "epsilon", "centered")

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float | None = None,
        centered: bool = False, name: str = "RMSprop", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name, kwargs)
        self.rho, self.momentum, self.epsilon = rho, momentum, _EPSILON if epsilon is None else epsilon
        self.centered = centered

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        return keras_steps.RMSprop(rate, self.rho, self.momentum, self.epsilon, self.centered, self._name)


class Adagrad(Optimizer):
    """Adagrad."""

    _hyper = ("initial_accumulator_value", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1, epsilon: float | None = None,
        name: str = "Adagrad", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name, kwargs)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = _EPSILON if epsilon is None else epsilon

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        return AdagradOptimizer(rate, self.initial_accumulator_value, name=self._name)


class Adadelta(Optimizer):
    """Adadelta."""

    _hyper = ("rho", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float | None = None, name: str = "Adadelta",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name, kwargs)
        self.rho, self.epsilon = rho, _EPSILON if epsilon is None else epsilon

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        return AdadeltaOptimizer(rate, self.rho, self.epsilon, name=self._name)


class Adamax(Optimizer):
    """Adam with the largest gradient in the place of the mean square."""

    _hyper = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float | None = None,
        name: str = "Adamax", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name, kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, _EPSILON if epsilon is None else epsilon

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        return keras_steps.Adamax(rate, self.beta_1, self.beta_2, self.epsilon, self._name)


class Nadam(Optimizer):
    """Adam with Nesterov's momentum."""

    _hyper = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float | None = None,
        name: str = "Nadam", **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs.pop("schedule_decay", None)
        super().__init__(learning_rate, name, kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, _EPSILON if epsilon is None else epsilon

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        return keras_steps.Nadam(rate, self.beta_1, self.beta_2, self.epsilon, self._name)


class Ftrl(Optimizer):
    """Follow the regularised leader."""

    _hyper = (
        "learning_rate_power", "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength",
        "l2_shrinkage_regularization_strength")  # fmt: skip

    def __init__(
        self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5, initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0, name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, name, kwargs)
        self.learning_rate_power, self.initial_accumulator_value = learning_rate_power, initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def _inner(self, rate: Any) -> train_optimizer.Optimizer:
        return FtrlOptimizer(
            rate, self.learning_rate_power, self.initial_accumulator_value, self.l1_regularization_strength,
            self.l2_regularization_strength, name=self._name,
            l2_shrinkage_regularization_strength=self.l2_shrinkage_regularization_strength)  # fmt: skip


def get(identifier: Any) -> train_optimizer.Optimizer:
    """The optimizer of a name or a config; an optimizer unchanged.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not an optimizer.
    """
    if isinstance(identifier, train_optimizer.Optimizer):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if not isinstance(identifier, str):
        raise TypeError(f"An optimizer must be a name or one of tf.train, not {identifier!r}")
    make: Callable[[], train_optimizer.Optimizer] = meant("optimizer", identifier.lower(), _BY_NAME)
    return make()


def serialize(optimizer: Any) -> Any:
    """The config of an optimizer."""
    return configs.serialize_keras_object(optimizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The optimizer of a config."""
    table = {**_BY_NAME, **{each.__name__: each for each in _BY_NAME.values()}}
    name = config["class_name"]
    config = {**config, "class_name": name.lower() if name.lower() in _BY_NAME else name}
    return configs.deserialize_keras_object(config, table, custom_objects, "optimizer")


_BY_NAME = {
    "adadelta": Adadelta, "adagrad": Adagrad, "adam": Adam, "adamax": Adamax, "ftrl": Ftrl, "nadam": Nadam,
    "rmsprop": RMSprop, "sgd": SGD,
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "schedules":
        return importlib.import_module("dtf.keras.schedules")
    raise late.missing("dtf.keras.optimizers", name)
