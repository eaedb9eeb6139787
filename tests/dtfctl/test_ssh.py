"""What ssh is called with, what its failures mean, and a Python that becomes an agent."""

from __future__ import annotations

import asyncio
import gc
import json
import shlex
import subprocess
import sys
import tempfile

import pytest

from dtfctl.launchers import ssh
from dtfctl.launchers.agent.protocol import ANSWERS
from dtfctl.launchers.agent_client import NO_PYTHON, AgentClient, agent_command, agent_line
from dtfctl.launchers.keeper import processes
from dtfctl.launchers.pipe import PipeError, read_ends
from dtfctl.values.engines import SshSettings
from dtfctl.values.plan import SSH, HostPlan
from dtfctl.wire.messages import checked
from tests.waiting import wait_until

HOST = HostPlan("gpu", "10.0.0.7", "python3", "/w", via=SSH, target="gpu-a", user="ml", port=2200)
PLAIN = HostPlan("gpu", "10.0.0.7", "python3", "/w", via=SSH, target="gpu-a")


def options(**settings):
    words = ssh.argv(SshSettings(**settings), HOST)
    return dict(words[place + 1].split("=", 1) for place, word in enumerate(words) if word == "-o")


def test_nobody_is_asked_and_one_connection_serves_all_calls():
    found = options()
    assert found["BatchMode"] == "yes" and found["ControlMaster"] == "auto" and found["ControlPersist"] == "60"
    assert found["ServerAliveInterval"] == "5" and found["ServerAliveCountMax"] == "3"
    assert "/" not in found["ControlPath"], "a socket's path may have only 107 bytes"


def test_the_users_own_words_come_first_so_that_they_count():
    words = ssh.argv(SshSettings("ssh -F 'my config' -o ServerAliveInterval=1"), PLAIN)
    assert words[:5] == ("ssh", "-F", "my config", "-o", "ServerAliveInterval=1")


def test_the_login_is_the_files_or_the_users_config_decides():
    assert ssh.argv(SshSettings(), HOST)[-4:] == ("-l", "ml", "-p", "2200")
    assert "-l" not in ssh.argv(SshSettings(), PLAIN)


def test_host_keys_are_the_users_affair_unless_the_file_says_otherwise():
    assert "StrictHostKeyChecking" not in options()
    assert options(accept_new=True)["StrictHostKeyChecking"] == "accept-new"


def test_different_logins_have_different_connections():
    assert ssh.socket_name(HOST) != ssh.socket_name(PLAIN) == ssh.socket_name(PLAIN)


def test_the_command_to_try_is_one_that_a_person_can_type():
    assert ssh.by_hand(SshSettings(), HOST) == "ssh -o BatchMode=yes -l ml -p 2200 gpu-a true"
    assert ssh.by_hand(SshSettings("ssh -F 'a b'"), PLAIN, "df", "-h").endswith("gpu-a df -h")


@pytest.mark.parametrize(
    "words, why",
    [
        ("ml@gpu-a: Permission denied (publickey).\r\n", "ml@gpu-a: Permission denied (publickey)."),
        ("ssh: connect to host h port 22: No route to host\n", "connect to host h port 22: No route to host"),
        ("Warning: Permanently added 'h' to the list.\nConnection closed by h\n", "Connection closed by h"),
        ("", "ssh exits with status 255"),
        ("Connection reset by h\n\x1b[2J\x1b[H\n\x1b", "Connection reset by h"),
        ("\x1b[31mPermission denied\x1b[0m\n", "Permission denied"),
        (f"{'x' * 5000}\n", f"{'x' * 297}..."),
    ],
)
def test_why_ssh_did_not_do_it_is_its_last_line(words, why):
    assert ssh.explain(words, 255) == why


def test_of_flooded_errors_the_first_and_the_last_lines_are_kept():
    with tempfile.TemporaryFile() as file:
        file.write(b"first\n" + b"\x1b[1mnoise\x1b[0m\n" * 100_000 + b"Connection reset by h\n")
        words = read_ends(file)
    assert len(words) < 1 << 16 and words.startswith("first\n")
    assert {line for line in words.splitlines() if line} == {"first", "\x1b[1mnoise\x1b[0m", "Connection reset by h"}
    assert ssh.explain(words, 255) == "Connection reset by h"


