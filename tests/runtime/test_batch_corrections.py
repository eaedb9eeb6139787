"""Batch normalisation with batch renormalisation, virtual batches and adjustments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dtf as tf

BATCH = np.random.RandomState(0).randn(6, 3).astype(np.float32)
EPSILON = 1e-3


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def steps(batches: Any, training: Any = True, **arguments: Any) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """The outputs of one step after the other, and the variables after the last."""
    inputs = tf.placeholder(tf.float32, [None, *batches[0].shape[1:]])
    outputs = tf.layers.batch_normalization(inputs, momentum=0.9, training=training, name="bn", **arguments)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run([outputs, updates], {inputs: batch})[0] for batch in batches]
        return found, {each.op.name[3:]: session.run(each) for each in tf.global_variables()}


def normal(batch: np.ndarray, axis: Any = 0) -> np.ndarray:
    return (batch - batch.mean(axis, keepdims=True)) / np.sqrt(batch.var(axis, keepdims=True) + EPSILON)


def test_batch_renormalisation_corrects_by_the_averages_of_earlier_batches() -> None:
    batches = [BATCH, BATCH * 2 + 1, BATCH - 3]
    found, variables = steps(batches, renorm=True, renorm_momentum=0.8)
    mean, deviation = np.zeros(3), np.ones(3)
    moving_deviation = np.ones(3)
    for batch, outputs in zip(batches, found, strict=True):
        own = np.sqrt(batch.var(0) + EPSILON)
        np.testing.assert_allclose(outputs, (batch - mean) / deviation, rtol=1e-4, atol=1e-5)
        mean, deviation = 0.8 * mean + 0.2 * batch.mean(0), 0.8 * deviation + 0.2 * own
        moving_deviation = 0.9 * moving_deviation + 0.1 * own
    assert list(variables) == [
        "gamma", "beta", "moving_mean", "moving_variance", "moving_stddev", "renorm_mean", "renorm_stddev",
    ]  # fmt: skip
    np.testing.assert_allclose(variables["renorm_mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variables["renorm_stddev"], deviation, rtol=1e-5)
    np.testing.assert_allclose(variables["moving_variance"], moving_deviation**2 - EPSILON, rtol=1e-5)


def test_corrections_are_clipped_and_let_no_gradient_flow() -> None:
    (outputs,), _ = steps([BATCH * 9 + 5], renorm=True, renorm_clipping={"rmin": 0.5, "rmax": 2, "dmax": 1})
    np.testing.assert_allclose(outputs, normal(BATCH * 9 + 5) * 2 + 1, rtol=1e-4, atol=1e-4)


def test_virtual_batches_have_statistics_of_their_own() -> None:
    (outputs,), variables = steps([BATCH], virtual_batch_size=2)
    parts = BATCH.reshape(2, 3, 3)
    np.testing.assert_allclose(outputs, normal(parts).reshape(6, 3), rtol=1e-4, atol=1e-5)
    assert variables["gamma"].shape == (1, 1, 3)
    np.testing.assert_allclose(variables["moving_mean"][0, 0], 0.1 * BATCH.mean(0), rtol=1e-4, atol=1e-6)
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="requires a multiple of"):
        steps([BATCH], virtual_batch_size=4)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"virtual_batch_size": 0}, "positive integer"),
        ({"virtual_batch_size": 2, "axis": 0}, "cannot contain 0"),
        ({"virtual_batch_size": 2, "adjustment": lambda shape: (1.0, 0.0)}, "adjustment cannot be specified"),
    ],
)
def test_virtual_batches_that_cannot_be_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tf.layers.batch_normalization(tf.constant(BATCH), training=True, **arguments)


def test_an_adjustment_is_made_while_training_only() -> None:
    def adjustment(shape: tf.Tensor) -> Any:
        return tf.fill([1, shape[1]], 2.0), tf.fill([1, shape[1]], 1.0)

    training = tf.placeholder_with_default(False, [])
    (unchanged,), _ = steps([BATCH], training, adjustment=adjustment)
    np.testing.assert_allclose(unchanged, BATCH / np.sqrt(1 + EPSILON), rtol=1e-5)
    with tf.Graph().as_default():
        (outputs,), _ = steps([BATCH], adjustment=adjustment)
    np.testing.assert_allclose(outputs, normal(BATCH) * 2 + 1, rtol=1e-4, atol=1e-5)


def test_without_training_moving_statistics_are_used_and_kept() -> None:
    training = tf.placeholder_with_default(False, [])
    (outputs,), variables = steps([BATCH], training, renorm=True)
    np.testing.assert_allclose(outputs, BATCH / np.sqrt(1 + EPSILON), rtol=1e-5)
    assert variables["moving_variance"].tolist() == [1, 1, 1] and variables["renorm_mean"].tolist() == [0, 0, 0]
