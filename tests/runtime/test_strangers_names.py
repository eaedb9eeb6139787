"""Names and values that programs of strangers read: scopes of distributions, K.dot, lengths of windows."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda d: d.Normal(0.0, 1.0), "Normal"),
        (lambda d: d.Exponential(1.0), "Exponential"),
        (lambda d: d.Dirichlet([1.0, 2.0]), "Dirichlet"),
        (lambda d: d.StudentT(3.0, 0.0, 1.0), "StudentT"),
        (lambda d: d.Categorical(logits=[1.0, 2.0]), "Categorical"),
        (lambda d: d.Bernoulli(0.5, name="chosen"), "chosen"),
        (lambda d: d.Multinomial(4.0, probs=[0.5, 0.5]), "Multinomial"),
        (lambda d: d.DirichletMultinomial(4.0, [1.0, 2.0]), "DirichletMultinomial"),
    ],
)
def test_a_distribution_opens_one_scope_for_its_parameters_and_its_values(make, name):
    with tf.name_scope("a"):
        first, second = make(tf.distributions), make(tf.distributions)
    assert (first.name, second.name) == (f"a/{name}/", f"a/{name}_1/")
    names = [op.name for op in tf.get_default_graph().get_operations()]
    assert all(each.startswith((first.name, second.name)) for each in names), names
    assert first.sample(2, seed=1).name.startswith(f"a/{name}/sample/")


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 4)])
def test_keras_dot_takes_more_dimensions_than_two(shape):
    x, y = np.random.default_rng(0).normal(size=shape), np.arange(12.0).reshape(4, 3)
    product = tf.keras.backend.dot(tf.constant(x), tf.constant(y))
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(product), x @ y)


def test_lengths_of_windows_are_those_of_the_ops():
    utils = importlib.import_module("dtf.as_tensorflow.historic.layer_utils")
    x = tf.zeros([1, 11, 1])
    for padding in ("same", "valid"):
        for size, stride, dilation in [(3, 1, 1), (3, 2, 1), (4, 1, 2)]:
            y = tf.layers.conv1d(x, 1, size, stride, padding, dilation_rate=dilation)
            assert utils.conv_output_length(11, size, padding, stride, dilation) == y.shape[1]
        z = tf.layers.conv2d_transpose(tf.zeros([1, 5, 5, 1]), 1, 3, 2, padding)
        assert utils.deconv_output_length(5, 3, padding, 2) == z.shape[1]
    assert utils.conv_output_length(None, 3, "same", 1) is None
    assert utils.conv_input_length(4, 3, "valid", 2) == 9
    assert (utils.normalize_padding("SAME"), utils.normalize_data_format("Channels_Last")) == ("same", "channels_last")
    with pytest.raises(ValueError, match="padding.*'wide'"):
        utils.normalize_padding("wide")


def test_a_saved_lambda_layer_finds_its_function_in_custom_objects():
    def double(x):
        return x * 2.0

    keras = tf.keras
    i = keras.layers.Input((3,))
    text = keras.Model(i, keras.layers.Lambda(double, name="twice")(i)).to_json()
    again = keras.models.model_from_json(text, custom_objects={"double": double})
    np.testing.assert_allclose(again.predict(np.ones((1, 3))), [[2.0, 2.0, 2.0]])
    with pytest.raises(ValueError, match="function 'double' of the Lambda layer 'twice'.*custom_objects"):
        keras.models.model_from_json(text)
