"""Queues, barriers, accumulators and staging areas must wait, end and give back as TensorFlow's do."""

from __future__ import annotations

from tests.interop import queue_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.interop.two_runtimes import assert_same

pytestmark = needs_tensorflow


def test_queues_and_their_kin_wait_and_end_as_tensorflows(tmp_path):
    assert_same(queue_programs, tmp_path, rtol=0, atol=0)
