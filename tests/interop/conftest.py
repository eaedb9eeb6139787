"""What the interop tests share: one process of TensorFlow's for all the small programs."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.interop.tensorflow_process import TensorFlowPrograms

# TensorFlow takes oneDNN's kernels on processors with instructions for neural networks. They give other shapes for
# unused outputs, accept other ranks and fuse more, so the comparison would depend on the machine.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


@pytest.fixture(scope="session")
def tensorflow() -> Iterator[TensorFlowPrograms]:
    """Runs programs under TensorFlow, one after the other in one process."""
    programs = TensorFlowPrograms()
    yield programs
    programs.close()
