"""Layers: the names of their variables, sharing, and that they compute what they say."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dtf as tf

random = np.random.RandomState(2)
MATRIX = random.uniform(-1, 1, (4, 5)).astype(np.float32)
IMAGES = random.uniform(-1, 1, (2, 6, 6, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches, feeds=None, steps: int = 1):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            found = session.run(fetches, feeds)
        return found


def names() -> list[str]:
    return [variable.op.name for variable in tf.global_variables()]


def test_layers_without_a_name_are_numbered():
    net = tf.layers.dense(tf.layers.dense(MATRIX, 3, tf.nn.relu), 2, use_bias=False)
    tf.layers.conv2d(IMAGES, 4, 3)
    tf.layers.batch_normalization(net)
    assert names() == [
        "dense/kernel",
        "dense/bias",
        "dense_1/kernel",
        "conv2d/kernel",
        "conv2d/bias",
        "batch_normalization/gamma",
        "batch_normalization/beta",
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
    ]
    assert [variable.op.name for variable in tf.trainable_variables()][-2:] == [
        "batch_normalization/gamma",
        "batch_normalization/beta",
    ]


def test_dense_multiplies_and_adds():
    outputs = tf.layers.dense(MATRIX, 3, tf.nn.relu, bias_initializer=tf.constant_initializer(0.25), name="fc")
    assert outputs.op.type == "Relu"
    found, kernel, bias = run([outputs, *tf.trainable_variables()])
    np.testing.assert_allclose(found, np.maximum(MATRIX @ kernel + bias, 0), rtol=1e-5)
    assert kernel.std() > 0
    np.testing.assert_array_equal(bias, [0.25] * 3)


def test_dense_takes_any_rank():
    outputs = tf.layers.dense(MATRIX.reshape(2, 2, 5), 3)
    assert outputs.shape.as_list() == [2, 2, 3]
    found, kernel, _ = run([outputs, *tf.trainable_variables()])
    np.testing.assert_allclose(found.reshape(4, 3), MATRIX @ kernel, rtol=1e-5)


def test_a_layer_is_shared_by_its_name():
    first = tf.layers.dense(MATRIX, 3, name="shared")
    second = tf.layers.dense(MATRIX, 3, name="shared", reuse=True)
    assert names() == ["shared/kernel", "shared/bias"]
    np.testing.assert_array_equal(*run([first, second]))
    with pytest.raises(ValueError):
        tf.layers.dense(MATRIX, 3, name="shared")


def test_regularizers_are_collected():
    tf.layers.dense(
        MATRIX,
        3,
        kernel_regularizer=tf.nn.l2_loss,
        activity_regularizer=lambda outputs: tf.reduce_sum(outputs),
    )
    assert len(tf.losses.get_regularization_losses()) == 2


def test_conv2d_and_pooling_have_the_shapes_of_their_windows():
    same = tf.layers.conv2d(IMAGES, 4, [3, 2], strides=2, padding="same", activation=tf.nn.relu)
    valid = tf.layers.conv2d(IMAGES, 4, 3, dilation_rate=2)
    assert (same.shape.as_list(), valid.shape.as_list()) == ([2, 3, 3, 4], [2, 2, 2, 4])
    pooled = tf.layers.max_pooling2d(IMAGES, 2, 2)
    mean = tf.layers.average_pooling2d(IMAGES, (3, 3), 1, padding="same")
    assert tf.layers.flatten(pooled).shape.as_list() == [2, 27]
    found = run([same, valid, pooled, mean])
    assert [each.shape for each in found] == [(2, 3, 3, 4), (2, 2, 2, 4), (2, 3, 3, 3), (2, 6, 6, 3)]
    np.testing.assert_allclose(found[2], IMAGES.reshape(2, 3, 2, 3, 2, 3).max((2, 4)))


def test_channels_first_is_the_same_convolution():
    last = tf.layers.conv2d(IMAGES, 4, 3, name="c")
    first = tf.layers.conv2d(np.moveaxis(IMAGES, -1, 1), 4, 3, data_format="channels_first", name="c", reuse=True)
    found = run([last, first])
    np.testing.assert_allclose(found[0], np.moveaxis(found[1], 1, -1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "rank", "arguments"),
    [
        ("conv1d", 1, {"filters": 4, "kernel_size": 3, "strides": 2}),
        ("conv3d", 3, {"filters": 4, "kernel_size": 2}),
        ("separable_conv1d", 1, {"filters": 4, "kernel_size": 3}),
        ("separable_conv2d", 2, {"filters": 4, "kernel_size": 3, "depth_multiplier": 2}),
        ("conv2d_transpose", 2, {"filters": 4, "kernel_size": 3, "strides": 2}),
        ("conv3d_transpose", 3, {"filters": 4, "kernel_size": 2, "strides": 2}),
        ("max_pooling1d", 1, {"pool_size": 2, "strides": 2}),
        ("average_pooling2d", 2, {"pool_size": 2, "strides": (1, 2)}),
        ("max_pooling3d", 3, {"pool_size": 2, "strides": 1, "padding": "same"}),
        ("batch_normalization", 2, {"training": True}),
        ("batch_normalization", 1, {"training": True, "fused": False}),
    ],
)
def test_channels_may_come_first_in_every_layer(name, rank, arguments):
    last = random.uniform(-1, 1, (2, *(5, 6, 4)[:rank], 3)).astype(np.float32)
    shared = {} if "pooling" in name else {"name": "shared", "reuse": tf.AUTO_REUSE}
    layer = getattr(tf.layers, name)
    first = {"axis": 1} if name == "batch_normalization" else {"data_format": "channels_first"}
    one = layer(last, **arguments, **shared)
    other = layer(np.moveaxis(last, -1, 1), **arguments, **shared, **first)
    assert one.shape.as_list() == [other.shape.as_list()[i] for i in (0, *range(2, rank + 2), 1)]
    found = run([one, other])
    np.testing.assert_allclose(found[0], np.moveaxis(found[1], 1, -1), rtol=1e-4, atol=1e-5)


def test_a_transposed_convolution_undoes_the_shape():
    for padding, size in (("valid", 13), ("same", 12)):
        outputs = tf.layers.conv2d_transpose(IMAGES, 2, 3, strides=2, padding=padding)
        assert outputs.shape.as_list() == [2, size, size, 2]
        assert run(outputs).shape == (2, size, size, 2)


def test_a_separable_convolution_is_two():
    outputs = tf.layers.separable_conv2d(IMAGES, 5, 3, depth_multiplier=2)
    assert outputs.shape.as_list() == [2, 4, 4, 5]
    kernels = [each.shape.as_list() for each in tf.trainable_variables()]
    assert kernels == [[3, 3, 3, 2], [1, 1, 6, 5], [5]]
    assert run(outputs).shape == (2, 4, 4, 5)


@pytest.mark.parametrize("inputs", [MATRIX, IMAGES], ids=["matrix", "images"])
@pytest.mark.parametrize("training", [True, "fed"], ids=["bool", "tensor"])
def test_batch_normalization_uses_the_batch_and_moves_its_averages(inputs, training):
    flag = tf.placeholder(tf.bool, []) if training == "fed" else True
    outputs = tf.layers.batch_normalization(inputs, momentum=0.75, training=flag)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    axes = tuple(range(inputs.ndim - 1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        on, off = ({flag: True}, {flag: False}) if training == "fed" else (None, None)
        found, *_ = session.run([outputs, *updates], on)
        mean, variance = session.run(tf.global_variables()[2:])
        normal = (inputs - inputs.mean(axes)) / np.sqrt(inputs.var(axes) + 1e-3)
        np.testing.assert_allclose(found, normal, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(mean, 0.25 * inputs.mean(axes), rtol=1e-4, atol=1e-6)
        # The one op for images gives the variance of the population that the batch is a sample of.
        sample = inputs.var(axes, ddof=1 if inputs.ndim == 4 else 0)
        np.testing.assert_allclose(variance, 0.75 + 0.25 * sample, rtol=1e-4)
        if training == "fed":
            session.run(updates, off)
            np.testing.assert_array_equal(session.run(tf.global_variables()[2]), mean)
            found = session.run(outputs, off)
            np.testing.assert_allclose(found, (inputs - mean) / np.sqrt(variance + 1e-3), rtol=1e-3, atol=1e-5)


def test_batch_normalization_for_inference_adds_no_updates():
    outputs = tf.layers.batch_normalization(MATRIX)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    np.testing.assert_allclose(run(outputs), MATRIX / np.sqrt(1.001), rtol=1e-5)


def test_batch_normalization_trains():
    net = tf.layers.batch_normalization(tf.layers.conv2d(IMAGES, 4, 3, use_bias=False), training=True)
    loss = tf.reduce_mean(tf.square(net - 3.0))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    first = run(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(30):
            session.run(train)
        assert session.run(loss) < first / 5


def test_dropout_only_drops_while_training():
    flag = tf.placeholder(tf.bool, [])
    ones = np.ones((100, 100), np.float32)
    outputs = tf.layers.dropout(ones, 0.25, seed=3, training=flag)
    kept = run(outputs, {flag: True})
    np.testing.assert_allclose(np.unique(kept), [0, 1 / 0.75], rtol=1e-6)
    assert abs((kept == 0).mean() - 0.25) < 0.02
    np.testing.assert_array_equal(run(outputs, {flag: False}), ones)
    np.testing.assert_array_equal(run(tf.layers.dropout(ones)), ones)


def test_flatten_keeps_an_unknown_batch():
    fed = tf.placeholder(tf.float32, [None, 2, 3])
    flat = tf.layers.flatten(fed)
    assert flat.shape.as_list() == [None, 6]
    assert run(flat, {fed: np.zeros((5, 2, 3))}).shape == (5, 6)


def test_a_layer_says_what_is_wrong():
    with pytest.raises(ValueError, match="to be known"):
        tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3)
    with pytest.raises(ValueError, match="data_format"):
        tf.layers.conv2d(IMAGES, 4, 3, data_format="NHWC")
    with pytest.raises(ValueError, match="one integer or 2 of them"):
        tf.layers.conv2d(IMAGES, 4, [1, 2, 3])
    with pytest.raises(ValueError, match="Fused batch norm"):
        tf.layers.batch_normalization(MATRIX, fused=True)


class Scale(tf.layers.Layer):
    """A layer as users write one."""

    def build(self, input_shape):
        self.factor = self.add_variable(
            "factor", [input_shape[-1]], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss
        )
        self.calls = self.add_variable("calls", [], initializer=tf.zeros_initializer(), trainable=False)
        super().build(input_shape)

    def call(self, inputs, twice=False):
        self.add_update(tf.assign_add(self.calls, 1.0))
        self.add_update(tf.assign(self.calls, tf.reduce_sum(inputs)), inputs)
        self.add_loss(tf.reduce_mean(inputs), inputs)
        return inputs * self.factor * (2.0 if twice else 1.0)


def test_a_layer_of_ones_own_keeps_its_variables_losses_and_updates():
    layer, one, other = Scale(name="scale"), tf.constant(MATRIX), tf.constant(2 * MATRIX)
    found = run([layer(one), layer(other, twice=True)])
    np.testing.assert_allclose(found[1], 4 * found[0])
    assert [each.op.name for each in layer.weights] == ["scale/factor", "scale/calls"] == names()
    assert (layer.trainable_variables, layer.non_trainable_variables) == (layer.weights[:1], layer.weights[1:])
    assert (layer.count_params(), layer.dtype, layer.graph) == (6, tf.float32, tf.get_default_graph())
    assert layer.losses == tf.losses.get_regularization_losses() and len(layer.losses) == 3
    assert layer.updates == tf.get_collection(tf.GraphKeys.UPDATE_OPS) and len(layer.updates) == 4
    assert layer.get_updates_for(None) == [layer.updates[0], layer.updates[2]]
    assert layer.get_updates_for(other) == layer.updates[3:]
    assert layer.get_losses_for([one, other]) == layer.losses[1:]
    assert layer.get_losses_for(None) == layer.losses[:1]


def test_a_layer_object_is_called_many_times():
    layer = tf.layers.Conv2D(2, 3, padding="same", trainable=False)
    with pytest.raises(ValueError, match="first call"):
        layer.scope_name  # noqa: B018
    with pytest.raises(ValueError, match="before it is built"):
        layer.count_params()
    with tf.variable_scope("outer"):
        first = layer(IMAGES)
    second = layer.apply(IMAGES)
    assert (layer.name, layer.scope_name, first.op.name) == ("conv2d_1", "outer/conv2d", "outer/conv2d/BiasAdd")
    assert second.op.name == "outer/conv2d/BiasAdd_1"
    assert tf.trainable_variables() == [] == layer.trainable_weights and len(layer.weights) == 2
    np.testing.assert_array_equal(*run([first, second]))


def test_a_layer_builds_without_inputs():
    layer = tf.layers.Dense(3, dtype=tf.float64)
    layer.build(tf.TensorShape([None, 4]))
    assert [each.shape.as_list() for each in layer.weights] == [[4, 3], [3]]
    assert layer.kernel.dtype.base_dtype == tf.float64
    for plain in (tf.layers.Dense(3), tf.layers.BatchNormalization(), tf.layers.Conv1D(2, 3)):
        plain.build(tf.TensorShape([None, 7, 4]))
        assert {each.dtype.base_dtype for each in plain.weights} == {tf.float32}


def test_a_layer_refuses_other_inputs_than_it_was_built_for():
    layer = tf.layers.Dense(3)
    layer(MATRIX)
    with pytest.raises(ValueError, match="layer dense_1 is incompatible.*axis -1"):
        layer(MATRIX[:, :4])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="another graph"):
        layer(MATRIX)
    with pytest.raises(ValueError, match="ndim=4, found ndim=2"):
        tf.layers.conv2d(MATRIX, 4, 3)
    with pytest.raises(TypeError, match="floating dtype"):
        tf.layers.dense(np.ones([2, 3], np.int32), 3)
    with pytest.raises(TypeError, match="tf.nn.relu"):
        tf.layers.dense(MATRIX, 3, activation=3)
    with pytest.raises(ValueError, match="rellu"):
        tf.layers.dense(MATRIX, 3, activation="rellu")
    with pytest.raises(ValueError, match="valid"):
        tf.layers.max_pooling2d(IMAGES, 2, 2, padding="full")
    with pytest.raises(ValueError, match="Invalid axis"):
        tf.layers.batch_normalization(MATRIX, axis=2)
    with pytest.raises(ValueError, match="keys rmin, rmax and dmax, got \\['max'\\]"):
        tf.layers.batch_normalization(MATRIX, renorm=True, renorm_clipping={"max": 1})


def test_an_input_may_be_asked_for_in_every_way():
    tensor = tf.placeholder(tf.float32, [None, 3])
    for fits in (
        {"dtype": tf.float32}, {"shape": [None, 3]}, {"ndim": 2}, {"min_ndim": 2, "max_ndim": 2}, {"axes": {1: 3, 0: 5}}
    ):  # fmt: skip
        tf.layers.InputSpec(**fits).check(tensor, "x")
    for wrong in (
        {"dtype": tf.int32}, {"shape": [None, 4]}, {"ndim": 3}, {"min_ndim": 3}, {"max_ndim": 1}, {"axes": {-1: 2}}
    ):  # fmt: skip
        with pytest.raises(ValueError, match="incompatible with the layer"):
            tf.layers.InputSpec(**wrong).check(tensor, "x")
    layer = Scale()
    layer.input_spec = [tf.layers.InputSpec(ndim=2), None]
    with pytest.raises(ValueError, match="takes 2 inputs, but got 1"):
        layer(tensor)


def test_the_functions_have_the_signatures_of_their_layers():
    parameters = list(inspect.signature(tf.layers.conv2d).parameters)
    assert parameters[:3] == ["inputs", "filters", "kernel_size"] and parameters[-2:] == ["name", "reuse"]
    assert "Conv2D" in tf.layers.conv2d.__doc__
    with pytest.raises(TypeError, match="unexpected keyword argument 'width'"):
        tf.layers.dense(MATRIX, 3, width=2)
