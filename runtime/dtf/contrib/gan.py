"""tf.contrib.gan: a generator and a discriminator as one model, their losses, and their alternating training.

    model = tfgan.gan_model(generator_fn, discriminator_fn, real_data=images, generator_inputs=noise)
    loss = tfgan.gan_loss(model)
    ops = tfgan.gan_train_ops(model, loss, tf.train.AdamOptimizer(1e-3, 0.5), tf.train.AdamOptimizer(1e-4, 0.5))
    tfgan.gan_train(ops, logdir, hooks=[tf.train.StopAtStepHook(num_steps=1000)])

Owns `losses` of Goodfellow's, Wasserstein's and the least squares' kind with the gradient penalty; the classes for
conditional, information and cycle models are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/gan
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import dtf as tf

__all__ = [
    "GANLoss", "GANModel", "GANTrainOps", "GANTrainSteps", "RunTrainOpsHook", "gan_loss", "gan_model", "gan_train",
    "gan_train_ops", "get_joint_train_hooks", "get_sequential_train_hooks", "losses",
]  # fmt: skip

GANModel = namedtuple(
    "GANModel",
    "generator_inputs generated_data generator_variables generator_scope generator_fn real_data "
    "discriminator_real_outputs discriminator_gen_outputs discriminator_variables discriminator_scope "
    "discriminator_fn",
)
GANLoss = namedtuple("GANLoss", "generator_loss discriminator_loss")
GANTrainOps = namedtuple("GANTrainOps", "generator_train_op discriminator_train_op global_step_inc_op train_hooks")
GANTrainOps.__new__.__defaults__ = ((),)
GANTrainSteps = namedtuple("GANTrainSteps", "generator_train_steps discriminator_train_steps")
_ONE_EACH = GANTrainSteps(1, 1)


def gan_model(
    generator_fn: Callable[..., Any], discriminator_fn: Callable[..., Any], real_data: Any, generator_inputs: Any,
    generator_scope: Any = "Generator", discriminator_scope: Any = "Discriminator", check_shapes: bool = True,
) -> Any:  # fmt: skip
    """Calls both functions, the discriminator on generated and on real data with the same variables.

    Args:
      generator_fn: inputs -> data.
      discriminator_fn: (data, generator inputs) -> outputs.
      real_data: a tensor of real data.
      generator_inputs: a tensor of noise, or a list of tensors.

    Returns:
      A GANModel.

    Raises:
      ValueError: generated and real data have different shapes.
    """
    with tf.variable_scope(generator_scope) as made:
        inputs = tf.contrib.framework.nest.map_structure(tf.convert_to_tensor, generator_inputs)
        generated = generator_fn(inputs)
    with tf.variable_scope(discriminator_scope) as judged:
        of_generated = discriminator_fn(generated, inputs)
    with tf.variable_scope(judged, reuse=True):
        real_data = tf.convert_to_tensor(real_data)
        of_real = discriminator_fn(real_data, inputs)
    if check_shapes and not generated.shape.is_compatible_with(real_data.shape):
        raise ValueError(
            f"Generator output shape ({generated.shape}) must be the same shape as real data ({real_data.shape})."
        )
    return GANModel(
        inputs, generated, tf.trainable_variables(f"{made.name}/"), made, generator_fn, real_data, of_real,
        of_generated, tf.trainable_variables(f"{judged.name}/"), judged, discriminator_fn,
    )  # fmt: skip


# Losses of outputs: the generator's take those of generated data, the discriminator's those of real data first.


def _mean(values: Any, weights: Any, name: str) -> Any:
    with tf.name_scope(name):
        return tf.losses.compute_weighted_loss(values, weights)


def _entropy(label: float, logits: Any, smoothing: float = 0.0) -> Any:
    labels = label * (1.0 - smoothing) + 0.5 * smoothing
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels * tf.ones_like(logits), logits=logits)


def _wasserstein_generator(discriminator_gen_outputs: Any, weights: Any = 1.0) -> Any:
    return _mean(-discriminator_gen_outputs, weights, "generator_wasserstein_loss")


def _wasserstein_discriminator(
    discriminator_real_outputs: Any, discriminator_gen_outputs: Any, real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
) -> Any:  # fmt: skip
    generated = _mean(discriminator_gen_outputs, generated_weights, "discriminator_wasserstein_loss")
    return generated - _mean(discriminator_real_outputs, real_weights, "discriminator_wasserstein_loss")


def _minimax_generator(discriminator_gen_outputs: Any, weights: Any = 1.0, label_smoothing: float = 0.0) -> Any:
    return -_mean(_entropy(0.0, discriminator_gen_outputs), weights, "generator_minimax_loss")


def _minimax_discriminator(
    discriminator_real_outputs: Any, discriminator_gen_outputs: Any, label_smoothing: float = 0.25,
    real_weights: Any = 1.0, generated_weights: Any = 1.0,
) -> Any:  # fmt: skip
    real = _entropy(1.0, discriminator_real_outputs, label_smoothing)
    generated = _mean(_entropy(0.0, discriminator_gen_outputs), generated_weights, "discriminator_minimax_loss")
    return _mean(real, real_weights, "discriminator_minimax_loss") + generated


def _modified_generator(discriminator_gen_outputs: Any, label_smoothing: float = 0.0, weights: Any = 1.0) -> Any:
    return _mean(_entropy(1.0, discriminator_gen_outputs, label_smoothing), weights, "generator_modified_loss")


def _least_squares_generator(discriminator_gen_outputs: Any, real_label: float = 1, weights: Any = 1.0) -> Any:
    return _mean(0.5 * tf.square(discriminator_gen_outputs - real_label), weights, "lsq_generator_loss")


def _least_squares_discriminator(
    discriminator_real_outputs: Any, discriminator_gen_outputs: Any, real_label: float = 1, fake_label: float = 0,
    real_weights: Any = 1.0, generated_weights: Any = 1.0,
) -> Any:  # fmt: skip
    real = _mean(0.5 * tf.square(discriminator_real_outputs - real_label), real_weights, "lsq_discriminator_loss")
    generated = 0.5 * tf.square(discriminator_gen_outputs - fake_label)
    return real + _mean(generated, generated_weights, "lsq_discriminator_loss")


def _of_generated(loss: Callable[..., Any]) -> Callable[..., Any]:
    def of_model(model: Any, add_summaries: bool = False, **kwargs: Any) -> Any:
        return loss(model.discriminator_gen_outputs, **kwargs)

    return of_model


def _of_both(loss: Callable[..., Any]) -> Callable[..., Any]:
    def of_model(model: Any, add_summaries: bool = False, **kwargs: Any) -> Any:
        return loss(model.discriminator_real_outputs, model.discriminator_gen_outputs, **kwargs)

    return of_model


def _gradient_penalty(model: Any, epsilon: float = 1e-10, target: float = 1.0, one_sided: bool = False) -> Any:
    """The mean square of how far the discriminator's gradients are from `target`, between real and generated data."""
    real, generated = model.real_data, model.generated_data
    ones = [1] * (generated.shape.ndims - 1)
    part = tf.random_uniform(tf.concat([tf.shape(generated)[:1], ones], 0), dtype=generated.dtype)
    between = real + part * (generated - real)
    with tf.variable_scope(model.discriminator_scope, reuse=True):
        outputs = model.discriminator_fn(between, model.generator_inputs)
    gradients = tf.gradients(outputs, between)[0]
    squares = tf.reduce_sum(tf.square(gradients), list(range(1, gradients.shape.ndims)))
    far = tf.sqrt(squares + epsilon) / target - 1.0
    return tf.losses.compute_weighted_loss(tf.square(tf.maximum(far, 0.0) if one_sided else far))


