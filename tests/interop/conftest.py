"""What the interop tests share: one process of TensorFlow's for all the small programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.tensorflow_process import TensorFlowPrograms


@pytest.fixture(scope="session")
def tensorflow() -> Iterator[TensorFlowPrograms]:
    """Runs programs under TensorFlow, one after the other in one process."""
    programs = TensorFlowPrograms()
    yield programs
    programs.close()
