"""tf.contrib.layers: optimize_loss, summaries of tensors, regularizers of collections, and columns of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dtf as tf

__all__ = [
    "OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES", "apply_regularization", "bucketized_column", "crossed_column",
    "embedding_column", "input_from_feature_columns", "one_hot_column", "optimize_loss", "real_valued_column",
    "sparse_column_with_hash_bucket", "sparse_column_with_integerized_feature", "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file", "sum_regularizer", "summarize_activation", "summarize_activations",
    "summarize_collection", "summarize_tensor", "summarize_tensors", "adaptive_clipping_fn",
]  # fmt: skip

_columns: Any = tf.feature_column

OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    "Adagrad": tf.train.AdagradOptimizer,
    "Adam": tf.train.AdamOptimizer,
    "Ftrl": tf.train.FtrlOptimizer,
    "Momentum": lambda learning_rate: tf.train.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": tf.train.RMSPropOptimizer,
    "SGD": tf.train.GradientDescentOptimizer,
}
OPTIMIZER_SUMMARIES = [
    "learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm",
]  # fmt: skip


def optimize_loss(
    loss: Any, global_step: Any, learning_rate: Any, optimizer: Any, gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, float] | None = None, clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None, update_ops: Any = None, variables: Any = None,
    name: str | None = None, summaries: Sequence[str] | None = None, colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:  # fmt: skip
    """An op for one step of training, whose value is the loss.

    Args:
      loss: a scalar.
      global_step: the step's variable; None for the graph's.
      learning_rate: a number or a tensor; None if the optimizer defines the rate.
      optimizer: a name of OPTIMIZER_CLS_NAMES, a class, a function of the learning rate, or an Optimizer.
      gradient_noise_scale: the variance of noise that is added to gradients.
      gradient_multipliers: {variable or its name: factor of its gradient}.
      clip_gradients: a number, by whose global norm gradients are clipped; or a function of [(gradient, variable)].
      learning_rate_decay_fn: a function of (learning_rate, global_step).
      update_ops: operations to run before the update; by default the collection UPDATE_OPS.
      variables: the variables to train; by default the trainable variables.
      summaries: names of OPTIMIZER_SUMMARIES; the rate and the loss by default.
      increment_global_step: whether the step is counted.

    Raises:
      ValueError: an argument is not one of these.
    """
    loss = tf.convert_to_tensor(loss)
    if loss.get_shape().ndims not in (0, None):
        raise ValueError(f"the loss must be a scalar, not of shape {loss.get_shape()}")
    step = tf.train.get_global_step() if global_step is None else global_step
    if step is None and (learning_rate_decay_fn is not None or increment_global_step):
        step = tf.train.get_or_create_global_step() if learning_rate_decay_fn is None else None
        if step is None:
            raise ValueError("global_step is required for learning_rate_decay_fn.")
    with tf.variable_scope(name, "OptimizeLoss", [loss, step]):
        updates = list(tf.get_collection(tf.GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
        if updates:
            with tf.control_dependencies(updates):
                loss = tf.identity(loss)
        rate = None if learning_rate is None else _rate(learning_rate, learning_rate_decay_fn, step)
        wanted = ["learning_rate", "loss", "global_gradient_norm"] if summaries is None else list(summaries)
        for each in wanted:
            if each not in OPTIMIZER_SUMMARIES:
                raise ValueError(f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {each}.")
        if rate is not None and "learning_rate" in wanted:
            tf.summary.scalar("learning_rate", rate)
        opt = _optimizer(optimizer, rate)
        variables = tf.trainable_variables() if variables is None else variables
        gradients = opt.compute_gradients(loss, variables, colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gradient_noise_scale is not None:
            gradients = _noisy(gradients, gradient_noise_scale)
        if gradient_multipliers is not None:
            gradients = _multiplied(gradients, gradient_multipliers)
        if "global_gradient_norm" in wanted or "gradient_norm" in wanted:
            norm = tf.global_norm([gradient for gradient, _ in gradients])
            tf.summary.scalar("global_norm/gradient_norm", norm)
        gradients = _clipped(gradients, clip_gradients)
        if "loss" in wanted:
            tf.summary.scalar("loss", loss)
        train = opt.apply_gradients(gradients, global_step=step if increment_global_step else None, name="train")
        with tf.control_dependencies([train]):
            return tf.identity(loss)


def _rate(learning_rate: Any, decay: Callable[[Any, Any], Any] | None, step: Any) -> Any:
    """The learning rate as a tensor or variable, decayed where there is a function for it."""
    if isinstance(learning_rate, float):
        start = tf.constant_initializer(learning_rate)
        rate = tf.get_variable("learning_rate", [], trainable=False, initializer=start)
    else:
        rate = tf.convert_to_tensor(learning_rate, name="learning_rate")
    return rate if decay is None else decay(rate, step)


def _noisy(gradients: Any, scale: float) -> list[Any]:
    def noisy(gradient: Any) -> Any:
        return gradient + tf.truncated_normal(gradient.get_shape(), dtype=gradient.dtype) * scale

    return [(None if gradient is None else noisy(gradient), variable) for gradient, variable in gradients]


def _clipped(gradients: Any, clip: Any) -> Any:
    """The gradients after a function, or with a global norm of at most a number; None changes nothing."""
    if callable(clip):
        return clip(gradients)
    if clip is None:
        return gradients
    clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in gradients], clip)
    return list(zip(clipped, [variable for _, variable in gradients], strict=True))


def _optimizer(optimizer: Any, rate: Any) -> Any:
    if isinstance(optimizer, str):
        if rate is None:
            raise ValueError(f"Learning rate is None, but should be specified if optimizer is string ({optimizer}).")
        if optimizer not in OPTIMIZER_CLS_NAMES:
            known = ", ".join(OPTIMIZER_CLS_NAMES)
            raise ValueError(f"Optimizer name should be one of [{known}], you provided {optimizer}.")
        return OPTIMIZER_CLS_NAMES[optimizer](rate)
    if isinstance(optimizer, type):
        return optimizer(learning_rate=rate)
    if isinstance(optimizer, tf.train.Optimizer):
        return optimizer
    if callable(optimizer):
        return optimizer(rate) if rate is not None else optimizer()
    raise ValueError(f"Unrecognized optimizer: should be string, subclass of Optimizer, or function: {optimizer!r}")


def _multiplied(gradients: Any, multipliers: Mapping[Any, float]) -> list[Any]:
    result = []
    for gradient, variable in gradients:
        factor = multipliers.get(variable, multipliers.get(variable.name, multipliers.get(variable.op.name)))
        if gradient is not None and factor is not None:
            if isinstance(gradient, tf.IndexedSlices):
                gradient = tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
            else:
                gradient *= tf.cast(factor, gradient.dtype)
        result.append((gradient, variable))
    return result


def adaptive_clipping_fn(
    std_factor: float = 2.0, decay: float = 0.95, static_max_norm: float | None = None, global_step: Any = None,
    report_summary: bool = False, epsilon: float = 1e-8, name: str | None = None,
) -> Callable[[Any], Any]:  # fmt: skip
    """A function for `clip_gradients`: clips by moving averages of the norm and of its deviation."""

    def clip(gradients: Any) -> list[Any]:
        norm = tf.global_norm([gradient for gradient, _ in gradients])
        with tf.variable_scope(name, "AdaptiveMaxNorm", [norm]):
            log_norm = tf.log(norm + epsilon)
            rate: Any = decay
            if global_step is not None:
                count = tf.cast(global_step, tf.float32)
                rate = tf.minimum(decay, count / (count + 1.0))
            averages = []
            for kind, value in (("mean", log_norm), ("sq_mean", tf.square(log_norm))):
                average = tf.get_variable(kind, [], tf.float32, tf.zeros_initializer(), trainable=False)
                averages.append(tf.assign(average, average * rate + value * (1.0 - rate)))
            std = tf.sqrt(tf.maximum(epsilon, averages[1] - tf.square(averages[0])))
            most = tf.exp(averages[0] + std_factor * std)
            if static_max_norm is not None:
                most = tf.minimum(most, static_max_norm)
        factor = tf.where(norm < most, tf.ones_like(norm), most / norm)
        return [(None if gradient is None else gradient * factor, variable) for gradient, variable in gradients]

    return clip


# -- regularizers


def sum_regularizer(regularizer_list: Sequence[Any], scope: Any = None) -> Callable[[Any], Any] | None:
    """A regularizer that gives the sum of several; None of none."""
    given = [each for each in regularizer_list if each is not None]
    if not given:
        return None

    def regularize(weights: Any) -> Any:
        with tf.name_scope(scope, "sum_regularizer", [weights]):
            losses = [each for each in (regularizer(weights) for regularizer in given) if each is not None]
            return tf.add_n(losses) if losses else None

    return regularize


def apply_regularization(regularizer: Any, weights_list: Any = None) -> Any:
    """The sum of the penalties of weights (the collection WEIGHTS by default), which joins the losses.

    Raises:
      ValueError: there are no weights.
    """
    weights = tf.get_collection(tf.GraphKeys.WEIGHTS) if weights_list is None else weights_list
    if not weights:
        raise ValueError("No weights to regularize.")
    with tf.name_scope("get_regularization_penalty", values=weights):
        found = [each for each in (regularizer(weight) for weight in weights) if each is not None]
        penalty = tf.add_n(found) if found else tf.constant(0.0)
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, penalty)
        return penalty


# -- summaries


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A scalar or a histogram of a tensor, or None for a string."""
    name = tag or tensor.op.name
    if tensor.dtype.base_dtype in (tf.string,):
        return None
    return (tf.summary.scalar if tensor.get_shape().ndims == 0 else tf.summary.histogram)(name, tensor)


