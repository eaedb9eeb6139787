"""tf.train.experimental: scaled losses, and sessions that rewrite graphs to mixed precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.build import graph_rewrites
from dtf.run.devices.fake import fake_devices

experimental = tf.train.experimental


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(graph_rewrites, "_has_sessions", False)
    yield
    experimental.disable_mixed_precision_graph_rewrite()


def minimized(scale: Any, slope: Any = 2.0) -> tuple[Any, Any, Any]:
    """An optimizer's step on `slope * w`, the variable, and a placeholder for the slope."""
    given = tf.placeholder_with_default(np.float32(slope), [])
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.25), scale)
    return optimizer.minimize(weight * given), weight, given


@pytest.mark.parametrize("scale", [8.0, "dynamic"])
def test_a_scaled_loss_gives_the_same_update(scale: Any):
    with tf.Graph().as_default(), tf.Session() as session:
        step, weight, _ = minimized(scale)
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(weight) == 0.5


def test_a_dynamic_scale_grows_and_shrinks():
    with tf.Graph().as_default(), tf.Session() as session:
        scale = experimental.DynamicLossScale(initial_loss_scale=4.0, increment_period=2, multiplier=2.0)
        step, weight, slope = minimized(scale)
        session.run(tf.global_variables_initializer())
        scales = []
        for given in (1.0, 1.0, np.inf, np.nan, np.inf, np.inf, 1.0):
            session.run(step, {slope: given})
            scales.append(float(session.run(scale())))
        assert scales == [4.0, 8.0, 4.0, 2.0, 1.0, 1.0, 1.0]
        assert session.run(weight) == 0.25, "steps that are not finite change nothing"
        assert {each.name for each in tf.global_variables()} == {"weight:0", "current_loss_scale:0", "good_steps:0"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: experimental.FixedLossScale(0.5), "at least 1"),
        (lambda: experimental.FixedLossScale("8"), "must be a Python int or float"),
        (lambda: experimental.enable_mixed_precision_graph_rewrite("sgd"), "must be an instance of a tf.train.Opti"),
        (lambda: experimental.MixedPrecisionLossScaleOptimizer(tf.train.AdamOptimizer(), "fast"), "loss_scale must be"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, words: str):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
        make()


def test_sessions_after_the_request_compute_in_float16_on_gpus_only():
    with fake_devices("GPU", 1), tf.Graph().as_default():
        optimizer = experimental.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(0.5), 128.0)
        with pytest.raises(ValueError, match="must not already be"):
            experimental.enable_mixed_precision_graph_rewrite(optimizer)
        inputs = tf.placeholder(tf.float32, [2, 2])
        steps, weights, results = [], [], []
        for device in ("/gpu:0", "/cpu:0"):
            with tf.device(device):
                weight = tf.get_variable(f"weight{len(steps)}", [2, 2], initializer=tf.constant_initializer(1.0001))
                steps.append(optimizer.minimize(tf.reduce_sum(tf.matmul(inputs, weight))))
                weights.append(weight)
                results.append(tf.add(tf.matmul(inputs, weight), 0.0))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            feeds = {inputs: np.full((2, 2), 0.1, np.float32)}
            exact = np.float32(0.1) * np.float32(1.0001) * 2
            on_gpu, on_cpu = session.run(results, feeds)
            assert on_gpu.dtype == on_cpu.dtype == np.float32
            np.testing.assert_allclose(on_cpu, exact, rtol=1e-6)
            assert 1e-5 < np.abs(on_gpu / exact - 1).max() < 1e-3, "it was rounded to float16"
            session.run(steps, feeds)
            for found in session.run(weights):
                np.testing.assert_allclose(found, 1.0001 - 0.5 * 0.2, rtol=1e-3)
