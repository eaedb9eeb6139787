"""tf.GradientTape: jacobians of tensors of known and unknown size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dtf as tf

ROWS = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
WEIGHTS = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize("shape", [[3, 2], [None, 2]])
def test_a_jacobian_has_each_derivative_and_a_batch_jacobian_those_within_rows(shape: list[Any]) -> None:
    x = tf.placeholder(tf.float32, shape)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.matmul(tf.square(x), tf.constant(WEIGHTS))
    whole, by_rows, total = tape.jacobian(y, [x]), tape.batch_jacobian(y, x), tape.jacobian(tf.reduce_sum(y), x)
    assert by_rows.shape.as_list() == [shape[0], 3, 2] and whole[0].shape.as_list() == [shape[0], 3, shape[0], 2]
    with tf.Session() as session:
        found = session.run([whole[0], by_rows, total], {x: ROWS})
    expected = 2 * ROWS[:, None, :] * WEIGHTS.T[None]
    np.testing.assert_allclose(found[1], expected)
    np.testing.assert_allclose(found[0], expected[:, :, None, :] * np.eye(3)[:, None, :, None])
    np.testing.assert_allclose(found[2], expected.sum(1))


def test_what_does_not_depend_gives_none_or_zeros() -> None:
    x, other = tf.constant(ROWS), tf.constant(ROWS)
    tape = tf.GradientTape()
    assert tape.jacobian(other, x) is None
    zeros = [tape.batch_jacobian(other, x), tape.jacobian(other, x, tf.UnconnectedGradients.ZERO)]
    with tf.Session() as session:
        assert [(each.shape, each.any()) for each in session.run(zeros)] == [((3, 2, 2), False), ((3, 2, 3, 2), False)]


def test_batches_of_other_sizes_are_refused() -> None:
    tape = tf.GradientTape()
    with pytest.raises(ValueError, match=r"first dimension of target shape \(\(2, 2\)\) and source shape \(\(3, 2\)\)"):
        tape.batch_jacobian(tf.ones([2, 2]), tf.constant(ROWS))
    with pytest.raises(ValueError, match="first dimension"):
        tape.batch_jacobian(tf.placeholder(tf.float32), tf.constant(ROWS))
