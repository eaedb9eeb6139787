"""The keeper with real processes: what it starts, what it tells, and what is lost when somebody is killed (nothing)."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dtfctl.errors import PortTaken
from dtfctl.launchers.base import Exited, Launch, Listed, Started
from dtfctl.launchers.keeper import CHOSEN_PORTS, cgroups, ports, processes, program
from dtfctl.launchers.keeper.lease import Lease
from dtfctl.launchers.keeper.respawn import DELAY_S, DELAY_S_MAX, Respawn
from dtfctl.launchers.local import LocalLauncher
from dtfctl.values.plan import Limits
from tests.e2e.dtfctl_cluster import ROOT
from tests.waiting import wait_until


class Host:
    """A run folder, and launchers that come and go on it."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "logs").mkdir()
        # Its own: a sweep ends everything that has it, another test's processes too.
        (folder / "token").write_text(secrets.token_hex(12))
        self.events = []
        self.changed = asyncio.Event()

    def take(self, event):
        self.events.append(event)
        self.changed.set()

    @asynccontextmanager
    async def launcher(self):
        launcher = LocalLauncher(self.folder, self.folder, self.take)
        launcher.connect()
        await launcher.wait_until_listed()
        try:
            yield launcher
        finally:
            await launcher.sweep()
            await launcher.close()

    async def next(self, kind, task="t:0"):
        """Waits for an event and takes it out."""

        async def look():
            while True:
                for event in self.events:
                    if isinstance(event, kind) and getattr(event, "task", task) == task:
                        self.events.remove(event)
                        return event
                self.changed.clear()
                await self.changed.wait()

        return await asyncio.wait_for(look(), 15)

    def launch(self, *argv, task="t:0", generation=1, **changes):
        values = dict(
            environment={"PATH": os.environ["PATH"]},
            working_dir=str(self.folder),
            log=str(self.folder / "logs" / f"{task.replace(':', '-')}.{generation}.log"),
        )
        return Launch(task, generation, argv, **{**values, **changes})

    def log(self, name="t-0.1"):
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def record(self, name="t-0.1.start"):
        return json.loads((self.folder / "records" / name).read_text())

    def keeper_pid(self):
        """The process that holds the lock's file open and is nobody's shim."""
        shims = [self.record(path.name)["shim"] for path in (self.folder / "records").glob("*.start")]
        for name in os.listdir("/proc"):
            is_shim = not name.isdigit() or int(name) in shims
            if not is_shim and processes.command_of(int(name)).endswith(str(self.folder)):
                return int(name)
        return None


def run(scenario, tmp_path):
    asyncio.run(asyncio.wait_for(scenario(Host(tmp_path)), 60))


def is_alive(pid):
    try:
        return processes.stat_of(pid)[2] not in "ZX"
    except OSError:
        return False


def test_files_are_placed_for_the_task_alone_and_go_with_the_run(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            script = 'stat -c "%a %n" "$KEY"; cat "$KEY"; stat -c %a "$(dirname "$KEY")"; '
            script += 'tr "\\0" " " < /proc/$PPID/cmdline'
            launcher.start(host.launch(*shell(script), files={"KEY": "a secret"}))
            await host.next(Exited)
            path = host.folder / "files" / "t-0" / "KEY"
            assert host.log().startswith(f"600 {path}\na secret700\n")
            assert host.log().count("a secret") == 1
            assert "a secret" not in json.dumps(host.record())
        assert not (host.folder / "files").exists()

    run(scenario, tmp_path)


def test_a_file_that_cannot_be_placed_is_the_end_of_the_start(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            (host.folder / "files").write_text("in the way")
            launcher.start(host.launch(*shell("true"), files={"KEY": "a secret"}))
            exited = await host.next(Exited)
            assert "could not be started: " in exited.exit.error and "files" in exited.exit.error
            os.unlink(host.folder / "files")

    run(scenario, tmp_path)


def shell(script):
    return "/bin/sh", "-c", script


@pytest.mark.parametrize(
    ("script", "ended"),
    [("exit 0", "exited with status 0"), ("exit 7", "exited with status 7"), ("kill -9 $$", "killed by SIGKILL")],
)
def test_the_end_of_a_process_is_told_as_it_was(tmp_path, script, ended):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch(*shell(f"echo out; echo err >&2; {script}")))
            started = await host.next(Started)
            assert started.pid == host.record()["pid"]
            assert str((await host.next(Exited)).exit) == ended
        assert host.log() == "out\nerr\n"

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"argv": ("no-such-program",)}, "could not be started: no-such-program: No such file or directory"),
        ({"argv": ("/etc/passwd",)}, "could not be started: /etc/passwd: Permission denied"),
        ({"working_dir": "/no/such"}, "could not be started: the folder /no/such: No such file or directory"),
    ],
)
def test_a_program_that_cannot_be_started_is_an_end_in_words(tmp_path, changes, words):
    async def scenario(host):
        async with host.launcher() as launcher:
            launch = host.launch(*changes.pop("argv", ("true",)), **changes)
            launcher.start(launch)
            assert str((await host.next(Exited)).exit) == words

    run(scenario, tmp_path)


