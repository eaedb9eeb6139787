"""tf.contrib.training's training ops and loop, which slim has too.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/training
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dtf as tf

__all__ = [
    "add_gradients_summaries", "clip_gradient_norms", "clip_gradient_norms_fn", "create_train_op",
    "multiply_gradients", "train",
]  # fmt: skip

_USE_GLOBAL_STEP: Any = 0
Gradients = Sequence[tuple[Any, Any]]


def create_train_op(
    total_loss: Any, optimizer: Any, global_step: Any = _USE_GLOBAL_STEP, update_ops: Any = None,
    variables_to_train: Any = None, transform_grads_fn: Callable[[Gradients], Gradients] | None = None,
    summarize_gradients: bool = False, gate_gradients: int = tf.train.Optimizer.GATE_OP,
    aggregation_method: Any = None, colocate_gradients_with_ops: bool = False, check_numerics: bool = True,
) -> Any:  # fmt: skip
    """An op for one step of training, whose value is the loss; it runs the updates of UPDATE_OPS too.

    Args:
      total_loss: a scalar.
      global_step: the step's variable; the graph's by default, None for none.
      update_ops: operations to run before the update; by default the collection UPDATE_OPS.
      variables_to_train: the trainable variables by default.
      transform_grads_fn: a function of [(gradient, variable)].
      summarize_gradients: whether there are histograms of gradients.
      check_numerics: whether a NaN or infinite loss is an error.

    Raises:
      ValueError: no variable is trainable.
    """
    if global_step is _USE_GLOBAL_STEP:
        global_step = tf.train.get_or_create_global_step()
    updates = set(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    if update_ops is not None:
        if not updates.issubset(set(update_ops)):
            tf.logging.warning("update_ops in create_train_op does not contain all the update_ops in UPDATE_OPS")
        updates = set(update_ops)
    ordered = sorted(updates, key=lambda each: each.name)
    if ordered:
        with tf.control_dependencies(ordered):
            barrier = tf.no_op(name="update_barrier")
        with tf.control_dependencies([barrier]):
            total_loss = tf.identity(total_loss)
    variables = tf.trainable_variables() if variables_to_train is None else list(variables_to_train)
    if not variables:
        raise ValueError("there are no variables to train")
    gradients: Gradients = optimizer.compute_gradients(
        total_loss, variables, gate_gradients=gate_gradients, aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )  # fmt: skip
    if transform_grads_fn is not None:
        gradients = transform_grads_fn(gradients)
    if summarize_gradients:
        with tf.name_scope("summarize_grads"):
            add_gradients_summaries(gradients)
    apply = optimizer.apply_gradients(gradients, global_step=global_step)
    with tf.name_scope("train_op"):
        if check_numerics:
            total_loss = tf.check_numerics(total_loss, "LossTensor is inf or nan")
        with tf.control_dependencies([apply]):
            train_op = tf.identity(total_loss)
    collection = tf.get_collection_ref(tf.GraphKeys.TRAIN_OP)
    if not any(train_op is each for each in collection):
        collection.append(train_op)
    return train_op


def multiply_gradients(grads_and_vars: Gradients, gradient_multipliers: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Gradients times the factors of their variables.

    Raises:
      ValueError: a variable with a factor has no gradient.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    result = []
    for gradient, variable in grads_and_vars:
        if variable in gradient_multipliers or variable.op.name in gradient_multipliers:
            key = variable if variable in gradient_multipliers else variable.op.name
            if gradient is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = tf.cast(gradient_multipliers[key], gradient.dtype)
            if isinstance(gradient, tf.IndexedSlices):
                gradient = tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
            else:
                gradient *= factor
        result.append((gradient, variable))
    return result


def clip_gradient_norms(gradients_to_variables: Gradients, max_norm: float) -> list[tuple[Any, Any]]:
    """Each gradient with at most this norm of its own."""
    clipped = []
    for gradient, variable in gradients_to_variables:
        if gradient is not None:
            if isinstance(gradient, tf.IndexedSlices):
                values = tf.clip_by_norm(gradient.values, max_norm)
                gradient = tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
            else:
                gradient = tf.clip_by_norm(gradient, max_norm)
        clipped.append((gradient, variable))
    return clipped


def clip_gradient_norms_fn(max_norm: float) -> Callable[[Gradients], Gradients]:
    """`clip_gradient_norms` as a `transform_grads_fn`."""
    return lambda gradients: clip_gradient_norms(gradients, max_norm)


def add_gradients_summaries(grads_and_vars: Gradients) -> list[Any]:
    """Histograms and norms of gradients."""
    summaries = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            tf.logging.info("Var %s has no gradient", variable.op.name)
            continue
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        name = variable.op.name
        summaries.append(tf.summary.histogram(f"{name}_gradient", values))
        summaries.append(tf.summary.scalar(f"{name}_gradient_norm", tf.global_norm([values])))
    return summaries


def train(
    train_op: Any, logdir: str | None, master: str = "", is_chief: bool = True, scaffold: Any = None,
    hooks: Any = None, chief_only_hooks: Any = None, save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100, config: Any = None, max_wait_secs: int = 7200,
    run_metadata: Any = None,
) -> Any:  # fmt: skip
    """Runs the training op in a MonitoredTrainingSession until a hook stops it. Returns the last loss.

    Raises:
      ValueError: the options need a folder, and none is given.
    """
    if logdir is None and is_chief and (save_summaries_steps or save_checkpoint_secs):
        raise ValueError("logdir cannot be None when save_summaries_steps or save_checkpoint_secs is not None")
    loss = None
    with tf.train.MonitoredTrainingSession(
        master=master, is_chief=is_chief, checkpoint_dir=logdir, scaffold=scaffold, hooks=hooks,
        chief_only_hooks=chief_only_hooks, save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps, config=config, max_wait_secs=max_wait_secs,
    ) as session:  # fmt: skip
        while not session.should_stop():
            loss = session.run(train_op)
    return loss
