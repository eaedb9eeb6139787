"""dtfctl at a real pseudo-terminal, as a person has it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pyte
import pytest

from tests.e2e.dtfctl_cluster import CommandLine
from tests.waiting import wait_until

SLOW = """
name: trial
jobs:
  ps: {readiness: none, program: "echo here I am; trap '' TERM; while :; do sleep 0.1; done"}
  worker: {replicas: 30, readiness: {file: ready}, program: "echo loading the data; exec sleep 1000"}
grace_period: 1h
"""


class Terminal:
    """A pseudo-terminal in which one command runs; `text` is all that it was sent, `screen` what a person sees."""

    def __init__(self, cluster, *arguments, size=(100, 30), **environment):
        self.master, slave = pty.openpty()
        self.text = ""
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self._set_size(*size)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import os, fcntl, termios, sys; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
             "os.execv(sys.executable, [sys.executable, '-m', 'dtfctl', *sys.argv[1:]])", *arguments],
            cwd=cluster.folder,
            env={**cluster.environment, "TERM": "xterm", **environment},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(self.master, False)

    def read(self):
        try:
            while data := os.read(self.master, 1 << 16):
                self.text += data.decode()
                self._stream.feed(data)
        except (BlockingIOError, OSError):
            pass
        return self.text

    def sees(self, words):
        """Whether that stands on the screen now."""
        self.read()
        return words in "\n".join(self.lines())

    def lines(self):
        return [line.rstrip() for line in self.screen.display if line.strip()]

    def resize(self, columns, lines):
        self._set_size(columns, lines)
        self.screen.resize(lines, columns)

    def _set_size(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys)

    def wait(self):
        wait_until(lambda: self.read() and self.process.poll() is not None, "the command's end")
        self.read()
        os.close(self.master)
        assert "Traceback" not in self.text
        return self.process.returncode


@pytest.fixture
def cluster(tmp_path):
    cluster = CommandLine(tmp_path)
    yield cluster
    cluster.run("down", "--timeout", "0", status=None)
    assert cluster.processes() == {}


def test_ctrl_c_at_a_terminal_must_stop_the_cluster_in_order_and_not_hit_the_tasks_directly(cluster):
    terminal = Terminal(cluster, "up", "--attach")
    wait_until(lambda: "worker 1" in terminal.read(), "the workers")
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    assert "stopping (Ctrl-C again kills at once)" in terminal.text
    # A shell that has more than one command ends in order.
    reasons = {task["name"]: task["reason"] for task in cluster.status()["tasks"]}
    ended = {"interrupted by the user: killed by SIGTERM", "interrupted by the user: exited with status 143"}
    assert set(reasons.values()) <= ended, reasons


def test_the_key_d_leaves_an_attached_cluster_to_itself_and_the_terminal_as_it_was(cluster):
    terminal = Terminal(cluster, "up", "--attach")
    before = termios.tcgetattr(terminal.master)
    wait_until(lambda: terminal.sees("d: detach") and "worker 1" in terminal.text, "the live view")
    terminal.type(b"xd")
    assert terminal.wait() == 0
    assert "detached; trial goes on" in terminal.text and "up" in terminal.text
    assert all(task["state"] == "running" for task in cluster.status()["tasks"])
    assert before[3] & termios.ECHO


@pytest.mark.parametrize("module", ["click", "dtfctl.show.attach"])
def test_ctrl_c_while_python_is_still_loading_must_be_no_traceback(module, tmp_path):
    cluster = CommandLine(tmp_path)
    # An importer that is asked for `module` finds that the user has typed Ctrl-C.
    typed = f"""
