"""The default suite runs in one process a core, and none of these processes starts more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_cmdline_main

DEFAULT = "not slow and not interop"


def numprocesses(source: pytest.Config.ArgsSource, markexpr: str = DEFAULT, **more: Any) -> int | None:
    option = SimpleNamespace(numprocesses=None, dist="no", markexpr=markexpr, usepdb=False, collectonly=False)
    config = SimpleNamespace(option=option, args_source=source, ArgsSource=pytest.Config.ArgsSource, **more)
    pytest_cmdline_main(config)  # type: ignore[arg-type]
    return option.numprocesses


def test_the_default_suite_takes_every_core() -> None:
    assert (numprocesses(pytest.Config.ArgsSource.TESTPATHS) or 0) >= 1


def test_a_worker_process_starts_no_further_ones() -> None:
    assert numprocesses(pytest.Config.ArgsSource.TESTPATHS, workerinput={"workerid": "gw0"}) is None


def test_named_files_and_slow_tests_stay_in_one_process() -> None:
    assert numprocesses(pytest.Config.ArgsSource.ARGS) is None
    assert numprocesses(pytest.Config.ArgsSource.TESTPATHS, "slow") is None
