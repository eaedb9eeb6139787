"""What Ray is asked for: its bridge, and the placement group of a cluster. Pure."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from dtfctl.errors import ConfigError
from dtfctl.launchers.bridge.client import BridgeProgram
from dtfctl.values.engines import RaySettings, engine_hosts
from dtfctl.values.plan import RAY, ClusterPlan

LEAST = 0.001
"""Of a resource: a bundle must ask for something."""


def program(settings: RaySettings) -> BridgeProgram:
    address = ["--address", settings.address] if settings.address not in ("", "auto") else []
    return BridgeProgram(
        engine="Ray",
        key=RAY,
        package="ray",
        python=settings.python or sys.executable,
        program=Path(__file__).with_name("bridge.py"),
        argument=settings.address,
        by_hand=shlex.join(["ray", "status", *address]),
    )


def request(plan: ClusterPlan) -> dict[str, Any]:
    """Raises ConfigError for values that are not as Ray takes them."""
    return {
        "bundles": bundles(plan),
        "strategy": plan.ray.strategy,
        "options": _values(plan.ray),
        "wait_s": plan.ray.wait_s,
        "is_new": True,
    }


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
    for name in engine_hosts(plan.ray.nodes):
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
