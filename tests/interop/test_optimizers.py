"""Every optimizer must take the steps that TensorFlow's takes, and give its variables and ops the same names."""

from __future__ import annotations

from tests.interop import optimizer_steps
from tests.interop.tensorflow_process import needs_tensorflow
from tests.interop.two_runtimes import assert_same

pytestmark = needs_tensorflow


def test_twenty_steps_of_every_optimizer_are_tensorflows(tmp_path):
    assert_same(optimizer_steps, tmp_path, rtol=1e-5, atol=1e-5)
