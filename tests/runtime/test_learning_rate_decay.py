"""Decaying learning rates at a few steps, against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dtf as tf

STEPS = [0, 3, 6, 11, 20]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def over(decay, steps=STEPS) -> np.ndarray:
    """The learning rates at the steps, fed as the value of one global step."""
    step = tf.placeholder(tf.int64, [])
    rate = decay(step)
    assert rate.shape.is_compatible_with([])
    with tf.Session() as session:
        return np.array([session.run(rate, {step: each}) for each in steps])


def cosine(fraction: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * fraction))


DECAYS = {
    "exponential": (lambda s: tf.train.exponential_decay(0.5, s, 10, 0.9), lambda s: 0.5 * 0.9 ** (s / 10)),
    "staircase": (
        lambda s: tf.train.exponential_decay(0.5, s, 5, 0.9, staircase=True),
        lambda s: 0.5 * 0.9 ** (s // 5),
    ),
    "natural_exp": (lambda s: tf.train.natural_exp_decay(0.5, s, 10, 0.9), lambda s: 0.5 * math.exp(-0.9 * s / 10)),
    "inverse_time": (lambda s: tf.train.inverse_time_decay(0.5, s, 10, 0.9), lambda s: 0.5 / (1 + 0.9 * s / 10)),
    "piecewise": (
        lambda s: tf.train.piecewise_constant(s, [3, 10], [1.0, 0.5, 0.1]),
        lambda s: 1.0 if s <= 3 else 0.5 if s <= 10 else 0.1,
    ),
    "polynomial": (
        lambda s: tf.train.polynomial_decay(0.5, s, 12, 0.01, 2.0),
        lambda s: 0.49 * (1 - min(s, 12) / 12) ** 2 + 0.01,
    ),
    "polynomial-cycle": (
        lambda s: tf.train.polynomial_decay(0.5, s, 8, 0.01, cycle=True),
        lambda s: 0.49 * (1 - s / (8 * max(1, math.ceil(s / 8)))) + 0.01,
    ),
    "cosine": (
        lambda s: tf.train.cosine_decay(0.5, s, 12, 0.1),
        lambda s: 0.5 * (0.9 * cosine(min(s, 12) / 12) + 0.1),
    ),
    "restarts": (
        lambda s: tf.train.cosine_decay_restarts(0.5, s, 5, 2.0, 0.7),
        lambda s: (
            0.5
            * (cosine(s / 5) if s < 5 else 0.7 * cosine((s - 5) / 10) if s < 15 else 0.49 * cosine((s - 15) / 20))
        ),
    ),
    "linear-cosine": (
        lambda s: tf.train.linear_cosine_decay(0.5, s, 12),
        lambda s: 0.5 * ((1 - min(s, 12) / 12) * cosine(min(s, 12) / 12) + 0.001),
    ),
}


@pytest.mark.parametrize("name", DECAYS)
def test_a_decay_follows_its_formula(name: str):
    decay, formula = DECAYS[name]
    np.testing.assert_allclose(over(decay), [formula(step) for step in STEPS], rtol=1e-5, atol=1e-7)


def test_noise_without_variance_is_the_linear_cosine():
    noisy = over(lambda s: tf.train.noisy_linear_cosine_decay(0.5, s, 12, initial_variance=0.0))
    np.testing.assert_allclose(noisy, over(lambda s: tf.train.linear_cosine_decay(0.5, s, 12)), rtol=1e-6)


def test_a_decay_reads_the_global_step_variable():
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(1.0, step, 1, 0.5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.assign(step, 3))
        assert session.run(rate) == 0.125


def test_a_decay_says_what_is_wrong():
    with pytest.raises(ValueError, match="global_step is required"):
        tf.train.exponential_decay(0.5, None, 10, 0.9)
    with pytest.raises(ValueError, match="should be 1 less"):
        tf.train.piecewise_constant(tf.constant(1), [1, 2], [1.0, 0.5])
    with pytest.raises(ValueError, match="must have the same dtype as x"):
        tf.train.piecewise_constant(tf.constant(1), [1.5], [1.0, 0.5])
    with pytest.raises(ValueError, match="all with the same dtype"):
        tf.train.piecewise_constant(tf.constant(1), [1], [1.0, 5])
