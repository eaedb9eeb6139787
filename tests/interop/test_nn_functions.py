"""The functions of tf.nn, tf.losses and tf.train must give TensorFlow's values, gradients and variable names."""

from __future__ import annotations

from tests.interop import nn_functions
from tests.interop.tensorflow_process import needs_tensorflow
from tests.interop.two_runtimes import assert_same

pytestmark = needs_tensorflow


def test_values_and_gradients_are_tensorflows(tmp_path):
    assert_same(nn_functions, tmp_path, rtol=2e-4, atol=2e-5)