import runpy, signal, sys
class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, CtrlC())
sys.argv = ["dtfctl", "up"]
runpy.run_module("dtfctl", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", typed], cwd=cluster.folder, env=cluster.environment, capture_output=True, text=True
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert cluster.processes() == {}


def test_prefixes_must_be_coloured_at_a_terminal(cluster):
    terminal = Terminal(cluster, "up", "--attach")
    wait_until(lambda: "worker 1" in terminal.read(), "the workers")
    cluster.finish()
    assert terminal.wait() == 0
    assert re.search(r"\x1b\[\d+mworker:0 \| \x1b\[0mbye\r\n", terminal.text)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_must_go_where_it_is_not_wanted(cluster, environment):
    terminal = Terminal(cluster, "up", "--attach", **environment)
    wait_until(lambda: "worker 1" in terminal.read(), "the workers")
    cluster.finish()
    assert terminal.wait() == 0
    assert not re.search(r"\x1b\[[0-9;]*m", terminal.text)
    assert ("\x1b" in terminal.text) == ("TERM" not in environment)
    assert "worker:0 | bye\r\n" in terminal.text


def test_a_reader_that_has_seen_enough_must_not_get_a_traceback(cluster):
    cluster.run("up")
    wait_until(lambda: "worker 1" in cluster.run("logs").stdout, "the workers' lines")
    command = f"{sys.executable} -m dtfctl logs | head -c 1 > /dev/null"
    done = subprocess.run(
        command, shell=True, cwd=cluster.folder, env=cluster.environment, capture_output=True, text=True
    )
    assert done.stderr == ""


@pytest.mark.slow
def test_a_person_must_see_who_is_missing_and_why_at_any_size_and_then_that_all_is_well(cluster):
    cluster.write(SLOW)
    terminal = Terminal(cluster, "up", size=(80, 20))
    wait_until(lambda: terminal.sees("trial  1 of 31 tasks are ready"), "the live view")
    wait_until(lambda: terminal.sees("loading the data"), "the last words of those that are missing")
    line = re.compile(r"  worker:0   starting \([^)]+\): the file /")
    wait_until(lambda: any(map(line.match, terminal.lines())), "what worker:0 waits for")
    assert re.search(r"\.\.\. and \d+ more", terminal.lines()[-1])
    assert len(terminal.lines()) == 19
    for columns, lines in ((40, 12), (120, 40)):
        terminal.resize(columns, lines)
        before = terminal.text
        wait_until(lambda: len(terminal.read()) > len(before) + 100 * lines, "it to be drawn again")  # noqa: B023
        seen = terminal.lines()[-(lines - 1) :]
        assert all(len(line) <= columns for line in seen)
        assert sum("tasks are ready" in line for line in seen) == 1
    (cluster.folder / "ready").touch()
    assert terminal.wait() == 0
    assert terminal.lines()[-2].startswith("all tasks are ready after")
    assert not any("of 31 tasks are ready" in line for line in terminal.lines()[-3:])
    down = Terminal(cluster, "down")
    wait_until(lambda: down.sees("ps:0  stopping"), "what is still to end")
    down.type(b"\x03")
    wait_until(lambda: down.sees("Ctrl-C again kills at once"), "the first one to be answered")
    down.type(b"\x03")
    assert down.wait() == 0
    assert cluster.processes() == {}


def test_ctrl_c_twice_at_a_terminal_must_kill_the_deaf(cluster):
    cluster.write(SLOW)
    terminal = Terminal(cluster, "up", "--attach")
    wait_until(lambda: "here I am" in terminal.read() and terminal.sees("1 of 31 tasks are ready"), "the live view")
    terminal.type(b"\x03")
    wait_until(lambda: terminal.sees("stopping (Ctrl-C again kills at once)"), "the first one to be answered")
    wait_until(lambda: cluster.task("worker:0")["state"] == "stopped", "those that listen")
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    assert cluster.processes() == {}


@pytest.mark.slow
def test_ctrl_c_while_up_waits_must_leave_the_cluster_starting_and_say_how_to_end_it(cluster):
    cluster.write(SLOW)
    terminal = Terminal(cluster, "up")
    wait_until(lambda: terminal.sees("1 of 31 tasks are ready"), "the live view")
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    assert terminal.lines()[-1].startswith("interrupted; dtfctl status shows what")
    assert cluster.status()["state"] == "starting"
    cluster.run("down", "--timeout", "0")


@pytest.mark.slow
def test_a_status_that_is_watched_must_change_in_its_place_and_fit(cluster):
    cluster.run("up")
    terminal = Terminal(cluster, "status", "--watch", size=(60, 5))
    wait_until(lambda: terminal.sees("and 3 more tasks"), "the table")
    terminal.resize(100, 20)
    pid = cluster.task("ps:1")["pid"]
    wait_until(lambda: terminal.sees(f" {pid} "), "the larger one")
    cluster.run("restart", "ps:1")
    wait_until(lambda: not terminal.sees(f" {pid} ") and terminal.sees("restarted by"), "the new process")
    assert sum(line.startswith("TASK") for line in terminal.lines()) == 1
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    top = Terminal(cluster, "top")
    wait_until(lambda: top.sees("CPU%") and top.sees("MiB"), "what tasks take")
    top.type(b"\x03")
    assert top.wait() == 130


@pytest.mark.slow
def test_without_any_terminal_or_open_output_a_command_must_do_its_work(cluster):
    for closed in ("<&- >&- 2>&-", "</dev/null >/dev/null 2>&-"):
        command = f"{sys.executable} -m dtfctl up {closed}"
        done = subprocess.run(command, shell=True, cwd=cluster.folder, env=cluster.environment, timeout=60)
        assert done.returncode == 0
    assert {task["ready"] for task in cluster.status()["tasks"]} == {True}


def test_a_terminal_that_is_closed_must_end_the_command_and_leave_the_cluster_running(cluster):
    terminal = Terminal(cluster, "up", "--attach")
    wait_until(lambda: "worker 1" in terminal.read(), "the workers")
    os.close(terminal.master)
    terminal.process.wait(20)
    assert terminal.process.returncode != 0
    assert cluster.status()["state"] == "running"
