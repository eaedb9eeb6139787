"""In every test: nothing waits in a thread that reads connections, unless it has handed the reading over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import reader_waits


@pytest.fixture(autouse=True, scope="session")
def _watched_readers() -> Iterator[None]:
    with reader_waits.watched():
        yield


@pytest.fixture(autouse=True)
def _no_wait_in_a_reader_thread(_watched_readers: None) -> Iterator[None]:
    reader_waits.found.clear()
    yield
    assert not reader_waits.found, "a reader thread waited without `before_long`:\n" + "\n".join(reader_waits.found)
