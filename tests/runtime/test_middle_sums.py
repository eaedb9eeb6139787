"""Sums over axes in the middle are those that numpy forms, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.float16])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((64, 20, 64), [1]), ((8, 16, 5, 63), [1, 2]), ((8, 16, 5, 63), [2]), ((64, 3, 300), [1]), ((70, 9, 8), [-2, 0])],
)
def test_a_sum_over_axes_in_the_middle_is_numpys(shape, axes, dtype, keepdims):
    values = np.random.RandomState(0).randn(*shape) * 10
    values = values.astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(dtype, shape)
        found = session.run(tf.reduce_sum(fed, axes, keepdims=keepdims), {fed: values})
    wide = np.float32 if dtype == np.float16 else dtype
    expected = np.add.reduce(values, tuple(axes), wide, keepdims=keepdims).astype(dtype)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
