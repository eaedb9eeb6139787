"""A host writes to the logs of its own tasks only."""

from __future__ import annotations

import asyncio
import os

import pytest

from dtfctl.launchers.agent.places import run_folder
from dtfctl.launchers.base import Exited, Started
from dtfctl.launchers.launched import LaunchedLogs
from tests.dtfctl.launcher_hosts import piped


def test_the_record_is_the_next_supervisors_too(tmp_path):
    LaunchedLogs(tmp_path, "a").note("ps-0.1.log")
    LaunchedLogs(tmp_path, "a").note("ps-0.2.log")
    assert all(f"ps-0.{generation}.log" in LaunchedLogs(tmp_path, "a") for generation in (1, 2))
    assert "ps-0.1.log" not in LaunchedLogs(tmp_path, "b")


@pytest.mark.parametrize("is_here", [True, False], ids=["another task's log", "a log of nobody"])
def test_a_host_cannot_write_to_the_log_of_another_hosts_task(tmp_path, capfd, is_here):
    async def scenario():
        async with piped(tmp_path) as host:
            launcher = await host.connect()
            foreign = host.log_file("chief:0")
            if is_here:
                foreign.write_text("true\n")
            launcher.start(host.launch())
            await host.next(Started)
            there = run_folder(f"conformance-{(tmp_path / 'token').read_text()}")
            with open(os.path.join(there, "logs", foreign.name), "w") as file:
                file.write("true\nforged\n")
            host.end("t:0")
            await host.next(Exited)
            await launcher.drain_logs()
            assert foreign.exists() == is_here and (not is_here or foreign.read_text() == "true\n")
            assert host.log_file("t:0").read_text() == "begun\n", "and its own logs are brought"
            await host.close()

    asyncio.run(asyncio.wait_for(scenario(), 120))
    assert "the log chief-0.1.log belongs to no process that was started there" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("here", "more"),
    [("", "second\n"), ("begun\nsecond\n", "second\nthird\n")],
    ids=["bytes are missing", "bytes are here already"],
)
def test_a_log_that_is_not_as_long_as_its_host_believes_is_completed(tmp_path, here, more):
    async def scenario():
        async with piped(tmp_path) as host:
            launcher = await host.connect()
            launcher.start(host.launch())
            await host.next(Started)
            log = host.log_file("t:0")
            await until(lambda: log.exists() and log.read_text() == "begun\n")
            log.write_text(here)
            there = run_folder(f"conformance-{(tmp_path / 'token').read_text()}")
            with open(os.path.join(there, "logs", log.name), "a") as file:
                file.write(more)
            await until(lambda: log.read_text() == "begun\n" + more)
            await host.close()

    asyncio.run(asyncio.wait_for(scenario(), 120))


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)
