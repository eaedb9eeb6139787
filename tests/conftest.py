"""In every test: nothing waits in a thread that reads connections, unless it has handed the reading over. The ports
that the tests of a module have reserved are free after it.

The whole default suite runs in one process for each core, up to four. Named files run in one process, so that a
debugger and `-s` work; so do slow tests, whose clusters need the machine for themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests import ports, reader_waits


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    option = config.option
    if (
        not hasattr(config, "workerinput")  # one of those processes would start its own, and so on for ever
        and config.args_source is config.ArgsSource.TESTPATHS
        and getattr(option, "numprocesses", 0) is None  # pytest-xdist is there, and the user chose no number
        and "not slow" in option.markexpr
        and not option.usepdb
        and not option.collectonly
    ):
        option.numprocesses = min(4, os.cpu_count() or 1)
        option.dist = "worksteal"


@pytest.fixture(autouse=True, scope="session")
def _watched_readers() -> Iterator[None]:
    with reader_waits.watched():
        yield


@pytest.fixture(autouse=True)
def _no_wait_in_a_reader_thread(_watched_readers: None) -> Iterator[None]:
    reader_waits.found.clear()
    yield
    assert not reader_waits.found, "a reader thread waited without `yield_reader`:\n" + "\n".join(reader_waits.found)


@pytest.fixture(autouse=True, scope="module")
def _ports_are_free_after_a_module() -> Iterator[None]:
    yield
    ports.release_ports()
