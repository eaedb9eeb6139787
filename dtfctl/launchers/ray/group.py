"""The placement group of a cluster: asked for before a run begins, and given back when it is over.

A note in the cluster's folder names it from before it is asked for until it is given back, so that a later command
gives back what a killed one has left.
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

from dtfctl.errors import ConfigError, HostsUnusable
from dtfctl.launchers.pipe import PipeError
from dtfctl.launchers.ray.client import ask
from dtfctl.storage.paths import ClusterPaths
from dtfctl.values.plan import RAY, ClusterPlan, HostPlan, RaySettings
from dtfctl.wire.typed import from_document

NOTE = "ray-group.json"
LEAST = 0.001
"""Of a resource: a bundle must ask for something."""


def node_names(count: int) -> list[str]:
    return [f"node-{number + 1}" for number in range(count)]


def taken_over(plan: ClusterPlan, running: ClusterPlan) -> ClusterPlan:
    """A changed plan of a running cluster, on the hosts that this one has."""
    if plan.ray.nodes != running.ray.nodes or running.engine != RAY:
        raise HostsUnusable(
            f"{plan.name} runs on {running.ray.nodes} hosts of Ray, and their number cannot change while it runs: "
            "dtfctl down, then up"
        )
    addresses = {host.name: host for host in (*running.hosts, *running.idle_hosts)}
    return _on(plan, running.ray.group, running.ray.gpus, addresses)


def allocate(plan: ClusterPlan, paths: ClusterPaths, say: Callable[[str], None]) -> ClusterPlan:
    """Makes the group, and returns the plan with the addresses of its hosts. Raises HostsUnusable with Ray's reason;
    nothing is left of the group then."""
    group = group_name(plan.name, paths.folder)
    names = node_names(plan.ray.nodes)
    request = {
        "do": "group",
        "group": group,
        "hosts": [actor_name(group, name) for name in names],
        "bundles": bundles(plan),
        "strategy": plan.ray.strategy,
        "options": _values(plan.ray),
        "wait_s": plan.ray.wait_s,
        "is_new": True,
    }
    _note(paths.folder).write_text(json.dumps({"group": group, "settings": asdict(plan.ray)}))
    try:
        say(f"Ray: asking for {len(names)} hosts")
        places = asyncio.run(_ask_for(plan.ray, paths.ssh, request, say))
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
    return _on(plan, group, gpus, found)


async def _ask_for(
    settings: RaySettings, sockets: Path, request: dict[str, Any], say: Callable[[str], None]
) -> list[dict[str, str]]:
    try:
        places: list[dict[str, str]] = (await ask(settings, sockets, request, say))["hosts"]
        return places
    except PipeError as refused:
        # Without a connection there is no bridge to end.
        if refused.is_connection:
            raise
        await ask(settings, sockets, {"do": "leave"})
        raise


async def release(paths: ClusterPaths) -> None:
    """Gives back what there is. Raises PipeError where Ray does not answer."""
    note = _note(paths.folder)
    try:
        document = json.loads(note.read_text())
        group, settings = document["group"], from_document(RaySettings, document["settings"])
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):  # of a former version
        note.unlink(missing_ok=True)
        return
    hosts = [actor_name(group, name) for name in node_names(settings.nodes)]
    await ask(settings, paths.ssh, {"do": "release", "group": group, "hosts": hosts, "is_last": True})
    await ask(settings, paths.ssh, {"do": "leave"})
    note.unlink(missing_ok=True)


def give_back(paths: ClusterPaths, say: Callable[[str], None]) -> None:
    """The same, of a command that can only tell."""
    try:
        asyncio.run(release(paths))
    except PipeError as error:
        say(f"warning: Ray may still hold hosts for this cluster: {error.why}; see: {error.command}")


def group_name(cluster: str, folder: Path) -> str:
    """Other users and machines may have a cluster of the same name."""
    owner = f"{socket.gethostname()} {os.getuid()} {folder}"
    return f"dtfctl-{cluster}-{hashlib.sha256(owner.encode()).hexdigest()[:8]}"


def actor_name(group: str, node: str) -> str:
    return f"{group}/{node}"


def bundles(plan: ClusterPlan) -> list[dict[str, float]]:
    """What each host gets: a core for each task, or as many as it has been given, and its GPUs. A spare may have to
    take the place of any host."""
    cores: dict[str, float] = {}
    gpus: dict[str, float] = {}
    for task in plan.tasks():
        name = task.host.name
        cores[name] = cores.get(name, 0) + max(1, len(task.place.cpus))
        gpus[name] = max(gpus.get(name, 0), *(gpu + 1 for gpu in task.place.gpus or ()), 0)
    chosen = dict(map(_resource, plan.ray.resources))
    found = []
    for name in node_names(plan.ray.nodes):
        own = {
            "CPU": cores.get(name, max(cores.values(), default=1)),
            "GPU": gpus.get(name, max(gpus.values(), default=0)),
        }
        whole = {key: value for key, value in {**own, **chosen}.items() if value and key not in plan.ray.without}
        found.append(whole or {"CPU": LEAST})
    return found


def _resource(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    try:
        return name.strip(), float(amount or 1)
    except ValueError:
        raise ConfigError(f"engine.ray.resources: {text}: must be NAME=AMOUNT, such as CPU=4") from None


def _values(settings: RaySettings) -> dict[str, Any]:
    """Options as Ray takes them; None leaves one out."""
    found: dict[str, Any] = dict.fromkeys(name for name in settings.without if name not in ("CPU", "GPU"))
    for option in settings.options:
        name, equals, text = option.partition("=")
        if not equals:
            raise ConfigError(f"engine.ray.options: {option}: must be name=value, such as max_restarts=0")
        try:
            found[name.strip()] = json.loads(text)
        except ValueError:
            found[name.strip()] = text.strip()
    return found


def _on(plan: ClusterPlan, group: str, gpus: dict[str, str], found: dict[str, HostPlan]) -> ClusterPlan:
    def placed(hosts: tuple[HostPlan, ...]) -> tuple[HostPlan, ...]:
        return tuple(
            replace(
                host,
                address=found[host.name].address,
                python=_python(host, found[host.name].python),
                target=actor_name(group, host.name),
            )
            if host.via == RAY
            else host
            for host in hosts
        )

    hosts, idle = placed(plan.hosts), placed(plan.idle_hosts)
    return replace(plan, hosts=hosts, idle_hosts=idle, ray=replace(plan.ray, group=group, gpus=gpus))


def _python(host: HostPlan, actors: str) -> str:
    """That of the actors where the file says nothing: it has what Ray's own programs have there."""
    return actors if host.python == "python3" else host.python


def _note(folder: Path) -> Path:
    return folder / NOTE