def summarize_activation(op: Any) -> Any:
    """A histogram of an activation, and of a relu how many of its values are zero."""
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        tf.summary.scalar(f"{op.op.name}/zeros", tf.nn.zero_fraction(op))
    return tf.summary.histogram(f"{op.op.name}/activation", op)


def summarize_tensors(tensors: Any, summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """The summaries of several tensors."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """The summaries of a collection's tensors."""
    import re

    found = tf.get_collection(collection)
    return [summarizer(each) for each in found if name_filter is None or re.search(name_filter, each.op.name)]


def summarize_activations(name_filter: str | None = None, summarizer: Any = summarize_activation) -> list[Any]:
    """The summaries of the collection ACTIVATIONS."""
    return summarize_collection(tf.GraphKeys.ACTIVATIONS, name_filter, summarizer)


# -- columns of features, under their first names


def real_valued_column(
    column_name: str, dimension: int = 1, default_value: Any = None, dtype: Any = tf.float32, normalizer: Any = None
) -> Any:
    """`tf.feature_column.numeric_column`."""
    return _columns.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = tf.string,
    hash_keys: Any = None,
) -> Any:  # fmt: skip
    """`tf.feature_column.categorical_column_with_hash_bucket`."""
    return _columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = tf.int64
) -> Any:
    """`tf.feature_column.categorical_column_with_identity`."""
    return _columns.categorical_column_with_identity(column_name, bucket_size)