def test_a_task_is_clean_of_what_its_keeper_has(tmp_path):
    script = "import os, signal; print(sorted(os.listdir('/proc/self/fd'))[:-1]); print(os.getsid(0) == os.getpid());"
    script += "print([s.name for s in signal.Signals if signal.getsignal(s) is signal.SIG_IGN])"

    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch("sleep", "100", task="other:0"))
            launcher.start(host.launch(sys.executable, "-c", script))
            await host.next(Exited)
        descriptors, leads_session, ignored = host.log().splitlines()
        assert descriptors == "['0', '1', '2']"
        assert leads_session == "True"
        assert ignored == "['SIGPIPE', 'SIGXFSZ']", "these two are Python's own"

    run(scenario, tmp_path)


def test_a_signal_reaches_the_whole_group_and_the_rest_of_a_group_goes_with_its_leader(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch(*shell("sleep 1000 & echo $!; wait")))
            wait_until(lambda: host.log().strip(), "the child's pid")
            launcher.signal("t:0", 1, signal.SIGTERM)
            assert (await host.next(Exited)).exit.signal == signal.SIGTERM
            wait_until(lambda: not is_alive(int(host.log())), "the child to die of the same signal")
            launcher.start(host.launch(*shell("trap '' TERM; sleep 1000 & echo $!"), generation=2))
            await host.next(Exited)
            wait_until(lambda: not is_alive(int(host.log("t-0.2"))), "the deaf child to be killed with its leader")

    run(scenario, tmp_path)


