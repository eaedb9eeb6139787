"""The metrics must give TensorFlow's figures after every batch, and have its variables."""

from __future__ import annotations

from tests.interop import metric_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.interop.two_runtimes import assert_same

pytestmark = needs_tensorflow


def test_metrics_are_tensorflows(tmp_path):
    assert_same(metric_programs, tmp_path, rtol=1e-4, atol=2e-5)
