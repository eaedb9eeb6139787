"""Ends what runs have left on other machines, of those that can be reached now."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from dtfctl.launchers import reached
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


async def clean_reached(run_dirs: Collection[Path], sockets: Path) -> None:
    """Ends what is left of these runs on the hosts that they have reached (see `reached`)."""
    files = [file for run_dir in run_dirs for file in reached.notes(run_dir)]
    await asyncio.gather(*(_clean_reached(file, sockets) for file in files))


async def _clean_reached(file: Path, sockets: Path) -> None:
    try:
        plan, host_plan, run, token = reached.read(file)
        host = provisioner_of(plan, host_plan, sockets)
    except (OSError, ValueError, KeyError, TypeError):  # of a former version: nobody can know
        return
    try:
        if not (await host.clean(run, token))["left"]:
            reached.forget(file.parents[1], host.host.name)
    except PipeError:
        return
    finally:
        await host.release()
