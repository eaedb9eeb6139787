"""Optimizers around others: moving averages, norms of variables, norms of gradients."""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = [
    "MovingAverageOptimizer", "MultitaskOptimizerWrapper", "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
]  # fmt: skip


class MovingAverageOptimizer(tf.train.Optimizer):
    """An optimizer that keeps moving averages of the variables, which `swapping_saver` saves in their place.

    Args:
      opt: the optimizer.
      average_decay: of the averages.
      num_updates: the step; the decay is smaller at the first steps.
      sequential_update: whether averages come after the update.
    """

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        self._optimizer = opt
        self._ema = tf.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential_update = sequential_update
        self._swapped: dict[str, Any] | None = None
        super().__init__(use_locking=False, name="MovingAverage")

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The optimizer's, and then the averages."""
        grads_and_vars = list(grads_and_vars)
        update = self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        variables = [variable for _, variable in grads_and_vars]
        with tf.control_dependencies([update] if self._sequential_update else []):
            averages = self._ema.apply(variables)
        self._swapped = {}
        for variable in variables:
            average = self._ema.average(variable)
            self._swapped[variable.op.name] = average
            self._swapped[average.op.name] = variable
        return tf.group(update, averages, name="train_with_avg")

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Any:
        """A Saver that saves the averages under the names of the variables.

        Raises:
          RuntimeError: there are no averages yet.
        """
        if self._swapped is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        variables = tf.global_variables() if var_list is None else var_list
        named = variables if isinstance(variables, dict) else {each.op.name: each for each in variables}
        return tf.train.Saver({key: self._swapped.get(key, each) for key, each in named.items()}, name=name, **kwargs)


class VariableClippingOptimizer(tf.train.Optimizer):
    """An optimizer after whose updates variables are clipped to a norm.

    Args:
      opt: the optimizer.
      vars_to_clip_dims: {variable: the dimensions over which the norm is taken}.
      max_norm: the most that it may be.
    """

    def __init__(
        self, opt: Any, vars_to_clip_dims: Any, max_norm: float, use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False, name: str = "VariableClipping",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._opt, self._dims, self._max_norm = opt, vars_to_clip_dims, max_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The optimizer's, and then the clipping."""
        grads_and_vars = list(grads_and_vars)
        update = self._opt.apply_gradients(grads_and_vars, global_step)
        with tf.control_dependencies([update]):
            clips = [
                tf.assign(variable, tf.clip_by_norm(variable, self._max_norm, self._dims[variable]))
                for _, variable in grads_and_vars
                if variable in self._dims
            ]
            return tf.group(*(clips or [update]), name=name)


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: float = 20.0) -> list[Any]:
    """Gradients, scaled so that their global norm is at most `clip_norm`."""
    gradients, variables = zip(*gradients_variables, strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm)
    return list(zip(clipped, variables, strict=True))


class MultitaskOptimizerWrapper:
    """The optimizer itself: gradients that are all zero are applied like any others."""

    def __init__(self, opt: Any) -> None:
        self._opt = opt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)
