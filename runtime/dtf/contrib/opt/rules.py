"""Optimizers with rules of their own. Owns their slots; the arithmetic of dense updates is the runtime's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dtf as tf
from dtf.train.adam import AdamOptimizer
from dtf.train.optimizer import RuleOptimizer

__all__ = [
    "AdaMaxOptimizer", "AddSignOptimizer", "LARSOptimizer", "LazyAdamOptimizer", "NadamOptimizer",
    "PowerSignOptimizer",
]  # fmt: skip


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that leaves the moments of rows without a gradient as they are.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/opt/LazyAdamOptimizer
    """

    def _apply_slices(self, values: Any, var: Any, indices: Any) -> Any:
        beta1_power, beta2_power = self._powers(var)
        beta1, beta2 = self._scalar("beta1", var), self._scalar("beta2", var)
        rate = self._scalar("learning_rate", var) * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        mean, keep_mean = _new_rows(self.get_slot(var, "m"), indices, lambda m: beta1 * m + (1 - beta1) * values)
        square, keep_square = _new_rows(
            self.get_slot(var, "v"), indices, lambda v: beta2 * v + (1 - beta2) * tf.square(values)
        )
        step = rate * mean / (tf.sqrt(square) + self._scalar("epsilon", var))
        return tf.group(tf.scatter_sub(var, indices, step), keep_mean, keep_square)


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum.

    Source: Dozat (2015), http://cs229.stanford.edu/proj2015/054_report.pdf
    """

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        rule, arguments = super()._rule(var)
        return rule, {**arguments, "use_nesterov": True}

    def _apply_slices(self, values: Any, var: Any, indices: Any) -> Any:
        beta1_power, beta2_power = self._powers(var)
        beta1, beta2 = self._scalar("beta1", var), self._scalar("beta2", var)
        rate = self._scalar("learning_rate", var) * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        added = values * (1 - beta1)
        mean = self._decayed("m", var, beta1, added, indices)
        square = self._decayed("v", var, beta2, values * values * (1 - beta2), indices)
        ahead = added + beta1 * tf.gather(mean, indices)
        step = rate * ahead / (tf.sqrt(tf.gather(square, indices)) + self._scalar("epsilon", var))
        return tf.group(tf.scatter_sub(var, indices, step), mean, square)


class AdaMaxOptimizer(AdamOptimizer):
    """Adam with the greatest absolute gradient in place of the second moment.

    Source: Kingma and Ba (2014), section 7.1, https://arxiv.org/abs/1412.6980
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
        use_locking: bool = False, name: str = "AdaMax",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power")

    def _create_slots(self, var_list: list[Any]) -> None:
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(self._call_if_callable(self._beta1), "beta1_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _powers(self, var: Any) -> Any:
        return tf.cast(self._get_beta_accumulators(), var.dtype.base_dtype)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "AdaMax", {
            "m": self.get_slot(var, "m"),
            "v": self.get_slot(var, "v"),
            "beta1_power": self._powers(var),
            "lr": self._scalar("learning_rate", var),
            "beta1": self._scalar("beta1", var),
            "beta2": self._scalar("beta2", var),
            "epsilon": self._scalar("epsilon", var),
        }

    def _apply_slices(self, values: Any, var: Any, indices: Any) -> Any:
        beta1, beta2 = self._scalar("beta1", var), self._scalar("beta2", var)
        mean, keep_mean = _new_rows(self.get_slot(var, "m"), indices, lambda m: beta1 * m + (1 - beta1) * values)
        most, keep_most = _new_rows(self.get_slot(var, "v"), indices, lambda v: tf.maximum(beta2 * v, tf.abs(values)))
        rate = self._scalar("learning_rate", var) / (1 - self._powers(var))
        step = rate * mean / (most + self._scalar("epsilon", var))
        return tf.group(tf.scatter_sub(var, indices, step), keep_mean, keep_most)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        power = self._get_beta_accumulators()
        with tf.control_dependencies(update_ops), tf.colocate_with(power):
            advance = power.assign(power * tf.cast(self._tensors["beta1"], power.dtype.base_dtype))
        return tf.group(*update_ops, advance, name=name_scope)


class _SignOptimizer(RuleOptimizer):
    """A rule that compares the sign of a gradient with that of the moving average of gradients."""

    def __init__(
        self, name: str, use_locking: bool, sign_decay_fn: Callable[[Any], Any] | None, hyperparameters: dict[str, Any]
    ) -> None:
        self._sign_decay_fn = sign_decay_fn
        super().__init__(use_locking, name, {**hyperparameters, "sign_decay": 1.0})

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """As every optimizer's. `sign_decay_fn` gets the global step.

        Raises:
          ValueError: there is a `sign_decay_fn` and no global step.
        """
        if self._sign_decay_fn is not None:
            if global_step is None:
                raise ValueError("sign_decay_fn needs global_step: give it to minimize or apply_gradients.")
            self._hyperparameters["sign_decay"] = self._sign_decay_fn(global_step)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _arguments(self, var: Any, *names: str) -> dict[str, Any]:
        scalars = {name: self._scalar(name, var) for name in (*names, "sign_decay", "beta")}
        return {"m": self.get_slot(var, "m"), "lr": self._scalar("learning_rate", var), **scalars}

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._apply_dense(tf.convert_to_tensor(grad), var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._resource_apply_dense(
            tf.convert_to_tensor(tf.IndexedSlices(grad, indices, tf.shape(handle))), handle
        )


class AddSignOptimizer(_SignOptimizer):
    """var -= learning_rate * (alpha + sign_decay * sign(g) * sign(m)) * g.

    Source: Bello et al. (2017), https://arxiv.org/abs/1709.07417
    """

    def __init__(
        self, learning_rate: Any = 0.1, alpha: float = 1.0, beta: float = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None, use_locking: bool = False, name: str = "AddSignOptimizer",
    ) -> None:  # fmt: skip
        given = {"learning_rate": learning_rate, "alpha": alpha, "beta": beta}
        super().__init__(name, use_locking, sign_decay_fn, given)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "AddSign", self._arguments(var, "alpha")


class PowerSignOptimizer(_SignOptimizer):
    """var -= learning_rate * base ** (sign_decay * sign(g) * sign(m)) * g.

    Source: Bello et al. (2017), https://arxiv.org/abs/1709.07417
    """

    def __init__(
        self, learning_rate: Any = 0.1, base: float = math.e, beta: float = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None, use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:  # fmt: skip
        given = {"learning_rate": learning_rate, "logbase": math.log(base), "beta": beta}
        super().__init__(name, use_locking, sign_decay_fn, given)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "PowerSign", self._arguments(var, "logbase")


class LARSOptimizer(RuleOptimizer):
    """Momentum with a rate for each variable, in proportion to its norm over its gradient's.

    Args:
      eeta: the factor of the proportion.
      weight_decay: of variables that no part of `skip_list` occurs in the name of.
      skip_list: parts of names of variables that are updated with momentum alone.

    Source: You et al. (2017), https://arxiv.org/abs/1708.03888
    """

    def __init__(
        self, learning_rate: Any, momentum: Any = 0.9, weight_decay: float = 0.0001, eeta: float = 0.001,
        epsilon: float = 0.0, name: str = "LARSOptimizer", skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(momentum, float) and momentum < 0.0:
            raise ValueError(f"momentum must be positive, got {momentum}")
        super().__init__(False, name, {"learning_rate": learning_rate, "momentum": momentum})
        self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
        self._skip_list, self._use_nesterov = tuple(skip_list or ()), use_nesterov
        self._ratio: Any = None

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        rate = self._scalar("learning_rate", var)
        return "Momentum", {
            "accum": self.get_slot(var, "momentum"),
            "lr": rate if self._ratio is None else rate * self._ratio,
            "momentum": self._scalar("momentum", var),
            "use_nesterov": self._use_nesterov,
        }

    def _scaled(self, grad: Any, var: Any) -> Any:
        """The gradient with the decay; the ratio of this variable is kept for its rule."""
        self._ratio = None
        if any(part in var.name for part in self._skip_list):
            return grad
        value = tf.convert_to_tensor(var)
        own, given = tf.norm(value), tf.norm(grad)
        ratio = self._eeta * own / (given + self._weight_decay * own + self._epsilon)
        self._ratio = tf.where(tf.logical_and(own > 0, given > 0), ratio, tf.ones_like(ratio))
        return grad + self._weight_decay * value

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return super()._apply_dense(self._scaled(grad, var), var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return super()._resource_apply_dense(self._scaled(grad, handle), handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("LARSOptimizer has no sparse updates: gather from a smaller variable")


def _new_rows(slot: Any, indices: Any, change: Callable[[Any], Any]) -> tuple[Any, Any]:
    """(the changed rows, the operation that keeps them) of a slot."""
    rows = change(tf.gather(slot, indices))
    return rows, tf.scatter_update(slot, indices, rows)
