"""dtfctl at a real pseudo-terminal, as a person has it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from tests.e2e.dtfctl_cluster import CommandLine, wait_until


class Terminal:
    """A pseudo-terminal in which one command runs; `text` is all that it has shown."""

    def __init__(self, cluster, *arguments, **environment):
        self.master, slave = pty.openpty()
        self.text = ""
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
        except (BlockingIOError, OSError):
            pass
        return self.text

    def type(self, keys):
        os.write(self.master, keys)

    def wait(self):
        wait_until(lambda: self.read() and self.process.poll() is not None, "the command's end")
        self.read()
        os.close(self.master)
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
    assert {task["reason"] for task in cluster.status()["tasks"]} == {"interrupted by the user: killed by SIGTERM"}


@pytest.mark.parametrize("module", ["click", "dtfctl.attach"])
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
