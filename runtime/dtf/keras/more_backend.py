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
    "arange", "batch_dot", "batch_normalization", "bias_add", "cast_to_floatx", "conv1d", "conv2d", "conv2d_transpose",
    "conv3d", "count_params", "ctc_batch_cost", "ctc_decode", "ctc_label_dense_to_sparse", "cumprod", "cumsum",
    "depthwise_conv2d", "dropout", "dtype", "eval", "foldl", "foldr", "function", "get_uid", "in_test_phase",
    "in_top_k", "in_train_phase", "is_keras_tensor", "is_sparse", "manual_variable_initialization", "map_fn",
    "moving_average_update", "name_scope", "pool2d", "random_binomial", "random_normal_variable",
    "random_uniform_variable", "repeat_elements", "reset_uids", "resize_images", "rnn", "separable_conv2d",
    "slice", "spatial_2d_padding", "temporal_padding", "to_dense",
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


class _Function:
    """What `function` returns: from arrays to arrays, in the session of models."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any) -> None:
        self._inputs, self._outputs, self._updates = list(inputs), outputs, list(updates or [])

    def __call__(self, inputs: Any) -> Any:
        from dtf.keras.backend import get_session

        values = [inputs] if not isinstance(inputs, list | tuple) else inputs
        feeds = {}
        for tensor, value in zip(self._inputs, values, strict=True):
            if isinstance(tensor, bool | int):  # a learning phase that is fixed
                continue
            feeds[tensor] = value
        is_list = isinstance(self._outputs, list | tuple)
        updates = [tf.assign(*each) if isinstance(each, tuple) else each for each in self._updates]
        self._updates = updates
        graph = next((each.graph for each in [*self._inputs, *(self._outputs if is_list else [self._outputs]), *updates]
                      if hasattr(each, "graph")), tf.get_default_graph())  # fmt: skip
        with graph.as_default():
            found = get_session().run([list(self._outputs) if is_list else self._outputs, updates], feeds)
        return found[0]


def function(inputs: Any, outputs: Any, updates: Any = None, name: Any = None, **kwargs: Any) -> Any:
    """A function from arrays for `inputs` to the arrays of `outputs`; `updates` run in the same step."""
    return _Function(inputs, outputs, updates)


def eval(x: Any) -> Any:
    """The value of a variable or tensor."""
    from dtf.keras.backend import get_value

    return get_value(x)


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """The products of two tensors along one axis of each, for each example."""
    from dtf.keras.merging import batch_dot as products

    return products(x, y, axes)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "int32") -> Any:
    """Numbers from start to stop."""
    return tf.range(start, stop, step, dtype=dtype) if stop is not None else tf.range(0, start, step, dtype=dtype)


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Any:
    """x normalised by a mean and a variance."""
    return tf.nn.batch_normalization(x, mean, var, beta, gamma, epsilon)


def bias_add(x: Any, bias: Any, data_format: Any = None) -> Any:
    """x with a bias for each channel."""
    return tf.nn.bias_add(x, bias) if data_format != "channels_first" else tf.nn.bias_add(x, bias, "NCHW")


def cast_to_floatx(x: Any) -> Any:
    """As float32."""
    import numpy as np

    return tf.cast(x, tf.float32) if tf.is_tensor(x) or isinstance(x, tf.Variable) else np.asarray(x, np.float32)


def conv1d(x: Any, kernel: Any, strides: int = 1, padding: str = "valid", data_format: Any = None,
           dilation_rate: int = 1) -> Any:  # fmt: skip
    """A convolution of sequences."""
    return tf.nn.conv1d(x, kernel, strides, padding.upper(), dilations=dilation_rate)


def conv2d(x: Any, kernel: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None,
           dilation_rate: Any = (1, 1)) -> Any:  # fmt: skip
    """A convolution of images."""
    return tf.nn.conv2d(x, kernel, [1, *strides, 1], padding.upper(), dilations=[1, *dilation_rate, 1])


def conv3d(x: Any, kernel: Any, strides: Any = (1, 1, 1), padding: str = "valid", data_format: Any = None,
           dilation_rate: Any = (1, 1, 1)) -> Any:  # fmt: skip
    """A convolution of volumes."""
    return tf.nn.conv3d(x, kernel, [1, *strides, 1], padding.upper(), dilations=[1, *dilation_rate, 1])


def conv2d_transpose(x: Any, kernel: Any, output_shape: Any, strides: Any = (1, 1), padding: str = "valid",
                     data_format: Any = None, dilation_rate: Any = (1, 1)) -> Any:  # fmt: skip
    """The transpose of a convolution of images."""
    sizes = tf.stack(list(output_shape)) if isinstance(output_shape, list | tuple) else output_shape
    return tf.nn.conv2d_transpose(x, kernel, sizes, [1, *strides, 1], padding.upper())


def depthwise_conv2d(x: Any, depthwise_kernel: Any, strides: Any = (1, 1), padding: str = "valid",
                     data_format: Any = None, dilation_rate: Any = (1, 1)) -> Any:  # fmt: skip
    """A convolution of each channel."""
    return tf.nn.depthwise_conv2d(x, depthwise_kernel, [1, *strides, 1], padding.upper(), rate=dilation_rate)


def separable_conv2d(x: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Any = (1, 1),
                     padding: str = "valid", data_format: Any = None, dilation_rate: Any = (1, 1)) -> Any:  # fmt: skip
    """A convolution of each channel, then one across channels."""
    return tf.nn.separable_conv2d(
        x, depthwise_kernel, pointwise_kernel, [1, *strides, 1], padding.upper(), rate=dilation_rate)  # fmt: skip


def pool2d(x: Any, pool_size: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None,
           pool_mode: str = "max") -> Any:  # fmt: skip
    """The maximum or the mean ("avg") of windows."""
    pool = tf.nn.max_pool if pool_mode == "max" else tf.nn.avg_pool
    return pool(x, [1, *pool_size, 1], [1, *strides, 1], padding.upper())


def count_params(x: Any) -> Any:
    """The number of numbers."""
    return x.shape.num_elements()


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> Any:
    """Labels [batch, steps] as a SparseTensor of their first `label_lengths` steps."""
    mask = tf.sequence_mask(label_lengths, tf.shape(labels)[1])
    places = tf.where(mask)
    return tf.SparseTensor(places, tf.gather_nd(labels, places), tf.cast(tf.shape(labels), tf.int64))


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The CTC loss of each example [batch, 1] of probabilities [batch, steps, classes]; blank is the last class."""
    labels = tf.cast(ctc_label_dense_to_sparse(y_true, tf.cast(tf.squeeze(label_length, [-1]), tf.int32)), tf.int32)
    logits = tf.log(tf.transpose(y_pred, [1, 0, 2]) + 1e-7)
    return tf.expand_dims(tf.nn.ctc_loss(labels, logits, tf.cast(tf.squeeze(input_length, [-1]), tf.int32)), 1)


