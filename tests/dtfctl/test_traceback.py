"""The traceback at the end of a log, as real Pythons write it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dtfctl.launchers.keeper.traceback import traceback_of


def log_of(folder, *arguments):
    with open(folder / "log", "wb") as log:
        subprocess.run([sys.executable, *arguments], stdout=log, stderr=log, cwd=folder)
    return folder / "log"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("print('hello')\nimport no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = (", "SyntaxError: '(' was never closed"),
        ("open('nowhere')", "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere'"),
        ("raise ValueError", "ValueError"),
        ("import atexit\natexit.register(print, 'bye')\n1 / 0", "ZeroDivisionError: division by zero"),
        ("try:\n    1 / 0\nexcept Exception:\n    raise KeyError(5)", "KeyError: 5"),
    ],
)
def test_the_last_traceback_is_found(tmp_path, text, last):
    (tmp_path / "program.py").write_text(text)
    assert traceback_of(log_of(tmp_path, "program.py")).splitlines()[-1] == last


def test_what_python_says_of_a_program_that_it_does_not_find_counts_as_one(tmp_path):
    assert traceback_of(log_of(tmp_path, "-m", "no_such_module")).endswith(": No module named no_such_module")
    assert "can't open file" in traceback_of(log_of(tmp_path, "nowhere.py"))


def test_two_tracebacks_differ_by_no_address_of_an_object(tmp_path):
    (tmp_path / "program.py").write_text("raise ValueError(object())")
    assert traceback_of(log_of(tmp_path, "program.py")) == traceback_of(log_of(tmp_path, "program.py"))


def test_a_log_without_one_or_no_log_has_none(tmp_path):
    assert traceback_of(log_of(tmp_path, "-c", "print('Error: all is well')")) == ""
    assert traceback_of(tmp_path / "nowhere") == ""
