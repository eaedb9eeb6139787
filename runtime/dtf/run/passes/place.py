"""Decides the device of every node.

Two steps, because devices are learnt only from the tasks that a step needs:

    requests = collect_requests(all_nodes)                     # whom must each node stand with, and what was asked for
    task     = choose_task(requests["x"], tasks, own_task)     # contacts nobody
    placed   = place(needed_nodes, requests, ...)              # full device names

Rules, as in TensorFlow: nodes that name each other in `_class` ("loc:@v") share a device; a node that takes a
reference or a resource stands where that state is (what it asked for itself gives way); what nobody asked for goes to
the master's own task, CPU:0. `collect_requests` looks at the whole graph and not only at what one step needs, so that a
variable has the same home in every step. A group that asks for the impossible harms only the steps that need it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.run.executor.step import Device
from dtf.run.passes import Nodes, NodesView, input_types, is_handle, parse_tensor_name
from dtf.wire import errors
from dtf.wire.device import DeviceSpec
from dtf.wire.pb import node_def_pb2

_LOCATION = b"loc:@"
_REQUEST_FIELDS = ("job", "replica", "task", "device_type", "device_index")


@dataclass(frozen=True)
class Request:
    """What one group of nodes that stand together asks for; None where anything will do.

    `leader` is the node that asked first, for messages. `conflict` says why no device can satisfy the group, if so.
    """

    leader: str
    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None
    conflict: str | None = None

    def __str__(self) -> str:
        parts = [("job", self.job), ("replica", self.replica), ("task", self.task)]
        text = "".join(f"/{key}:{value}" for key, value in parts if value is not None)
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            text += f"/device:{self.device_type}:{index}"
        return text


def collect_requests(nodes: NodesView, assigned: Mapping[str, str] | None = None) -> dict[str, Request]:
    """The request of each node's group.

    Args:
      nodes: the whole graph.
      assigned: full devices of nodes that earlier steps have used; their groups stay where they are.
    """
    assigned = assigned or {}
    groups = _Groups()
    followers: set[str] = set()
    for name, node in nodes.items():
        groups.add(name)
        for entry in node.attr["_class"].list.s if "_class" in node.attr else ():
            if entry.startswith(_LOCATION):
                other = entry[len(_LOCATION) :].decode()
                if other in nodes:
                    groups.join(other, name)
        for source in _handle_sources(node):
            followers.add(name)
            if source in nodes:
                groups.join(source, name)
    return _merge_groups(nodes, assigned, groups, followers)


def choose_task(request: Request, tasks: Sequence[str], own_task: str) -> str | None:
    """The task of a request: the master's own where it fits, else the first that fits, else None.

    Args:
      tasks: full task names ("/job:ps/replica:0/task:0") of the cluster, in its order.
    """
    if own_task in tasks and _fits(request, own_task):
        return own_task
    return next((task for task in tasks if _fits(request, task)), None)


def place(
    nodes: Nodes,
    requests: Mapping[str, Request],
    tasks: Sequence[str],
    own_task: str,
    devices: Mapping[str, Sequence[Device]],
    allow_soft_placement: bool = False,
) -> Nodes:
    """The nodes with full device names. Endpoints (`_send_*`, `_recv_*`) have no request and are left to `partition`.

    Args:
      devices: the devices of every task that `choose_task` gives for one of these nodes.
      allow_soft_placement: a device type or index that the task does not have becomes its CPU:0.

    Raises:
      InvalidArgumentError: no known device satisfies a node; names the node, what it asked for, and what there is.
    """
    placed: Nodes = {}
    chosen: dict[Request, str] = {}
    for name, node in nodes.items():
        request = requests.get(name)
        if request is None:
            placed[name] = node
            continue
        device = chosen.get(request)
        if device is None:
            device = chosen[request] = _choose_device(node, request, tasks, own_task, devices, allow_soft_placement)
        if node.device != device:
            moved = node_def_pb2.NodeDef()
            moved.CopyFrom(node)
            moved.device = device
            node = moved
        placed[name] = node
    return placed


def unplaceable(node: node_def_pb2.NodeDef, request: Request, known: Sequence[str]) -> errors.InvalidArgumentError:
    """The error for a node whose request nothing known satisfies."""
    if request.conflict:
        why = request.conflict
    else:
        whose = ""
        if request.leader != node.name:
            whose = f" (by way of '{request.leader}', with which it must share a device)"
        why = (
            f"Operation was explicitly assigned to {request}{whose} but available devices are "
            f"[ {', '.join(known)} ]. Make sure the device specification refers to a valid device."
        )
    return errors.InvalidArgumentError(node, None, f"Cannot assign a device for operation {node.name}: {why}")


class _Groups:
    """Disjoint sets of names. The leader of a joined set is the leader of the first argument's."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def add(self, name: str) -> None:
        self._parent.setdefault(name, name)

    def leader(self, name: str) -> str:
        parent = self._parent
        root = name
        while parent[root] != root:
            root = parent[root]
        while parent[name] != root:
            parent[name], name = root, parent[name]
        return root

    def join(self, first: str, second: str) -> None:
        self.add(first)
        self.add(second)
        self._parent[self.leader(second)] = self.leader(first)