def ctc_decode(y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1) -> Any:
    """([dense labels, -1 beyond their ends], log probabilities) of probabilities [batch, steps, classes]."""
    logits = tf.log(tf.transpose(y_pred, [1, 0, 2]) + 1e-7)
    lengths = tf.cast(input_length, tf.int32)
    if greedy:
        decoded, scores = tf.nn.ctc_greedy_decoder(logits, lengths)
    else:
        decoded, scores = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width, top_paths)
    return [tf.sparse_tensor_to_dense(each, default_value=-1) for each in decoded], scores


def cumsum(x: Any, axis: int = 0) -> Any:
    """Sums of the first values along an axis."""
    return tf.cumsum(x, axis)


def cumprod(x: Any, axis: int = 0) -> Any:
    """Products of the first values along an axis."""
    return tf.cumprod(x, axis)


def dropout(x: Any, level: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """Zeroes a part `level` of the numbers."""
    return tf.nn.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)


def dtype(x: Any) -> str:
    """The name of the dtype."""
    return x.dtype.base_dtype.name


def foldl(fn: Any, elems: Any, initializer: Any = None, name: Any = None) -> Any:
    """Combines elements from the first on."""
    return tf.foldl(fn, elems, initializer=initializer, name=name)


def foldr(fn: Any, elems: Any, initializer: Any = None, name: Any = None) -> Any:
    """Combines elements from the last on."""
    return tf.foldr(fn, elems, initializer=initializer, name=name)


def map_fn(fn: Any, elems: Any, name: Any = None, dtype: Any = None) -> Any:
    """The function of each element."""
    return tf.map_fn(fn, elems, name=name, dtype=dtype)


_uids: dict[str, int] = {}


def get_uid(prefix: str = "") -> int:
    """1, 2, ... for a prefix."""
    _uids[prefix] = _uids.get(prefix, 0) + 1
    return _uids[prefix]


