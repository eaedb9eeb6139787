"""What every launcher promises, whatever kind of host it is for: see launchers/base.py and launcher_hosts.py."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal

import pytest

from dtfctl.errors import PortTaken
from dtfctl.launchers.base import Exited, HostLauncher, Listed, Started
from dtfctl.launchers.sync import manifest
from dtfctl.values.plan import Requirements
from tests.dtfctl.fakes import plan_of
from tests.dtfctl.launcher_hosts import KINDS

pytestmark = pytest.mark.parametrize("kind", KINDS)


def run(kind, folder, scenario):
    """Runs the scenario on a host, after which nothing of it is left there."""

    test = inspect.stack()[1].function

    async def main():
        async with kind(folder) as host:
            if test in host.lacks:
                pytest.skip(f"{host.name}: {host.lacks[test]}")
            launcher = await host.connect()
            try:
                await scenario(host, launcher)
            finally:
                await host.close()

    asyncio.run(asyncio.wait_for(main(), 120))


async def started(host, launcher, task="t:0", generation=1):
    launcher.start(host.launch(task, generation))
    return await host.next(Started, task)


def test_a_process_is_told_to_start_and_to_end_once(kind, tmp_path):
    async def scenario(host, launcher: HostLauncher):
        begun = await started(host, launcher)
        assert (begun.task, begun.generation) == ("t:0", 1) and begun.pid > 0
        launcher.start(host.launch())
        host.end("t:0", status=7)
        ended = await host.next(Exited)
        assert (ended.generation, ended.exit.code, ended.exit.signal) == (1, 7, None)
        assert begun.host == ended.host == host.name
        assert ended.exit.at >= begun.at
        await started(host, launcher, generation=2)
        assert not [event for event in host.events if isinstance(event, Started | Exited)]

    run(kind, tmp_path, scenario)


def test_a_signal_reaches_the_generation_that_is_meant(kind, tmp_path):
    async def scenario(host, launcher: HostLauncher):
        await started(host, launcher)
        launcher.signal("t:0", 2, signal.SIGKILL)
        launcher.signal("t:0", 1, signal.SIGTERM)
        assert (await host.next(Exited)).exit.signal == signal.SIGTERM
        await started(host, launcher, generation=2)
        launcher.signal("t:0", 1, signal.SIGKILL)
        launcher.signal("t:0", 2, signal.SIGKILL)
        ended = await host.next(Exited)
        assert ended.generation == 2 and ended.exit.signal in host.kill_signals

    run(kind, tmp_path, scenario)


def test_a_port_is_held_and_a_fixed_one_that_is_taken_is_an_error(kind, tmp_path):
    async def scenario(host, launcher: HostLauncher):
        assert 0 < await launcher.hold_port("t:0", host.address, 0, False) < 65536
        assert 30000 <= await launcher.hold_port("u:0", host.address, 0, False, (30000, 30999)) <= 30999
        with host.port_in_use() as port:
            with pytest.raises(PortTaken, match=f"port {port} of v:0"):
                await launcher.hold_port("v:0", host.address, port, True)
            assert await launcher.hold_port("v:0", host.address, port, False) != port
        launcher.release_port("t:0")

    run(kind, tmp_path, scenario)


def test_who_connects_again_is_told_all_that_has_happened(kind, tmp_path):
    async def scenario(host, launcher: HostLauncher):
        first = await started(host, launcher)
        await started(host, launcher, "u:0")
        await host.cut()
        host.end("u:0", status=3)
        host.events.clear()
        await host.connect()
        listed = await host.next(Listed)
        assert listed.known == {("t:0", 1), ("u:0", 1)} and listed.host == host.name
        assert (await host.next(Started)).pid == first.pid
        assert (await host.next(Exited, "u:0")).exit.code == 3

    run(kind, tmp_path, scenario)


def test_a_sweep_ends_whatever_runs(kind, tmp_path):
    async def scenario(host, launcher: HostLauncher):
        await started(host, launcher)
        await started(host, launcher, "u:0")
        assert await launcher.sweep() == ()
        for task in ("t:0", "u:0"):
            assert (await host.next(Exited, task)).exit.signal in host.kill_signals

    run(kind, tmp_path, scenario)


def test_what_a_task_takes_is_measured(kind, tmp_path):
    async def scenario(host, launcher: HostLauncher):
        pid = (await started(host, launcher)).pid
        found, at = await launcher.usage([pid, 1 << 30])
        assert found.keys() == {pid} and found[pid].processes >= 1 and at > 0

    run(kind, tmp_path, scenario)


def test_commands_and_files_are_looked_at_on_the_host(kind, tmp_path):
    present, absent = tmp_path / "present", tmp_path / "absent"
    present.touch()
    environment = {"PATH": os.environ["PATH"], "WANTED": "3"}

    async def scenario(host, launcher: HostLauncher):
        if not host.is_real:
            host.world.missing = {str(absent): f"the file {absent}: not there", "exit $WANTED": "exits with status 3"}
        assert await launcher.check_command("true", environment, "/", 30) == ""
        assert "exits with status 3" in await launcher.check_command("exit $WANTED", environment, "/", 30)
        assert await launcher.check_file(str(present), 3600) == ""
        assert str(absent) in await launcher.check_file(str(absent), 3600)

    run(kind, tmp_path, scenario)


def test_drained_logs_are_here(kind, tmp_path):
    async def scenario(host, launcher: HostLauncher):
        await started(host, launcher)
        host.end("t:0")
        await host.next(Exited)
        await launcher.drain_logs()
        if host.is_real:
            assert host.log_file("t:0").read_text() == "begun\n"

    run(kind, tmp_path, scenario)


def test_a_host_is_looked_at_and_gets_the_folder_and_is_cleaned(kind, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("x")
    there = str(tmp_path / "there")
    question = {"do": "check", "folder": there, "addresses": [], "names": [], "ports": [], "pythons": []}

    async def scenario(host, launcher: HostLauncher):
        found = await host.provisioner.look({**question, "needs_folder": False})
        assert found["free_bytes"] > 0 and found["folder"]
        files = manifest(plan_of(folder=str(source)))
        assert (await host.provisioner.bring(there, source, files, has_rsync=False)).files == 1
        assert (await host.provisioner.bring(there, source, files, has_rsync=False)).files == 0
        assert "df" in host.provisioner.by_hand("df", "-h")
        assert (await host.provisioner.clean("never-there", "token"))["left"] == []

    run(kind, tmp_path, scenario)


def test_an_environment_that_cannot_be_made_is_told_with_its_command(kind, tmp_path):
    (tmp_path / "no-venv").mkdir()
    (tmp_path / "no-venv" / "notes.txt").write_text("something else")
    (tmp_path / "requirements.txt").write_text("")

    async def scenario(host, launcher: HostLauncher):
        wanted = Requirements((str(tmp_path / "requirements.txt"),))
        reply = await host.provisioner.make_environment(str(tmp_path / "no-venv"), wanted, str(tmp_path))
        if host.is_real:
            assert "is not a virtual environment" in reply["error"] and reply["command"].startswith("ls ")
        else:
            assert reply["made"]

    run(kind, tmp_path, scenario)