losses = SimpleNamespace(
    wasserstein_generator_loss=_of_generated(_wasserstein_generator),
    wasserstein_discriminator_loss=_of_both(_wasserstein_discriminator),
    minimax_generator_loss=_of_generated(_minimax_generator),
    minimax_discriminator_loss=_of_both(_minimax_discriminator),
    modified_generator_loss=_of_generated(_modified_generator),
    modified_discriminator_loss=_of_both(_minimax_discriminator),
    least_squares_generator_loss=_of_generated(_least_squares_generator),
    least_squares_discriminator_loss=_of_both(_least_squares_discriminator),
    wasserstein_gradient_penalty=_gradient_penalty,
    wargs=SimpleNamespace(
        wasserstein_generator_loss=_wasserstein_generator, wasserstein_discriminator_loss=_wasserstein_discriminator,
        minimax_generator_loss=_minimax_generator, minimax_discriminator_loss=_minimax_discriminator,
        modified_generator_loss=_modified_generator, modified_discriminator_loss=_minimax_discriminator,
        least_squares_generator_loss=_least_squares_generator,
        least_squares_discriminator_loss=_least_squares_discriminator,
    ),
)


def gan_loss(
    model: Any, generator_loss_fn: Callable[..., Any] = losses.wasserstein_generator_loss,
    discriminator_loss_fn: Callable[..., Any] = losses.wasserstein_discriminator_loss,
    gradient_penalty_weight: Any = None, gradient_penalty_epsilon: float = 1e-10, gradient_penalty_target: float = 1.0,
    gradient_penalty_one_sided: bool = False, add_summaries: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """The losses of both functions, those of their regularizers included.

    Returns:
      A GANLoss.

    Raises:
      ValueError: arguments of conditional or information models are given.
    """
    given = sorted(key for key, value in kwargs.items() if value)
    if given:
        raise ValueError(f"gan_loss does not support {given}; add such terms to the GANLoss")
    made = generator_loss_fn(model, add_summaries=add_summaries)
    judged = discriminator_loss_fn(model, add_summaries=add_summaries)
    if gradient_penalty_weight:
        penalty = _gradient_penalty(
            model, gradient_penalty_epsilon, gradient_penalty_target, gradient_penalty_one_sided
        )
        judged += gradient_penalty_weight * penalty
    for name, value in (("generator", made), ("discriminator", judged)):
        if add_summaries:
            tf.summary.scalar(f"{name}_loss", value)
    return GANLoss(
        made + tf.losses.get_regularization_loss(f"{model.generator_scope.name}/"),
        judged + tf.losses.get_regularization_loss(f"{model.discriminator_scope.name}/"),
    )


# Training


def gan_train_ops(
    model: Any, loss: Any, generator_optimizer: Any, discriminator_optimizer: Any,
    check_for_unused_update_ops: bool = True, is_chief: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """The training steps of both functions, each of its own variables, and the op that counts steps.

    Args:
      kwargs: arguments of `tf.contrib.training.create_train_op`.

    Returns:
      A GANTrainOps.
    """
    step = tf.train.get_or_create_global_step()
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)

    def trained(value: Any, optimizer: Any, variables: Any, scope: Any) -> Any:
        own = {each for each in updates if each.name.startswith(f"{scope.name}/")}
        return tf.contrib.training.create_train_op(
            value, optimizer, global_step=None, update_ops=own, variables_to_train=variables, **kwargs
        )

    made = trained(loss.generator_loss, generator_optimizer, model.generator_variables, model.generator_scope)
    judged = trained(
        loss.discriminator_loss, discriminator_optimizer, model.discriminator_variables, model.discriminator_scope
    )
    hooks = [
        each.make_session_run_hook(is_chief) for each in (generator_optimizer, discriminator_optimizer)
        if isinstance(each, tf.train.SyncReplicasOptimizer)
    ]  # fmt: skip
    return GANTrainOps(made, judged, step.assign_add(1), hooks)


class RunTrainOpsHook(tf.train.SessionRunHook):
    """Runs training ops a number of times before each step of the session."""

    def __init__(self, train_ops: Any, train_steps: int) -> None:
        self._ops = train_ops if isinstance(train_ops, list | tuple) else [train_ops]
        self._steps = train_steps

    def before_run(self, run_context: Any) -> None:
        """Runs the ops."""
        for _ in range(self._steps):
            run_context.session.run(list(self._ops))


def get_sequential_train_hooks(train_steps: Any = _ONE_EACH) -> Callable[[Any], list[Any]]:
    """A function of GANTrainOps: hooks that train the generator, then the discriminator."""

    def hooks(train_ops: Any) -> list[Any]:
        made = RunTrainOpsHook(train_ops.generator_train_op, train_steps.generator_train_steps)
        judged = RunTrainOpsHook(train_ops.discriminator_train_op, train_steps.discriminator_train_steps)
        return [made, judged, *train_ops.train_hooks]

    return hooks


def get_joint_train_hooks(train_steps: Any = _ONE_EACH) -> Callable[[Any], list[Any]]:
    """A function of GANTrainOps: hooks that train both at once, and the one with more steps alone afterwards."""
    made, judged = train_steps.generator_train_steps, train_steps.discriminator_train_steps

    def hooks(train_ops: Any) -> list[Any]:
        both = RunTrainOpsHook([train_ops.generator_train_op, train_ops.discriminator_train_op], min(made, judged))
        longer = train_ops.generator_train_op if made > judged else train_ops.discriminator_train_op
        return [both, RunTrainOpsHook(longer, abs(made - judged)), *train_ops.train_hooks]

    return hooks


def gan_train(
    train_ops: Any, logdir: str | None, get_hooks_fn: Callable[[Any], list[Any]] = get_sequential_train_hooks(),  # noqa: B008
    master: str = "", is_chief: bool = True, scaffold: Any = None, hooks: Sequence[Any] | None = None,
    chief_only_hooks: Sequence[Any] | None = None, save_checkpoint_secs: int = 600, save_summaries_steps: int = 100,
    config: Any = None,
) -> Any:  # fmt: skip
    """Trains until a hook stops it; the arguments are those of `tf.contrib.training.train`.

    Returns:
      The global step.
    """
    return tf.contrib.training.train(
        train_ops.global_step_inc_op, logdir, master=master, is_chief=is_chief, scaffold=scaffold,
        hooks=[*get_hooks_fn(train_ops), *(hooks or ())], chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs, save_summaries_steps=save_summaries_steps, config=config,
    )  # fmt: skip
