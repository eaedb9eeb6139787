"""Decides the device of every node.

Two steps, because devices are learnt only from the tasks that a step needs:

    requests = collect_requests(all_nodes)                     # whom must each node stand with, and what was asked for
    task     = choose_task(requests["x"], tasks, own_task)     # contacts nobody
    placed   = place(needed_nodes, requests, ...)              # full device names

Rules, as in TensorFlow: nodes that name each other in `_class` ("loc:@v") share a device; a node that takes a
reference or a resource stands where that state is (what it asked for itself gives way); what nobody asked for goes to
the master's own task, to its first accelerator if the whole group has kernels for it, else to CPU:0. A request for a
device that is not there, or that has no kernel for one of the group, fails, or with soft placement counts as none for
any type of device. `collect_requests` looks at the whole graph and not only at what one step needs, so that a
variable has the same home in every step. A group that asks for the impossible harms only the steps that need it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.run.devices.backends import CPU, why_none
from dtf.run.interfaces import Device
from dtf.run.passes import Nodes, NodesView
from dtf.run.passes.colocation import Groups, handle_sources
from dtf.run.passes.device_types import follow_neighbours, is_known, supports
from dtf.wire import errors
from dtf.wire.device import DeviceSpec
from dtf.wire.pb import node_def_pb2
from dtf.wire.text_cache import cached_by_text

_LOCATION = b"loc:@"
_REQUEST_FIELDS = ("job", "replica", "task", "device_type", "device_index")


@dataclass(frozen=True, slots=True)
class Request:
    """What one group of nodes that stand together asks for; None where anything will do.

    `leader` is the node that asked first, for messages. `conflict` says why no device can satisfy the group, if so;
    `is_soft` whether soft placement resolves that, since only types or numbers of devices are in conflict.
    """

    leader: str
    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None
    conflict: str | None = None
    is_soft: bool = False

    def is_impossible(self, allow_soft_placement: bool) -> bool:
        """Whether no device can satisfy the group."""
        return self.conflict is not None and not (self.is_soft and allow_soft_placement)

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
    groups = Groups()
    followers: set[str] = set()
    for name, node in nodes.items():
        groups.add(name)
        for entry in node.attr["_class"].list.s if "_class" in node.attr else ():
            if entry.startswith(_LOCATION):
                other = entry[len(_LOCATION) :].decode()
                if other in nodes:
                    groups.join(other, name)
        for source in handle_sources(node):
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
    graph: NodesView | None = None,
) -> Nodes:
    """The nodes with full device names. Endpoints (`_send_*`, `_recv_*`) have no request and are left to `partition`.

    Args:
      devices: the devices of every task that `choose_task` gives for one of these nodes.
      allow_soft_placement: a device type or index that the task does not have, or for which one of a group has no
        kernel, becomes another device of the task.
      graph: the whole graph, whose nodes `requests` are of; None: `nodes`.

    Raises:
      InvalidArgumentError: no known device satisfies a node; names the node, what it asked for, and what there is.
    """
    placed: Nodes = {}
    chosen: dict[Request, str] = {}
    chooser = _Chooser(tasks, own_task, devices, allow_soft_placement, requests, nodes if graph is None else graph)
    device_of: dict[str, str] = {}
    for name, node in nodes.items():
        request = requests.get(name)
        if request is not None:
            device = chosen.get(request)
            if device is None:
                device = chosen[request] = chooser.choose(node, request)
            device_of[name] = device
    if chooser.has_accelerators:
        follow_neighbours(nodes, device_of, chooser.free())
    for name, node in nodes.items():
        device = device_of.get(name)
        if device is None:
            placed[name] = node
            continue
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
        return errors.InvalidArgumentError(node, None, request.conflict)
    if request.leader == node.name:
        return _refused(
            node,
            f"{{{{node {node.name}}}}} was explicitly assigned to {request} but available devices are "
            f"[ {', '.join(known)} ]. Make sure the device specification refers to a valid device.{_hint(request)}",
        )
    return _refused(
        node,
        f"Could not satisfy explicit device specification '{node.device}' because the node "
        f"{{{{colocation_node {node.name}}}}} was colocated with a group of nodes that required incompatible device "
        f"'{request}'. All available devices [{', '.join(known)}].",
    )


def _hint(request: Request) -> str:
    """Why this process has no devices of the type, and what to do; "" where nothing is known."""
    why = why_none("GPU") if "GPU" in str(request).upper() else ""
    return f" {why}" if why else ""


def _refused(node: node_def_pb2.NodeDef, why: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(node, None, f"Cannot assign a device for operation {node.name}: {why}")


def _merge_groups(
    nodes: NodesView, assigned: Mapping[str, str], groups: Groups, followers: set[str]
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
    if current.is_soft:
        asked = dataclasses.replace(asked, device_type=current.device_type, device_index=None)
    for field in _REQUEST_FIELDS:
        ours, theirs = getattr(current, field), getattr(asked, field)
        if ours is not None and theirs is not None and ours != theirs:
            if not may_conflict or (current.conflict and not current.is_soft):
                return current
            part = {"device_type": "types", "device_index": "ids"}.get(field, f"{field}s")
            conflict = (
                f"Cannot colocate nodes {{{{colocation_node {asked.leader}}}}} and {{{{colocation_node "
                f"{current.leader}}}}}: Cannot merge devices with incompatible {part}: '{asked}' and '{current}'"
            )
            if field.startswith("device"):
                kept = None if field == "device_type" else current.device_type
                current = dataclasses.replace(current, device_type=kept, device_index=None, is_soft=True)
            return dataclasses.replace(current, conflict=conflict)
        values[field] = theirs if ours is None else ours
    leader = current.leader if str(current) else asked.leader
    return Request(leader, conflict=current.conflict, is_soft=current.is_soft, **values)


@cached_by_text(4096)
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


class _Chooser:
    """Devices for the groups of one graph."""

    def __init__(
        self,
        tasks: Sequence[str],
        own_task: str,
        devices: Mapping[str, Sequence[Device]],
        allow_soft_placement: bool,
        requests: Mapping[str, Request],
        graph: NodesView,
    ) -> None:
        self._tasks = tasks
        self._own_task = own_task
        self._devices = devices
        self._is_soft = allow_soft_placement
        self._requests = requests
        self._graph = graph
        self._names: dict[Request, list[str]] = {}
        self.has_accelerators = any(device.device_type != CPU for there in devices.values() for device in there)

    def choose(self, node: node_def_pb2.NodeDef, request: Request) -> str:
        """The device of a group; `node` is one of it.

        Raises:
          InvalidArgumentError: no device fits.
        """
        is_impossible = request.is_impossible(self._is_soft)
        task = None if is_impossible else choose_task(request, self._tasks, self._own_task)
        if task is None:
            raise unplaceable(node, request, self._known())
        by_preference = sorted(self._devices[task], key=lambda device: device.device_type == CPU)
        wanted = [device for device in by_preference if _is_wanted(request, device)]
        if not wanted and not self._is_soft:
            raise unplaceable(node, request, self._known())
        usable = self._usable(request, wanted)
        if not usable and not self._is_soft:
            raise self._without_kernel(node, request, wanted)
        return (usable or self._usable(request, by_preference))[0].name

    def _usable(self, request: Request, devices: Sequence[Device]) -> Sequence[Device]:
        """Those devices for which a whole group has kernels."""
        if not self.has_accelerators:
            return devices
        return [device for device in devices if self._has_kernels(request, device)]

    def free(self) -> list[str]:
        """The nodes that asked for no type of device and share theirs with no other."""
        groups = self._groups()
        return [names[0] for request, names in groups.items() if len(names) == 1 and request.device_type is None]

    def _groups(self) -> dict[Request, list[str]]:
        if not self._names:
            for name, request in self._requests.items():
                self._names.setdefault(request, []).append(name)
        return self._names

    def _members(self, request: Request) -> list[node_def_pb2.NodeDef]:
        return [self._graph[name] for name in self._groups()[request] if name in self._graph]

    def _has_kernels(self, request: Request, device: Device) -> bool:
        """Whether a whole group may be on a device. Of a type that this process does not know, only who asked may."""
        if not is_known(device.device_type):
            return request.device_type == device.device_type
        return all(supports(node, device.device_type) for node in self._members(request))

    def _without_kernel(
        self, node: node_def_pb2.NodeDef, request: Request, wanted: Sequence[Device]
    ) -> errors.InvalidArgumentError:
        kinds = list(dict.fromkeys(device.device_type for there in self._devices.values() for device in there))
        lines = {
            f"{member.op}: {' '.join(kind for kind in kinds if supports(member, kind))}"
            for member in self._members(request)
        }
        return _refused(
            node,
            f"Could not satisfy explicit device specification '{request}' because no supported kernel for "
            f"{wanted[0].device_type} devices is available.\nColocation Debug Info:\nColocation group had the "
            "following types and supported devices: \n" + "\n".join(sorted(lines)),
        )

    def _known(self) -> list[str]:
        known = sorted(device.name for there in self._devices.values() for device in there)
        return known + [task for task in self._tasks if task not in self._devices]


def _is_wanted(request: Request, device: Device) -> bool:
    """Whether a device is one that a group asks for."""
    index = DeviceSpec.from_string(device.name).device_index
    return (request.device_type is None or request.device_type == device.device_type) and (
        request.device_index is None or request.device_index == index
    )
