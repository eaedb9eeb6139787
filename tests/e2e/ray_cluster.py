"""A Ray cluster of two nodes on this machine: real raylets on loopback, one for all tests of a process.

DTF_RAY_PYTHON names a Python that has ray, where the tests' own has none; it need not have anything else.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

PYTHON = os.environ.get("DTF_RAY_PYTHON") or sys.executable

START_S = 240.0

_IS_THERE = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('ray'))"

_CLUSTER = """
import json, os, sys
import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group_table

small = {"include_dashboard": False, "object_store_memory": 80 << 20, "num_cpus": 2}
cluster = Cluster(initialize_head=True, head_node_args=small)
second = cluster.add_node(object_store_memory=80 << 20, num_cpus=2)
ray.init(cluster.address, namespace="dtfctl", log_to_driver=False, logging_level="ERROR")
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def tell(value):
    out.write(json.dumps(value) + "\\n")
    out.flush()


def pids():
    answer = lambda actor: __import__("os").getpid()
    found = {}
    for name in ray.util.list_named_actors():
        try:
            found[name] = ray.get(ray.get_actor(name).__ray_call__.remote(answer), timeout=5)
        except (ray.exceptions.RayError, ValueError):
            found[name] = 0
    return found


tell(cluster.address)
for line in sys.stdin:
    if line == "lose\\n":
        cluster.remove_node(second, allow_graceful=False)
    if line == "replace\\n":
        second = cluster.add_node(object_store_memory=80 << 20, num_cpus=2)
    groups = [group["state"] for group in placement_group_table().values()]
    tell({"actors": pids(), "groups": sum(state != "REMOVED" for state in groups)})
cluster.shutdown()
"""


@cache
def why_not() -> str:
    """Why there can be no Ray here; "" where there can."""
    try:
        done = subprocess.run([PYTHON, "-c", _IS_THERE], capture_output=True, timeout=START_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{PYTHON}: {error}"
    to_do = "pip install ray, and name that Python in DTF_RAY_PYTHON"
    return f"ray cannot be imported by {PYTHON} ({to_do})" if done.returncode else ""


class Ray:
    """`address` is what RAY_ADDRESS is set to."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [PYTHON, "-c", _CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            text=True,
        )
        self.address: str = self._told()

    def left(self) -> dict[str, Any]:
        """What clusters hold of Ray: {"actors": pid by name, "groups": how many placement groups}."""
        return self._do("look")

    def lose_node(self) -> None:
        """The second node dies, with its raylet and actors."""
        self._do("lose")

    def replace_node(self) -> None:
        self._do("replace")

    def _do(self, what: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        found: dict[str, Any] = self._told()
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        self._process.kill()

    def _told(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "Ray does not start"
        return json.loads(line)


@cache
def shared() -> Ray:
    ray = Ray()
    atexit.register(ray.close)
    return ray
