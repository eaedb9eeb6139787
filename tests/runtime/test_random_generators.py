"""Generators of random numbers draw TensorFlow's numbers; their state is a variable."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def _a_graph_of_its_own():
    with tf.Graph().as_default():
        yield


def test_a_generator_of_a_seed_draws_tensorflows_numbers_in_order():
    generator = tf.random.Generator.from_seed(1234)
    first = generator.normal([3])
    with tf.control_dependencies([first]):
        second = generator.uniform([2], 1, 10, tf.int32)
    with tf.control_dependencies([second]):
        state = generator.state.read_value()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([first, second, state])
    assert found[0] == pytest.approx([0.93566090, 1.0854305, -0.93788373])
    assert found[1].tolist() == [2, 9] and found[2].tolist() == [1234 + 5 * 256, 0, 0]


def test_a_state_is_set_and_copied():
    generator = tf.random.Generator.from_seed(7)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        draw = generator.uniform([4])
        before = session.run(draw)
        assert not np.array_equal(before, session.run(draw))
        session.run(generator.reset_from_seed(7))
        assert np.array_equal(before, session.run(draw))
    with pytest.raises(ValueError, match="not supported"):
        tf.random.Generator.from_seed(1, alg="threefry")


def test_seeds_derive_seeds():
    with tf.Session() as session:
        assert session.run(tf.random.split([1, 2], 3)).tolist() == [
            [1105988140, 1738052849], [-335576002, 370444179], [10670227, -246211131]
        ]  # fmt: skip
        assert session.run(tf.random.fold_in([1, 2], 5)).tolist() == [1105988140, 5]
        shuffled = session.run(tf.random.experimental.stateless_shuffle(tf.range(9), [1, 2]))
        assert sorted(shuffled.tolist()) == list(range(9))
