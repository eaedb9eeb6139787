"""Everything that a session offers: each client at each cluster must find what TensorFlow's client
finds at TensorFlow's cluster, behaviour by behaviour.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from dtf.server import Server
from tests.interop.session_behaviours import AT_ONE_KIND, BEHAVIOURS, LOCAL
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow, tensorflow_servers
from tests.ports import free_ports

pytestmark = needs_tensorflow

#: Where we are not as TensorFlow, and why. A path is "behaviour/key", or the beginning of one.
ANYWHERE = {
    "device_filters/": "a node that cannot be placed harms only the steps that need it",
    "traces/SOFTWARE_TRACE": "every level traces",
    "traces/HARDWARE_TRACE": "every level traces",
    "traces/inter op pool 5": "there is one pool, whatever its number",
    "own_cluster/handle": "TensorFlow's servers keep no tensors for a session, ours do",
    "callables/from wrong options": "a local session has the codes of a server",
    "callables/from a wrong output": "a local session has the codes of a server",
}
OUR_CLIENT = {
    "fetch_structures/resource by name": "a handle is a ResourceHandle and not a list of bytes",
    "unfeedable/fetched": "TensorFlow's InaccessibleTensorError is a ValueError, as ours",
    "callables/too few": "a call with too few arguments is a TypeError",
    "callables/traced nodes": "a callable made from options gives the trace that they ask for",
    "containers/its close": "closing a session that its server has forgotten is no error",
    "traces/wrong options": "options of another type are a TypeError",
    "session_handles/rubbish": "the runtime says so, and not the client",
}
CLUSTERS = ["tensorflow", "dtf", "dtf master, tensorflow ps", "tensorflow master, dtf ps"]
BEHAVIOURS_AT = {
    cluster: [name for name in BEHAVIOURS if "," not in cluster or name not in AT_ONE_KIND] for cluster in CLUSTERS
}


@pytest.fixture(scope="module")
def found():
    """{(client, place): {behaviour: result}}; the places are the clusters and "local"."""
    ports = iter([f"127.0.0.1:{port}" for port in free_ports(16)])
    places: list[dict[str, Any]] = []
    theirs, ours = [], []
    for kind in CLUSTERS:
        cluster = {"ps": [next(ports)], "worker": [next(ports)]}
        spare = next(ports), next(ports)
        kinds = {
            "tensorflow": (theirs, theirs),
            "dtf": (ours, ours),
            "dtf master, tensorflow ps": (theirs, ours),
            "tensorflow master, dtf ps": (ours, theirs),
        }[kind]
        for job, tasks in zip(("ps", "worker"), kinds, strict=True):
            tasks.append((cluster, job, 0))
        for address, tasks in zip(spare, reversed(kinds), strict=True):
            tasks.append(({"idle": [address]}, "idle", 0))
        targets = {job: f"grpc://{addresses[0]}" for job, addresses in cluster.items()}
        places.append({**targets, "spare": spare, "behaviours": BEHAVIOURS_AT[kind]})
    places.append({"worker": "", "ps": "", "spare": ("", ""), "behaviours": LOCAL})
    names = [*CLUSTERS, "local"]
    found = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(tensorflow_servers(theirs))
        for task in ours:
            stack.enter_context(Server(*task))
        for client, python, module in (
            ("tensorflow", PYTHON, "tensorflow.compat.v1"),
            ("dtf", sys.executable, "dtf"),
        ):
            for name, result in zip(names, _observations(python, module, places), strict=True):
                found[client, name] = result
    return found


def _observations(python: str, module: str, places: Any) -> list[dict[str, Any]]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    if module == "dtf":
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "runtime"), str(ROOT)])
    finished = subprocess.run(
        [python, "-m", "tests.interop.session_behaviours", module, json.dumps(places)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=280,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]


def _differences(wanted: Any, given: Any, path: str) -> list[str]:
    if isinstance(wanted, dict) and isinstance(given, dict):
        return [
            line
            for key in dict.fromkeys([*wanted, *given])
            for line in _differences(wanted.get(key), given.get(key), f"{path}/{key}")
        ]
    return [] if wanted == given else [f"{path}: TensorFlow gives {wanted}, here it is {given}"]


@pytest.mark.parametrize(
    ("cluster", "behaviour"),
    [(cluster, name) for cluster in CLUSTERS for name in BEHAVIOURS_AT[cluster] if name != "session_handles"],
)
@pytest.mark.parametrize("client", ["tensorflow", "dtf"])
def test_a_session_at_a_cluster_is_as_tensorflows(found, client, cluster, behaviour):
    _check(found["tensorflow", "tensorflow"], found[client, cluster], client, behaviour)


@pytest.mark.parametrize("behaviour", LOCAL)
def test_a_local_session_is_as_tensorflows(found, behaviour):
    if behaviour == "failing_partial_run":  # in TensorFlow's local session it spoils the run after it; not at a server
        found["tensorflow", "local"][behaviour][1] = found["tensorflow", "tensorflow"][behaviour][1]
    _check(found["tensorflow", "local"], found["dtf", "local"], "dtf", behaviour)


@pytest.mark.parametrize("client", ["tensorflow", "dtf"])
def test_our_servers_keep_tensors_for_a_session_as_a_local_session_does(found, client):
    wanted = dict(found["tensorflow", "local"]["session_handles"])
    given = dict(found[client, "dtf"]["session_handles"])
    if client == "tensorflow":
        assert given.pop("fed as a tensor") == "InvalidArgumentError"  # it sends a local session's message
        wanted.pop("fed as a tensor")
    else:
        # From the runtime, not from the client; and a tensor of another task is not there, whatever its dtype.
        for different in ("rubbish", "wrong type"):
            assert given.pop(different) == "InvalidArgumentError"
            wanted.pop(different)
    assert given == wanted


def _check(wanted: Any, given: Any, client: str, behaviour: str) -> None:
    known = {**ANYWHERE, **(OUR_CLIENT if client == "dtf" else {})}
    lines = _differences(wanted[behaviour], given[behaviour], behaviour)
    assert [line for line in lines if not line.startswith(tuple(known))] == []
