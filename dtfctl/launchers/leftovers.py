"""What a run left on machines that could not be reached when it ended, and that can be reached now."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dtfctl.launchers.agent.keepers import SWEEP_S
from dtfctl.launchers.remote import remote_run
from dtfctl.launchers.ssh import Ssh, SshError, keeper_text
from dtfctl.store import Run

CLEAN_S = SWEEP_S + 20.0


def clean(run: Run, sockets: Path) -> tuple[tuple[int, str, str], ...]:
    """Ends what the run's strays are on other machines; returns those that are left, as [pid, host, command]."""
    remote = {host.name: host for host in run.plan.remote_hosts}
    names = sorted({host for _, host, _ in run.strays if host in remote})
    if not names:
        return run.strays

    async def clean_all() -> list[tuple[tuple[int, str, str], ...]]:
        return await asyncio.gather(*(_clean(run, Ssh(run.plan.ssh, remote[name], sockets)) for name in names))

    there = [stray for strays in asyncio.run(clean_all()) for stray in strays]
    return (*(stray for stray in run.strays if stray[1] not in names), *there)


async def _clean(run: Run, ssh: Ssh) -> tuple[tuple[int, str, str], ...]:
    name = ssh.host.name
    request = {"do": "clean", "run": remote_run(run, name), "token": run.token, "keeper": keeper_text()}
    try:
        reply = await ssh.ask(request, ssh.settings.timeout_s + CLEAN_S)
    except SshError:
        return tuple(stray for stray in run.strays if stray[1] == name)
    finally:
        await ssh.disconnect()
    return tuple((left["pid"], name, left["command"]) for left in reply["left"])
