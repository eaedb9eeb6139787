"""The bridge to Ray: a driver. It alone imports ray; its Python need not have dtfctl.

It is a program of its own, because a driver ends when Ray's head is lost, and the rest of dtfctl must not end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # The modules beside this file are not for this process; of dtfctl it gets only what needs nothing but Python.
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    # It outlives dtfctl's process, which would have to wait for the end of a child of its own.
    if os.fork():
        os._exit(0)

from dtfctl.launchers.bridge import commands
from dtfctl.launchers.bridge.server import FIRST_WORD_S, LOOK_S, Ask, Tell, run

if __name__ == "__main__":
    sys.path.pop(0)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray  # noqa: E402 - after the path is set right
from ray.util.placement_group import (  # noqa: E402
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: E402

NAMESPACE = "dtfctl"
ACTOR_S = 90.0
PROBE_S = 5.0

# The nodes need not have dtfctl.
ray.cloudpickle.register_pickle_by_value(commands)


class Host(commands.Commands):
    """The actor: runs commands on its node. Ray copies the class to the node as it stands here."""

    def __init__(self, name: str) -> None:
        # Ray's own choice for the actor; dtfctl makes one for each task.
        super().__init__(name, "dtfctl-ray", ("OMP_NUM_THREADS",))

    async def where(self) -> dict[str, Any]:
        gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return {"address": ray.util.get_node_ip_address(), "python": sys.executable, "gpus": gpus}


class Placement:
    """See server.Engine: a placement group, and an actor for each host."""

    def __init__(self) -> None:
        self._actors: dict[str, Any] = {}

    async def group(self, tell: Tell, group: str, hosts: list[str], wanted: dict[str, Any]) -> list[dict[str, str]]:
        bundles, strategy, options = wanted["bundles"], wanted["strategy"], wanted["options"]
        placed = await asyncio.to_thread(find_group, group)
        if placed is not None and wanted["is_new"]:
            # Of a run that has ended without a word.
            await self.release(group, hosts)
            placed = None
        if placed is None:
            placed = await asyncio.to_thread(placement_group, bundles, strategy, group, "detached")
        try:
            await self._wait_for(placed, bundles, strategy, wanted["wait_s"], tell)
            for number, host in enumerate(hosts):
                self._actors[host] = await asyncio.to_thread(
                    make_actor, host, placed, number, bundles[number], options
                )
            return await asyncio.wait_for(
                asyncio.gather(*(self._actors[host].where.remote() for host in hosts)), ACTOR_S
            )
        except BaseException as error:
            await self.release(group, hosts)
            if isinstance(error, asyncio.TimeoutError):
                raise RuntimeError(f"the actors did not start within {ACTOR_S:g}s") from None
            raise

    async def _wait_for(
        self, placed: Any, bundles: list[dict[str, float]], strategy: str, wait_s: float, tell: Tell
    ) -> None:
        began = time.monotonic()
        is_told = False
        while (found := await asyncio.to_thread(placement_group_table, placed))["state"] != "CREATED":
            took_s = time.monotonic() - began
            if took_s >= min(wait_s, FIRST_WORD_S):
                why = await asyncio.to_thread(why_not_placed, found, bundles, strategy)
                if took_s >= wait_s:
                    raise RuntimeError(why)
                if not is_told:
                    tell({"waiting": why})
                    is_told = True
            await asyncio.sleep(LOOK_S)

    async def release(self, group: str, hosts: list[str]) -> None:
        for host in hosts:
            self._actors.pop(host, None)
            await asyncio.to_thread(end_actor, host)
        await asyncio.to_thread(remove_group, group)

    async def host(self, name: str, address: str) -> Ask:
        if name not in self._actors:
            actor = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
            place = await asyncio.wait_for(actor.where.remote(), ACTOR_S)
            if place["address"] != address:
                raise RuntimeError(f"Ray has moved this host from {address} to {place['address']}")
            self._actors[name] = actor
        actor = self._actors[name]

        def ask(what: str, *values: Any) -> Awaitable[Any]:
            answer: Awaitable[Any] = getattr(actor, what).remote(*values)
            return answer

        return ask

    def forget(self, name: str) -> None:
        self._actors.pop(name, None)


def find_group(name: str) -> Any:
    try:
        found = get_placement_group(name)
    except ValueError:
        return None
    return None if placement_group_table(found)["state"] == "REMOVED" else found


def remove_group(name: str) -> None:
    found = find_group(name)
    if found is not None:
        remove_placement_group(found)
        while placement_group_table(found)["state"] != "REMOVED":
            time.sleep(LOOK_S)


def make_actor(name: str, placed: Any, number: int, bundle: dict[str, float], options: dict[str, Any]) -> Any:
    own = {
        "name": name,
        "namespace": NAMESPACE,
        "get_if_exists": True,
        "lifetime": "detached",
        "max_restarts": -1,
        "max_concurrency": 1000,
        "num_cpus": bundle.get("CPU", 0),
        "num_gpus": bundle.get("GPU", 0),
        "scheduling_strategy": PlacementGroupSchedulingStrategy(placed, number),
    }
    chosen = {option: value for option, value in {**own, **options}.items() if value is not None}
    return ray.remote(Host).options(**chosen).remote(name)


def end_actor(name: str) -> None:
    """Returns when Ray does not know it any more."""
    with contextlib.suppress(ValueError):
        ray.kill(ray.get_actor(name, NAMESPACE), no_restart=True)
        while True:
            ray.get_actor(name, NAMESPACE)
            time.sleep(LOOK_S)


def why_not_placed(found: dict[str, Any], bundles: list[dict[str, float]], strategy: str) -> str:
    state = found.get("stats", {}).get("scheduling_state", "") or found["state"]
    total, free = ray.cluster_resources(), ray.available_resources()
    names = sorted({name for bundle in bundles for name in bundle})
    there = ", ".join(f"{name} {total.get(name, 0):g} ({free.get(name, 0):g} free)" for name in names)
    alive = sum(node["Alive"] for node in ray.nodes())
    each = " + ".join(dict.fromkeys(", ".join(f"{name} {count:g}" for name, count in b.items()) for b in bundles))
    wanted = f"{len(bundles)} hosts with {each} each ({strategy})"
    return f"Ray says {state}: wanted are {wanted}; there are {alive} nodes with {there}"


def probe(address: str) -> None:
    """Ray itself tries for a minute."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "/" not in address:
        try:
            socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()
        except OSError as error:
            raise RuntimeError(f"no Ray answers at {address}: {error.strerror or error}") from None


def connect(address: str) -> Placement:
    probe(address or os.environ.get("RAY_ADDRESS", ""))
    ray.init(address or "auto", namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    return Placement()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], lambda: connect(sys.argv[3]))
