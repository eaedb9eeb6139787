"""Optimizers whose variables decay apart from their gradients."""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = [
    "AdamWOptimizer", "DecoupledWeightDecayExtension", "MomentumWOptimizer", "extend_with_decoupled_weight_decay",
]  # fmt: skip


class DecoupledWeightDecayExtension:
    """Subtracts `weight_decay` times a variable before the update of the optimizer that it is mixed into.

    Args:
      weight_decay: a number or a scalar tensor.

    Source: Loshchilov and Hutter (2017), https://arxiv.org/abs/1711.05101
    """

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        self._decay_var_list: Any = None
        super().__init__(**kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """As the optimizer's; `decay_var_list` are the variables that decay (all by default)."""
        self._decay_var_list = decay_var_list
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None, decay_var_list: Any = None
    ) -> Any:
        """As the optimizer's; `decay_var_list` are the variables that decay (all by default)."""
        grads_and_vars = list(grads_and_vars)
        decaying = decay_var_list or self._decay_var_list
        chosen = None if decaying is None else {id(each) for each in decaying}
        decays = []
        for gradient, variable in grads_and_vars:
            if gradient is not None and (chosen is None or id(variable) in chosen):
                rate = tf.cast(self._weight_decay, variable.dtype.base_dtype)
                if isinstance(gradient, tf.IndexedSlices):
                    rows, _ = tf.unique(gradient.indices)
                    decays.append(tf.scatter_sub(variable, rows, rate * tf.gather(variable, rows)))
                else:
                    decays.append(tf.assign_sub(variable, rate * variable))
        with tf.control_dependencies(decays):
            return super().apply_gradients(grads_and_vars, global_step, name)  # type: ignore[misc]


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """A class like `base_optimizer` that takes `weight_decay` first."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        """The optimizer, with decay of weights."""

        def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
            self._weight_decay = weight_decay
            self._decay_var_list = None
            base_optimizer.__init__(self, *args, **kwargs)

    return OptimizerWithDecoupledWeightDecay


class AdamWOptimizer(DecoupledWeightDecayExtension, tf.train.AdamOptimizer):
    """Adam with decay of weights."""

    def __init__(
        self, weight_decay: Any, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999,
        epsilon: float = 1e-8, use_locking: bool = False, name: str = "AdamW",
    ) -> None:  # fmt: skip
        super().__init__(
            weight_decay, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon,
            use_locking=use_locking, name=name,
        )  # fmt: skip


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    """Momentum with decay of weights."""

    def __init__(
        self, weight_decay: Any, learning_rate: Any, momentum: Any, use_locking: bool = False,
        name: str = "MomentumW", use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            weight_decay, learning_rate=learning_rate, momentum=momentum, use_locking=use_locking, name=name,
            use_nesterov=use_nesterov,
        )  # fmt: skip