def test_an_unknown_host_key_comes_with_what_to_do():
    words = ssh.explain("No ED25519 host key is known for h.\nHost key verification failed.\n", 255)
    assert words.startswith("Host key verification failed") and "accept-new" in words


def test_what_a_call_came_to_is_told_apart():
    there = AgentClient(ssh.SshPipe(SshSettings(), HOST, None))
    missing = there.failure(NO_PYTHON, "python3 is Python 3.7.3\n")
    assert "python3 is Python 3.7.3" in missing.why and not missing.is_connection
    assert "python3 --version" in missing.command
    assert there.failure(255, "Connection reset").is_connection
    assert not there.failure(1, "Traceback").is_connection


def run_there(pythons, request, shell="/bin/sh"):
    """As sshd does: the user's shell gets the line."""
    return subprocess.run(
        [shell, "-c", shlex.join(agent_command(pythons))],
        input=agent_line() + json.dumps(request).encode() + b"\n",
        capture_output=True,
        timeout=30,
    )


CHECK = {"do": "check", "addresses": ["127.0.0.1"], "names": [], "ports": [], "pythons": [], "needs_folder": False}


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_the_first_python_that_will_do_becomes_the_agent(tmp_path, shell):
    old = tmp_path / "old python"
    old.write_text("#!/bin/sh\n[ $1 = --version ] && echo Python 3.7.3 && exit; exit 1\n")
    old.chmod(0o755)
    done = run_there([str(old), "no-such-python", sys.executable], {**CHECK, "folder": str(tmp_path / "new")}, shell)
    found = checked(done.stdout, ANSWERS["check"])
    assert found["version"].startswith("3.") and found["folder"] == str(tmp_path / "new")
    assert found["folder_error"] == "" and found["addresses"] == {"127.0.0.1": ""}
    assert found["environment"]["PATH"] and not any(key.startswith("SSH_") for key in found["environment"])


def test_where_no_python_will_do_the_older_ones_are_named(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\n[ $1 = --version ] && echo Python 3.7.3 && exit; exit 1\n")
    old.chmod(0o755)
    done = run_there([str(old), "no-such-python"], {**CHECK, "folder": "/"})
    assert done.returncode == NO_PYTHON
    assert done.stderr.decode() == f"{old} is Python 3.7.3\n"


def test_the_line_for_the_other_side_needs_little_quoting_in_any_shell():
    words = agent_command(["it's"])
    assert words[:2] == ("/bin/sh", "-c") and words[-2:] == ("sh", "it's")
    assert "'" not in words[2] and "!" not in words[2] and "\n" not in words[2]


def program(folder, text):
    path = folder / "fake-ssh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return AgentClient(ssh.SshPipe(SshSettings(str(path)), PLAIN, folder / "sockets"))


LONG = {"do": "check", "padding": "x" * (1 << 20)}


ENDS = ["exit 255", "head -c 10 >/dev/null; exit 255", "exec 0<&-; echo no such host >&2; exit 255"]


@pytest.mark.parametrize("text", ENDS)
def test_an_ssh_that_ends_unheard_is_one_error_and_nothing_that_asyncio_complains_of(tmp_path, text):
    complaints = []

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        host = program(tmp_path, text)
        answers = await asyncio.gather(*(host.ask(LONG, 30) for _ in range(4)), return_exceptions=True)
        assert all(isinstance(answer, PipeError) and answer.is_connection for answer in answers)
        gc.collect()

    asyncio.run(scenario())
    gc.collect()
    assert complaints == []


def test_an_interrupted_call_leaves_no_ssh_behind(tmp_path):
    host = program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 1000")

    async def scenario():
        asking = asyncio.create_task(host.ask({"do": "check"}, 1000))
        pid = int(await asyncio.to_thread(wait_until, lambda: _read(tmp_path / "pid"), "ssh"))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return pid

    pid = asyncio.run(scenario())
    wait_until(lambda: not _is_there(pid), "the end of ssh")


def _read(path):
    return path.read_text().strip() if path.exists() else ""


def _is_there(pid):
    try:
        return processes.stat_of(pid)[2] not in "ZX"
    except OSError:
        return False