def sparse_column_with_keys(
    column_name: str, keys: Sequence[Any], default_value: int = -1, combiner: str = "sum", dtype: Any = tf.string
) -> Any:
    """`tf.feature_column.categorical_column_with_vocabulary_list`."""
    return _columns.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)


def sparse_column_with_vocabulary_file(
    column_name: str, vocabulary_file: str, num_oov_buckets: int = 0, vocab_size: int | None = None,
    default_value: int = -1, combiner: str = "sum", dtype: Any = tf.string,
) -> Any:  # fmt: skip
    """`tf.feature_column.categorical_column_with_vocabulary_file`."""
    return _columns.categorical_column_with_vocabulary_file(
        column_name, vocabulary_file, vocab_size, num_oov_buckets, default_value, dtype
    )


def embedding_column(
    sparse_id_column: Any, dimension: int, combiner: str = "mean", initializer: Any = None,
    ckpt_to_load_from: str | None = None, tensor_name_in_ckpt: str | None = None, max_norm: float | None = None,
    trainable: bool = True,
) -> Any:  # fmt: skip
    """`tf.feature_column.embedding_column`.

    Raises:
      NotImplementedError: the vectors should come from a checkpoint, or be bounded.
    """
    if ckpt_to_load_from is not None or tensor_name_in_ckpt is not None or max_norm is not None:
        raise NotImplementedError("embedding_column does not support ckpt_to_load_from and max_norm")
    return _columns.embedding_column(sparse_id_column, dimension, combiner, initializer, trainable)


def one_hot_column(sparse_id_column: Any) -> Any:
    """`tf.feature_column.indicator_column`."""
    return _columns.indicator_column(sparse_id_column)


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> Any:
    """`tf.feature_column.bucketized_column`."""
    return _columns.bucketized_column(source_column, list(boundaries))


def crossed_column(columns: Sequence[Any], hash_bucket_size: int, combiner: str = "sum", **_: Any) -> Any:
    """`tf.feature_column.crossed_column`."""
    return _columns.crossed_column([getattr(each, "key", each) for each in columns], hash_bucket_size)


def input_from_feature_columns(
    columns_to_tensors: Mapping[str, Any], feature_columns: Sequence[Any], weight_collections: Any = None,
    trainable: bool = True, scope: Any = None, cols_to_outs: Any = None,
) -> Any:  # fmt: skip
    """`tf.feature_column.input_layer`."""
    with tf.variable_scope(scope, "input_from_feature_columns"):
        return _columns.input_layer(columns_to_tensors, feature_columns, weight_collections, trainable)
