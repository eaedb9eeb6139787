"""The layers must give TensorFlow's values, gradients, updates and names, and train as TensorFlow's do."""

from __future__ import annotations

from tests.interop import layer_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.interop.two_runtimes import assert_same

pytestmark = needs_tensorflow


def test_layers_are_tensorflows(tmp_path):
    assert_same(layer_programs, tmp_path, rtol=1e-3, atol=2e-4)
