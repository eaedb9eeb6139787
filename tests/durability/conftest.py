"""What several tests of durability need."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def folder():
    place = Path("/dev/shm")
    if not place.is_dir():
        pytest.skip("this system has no /dev/shm")
    made = Path(tempfile.mkdtemp(prefix="dtf-durability-", dir=place))
    yield made
    shutil.rmtree(made)
