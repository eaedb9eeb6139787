"""Shell lines that outlive signals as long as their programs do."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from dtfctl.plan.shell_line import outliving_signals

SAVES = r"""
import os, signal, sys, time
def save(*_):
    os.write(1, b"saving\n"); time.sleep(0.2); os.write(1, b"saved\n"); sys.exit(7)
signal.signal(signal.SIGTERM, save)
os.write(1, b"ready\n")  # print may not be called again by the handler while it prints this
time.sleep(30)
"""


@pytest.mark.parametrize(
    ("line", "is_replaced"),
    [
        ("python t.py --x=1", True),
        ("  ./t.sh 'a; b' > out 2>&1 ", True),
        ("t \"$HOME\" `date`", True),
        ("t $(hostname)", False),
        ("t; u", False),
        ("t && u", False),
        ("t | u", False),
        ("t &", False),
        ("(t)", False),
        ("t\nu", False),
        ("X=1 t", False),
        ("cd /x", False),
        ("exec t", False),
        ("t 'unfinished", False),
        ("", False),
    ],
)
def test_a_shell_makes_room_for_a_single_program(line, is_replaced):
    assert outliving_signals(line).startswith("exec ") == is_replaced
    assert line.strip() in outliving_signals(line)


@contextlib.contextmanager
def running(line):
    """A shell with a session of its own, which ends with the block."""
    with subprocess.Popen(["/bin/sh", "-c", line], stdout=subprocess.PIPE, text=True, start_new_session=True) as shell:
        try:
            yield shell
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


@pytest.mark.parametrize("shape", ["{}", "true; {}; echo not reached", "X=1 {}", "true && {} 2>&1 | cat"])
def test_a_program_that_is_told_to_end_has_its_time(shape, tmp_path):
    (tmp_path / "saves.py").write_text(SAVES)
    line = outliving_signals(shape.format(f"{sys.executable} {tmp_path}/saves.py"))
    with running(line) as shell:
        assert shell.stdout.readline() == "ready\n"
        os.killpg(shell.pid, signal.SIGTERM)
        status = shell.wait(10)
        told = shell.stdout.read()
    assert "not reached" not in told
    if "| cat" not in shape:  # cat does not wait for anybody
        assert told == "saving\nsaved\n"
        assert status == 7


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_shell_that_is_told_to_end_between_two_commands_has_not_succeeded(number, status):
    line = outliving_signals("echo ready; while true; do :; done")
    with running(line) as shell:
        assert shell.stdout.readline() == "ready\n"
        os.killpg(shell.pid, number)
        assert shell.wait(10) == status
