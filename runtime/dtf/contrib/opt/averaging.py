"""Optimizers of workers that train copies of the variables and average them with those at the parameter servers.

Owns elastic averages and plain averages of models, the getters that make the copies, and an optimizer that drops stale
gradients. The copies are local variables; those at the parameter servers are global.

Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with Elastic Averaging SGD" (2015).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = [
    "DropStaleGradientOptimizer", "ElasticAverageCustomGetter", "ElasticAverageOptimizer", "ModelAverageCustomGetter",
    "ModelAverageOptimizer",
]  # fmt: skip


class _CustomGetter:
    """A getter of variables: each trainable one is a local copy, beside a global variable of its name."""

    def __init__(self, worker_device: str) -> None:
        self._worker_device = worker_device
        self.copies: list[tuple[Any, Any]] = []
        """(the copy of this worker, the global variable) of each trainable variable."""

    def __call__(self, getter: Callable[..., Any], name: str, trainable: Any, collections: Any, *args: Any,
                 **kwargs: Any) -> Any:  # fmt: skip
        if trainable is False:
            return getter(name, *args, trainable=trainable, collections=collections, **kwargs)
        with tf.device(self._worker_device):
            copy = getter(
                name, *args, trainable=True, collections=[tf.GraphKeys.LOCAL_VARIABLES], **kwargs
            )
        shared = tf.Variable(
            copy.initialized_value(), trainable=False, collections=[tf.GraphKeys.GLOBAL_VARIABLES],
            name=f"global_center_variable/{name}",
        )  # fmt: skip
        self.copies.append((copy, shared))
        return copy


class ElasticAverageCustomGetter(_CustomGetter):
    """A getter for `tf.variable_scope(custom_getter=)` that makes the copies of ElasticAverageOptimizer."""


class ModelAverageCustomGetter(_CustomGetter):
    """A getter for `tf.variable_scope(custom_getter=)` that makes the copies of ModelAverageOptimizer."""


class _AveragingOptimizer(tf.train.Optimizer):
    """An optimizer of copies that exchanges them with the global variables every so many steps."""

    def __init__(self, opt: Any, getter: _CustomGetter, period: int, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._optimizer, self._getter, self._period = opt, getter, period
        self._local_step = tf.Variable(
            0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES], name=f"{name}_local_step"
        )

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's, of this worker's copies."""
        return self._optimizer.compute_gradients(loss, var_list or self._copies(), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The optimizer's update of the copies, and in every period an exchange with the global variables."""
        update = self._optimizer.apply_gradients(list(grads_and_vars), name=name)
        with tf.control_dependencies([update]):
            counted = self._local_step.assign_add(1, use_locking=True)

        def exchange() -> Any:
            with tf.control_dependencies(self._exchanges()):
                if global_step is None:
                    return tf.no_op()
                return tf.group(global_step.assign_add(self._steps_of_an_exchange()))

        with tf.control_dependencies([counted]):
            is_due = tf.equal(tf.mod(counted, self._period), 0)
            return tf.cond(is_due, exchange, tf.no_op)

    def get_init_op(self, task_index: int) -> Any:
        """The operation that sets the copies to the global variables."""
        return tf.group(*(copy.assign(shared) for copy, shared in self._getter.copies))

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def _copies(self) -> list[Any]:
        return [copy for copy, _ in self._getter.copies]

    def _steps_of_an_exchange(self) -> int:
        return 1

    def _exchanges(self) -> list[Any]:
        raise NotImplementedError


class ElasticAverageOptimizer(_AveragingOptimizer):
    """Workers train copies; every `communication_period` steps copy and global variable move towards each other.

    Args:
      opt: the optimizer of the copies.
      num_worker: the number of workers.
      ea_custom_getter: the getter that made the copies.
      communication_period: steps between two exchanges.
      moving_rate: the part of the difference by which both move; 0.9 / communication_period / num_worker by default.
      rho: a rate of exploration; the moving rate is rho times the learning rate if that is given instead.
    """

    BETA = 0.9

    def __init__(
        self, opt: Any, num_worker: int, ea_custom_getter: ElasticAverageCustomGetter, communication_period: int = 10,
        moving_rate: float | None = None, rho: float | None = None, use_locking: bool = True,
        synchronous: bool = False, name: str = "ElasticAverageOptimizer",
    ) -> None:  # fmt: skip
        del rho, synchronous
        super().__init__(opt, ea_custom_getter, communication_period, use_locking, name)
        self._rate = self.BETA / communication_period / num_worker if moving_rate is None else moving_rate

    def _exchanges(self) -> list[Any]:
        made = []
        for copy, shared in self._getter.copies:
            change = self._rate * (copy.read_value() - shared.read_value())
            made += [copy.assign_sub(change), shared.assign_add(change)]
        return made

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> Any:
        """A hook that sets the copies of a worker to the global variables at the start of a session."""
        return _CopyHook(self.get_init_op(task_index))


class ModelAverageOptimizer(_AveragingOptimizer):
    """Workers train copies; every `interval_steps` steps the global variables become the mean of all copies.

    Args:
      opt: the optimizer of the copies.
      num_worker: the number of workers.
      is_chief: whether this worker takes the mean.
      ma_custom_getter: the getter that made the copies.
      interval_steps: steps between two exchanges.
    """

    def __init__(
        self, opt: Any, num_worker: int, is_chief: bool, ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100, use_locking: bool = True, name: str = "ModelAverageOptimizer",
    ) -> None:  # fmt: skip
        super().__init__(opt, ma_custom_getter, interval_steps, use_locking, name)
        self._num_worker, self._is_chief = num_worker, is_chief

    def _exchanges(self) -> list[Any]:
        made = []
        for copy, shared in self._getter.copies:
            sums = tf.ConditionalAccumulator(
                copy.dtype.base_dtype, shape=copy.shape, shared_name=f"{copy.op.name}/model_average"
            )
            given = sums.apply_grad(copy.read_value(), local_step=tf.int64.max)
            with tf.control_dependencies([given]):
                if self._is_chief:
                    mean = sums.take_grad(self._num_worker)
                    made.append(copy.assign(shared.assign(mean)))
                else:
                    made.append(copy.assign(shared.read_value()))
        return made

    def make_session_run_hook(self) -> Any:
        """A hook that sets the copies to the global variables at the start of a session."""
        return _CopyHook(self.get_init_op(0))


class _CopyHook(tf.train.SessionRunHook):
    """Runs an operation once a session has been made."""

    def __init__(self, operation: Any) -> None:
        self._operation = operation

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the operation."""
        session.run(self._operation)


class DropStaleGradientOptimizer(tf.train.Optimizer):
    """An optimizer that leaves out gradients whose step began more than `staleness` steps ago.

    Args:
      opt: the optimizer.
      staleness: the most updates of others since the gradients' variables were read.
    """

    def __init__(
        self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"
    ) -> None:
        super().__init__(use_locking, name)
        self._optimizer, self._staleness = opt, staleness

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's, after the global step has been read."""
        step = tf.train.get_or_create_global_step()
        with tf.colocate_with(loss):
            self._begun = tf.identity(step)
        with tf.control_dependencies([self._begun]):
            return self._optimizer.compute_gradients(tf.identity(loss), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The optimizer's update, if the gradients are not stale."""
        gradients = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        step = tf.train.get_or_create_global_step() if global_step is None else global_step
        with tf.control_dependencies([tf.convert_to_tensor(gradient) for gradient, _ in gradients]):
            age = step.read_value() - self._begun
        return tf.cond(
            tf.less_equal(age, tf.cast(self._staleness, age.dtype)),
            lambda: tf.group(self._optimizer.apply_gradients(gradients, global_step, name)),
            tf.no_op,
        )

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot_names(*args, **kwargs)
