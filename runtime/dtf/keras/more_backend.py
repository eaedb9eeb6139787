"""tf.keras.backend: functions of tensors, with Keras's names and arguments.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/backend
"""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = [
    "all", "any", "argmin", "batch_flatten", "binary_crossentropy", "categorical_crossentropy", "clip", "constant",
    "elu", "expand_dims", "eye", "flatten", "gather", "gradients", "greater", "greater_equal", "hard_sigmoid",
    "l2_normalize", "less", "less_equal", "logsumexp", "maximum", "minimum", "not_equal", "one_hot", "ones",
    "ones_like", "permute_dimensions", "print_tensor", "random_normal", "random_uniform", "repeat", "reshape",
    "reverse", "round", "shape", "sign", "sin", "cos", "softplus", "softsign", "sparse_categorical_crossentropy",
    "squeeze", "stack", "std", "stop_gradient", "switch", "tile", "transpose", "truncated_normal", "update",
    "update_add", "update_sub", "var", "zeros", "zeros_like",
]  # fmt: skip

# Functions with TensorFlow's arguments.
argmin, constant, eye, gather, greater, greater_equal = (
    tf.argmin, tf.constant, tf.eye, tf.gather, tf.greater, tf.greater_equal)  # fmt: skip
less, less_equal, maximum, minimum, not_equal = tf.less, tf.less_equal, tf.maximum, tf.minimum, tf.not_equal
ones_like, zeros_like, reshape, round, shape, sign = (
    tf.ones_like, tf.zeros_like, tf.reshape, tf.round, tf.shape, tf.sign)  # fmt: skip
sin, cos, softplus, softsign, elu, stack = tf.sin, tf.cos, tf.nn.softplus, tf.nn.softsign, tf.nn.elu, tf.stack
stop_gradient, tile, transpose, gradients = tf.stop_gradient, tf.tile, tf.transpose, tf.gradients
logsumexp = tf.reduce_logsumexp


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all are true."""
    return tf.reduce_all(tf.cast(x, tf.bool), axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether one is true."""
    return tf.reduce_any(tf.cast(x, tf.bool), axis, keepdims)


def batch_flatten(x: Any) -> Any:
    """[batch, the rest]."""
    return tf.reshape(x, tf.stack([-1, tf.reduce_prod(tf.shape(x)[1:])]))


def flatten(x: Any) -> Any:
    """[all]."""
    return tf.reshape(x, [-1])


def expand_dims(x: Any, axis: int = -1) -> Any:
    """With a dimension of size 1."""
    return tf.expand_dims(x, axis)


def squeeze(x: Any, axis: int) -> Any:
    """Without a dimension of size 1."""
    return tf.squeeze(x, [axis])


def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """Bounded numbers."""
    return tf.clip_by_value(x, min_value, max_value)


def permute_dimensions(x: Any, pattern: Any) -> Any:
    """With its dimensions in another order."""
    return tf.transpose(x, pattern)


def repeat(x: Any, n: int) -> Any:
    """[batch, n, size] of [batch, size]."""
    return tf.tile(tf.expand_dims(x, 1), tf.stack([1, n, 1]))


def reverse(x: Any, axes: Any) -> Any:
    """In the other order along axes."""
    return tf.reverse(x, [axes] if isinstance(axes, int) else axes)


def one_hot(indices: Any, num_classes: int) -> Any:
    """1 at the index, 0 elsewhere."""
    return tf.one_hot(indices, num_classes, axis=-1)


def l2_normalize(x: Any, axis: Any = None) -> Any:
    """Of length 1 along an axis."""
    return tf.nn.l2_normalize(x, axis)


def hard_sigmoid(x: Any) -> Any:
    """0.2 x + 0.5, between 0 and 1."""
    return tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The variance."""
    return tf.math.reduce_variance(x, axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The standard deviation."""
    return tf.math.reduce_std(x, axis, keepdims)


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros."""
    return tf.Variable(tf.zeros(shape, dtype or tf.float32), name=name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones."""
    return tf.Variable(tf.ones(shape, dtype or tf.float32), name=name)


def random_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Normal numbers."""
    return tf.random_normal(shape, mean, stddev, dtype or tf.float32, seed)


def random_uniform(shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Numbers between bounds."""
    return tf.random_uniform(shape, minval, maxval, dtype or tf.float32, seed)


def truncated_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Normal numbers within two deviations."""
    return tf.truncated_normal(shape, mean, stddev, dtype or tf.float32, seed)


def update(x: Any, new_x: Any) -> Any:
    """`tf.assign`."""
    return tf.assign(x, new_x)


def update_add(x: Any, increment: Any) -> Any:
    """`tf.assign_add`."""
    return tf.assign_add(x, increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """`tf.assign_sub`."""
    return tf.assign_sub(x, decrement)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two values or functions, by a scalar bool or elementwise."""
    then = then_expression if callable(then_expression) else lambda: then_expression
    other = else_expression if callable(else_expression) else lambda: else_expression
    if condition.shape.ndims == 0:
        return tf.cond(tf.cast(condition, tf.bool), then, other)
    return tf.where(tf.cast(condition, tf.bool), then(), other())


def print_tensor(x: Any, message: str = "") -> Any:
    """`tf.Print`."""
    return tf.Print(x, [x], message)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """The cross entropy of each number."""
    if from_logits:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    output = tf.clip_by_value(output, 1e-7, 1 - 1e-7)
    return -(target * tf.log(output + 1e-7) + (1 - target) * tf.log(1 - output + 1e-7))


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """The cross entropy of probabilities along an axis."""
    if from_logits:
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=target, logits=output, axis=axis)
    output = tf.clip_by_value(output / tf.reduce_sum(output, axis, True), 1e-7, 1 - 1e-7)
    return -tf.reduce_sum(target * tf.log(output), axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """The cross entropy of classes."""
    logits = output if from_logits else tf.log(tf.clip_by_value(output, 1e-7, 1 - 1e-7))
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(target, tf.int64), logits=logits)
