"""Which types of device a node may be on, and how a node that asks for nothing comes to one.

Owns what placing knows of kernels: the rows of the kernel table by device type, and TensorFlow's preferences. Other
devices come before the CPU; what only describes a tensor (its shape) stays with the tensor, and what only makes one (a
constant) goes to its consumers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dtf.run import kernels
from dtf.run.devices import host_memory
from dtf.run.devices.backends import CPU, backend_of, device_type_of
from dtf.run.passes import CONTROL, output_types, parse_tensor_name
from dtf.run.passes.colocation import Groups, handle_sources
from dtf.wire import dtypes, errors, opdef
from dtf.wire.device import DeviceSpec, task_of
from dtf.wire.dtypes import DType
from dtf.wire.pb import graph_pb2, node_def_pb2

__all__ = ["follow_neighbours", "is_known", "keep_in_host_memory", "place_body", "supports", "type_attributes"]

_DESCRIPTIONS = frozenset({"Rank", "Shape", "ShapeN", "Size"})
_STAYS_IN_HOST_MEMORY = frozenset({"_Arg", "_Retval"})


def is_known(device_type: str) -> bool:
    """Whether this process can tell which ops have kernels for a device type."""
    return device_type == CPU or backend_of(device_type) is not None


def supports(node: node_def_pb2.NodeDef, device_type: str) -> bool:
    """Whether a node has a kernel for a device type, as far as its dtypes tell. Everything has one for the CPU: an op
    that is not known here may be known to the task that runs it.
    """
    if device_type == CPU:
        return True
    if not is_known(device_type):
        return False
    types = type_attributes(node)
    if not host_memory.may_be_on_accelerators(node.op, types):
        return False
    if host_memory.is_computed_there(node.op, types):
        return True
    return any(row.fits(types) for row in kernels.rows(node.op, device_type))


def follow_neighbours(
    nodes: Mapping[str, node_def_pb2.NodeDef], device_of: dict[str, str], free: Iterable[str]
) -> None:
    """Moves nodes to the devices of their neighbours: a shape to its tensor's, a constant to its consumers'.

    Args:
      nodes: by name.
      device_of: their devices; changed in place.
      free: the names of those that asked for nothing, and share a device with no other.
    """
    free = set(free)
    consumers: dict[str, set[str]] = {}
    for name, node in nodes.items():
        for text in node.input:
            source, index = parse_tensor_name(text)
            if index != CONTROL and name in device_of:
                consumers.setdefault(source, set()).add(device_of[name])
    for name in [name for name in nodes if name in free]:
        node = nodes[name]
        data = [text for text in node.input if not text.startswith("^")]
        wanted: str | None = None
        if node.op in _DESCRIPTIONS and data:
            wanted = device_of.get(parse_tensor_name(data[0])[0])
        elif not data and _makes_one_tensor(node):
            theirs = consumers.get(name, set())
            wanted = next(iter(theirs)) if len(theirs) == 1 else None
        is_near = wanted is not None and task_of(wanted) == task_of(device_of[name])
        if wanted is not None and is_near and supports(node, device_type_of(wanted)):
            device_of[name] = wanted


def place_body(graph_def: graph_pb2.GraphDef, device: str) -> None:
    """Gives devices to the nodes of a function's body.

    State that the body makes is on one device with all that uses it. State that it is given is on the device of its
    call, for a call follows the resources that it takes.

    Args:
      graph_def: the body; changed in place.
      device: the full name of the device of its call: where nodes are that ask for none, and have a kernel there.
    """
    groups = Groups()
    given: set[str] = set()
    for node in graph_def.node:
        for source in handle_sources(node):
            groups.join(source, node.name)
        if node.op in _STAYS_IN_HOST_MEMORY:
            given.add(node.name)
    given = {groups.leader(name) for name in given if groups.has(name)}
    cpu = f"{task_of(device)}/device:{CPU}:0"
    wanted = {node.name: _of_body(node, device, cpu) for node in graph_def.node}
    on_cpus = {
        groups.leader(name)
        for name, its in wanted.items()
        if its == cpu and groups.has(name) and groups.leader(name) not in given
    }
    for node in graph_def.node:
        is_held = groups.has(node.name) and groups.leader(node.name) in on_cpus
        node.device = cpu if is_held else wanted[node.name]


def keep_in_host_memory(graph_def: graph_pb2.GraphDef) -> None:
    """Lets all nodes of a function's body run on the CPU, as those of datasets' functions do; changes it in place."""
    for node in graph_def.node:
        node.device = ""


def _of_body(node: node_def_pb2.NodeDef, device: str, cpu: str) -> str:
    """The device of one node of a function's body, as far as the node alone tells."""
    asked, own = DeviceSpec.from_string(node.device), DeviceSpec.from_string(device)
    device_type = asked.device_type or device_type_of(device)
    index = (asked.device_index if asked.device_type is not None else own.device_index) or 0
    backend = backend_of(device_type)
    if node.op in _STAYS_IN_HOST_MEMORY or backend is None or index >= len(backend.list_devices()):
        return cpu
    return f"{task_of(device)}/device:{device_type}:{index}" if supports(node, device_type) else cpu


def _makes_one_tensor(node: node_def_pb2.NodeDef) -> bool:
    try:
        types = output_types(node)
    except errors.NotFoundError:
        return False
    return len(types) == 1 and types[0] < 100


def type_attributes(node: node_def_pb2.NodeDef) -> dict[str, DType]:
    """The type attributes of a node, defaults included, as DTypes."""
    found: dict[str, DType] = {}
    if opdef.exists(node.op):
        for attr in opdef.get(node.op).attrs:
            if attr.type == "type":
                enum = node.attr[attr.name].type if attr.name in node.attr else 0
                found[attr.name] = dtypes.as_dtype(enum) if enum else attr.default
    return found