def test_a_start_that_is_repeated_starts_once(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            for _ in range(3):
                launcher.start(host.launch(*shell("echo once")))
            await host.next(Exited)
        assert host.log() == "once\n"

    run(scenario, tmp_path)


def test_a_killed_keeper_loses_no_task_no_line_and_no_exit_status(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(
                host.launch(*shell("echo before; while [ ! -e go ]; do sleep 0.01; done; echo after; exit 5"))
            )
            launcher.start(host.launch(*shell("while [ ! -e go ]; do sleep 0.01; done; kill -9 $$"), task="u:0"))
            await host.next(Started)
            await host.next(Started, "u:0")
            await host.next(Listed)
            os.kill(host.keeper_pid(), signal.SIGKILL)
            (host.folder / "go").touch()
            listed = await host.next(Listed)
            assert listed.known == {("t:0", 1), ("u:0", 1)}
            assert (await host.next(Exited)).exit.code == 5
            assert (await host.next(Exited, "u:0")).exit.signal == 9
        assert host.log() == "before\nafter\n"

    run(scenario, tmp_path)


def test_a_killed_shim_loses_no_exit_status(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch(*shell("while [ ! -e go ]; do sleep 0.01; done; exit 6")))
            await host.next(Started)
            os.kill(host.record()["shim"], signal.SIGKILL)
            wait_until(lambda: not is_alive(host.record()["shim"]), "the shim's end")
            (host.folder / "go").touch()
            assert (await host.next(Exited)).exit.code == 6

    run(scenario, tmp_path)


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"task": 1}', None])
def test_a_damaged_record_does_not_lead_to_two_processes_of_one_task(tmp_path, damage):
    async def scenario(host):
        environment = {"PATH": os.environ["PATH"], "DTFCTL_TASK": "t:0"}
        async with host.launcher() as launcher:
            launcher.start(host.launch("sleep", "1000", environment=environment))
            pid = (await host.next(Started)).pid
            await host.next(Listed)
            record = host.folder / "records" / "t-0.1.start"
            text = record.read_text().replace('"pid": ', '"pid": "x", "was": ') if damage is None else damage
            keeper_pid = host.keeper_pid()
            # Until then it is a fork of its shim, and nobody could know it by its environment.
            wait_until(lambda: b"DTFCTL_TASK=t:0" in Path(f"/proc/{pid}/environ").read_bytes(), "its program")
            record.write_text(text)
            os.kill(keeper_pid, signal.SIGKILL)
            listed = await host.next(Listed)
            assert listed.known == frozenset()
            wait_until(lambda: not is_alive(pid), "the end of the process that nobody knows any more")

    run(scenario, tmp_path)


BAD_LINES = [
    b"hello",
    b"[]",
    b'{"do": "dance"}',
    b'{"do": "start", "task": "t:0"}',
    b'{"do": "signal", "task": "t:0", "generation": 1, "number": 9.0}',
    b'{"do": "signal", "task": "t:0", "generation": 1, "number": 900}',
    b'{"do": "hold", "id": 1, "task": "../../t:0", "address": "127.0.0.1", "port": 1, "fixed": true}',
    b'{"do": "hold", "id": NaN, "task": "t:0", "address": "127.0.0.1", "port": 1, "fixed": true}',
    b'{"do": "__init__"}',
    b"[" * 100_000,
    b"\xff\xfe",
]


def test_what_is_no_request_costs_a_line_in_the_keepers_log_and_no_task(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch("sleep", "1000"))
            pid = (await host.next(Started)).pid
            keeper = host.keeper_pid()
            for line in BAD_LINES:
                launcher._keeper_client._writer.write(line + b"\n")
            launcher.signal("t:0", 1, signal.SIGTERM)
            assert (await host.next(Exited)).exit.signal == signal.SIGTERM
            assert host.keeper_pid() == keeper and not is_alive(pid)
        log = (host.folder / "keeper.log").read_text()
        assert "Traceback" not in log
        assert log.count("a request was refused") == len(BAD_LINES)

    run(scenario, tmp_path)


def test_a_shim_that_cannot_write_a_record_starts_nothing_and_lives(tmp_path):
    """As on a full disk."""

    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch("true"))
            await host.next(Exited)
            shim = host.record()["shim"]
            # In the way of the record; a full disk cannot be had here by everybody.
            (host.folder / "records" / f".u-0.1.start.{shim}").mkdir()
            launcher.start(host.launch("touch", "started", task="u:0"))
            ended = (await host.next(Exited, "u:0")).exit
            assert ended.error.startswith(f"could not be started: {host.folder}/records/.u-0.1.start.")
            assert not ended.preempted
            assert not (host.folder / "started").exists()
            launcher.start(host.launch("true", task="v:0"))
            assert (await host.next(Exited, "v:0")).exit.code == 0
            assert host.record("v-0.1.start")["shim"] == shim

    run(scenario, tmp_path)


def test_the_record_of_an_end_waits_for_room(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch(*shell("while [ ! -e go ]; do sleep 0.01; done; exit 6")))
            await host.next(Started)
            obstacle = host.folder / "records" / f".t-0.1.exit.{host.record()['shim']}"
            obstacle.mkdir()
            (host.folder / "go").touch()
            assert (await host.next(Exited)).exit.code == 6
            assert not (host.folder / "records" / "t-0.1.exit").exists()
            obstacle.rmdir()
            wait_until(lambda: (host.folder / "records" / "t-0.1.exit").exists(), "the record of the end")
            assert host.record("t-0.1.exit")["code"] == 6

    run(scenario, tmp_path)


