"""What a run left on machines that could not be reached when it ended, and that can be reached now."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dtfctl.launchers.pipe import PipeError
from dtfctl.launchers.provision import Provisioner
from dtfctl.launchers.remote import remote_run, remote_token
from dtfctl.launchers.ways import provisioner_of
from dtfctl.values.run import Run

Strays = tuple[tuple[int, str, str], ...]
"""Each as (pid, host, command)."""


def clean(run: Run, sockets: Path) -> Strays:
    """Ends what the run's strays are on other machines; returns those that are left."""
    remote = {host.name: host for host in run.plan.remote_hosts}
    names = sorted({host for _, host, _ in run.strays if host in remote})
    if not names:
        return run.strays

    async def clean_all() -> list[Strays]:
        ways = (provisioner_of(run.plan, remote[name], sockets) for name in names)
        return await asyncio.gather(*(_clean(run, way) for way in ways))

    there = [stray for strays in asyncio.run(clean_all()) for stray in strays]
    return (*(stray for stray in run.strays if stray[1] not in names), *there)


async def _clean(run: Run, host: Provisioner) -> Strays:
    name = host.host.name
    try:
        reply = await host.clean(remote_run(run, name), remote_token(run.token, host.host))
    except PipeError:
        return tuple(stray for stray in run.strays if stray[1] == name)
    finally:
        await host.release()
    return tuple((left["pid"], name, left["command"]) for left in reply["left"])