def _merge_groups(
    nodes: NodesView, assigned: Mapping[str, str], groups: _Groups, followers: set[str]
) -> dict[str, Request]:
    merged: dict[str, Request] = {}
    leaders = {name: groups.leader(name) for name in nodes}
    for name in (name for name in nodes if name in assigned):
        merged[leaders[name]] = _request(name, assigned[name])
    settled = set(merged)
    owners = [name for name in nodes if name not in followers]
    for names, may_conflict in ((owners, True), ([name for name in nodes if name in followers], False)):
        for name in names:
            leader = leaders[name]
            if leader in settled:
                continue
            current = merged.get(leader) or Request(leader)
            device = nodes[name].device
            if device:
                current = _combine(current, _request(name, device), may_conflict)
            merged[leader] = current
    return {name: merged[leader] for name, leader in leaders.items()}


def _combine(current: Request, asked: Request, may_conflict: bool) -> Request:
    """What both ask for. A follower that disagrees about anything gives way entirely."""
    values: dict[str, Any] = {}
    for field in _REQUEST_FIELDS:
        ours, theirs = getattr(current, field), getattr(asked, field)
        if ours is not None and theirs is not None and ours != theirs:
            if not may_conflict or current.conflict:
                return current
            conflict = (
                f"'{asked.leader}' and '{current.leader}' must share a device but ask for "
                f"'{asked}' and '{current}', which are incompatible."
            )
            return dataclasses.replace(current, conflict=conflict)
        values[field] = theirs if ours is None else ours
    leader = current.leader if str(current) else asked.leader
    return Request(leader, conflict=current.conflict, **values)


def _handle_sources(node: node_def_pb2.NodeDef) -> list[str]:
    """The producers of the references and resources that a node takes."""
    if not node.input:
        return []
    try:
        types = input_types(node)
    except errors.NotFoundError:
        return []  # an op that only a foreign worker knows, or that no step may need
    return [
        parse_tensor_name(text)[0] for text, enum in zip(node.input, types, strict=False) if is_handle(enum)
    ]


@functools.lru_cache(maxsize=4096)
def _request(leader: str, device: str) -> Request:
    try:
        spec = DeviceSpec.from_string(device)
    except ValueError as error:
        return Request(leader, conflict=f"Malformed device specification '{device}': {error}")
    return Request(leader, spec.job, spec.replica, spec.task, spec.device_type, spec.device_index)


def _fits(request: Request, task: str) -> bool:
    there = _request("", task)
    return all(
        wanted is None or wanted == given
        for wanted, given in (
            (request.job, there.job),
            (request.replica, there.replica),
            (request.task, there.task),
        )
    )


def _choose_device(
    node: node_def_pb2.NodeDef,
    request: Request,
    tasks: Sequence[str],
    own_task: str,
    devices: Mapping[str, Sequence[Device]],
    allow_soft_placement: bool,
) -> str:
    known = sorted(device.name for there in devices.values() for device in there)
    known += [task for task in tasks if task not in devices]
    task = None if request.conflict else choose_task(request, tasks, own_task)
    if task is None:
        raise unplaceable(node, request, known)
    wanted_type = request.device_type or "CPU"
    wanted_index = request.device_index if request.device_type else 0
    first_cpu = None
    for device in devices[task]:
        spec = DeviceSpec.from_string(device.name)
        if spec.device_type == "CPU" and first_cpu is None:
            first_cpu = device.name
        if spec.device_type == wanted_type and wanted_index in (None, spec.device_index):
            return device.name
    if first_cpu is not None and (allow_soft_placement or request.device_type is None):
        return first_cpu
    raise unplaceable(node, request, known)