def test_an_end_that_nobody_saw_is_held_against_nobody(tmp_path):
    """Keeper and shim are killed together, and the task before anybody else looks."""

    async def scenario(host):
        first = LocalLauncher(host.folder, host.folder, host.take)
        first.connect()
        await first.wait_until_listed()
        first.start(host.launch("sleep", "1000"))
        pid = (await host.next(Started)).pid
        await first._keeper_client.cut()
        for victim in (host.keeper_pid(), host.record()["shim"], pid):
            os.kill(victim, signal.SIGKILL)
        first._keeper.wait(15)
        wait_until(lambda: not is_alive(pid), "the task's end")
        async with host.launcher():
            ended = (await host.next(Exited)).exit
            # Where init leaves it for a while, or the kernel remembers, its status is known even so.
            assert ended.signal == signal.SIGKILL or ended.preempted.startswith("status unknown: its shim was killed")

    run(scenario, tmp_path)


def lease(launcher, until):
    launcher._keeper_client.send({"do": "lease", "until": until, "host": "here"})


HIDDEN = "setsid sleep 1000 & echo $! > hidden; wait"


def hidden_pid(host):
    path = host.folder / "hidden"
    return int(wait_until(lambda: path.exists() and path.read_text(), "a process in a session of its own"))


def test_tasks_must_be_killed_by_their_own_host_when_their_lease_runs_out(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            environment = {"PATH": os.environ["PATH"], "DTFCTL_HOST": "here"}
            lease(launcher, time.monotonic() + 1000)
            launcher.start(host.launch(*shell(HIDDEN), environment=environment))
            await host.next(Started)
            pid = hidden_pid(host)
            lease(launcher, time.monotonic() + 0.2)
            ended = (await host.next(Exited)).exit
            assert ended.signal == signal.SIGKILL and "had lost its supervisor" in ended.preempted
            assert host.record("t-0.1.exit")["preempted"] == ended.preempted
            wait_until(lambda: not is_alive(pid), "the end of what left its session")
            # A request that was on its way for too long.
            launcher.start(host.launch("true", generation=2))
            assert "had lost its supervisor" in (await host.next(Exited)).exit.preempted
            lease(launcher, time.monotonic() + 1000)
            launcher.start(host.launch("true", generation=3))
            assert (await host.next(Exited)).exit.code == 0

    run(scenario, tmp_path)


def test_tasks_without_a_keeper_must_be_killed_by_their_shim_when_their_lease_runs_out(tmp_path):
    async def scenario(host):
        first = LocalLauncher(host.folder, host.folder, host.take)
        first.connect()
        await first.wait_until_listed()
        lease(first, time.monotonic() + 2)
        first.start(host.launch("sleep", "1000"))
        pid = (await host.next(Started)).pid
        await first._keeper_client.cut()
        os.kill(host.keeper_pid(), signal.SIGKILL)
        first._keeper.wait(15)
        wait_until(lambda: not is_alive(pid), "the task's end")
        async with host.launcher():
            assert "had lost its supervisor" in (await host.next(Exited)).exit.preempted

    run(scenario, tmp_path)


def test_a_keeper_must_wait_for_its_supervisor_longer_than_the_lease(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    held = Lease(processes.boot_id())
    held.renew(None, "here")
    assert held.leave_at is None
    for granted, waits in ((1.0, 10.0), (60.0, 120.0)):
        until = time.monotonic() + granted
        held.renew(until, "here")
        assert waits - 1.0 <= held.leave_at - until <= waits


def test_a_keeper_that_was_stopped_itself_must_not_count_that_time():
    held = Lease(processes.boot_id())
    held.until = 100.0
    held.forgive(1.0)
    assert held.is_over(100.0)
    held.forgive(3600.0)
    assert not held.is_over(3699.0) and held.is_over(3700.0)


def test_a_damaged_record_of_an_end_is_as_good_as_none(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch("true"))
            await host.next(Exited)
            (host.folder / "records" / "t-0.1.exit").write_text('{"code": ')
            os.kill(host.keeper_pid(), signal.SIGKILL)
            await host.next(Listed)
            assert "lost" in str((await host.next(Exited)).exit)

    run(scenario, tmp_path)


def test_a_task_whose_keeper_and_shim_were_killed_is_still_seen_to_end(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch(*shell("while [ ! -e go ]; do sleep 0.01; done; exit 6")))
            await host.next(Started)
            await host.next(Listed)
            os.kill(host.keeper_pid(), signal.SIGKILL)
            await host.next(Listed)
            os.kill(host.record()["shim"], signal.SIGKILL)
            wait_until(lambda: not is_alive(host.record()["shim"]), "the shim's end")
            (host.folder / "go").touch()
            ended = (await host.next(Exited)).exit
            assert ended.code == 6 or "status unknown" in ended.preempted, "older kernels do not tell"

    run(scenario, tmp_path)


def test_a_launcher_that_comes_later_is_told_of_all_that_happened(tmp_path):
    async def scenario(host):
        first = LocalLauncher(host.folder, host.folder, host.take)
        first.connect()
        await first.wait_until_listed()
        first.start(host.launch(*shell("exit 3")))
        await host.next(Exited)
        host.events.clear()
        await first._keeper_client.cut()
        async with host.launcher():
            assert (await host.next(Listed)).known == {("t:0", 1)}
            assert (await host.next(Exited)).exit.code == 3
        first._keeper.wait(5)

    run(scenario, tmp_path)


SHIM_KILLED_BEFORE_THE_START = """
import os, signal, socket, sys
from dtfctl.launchers.keeper import shim
from dtfctl.launchers.keeper.processes import boot_id

def write_and_die(*arguments, **options):
    real(*arguments, **options)
    if os.getpid() == me:
        os.kill(me, signal.SIGKILL)

me, real, shim.write_record = os.getpid(), shim.write_record, write_and_die
ours, theirs = socket.socketpair()
request = {"task": "t:0", "generation": 1, "argv": ["true"], "environment": {}, "working_dir": ".", "log": "log"}
shim.Shim(theirs, boot_id(), "").start({**request, "address": None, "limits": {}})
"""


def test_a_task_whose_shim_was_killed_before_it_began_is_not_said_to_have_failed(tmp_path):
    """Its exit status would be that of a program that is not found, which is given up at once."""
    (tmp_path / "records").mkdir()
    shim = subprocess.run(
        [sys.executable, "-c", SHIM_KILLED_BEFORE_THE_START], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert shim.returncode == -signal.SIGKILL
    wait_until(lambda: (tmp_path / "records" / "t-0.1.exit").exists(), "the record of its end")

    async def scenario(host):
        async with host.launcher():
            ended = (await host.next(Exited)).exit
            assert ended.preempted == ended.error == "was not started: its shim was killed first"
            assert not (tmp_path / "log").exists()

    run(scenario, tmp_path)


def test_a_stranger_who_got_a_tasks_pid_is_neither_watched_nor_killed(tmp_path):
    """A record whose start time is not that of the process which has the pid now."""

    async def scenario(host):
        stranger = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
        (host.folder / "records").mkdir()
        record = {
            "task": "t:0",
            "generation": 1,
            "pid": stranger.pid,
            "start_time": processes.stat_of(stranger.pid)[1] - 1,
            "shim": stranger.pid,
            "shim_start_time": 1,
            "boot": processes.boot_id(),
            "at": 0.0,
            "address": None,
        }
        (host.folder / "records" / "t-0.1.start").write_text(json.dumps(record))
        async with host.launcher() as launcher:
            assert "the record of its end is lost" in (await host.next(Exited)).exit.error
            launcher.signal("t:0", 1, signal.SIGKILL)
        assert is_alive(stranger.pid)
        stranger.kill()
        await stranger.wait()

    run(scenario, tmp_path)


def test_a_record_of_an_earlier_boot_is_the_record_of_a_lost_process(tmp_path):
    async def scenario(host):
        (host.folder / "records").mkdir()
        me = {"pid": os.getpid(), "start_time": processes.stat_of(os.getpid())[1]}
        record = {"task": "t:0", "generation": 1, **me, "shim": 1, "shim_start_time": 1, "boot": "another", "at": 0.0}
        (host.folder / "records" / "t-0.1.start").write_text(json.dumps(record))
        async with host.launcher():
            assert (await host.next(Exited)).exit.error == "lost: the machine was restarted"

    run(scenario, tmp_path)


def test_a_sweep_finds_what_left_its_session_and_its_parents(tmp_path):
    async def scenario(host):
        fork = """
import os, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.write(writer, b".")
        time.sleep(1000)
else:
    os.read(reader, 1)  # until it has left the group and said so, for what is of this task ends with this process
"""
        async with host.launcher() as launcher:
            launcher.start(host.launch(sys.executable, "-c", fork))
            await host.next(Exited)
            pid = int(wait_until(lambda: host.log().strip(), "the daemonised child"))
            assert await launcher.sweep() == ()
            wait_until(lambda: not is_alive(pid), "its last breath")

    run(scenario, tmp_path)


def has_cgroup():
    folder = cgroups.make_cgroup(f"dtfctl-test-{os.getpid()}")
    cgroups.remove_cgroup(folder)
    return bool(folder)


@pytest.mark.skipif(not has_cgroup(), reason="there is no cgroup of version 2 here that this user may write")
def test_what_a_task_has_forked_ends_with_it_however_well_it_hides(tmp_path):
    hide = "env -i setsid sh -c 'sleep 1000 & echo $!; exec sleep 1000' & sleep 0.2; echo done"

    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch(*shell(hide)))
            await host.next(Exited)
            pid = int(wait_until(lambda: host.log().endswith("done\n"), "the hidden one") and host.log().split()[0])
            wait_until(lambda: not is_alive(pid), "its end")
            folder = cgroups.own_cgroup()
            token = (host.folder / "token").read_text()
            # Hosts of one run that share a tree of cgroups, as containers do, must not end one another's tasks.
            own = f"{folder}/dtfctl-{token}-{host.folder.name}"
            assert os.path.isdir(own)
        assert not os.path.isdir(own)

    run(scenario, tmp_path)


@pytest.mark.skipif(not has_cgroup(), reason="there is no cgroup of version 2 here that this user may write")
@pytest.mark.parametrize("call", [cgroups.SYSCALL_CLONE3, 100_000], ids=["at once", "without clone3"])
def test_a_fork_begins_in_its_cgroup_whether_or_not_the_kernel_does_that_at_once(call, monkeypatch):
    monkeypatch.setattr(cgroups, "SYSCALL_CLONE3", call)
    folder = cgroups.make_cgroup(f"dtfctl-test-{os.getpid()}")
    reader, writer = os.pipe()
    pid = cgroups.fork_into(folder)
    if pid == 0:
        with program.dying():
            os.write(writer, b"." if os.getpid() in cgroups.members(folder) else b"elsewhere")
            os.close(writer)
            signal.pause()
    try:
        os.close(writer)
        assert os.read(reader, 100) == b"."
        assert cgroups.members(folder) == {pid}
    finally:
        cgroups.remove_cgroup(folder)
        os.waitpid(pid, 0)
        os.close(reader)
        cgroups.remove_cgroup(folder)
    assert not os.path.exists(folder)


def namespace_of_pids(script):
    """Runs Python code as the first process of a pid namespace of its own, with /proc to match."""
    mounted = f"mount -t proc proc /proc && exec {sys.executable} -c {shlex.quote(script)}"
    return subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c", mounted],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


REUSE = """
import os, signal, subprocess, sys, time
from dtfctl.launchers.keeper import processes

def start_as(pid):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)

task = start_as(300)
start_time = processes.stat_of(task.pid)[1]
assert task.pid == 300
task.kill()
task.wait()
time.sleep(0.05)  # the kernel counts start times in hundredths of a second
stranger = start_as(300)
assert stranger.pid == 300, stranger.pid
processes.signal_process(300, start_time, signal.SIGKILL, processes.PIDFD_SIGNAL_PROCESS_GROUP)
assert processes.open_pidfd(300, start_time) == -1
time.sleep(0.05)
assert stranger.poll() is None, "the stranger was hit"
processes.signal_process(300, processes.stat_of(300)[1], signal.SIGKILL, processes.PIDFD_SIGNAL_PROCESS_GROUP)
assert stranger.wait(5) == -9
print("left alone")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace of pids takes root")
def test_a_pid_that_a_stranger_has_by_now_is_left_alone():
    done = namespace_of_pids(REUSE)
    if "unshare" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout == "left alone\n", done.stderr


def test_ports_are_held_while_nobody_listens_and_let_go_for_the_task(tmp_path):
    listen = "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); print('ok')"

    async def scenario(host):
        async with host.launcher() as launcher:
            port = await launcher.hold_port("t:0", "127.0.0.1", 0, fixed=False)
            assert port in CHOSEN_PORTS
            with socket.socket() as stranger, pytest.raises(OSError):
                stranger.bind(("127.0.0.1", port))
            launch = host.launch(sys.executable, "-c", listen, str(port), address="127.0.0.1", port=port)
            launcher.start(launch)
            await host.next(Exited)
            assert host.log() == "ok\n"
            with socket.socket() as stranger, pytest.raises(OSError):
                stranger.bind(("127.0.0.1", port))
            assert await launcher.hold_port("t:0", "127.0.0.1", port, fixed=True) == port

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    "outgoing, chosen", [("20000 31990", range(31991, 32000)), ("1024 65535", CHOSEN_PORTS), ("", CHOSEN_PORTS)]
)
def test_a_chosen_port_is_none_of_outgoing_connections_where_others_are_left(outgoing, chosen, tmp_path, monkeypatch):
    (tmp_path / "range").write_text(outgoing)
    monkeypatch.setattr(ports, "OUTGOING_PORTS", str(tmp_path / "range"))
    with ports.bound("127.0.0.1", 0, fixed=False) as holder:
        assert holder.getsockname()[1] in chosen


def test_a_port_that_is_in_use_is_refused_with_its_owner(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            with socket.create_server(("127.0.0.1", 0)) as owner:
                port = owner.getsockname()[1]
                with pytest.raises(
                    PortTaken, match=rf"port {port} of t:0: Address already in use, by pid {os.getpid()}"
                ):
                    await launcher.hold_port("t:0", "127.0.0.1", port, fixed=True)
                assert await launcher.hold_port("t:0", "127.0.0.1", port, fixed=False) != port

    run(scenario, tmp_path)


def test_a_hundred_restarts_leak_no_descriptor(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            descriptors = f"/proc/{host.keeper_pid()}/fd"
            counts = []
            for generation in range(1, 101):
                launcher.start(host.launch("true", generation=generation))
                await host.next(Exited)
                counts.append(len(os.listdir(descriptors)))
            assert counts[-1] <= counts[0] + 1
            assert len(list((host.folder / "records").iterdir())) == 4, "those of the last two generations"

    run(scenario, tmp_path)


UNHEARD = """
import sys
from dtfctl.launchers.keeper import keeper
keeper.HELLO_S = 0.2
keeper.main()
"""


def test_a_keeper_whose_daemon_was_killed_before_its_hello_ends(tmp_path):
    """No run is on record then, so no command would find it."""
    (tmp_path / "token").write_text("t")
    command = [sys.executable, "-c", UNHEARD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as keeper:
        with socket.socket(socket.AF_UNIX) as daemon:
            assert keeper.stdout.readline() == "ready\n"
            daemon.connect(str(tmp_path / "keeper.sock"))
        assert keeper.wait(60) == 0
        assert "no supervisor within 0.2 s of its start" in keeper.stderr.read()


def test_the_keeper_goes_when_it_is_told_to_and_leaves_nothing(tmp_path):
    async def scenario(host):
        async with host.launcher():
            pid = host.keeper_pid()
        assert not is_alive(pid)

    run(scenario, tmp_path)


REPORT = """
import json, os, resource
limits = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in "DATA NOFILE CORE CPU".split()}
print(json.dumps([limits, os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))]))
"""


def test_a_task_runs_within_its_limits(tmp_path):
    core = min(os.sched_getaffinity(0))

    async def scenario(host):
        async with host.launcher() as launcher:
            limits = Limits(memory_bytes=1 << 30, open_files=100, core_bytes=0, cpu_s=50, nice=7)
            launcher.start(host.launch(sys.executable, "-c", REPORT, limits=limits, cpus=(core,)))
            assert (await host.next(Exited)).exit.ok
            limits, niceness, cores = json.loads(host.log())
            assert limits == {"DATA": [1 << 30] * 2, "NOFILE": [100, 100], "CORE": [0, 0], "CPU": [50, 60]}
            assert (niceness, cores) == (7, [core])

    run(scenario, tmp_path)


def test_memory_beyond_the_limit_is_refused_to_the_task_alone(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            greedy = "b = bytearray(200 << 20)"
            launcher.start(host.launch(sys.executable, "-c", greedy, limits=Limits(memory_bytes=100 << 20)))
            assert (await host.next(Exited)).exit.code == 1
            assert "MemoryError" in host.log()

    run(scenario, tmp_path)


def test_a_limit_that_cannot_be_had_is_named(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch("true", limits=Limits(open_files=1 << 40)))
            error = (await host.next(Exited)).exit.error
            assert error.startswith("could not be started: limits.open_files: ")

    run(scenario, tmp_path)


def test_cores_that_the_machine_has_not_are_counted_from_the_first_again(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch(sys.executable, "-c", REPORT, cpus=(4094,)))
            assert (await host.next(Exited)).exit.ok
            (core,) = json.loads(host.log())[2]
            assert core in os.sched_getaffinity(0)

    run(scenario, tmp_path)


def test_a_port_is_chosen_within_its_range(tmp_path):
    async def scenario(host):
        async with host.launcher() as launcher:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            assert await launcher.hold_port("t:0", "127.0.0.1", 0, False, (port, port)) == port
            words = f"any port of {port}-{port} of t:1 at 127.0.0.1: Address already in use"
            with pytest.raises(PortTaken, match=words):
                await launcher.hold_port("t:1", "127.0.0.1", 0, False, (port, port))
            with pytest.raises(PortTaken, match="a port of t:1 at 192.0.2.1: Cannot assign requested address"):
                await launcher.hold_port("t:1", "192.0.2.1", 0, False)

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("end", "told"), [("exit(7)", {"code": 7}), ("exit(0)", {"code": 0}), ("os.abort()", {"signal": signal.SIGABRT})]
)
def test_how_a_process_ended_is_told_before_its_parent_has_reaped_it(end, told):
    program = f"import os, sys; sys.stdin.read(); {end}"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        start_time = processes.stat_of(child.pid)[1]
        assert processes.status_of_zombie(child.pid, start_time) is None
        pidfd = os.pidfd_open(child.pid)
        child.stdin.close()
        wait_until(lambda: processes.is_zombie(child.pid), "the process to end")
        found = processes.exit_of_other(child.pid, start_time, pidfd)
        os.close(pidfd)
        assert {key: found[key] for key in told} == told
        assert processes.status_of_zombie(child.pid, start_time - 1) is None


def test_a_daemon_that_cannot_start_is_started_ever_less_often():
    respawn, now, starts = Respawn(), 1000.0, []
    respawn.command = {"argv": ["daemon"]}
    respawn.connected(now)
    now += 3600
    respawn.lost(now)
    assert respawn.at == now + DELAY_S
    for _ in range(12):
        starts.append(respawn.at - now)
        now = respawn.at
        respawn.plan(now)
    assert starts == sorted(starts) and starts[-1] == DELAY_S_MAX
    respawn.connected(now)
    assert respawn.at is None
    respawn.lost(now + 1)
    assert respawn.at == now + 1 + DELAY_S_MAX, "it ran for a moment only"
    respawn.connected(now + 20)
    respawn.lost(now + 21 + DELAY_S_MAX)
    assert respawn.at == now + 21 + DELAY_S_MAX + DELAY_S
    respawn.end()
    assert respawn.at is None
    respawn.plan(now)
    assert respawn.at is None