def reset_uids() -> None:
    """`get_uid` begins anew."""
    _uids.clear()


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x while training, else alt; both are tensors or functions that make one."""
    from dtf.keras.backend import learning_phase

    phase = learning_phase() if training is None else training
    one, other = (each if callable(each) else (lambda each=each: tf.convert_to_tensor(each)) for each in (x, alt))
    if isinstance(phase, bool | int):
        return one() if phase else other()
    return tf.cond(phase, lambda: tf.identity(one()), lambda: tf.identity(other()))


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x while not training, else alt."""
    return in_train_phase(alt, x, training)


def in_top_k(predictions: Any, targets: Any, k: int) -> Any:
    """Whether targets are among the k greatest predictions."""
    return tf.nn.in_top_k(predictions, targets, k)


def is_keras_tensor(x: Any) -> bool:
    """Whether a layer made the tensor."""
    from dtf.build.tensor import Tensor
    from dtf.keras.calls import node_of

    if not isinstance(x, Tensor | tf.Variable | tf.SparseTensor):
        raise ValueError(f"is_keras_tensor takes a tensor, not {x!r}")
    return isinstance(x, Tensor) and node_of(x) is not None


def is_sparse(tensor: Any) -> bool:
    """Whether it is a SparseTensor."""
    return isinstance(tensor, tf.SparseTensor)


def to_dense(tensor: Any) -> Any:
    """A SparseTensor as a dense one."""
    return tf.sparse_tensor_to_dense(tensor) if is_sparse(tensor) else tensor


def manual_variable_initialization(value: bool) -> None:
    """Accepted: only variables without a value are initialised."""


def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    """Moves a variable towards a value."""
    return tf.assign_sub(x, (x - value) * (1.0 - momentum))


name_scope = tf.name_scope


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = "float32", seed: Any = None) -> Any:
    """Ones with probability p."""
    return tf.cast(tf.random_uniform(shape, seed=seed) <= p, dtype)


def random_normal_variable(shape: Any, mean: float, scale: float, dtype: Any = None, name: Any = None,
                           seed: Any = None) -> Any:  # fmt: skip
    """A variable of normal values."""
    return tf.Variable(lambda: tf.random_normal(shape, mean, scale, seed=seed), name=name)


def random_uniform_variable(shape: Any, low: float, high: float, dtype: Any = None, name: Any = None,
                            seed: Any = None) -> Any:  # fmt: skip
    """A variable of uniform values."""
    return tf.Variable(lambda: tf.random_uniform(shape, low, high, seed=seed), name=name)


def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """Each slice along an axis `rep` times."""
    from dtf.keras.reshaping import _repeated

    return _repeated(x, axis % x.shape.ndims, rep)


def resize_images(x: Any, height_factor: int, width_factor: int, data_format: str = "channels_last",
                  interpolation: str = "nearest") -> Any:  # fmt: skip
    """Larger images."""
    from dtf.keras.reshaping import UpSampling2D

    return UpSampling2D((height_factor, width_factor), data_format, interpolation)(x)


def slice(x: Any, start: Any, size: Any) -> Any:
    """A part of a tensor."""
    return tf.slice(x, start, size)


def spatial_2d_padding(x: Any, padding: Any = ((1, 1), (1, 1)), data_format: Any = None) -> Any:
    """Zeros around images."""
    return tf.pad(x, [[0, 0], list(padding[0]), list(padding[1]), [0, 0]])


def temporal_padding(x: Any, padding: Any = (1, 1)) -> Any:
    """Zeros around sequences."""
    return tf.pad(x, [[0, 0], list(padding), [0, 0]])


def rnn(step_function: Any, inputs: Any, initial_states: Any, go_backwards: bool = False, mask: Any = None,
        constants: Any = None, unroll: bool = False, input_length: Any = None) -> Any:  # fmt: skip
    """Runs step_function(inputs of a step, states) along sequences [batch, steps, ...], which have a known length.

    Returns:
      (the last output, the outputs of all steps, the last states).
    """
    count = inputs.shape[1].value
    if count is None:
        raise ValueError("backend.rnn needs sequences of a known length; use tf.keras.layers.RNN for others")
    states: list[Any] = list(initial_states)
    outputs: list[Any] = []
    order = list(range(count))[::-1] if go_backwards else list(range(count))
    for step in order:
        output, after = step_function(inputs[:, step], [*states, *(constants or [])])
        if mask is not None:
            kept = mask[:, step]
            after = [tf.where(kept, new, old) for new, old in zip(after, states, strict=True)]
            output = tf.where(kept, output, outputs[-1] if outputs else tf.zeros_like(output))
        states = list(after)
        outputs.append(output)
    return outputs[-1], tf.stack(outputs, 1), states
