"""The updates of Keras's optimizers that tf.train lacks, in plain operations: momentum, RMSprop, Adamax and Nadam.

Gradients of embeddings are applied as dense ones.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/optimizers
"""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops import math as math_ops
from dtf.build.ops.ordering import group
from dtf.build.variables import Variable
from dtf.train.optimizer import Optimizer

__all__ = ["Adamax", "Momentum", "Nadam", "RMSprop"]


class _Plain(Optimizer):
    """An optimizer whose step is written with tensors; its slots begin at 0."""

    _kept: tuple[str, ...] = ()

    def __init__(self, rate: Any, epsilon: float, name: str) -> None:
        super().__init__(False, name)
        self._rate, self._epsilon = rate, epsilon

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            for slot in self._kept:
                self._zeros_slot(var, slot, self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._moved(grad, var)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._moved(grad, var)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._moved(convert_to_tensor(grad), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        from dtf.build.ops.array import shape_of
        from dtf.build.ops.segment import unsorted_segment_sum

        return self._moved(unsorted_segment_sum(grad, indices, shape_of(handle)[0]), handle)

    def _moved(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError


class Momentum(_Plain):
    """Gradient descent with momentum, whose velocity has the learning rates of the steps that made it."""

    _kept = ("momentum",)

    def __init__(self, rate: Any, momentum: float, is_nesterov: bool, name: str) -> None:
        super().__init__(rate, 0.0, name)
        self._momentum, self._is_nesterov = momentum, is_nesterov

    def _moved(self, grad: Any, var: Any) -> Any:
        kept, step = self.get_slot(var, "momentum"), self._rate * grad
        velocity = kept.assign(self._momentum * kept.read_value() - step)
        return var.assign_add(self._momentum * velocity - step if self._is_nesterov else velocity)


class RMSprop(_Plain):
    """Gradients over the root of the moving mean of their squares."""

    def __init__(self, rate: Any, rho: float, momentum: float, epsilon: float, centered: bool, name: str) -> None:
        super().__init__(rate, epsilon, name)
        self._rho, self._momentum, self._centered = rho, momentum, centered
        self._kept = ("rms", *(["momentum"] if momentum else []), *(["mg"] if centered else []))

    def _moved(self, grad: Any, var: Any) -> Any:
        rms = self.get_slot(var, "rms")
        squares = rms.assign(self._rho * rms.read_value() + (1 - self._rho) * math_ops.square(grad))
        if self._centered:
            mean = self.get_slot(var, "mg")
            squares = squares - math_ops.square(mean.assign(self._rho * mean.read_value() + (1 - self._rho) * grad))
        if self._momentum:
            kept = self.get_slot(var, "momentum")
            step = self._rate * grad / math_ops.sqrt(squares + self._epsilon)
            return var.assign_sub(kept.assign(self._momentum * kept.read_value() + step))
        return var.assign_sub(self._rate * grad / (math_ops.sqrt(squares) + self._epsilon))


class _Counting(_Plain):
    """A step that depends on its number."""

    def __init__(self, rate: Any, beta_1: float, beta_2: float, epsilon: float, name: str) -> None:
        super().__init__(rate, epsilon, name)
        self._beta_1, self._beta_2 = beta_1, beta_2
        self._kept = ("m", "v")
        self._count: Any = None

    def _create_slots(self, var_list: list[Any]) -> None:
        super()._create_slots(var_list)
        if self._count is None:
            self._count = Variable(0.0, trainable=False, name=f"{self._name}/step")

    def _finish(self, update_ops: Any, name_scope: Any) -> Any:
        with control_dependencies(update_ops):
            return group(*update_ops, self._count.assign_add(1.0), name=name_scope)


class Adamax(_Counting):
    """Adam with the largest gradient in the place of the mean square."""

    def _moved(self, grad: Any, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        mean = m.assign(self._beta_1 * m.read_value() + (1 - self._beta_1) * grad)
        most = v.assign(math_ops.maximum(self._beta_2 * v.read_value(), math_ops.abs(grad)))
        rate = self._rate / (1 - math_ops.pow(self._beta_1, self._count.read_value() + 1.0))
        return var.assign_sub(rate * mean / (most + self._epsilon))


class Nadam(_Counting):
    """Adam with Nesterov's momentum, whose weight grows over the steps."""

    def _create_slots(self, var_list: list[Any]) -> None:
        super()._create_slots(var_list)
        if not hasattr(self, "_product"):
            self._product = Variable(1.0, trainable=False, name=f"{self._name}/product")

    def _momentum(self, step: Any) -> Any:
        return self._beta_1 * (1.0 - 0.5 * math_ops.pow(0.96, 0.004 * step))

    def _moved(self, grad: Any, var: Any) -> Any:
        step = self._count.read_value() + 1.0
        now, after = self._momentum(step), self._momentum(step + 1.0)
        product = self._product.read_value() * now
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        mean = m.assign(self._beta_1 * m.read_value() + (1 - self._beta_1) * grad)
        squares = v.assign(self._beta_2 * v.read_value() + (1 - self._beta_2) * math_ops.square(grad))
        ahead = (1.0 - now) * grad / (1.0 - product) + after * mean / (1.0 - product * after)
        root = math_ops.sqrt(squares / (1.0 - math_ops.pow(self._beta_2, step)))
        return var.assign_sub(self._rate * ahead / (root + self._epsilon))

    def _finish(self, update_ops: Any, name_scope: Any) -> Any:
        with control_dependencies(update_ops):
            product = self._product.assign(self._product.read_value() * self._momentum(self._count.read_value() + 1.0))
        with control_dependencies([product]):
            return super()._finish(update_ops, name_scope)
