"""The hosts of a cluster that an engine gives by its bridge: asked for before a run begins, given back when it is over.

A note in the cluster's folder names the group from before it is asked for until it is given back, so that a later
command gives back what a killed one has left.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dtfctl.errors import HostsUnusable
from dtfctl.launchers.bridge.client import BridgeProgram, ask
from dtfctl.launchers.bridge.engines import engine_of, program_of, request_of, settings_in
from dtfctl.launchers.pipe import PipeError
from dtfctl.storage.paths import ClusterPaths
from dtfctl.values.engines import GroupSettings, engine_hosts
from dtfctl.values.plan import ClusterPlan, HostPlan

NOTE = "group.json"


def taken_over(plan: ClusterPlan, running: ClusterPlan) -> ClusterPlan:
    """A changed plan of a running cluster, on the hosts that this one has."""
    if plan.engine != running.engine or plan.group.nodes != running.group.nodes:
        title, nodes = engine_of(running).title if running.engine else "no engine", running.group.nodes
        raise HostsUnusable(
            f"{plan.name} runs on {nodes} hosts of {title}, and their number cannot change while it runs: "
            "dtfctl down, then up"
        )
    addresses = {host.name: host for host in (*running.hosts, *running.idle_hosts)}
    return _on(plan, running.group, addresses)


def allocate(plan: ClusterPlan, paths: ClusterPaths, say: Callable[[str], None]) -> ClusterPlan:
    """Asks for the hosts, and returns the plan with their addresses. Raises HostsUnusable with the engine's reason;
    nothing is left of the group then."""
    engine, settings = engine_of(plan), engine_of(plan).settled(plan)
    group = group_name(plan.name, paths.folder)
    names = engine_hosts(settings.nodes)
    request = {"do": "group", "group": group, "hosts": [host_name(group, name) for name in names], **request_of(plan)}
    _note(paths.folder).write_text(
        json.dumps({"engine": plan.engine, "group": group, "settings": asdict(settings)})
    )
    try:
        say(f"{engine.title}: asking for {len(names)} hosts")
        places = asyncio.run(_ask_for(program_of(plan.engine, settings), paths.ssh, request, say))
    except PipeError as error:
        _note(paths.folder).unlink(missing_ok=True)
        raise HostsUnusable(f"{error.why}\n       see: {error.command}") from None
    found = {
        host.name: replace(host, address=place["address"], python=_python(host, place["python"]))
        for host in (*plan.hosts, *plan.idle_hosts)
        for name, place in zip(names, places, strict=True)
        if name == host.name
    }
    gpus = {name: place["gpus"] for name, place in zip(names, places, strict=True) if place["gpus"]}
    return _on(plan, replace(settings, group=group, gpus=gpus), found)


async def _ask_for(
    bridge: BridgeProgram, sockets: Path, request: dict[str, Any], say: Callable[[str], None]
) -> list[dict[str, str]]:
    try:
        places: list[dict[str, str]] = (await ask(bridge, sockets, request, say))["hosts"]
        return places
    except PipeError as refused:
        # Without a connection there is no bridge to end.
        if refused.is_connection:
            raise
        await ask(bridge, sockets, {"do": "leave"})
        raise


async def release(paths: ClusterPaths) -> None:
    """Gives back what there is. Raises PipeError where the engine does not answer."""
    note = _note(paths.folder)
    try:
        document = json.loads(note.read_text())
        group, settings = document["group"], settings_in(document["engine"], document["settings"])
        bridge = program_of(document["engine"], settings)
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):  # of a former version
        note.unlink(missing_ok=True)
        return
    hosts = [host_name(group, name) for name in engine_hosts(settings.nodes)]
    await ask(bridge, paths.ssh, {"do": "release", "group": group, "hosts": hosts})
    await ask(bridge, paths.ssh, {"do": "leave"})
    note.unlink(missing_ok=True)


def give_back(paths: ClusterPaths, say: Callable[[str], None]) -> None:
    """The same, of a command that can only tell."""
    try:
        asyncio.run(release(paths))
    except PipeError as error:
        say(f"warning: the engine may still hold hosts for this cluster: {error.why}; see: {error.command}")


def group_name(cluster: str, folder: Path) -> str:
    """Other users and machines may have a cluster of the same name."""
    owner = f"{socket.gethostname()} {os.getuid()} {folder}"
    return f"dtfctl-{cluster}-{hashlib.sha256(owner.encode()).hexdigest()[:8]}"


def host_name(group: str, node: str) -> str:
    """A host's name at the engine."""
    return f"{group}/{node}"


def _on(plan: ClusterPlan, settings: GroupSettings, found: dict[str, HostPlan]) -> ClusterPlan:
    def placed(hosts: tuple[HostPlan, ...]) -> tuple[HostPlan, ...]:
        return tuple(
            replace(
                host,
                address=found[host.name].address,
                python=_python(host, found[host.name].python),
                target=host_name(settings.group, host.name),
            )
            if host.via == plan.engine
            else host
            for host in hosts
        )

    return replace(plan, hosts=placed(plan.hosts), idle_hosts=placed(plan.idle_hosts)).with_group(settings)


def _python(host: HostPlan, engines: str) -> str:
    """The engine's where the file says nothing: it has what the engine's own programs have there."""
    return engines if host.python == "python3" else host.python


def _note(folder: Path) -> Path:
    return folder / NOTE
