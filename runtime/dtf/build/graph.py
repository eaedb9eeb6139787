"""The graph under construction: `Graph`, and the blocks that surround new nodes.

Owns the registry of operations, collections, seeds, and `Graph.create_op`, the one place where nodes are made. The
rules of names, devices and control dependencies are in `scopes`, nodes and edges in `tensor`, conversion of values
in `conversion`; `default_graph` has the default graph and the functions that use it.

    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:ps/task:0"), tf.name_scope("layer"):
        total = tf.constant(1.0) + 2.0
    graph.as_graph_def()
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dtf.build import shape_rules, signature
from dtf.build.blocks import Block, block_here
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.default_stack import default_graph_stack, default_session_stack
from dtf.build.graph_keys import GraphKeys
from dtf.build.private_names import GraphNames
from dtf.build.scopes import ControlBlock, ControlDependencies, DeviceStack, NameTable, check_op_name
from dtf.build.tensor import Operation, Tensor
from dtf.wire import codec, deprecations, forks, opdef
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import attr_value_pb2, graph_pb2, node_def_pb2, versions_pb2

__all__ = [
    "Graph",
    "GraphKeys",
    "Operation",
    "Tensor",
    "convert_to_tensor",
    "default_session_stack",
    "register_tensor_conversion_function",
]

# The version of TensorFlow's graph format whose ops these graphs use; every consumer since then reads them.
GRAPH_PRODUCER_VERSION = 134


class _Blocks:
    """The device, colocation and control-dependency blocks that are open."""

    def __init__(self, devices: DeviceStack | None = None, colocation: list[Operation] | None = None) -> None:
        self.devices = devices or DeviceStack()
        self.colocation = colocation or []
        self.colocation_blocks: tuple[tuple[str, Block], ...] = ()
        self.control_dependencies = ControlDependencies()

    def copy(self) -> _Blocks:
        """The same devices and colocations for another thread, without its control dependencies."""
        return _Blocks(self.devices.copy(), list(self.colocation))


class _BlocksOfThread(threading.local):
    blocks: _Blocks | None = None


class Graph(GraphNames):
    """A set of operations and the tensors between them.

    Threads may build one graph together: `create_op` holds the lock `_lock`, and each thread has name scopes and
    variable scopes of its own. Device, colocation and control-dependency blocks count for all threads until
    `switch_to_thread_local`, as in TensorFlow.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/Graph
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        forks.renew_in_child(self, "_lock")
        self._operations: dict[str, Operation] = {}
        self._operation_list: list[Operation] = []
        self._waiting_ops: list[Operation] = []  # of `_create_c_op`, until they are added
        self._names = NameTable()
        self._blocks = _Blocks()
        self._of_thread: _BlocksOfThread | None = None
        self._attr_scope_map: dict[str, Any] = {}
        self._gradient_overrides: dict[str, str] = {}
        self._container = ""
        self._collections: dict[Any, list[Any]] = {}
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        self._variable_creators: list[Any] = []  # of `tf.variable_creator_scope`, the outermost first
        self._control_flow_context: Any = None
        self._default_original_op: Operation | None = None
        self._finalized = False
        self._building_function = False
        self._library = graph_pb2.GraphDef().library
        self._min_consumer = 0
        self._producer = GRAPH_PRODUCER_VERSION
        self._seed: int | None = None
        self._op_seeds = itertools.count()  # for ops without a seed of their own

    # The blocks around new operations

    def switch_to_thread_local(self) -> None:
        """Gives each thread device, colocation and control-dependency blocks of its own from now on.

        A thread starts with the device and colocation blocks that are open now.
        """
        if self._of_thread is None:
            of_thread = _BlocksOfThread()
            of_thread.blocks = self._blocks.copy()
            of_thread.blocks.control_dependencies = self._blocks.control_dependencies
            self._of_thread = of_thread

    @property
    def _open(self) -> _Blocks:
        """The blocks that count for this thread."""
        mine = self._of_thread
        if mine is None:
            return self._blocks
        if mine.blocks is None:
            mine.blocks = self._blocks.copy()
        return mine.blocks

    @property
    def _devices(self) -> DeviceStack:
        return self._open.devices

    @property
    def _control_dependencies(self) -> ControlDependencies:
        return self._open.control_dependencies

    @property
    def _colocation_stack(self) -> list[Operation]:
        return self._open.colocation

    @_colocation_stack.setter
    def _colocation_stack(self, stack: list[Operation]) -> None:
        self._open.colocation = stack

    # Being the default, and closing

    def as_default(self) -> AbstractContextManager[Graph]:
        """A context in which this graph is the default one of the current thread."""
        return default_graph_stack.using(self)

    def finalize(self) -> None:
        """Makes every further change an error."""
        self._finalized = True

    @property
    def finalized(self) -> bool:
        """Whether `finalize` was called."""
        return self._finalized

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    @property
    def building_function(self) -> bool:
        """Whether this graph is the body of a function (see `function_graph`)."""
        return self._building_function

    @property
    def outermost(self) -> Graph:
        """The outermost graph: this one, or the one around it."""
        return self

    @property
    def seed(self) -> int | None:
        """The graph-level random seed."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    @property
    def version(self) -> int:
        """A number that grows with every new operation."""
        return len(self._operation_list)

    _version = version

    @property
    def graph_def_versions(self) -> versions_pb2.VersionDef:
        """The format versions of `as_graph_def`."""
        return versions_pb2.VersionDef(producer=self._producer, min_consumer=self._min_consumer)

    # Making operations

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        dtypes: Sequence[Any] | None = None,
        input_types: Sequence[Any] | None = None,
        name: str | None = None,
        attrs: dict[str, Any] | None = None,
        op_def: opdef.OpDef | None = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Adds an operation.

        Args:
          op_type: a name from the table of op contracts.
          inputs: the input tensors, lists flattened.
          dtypes: the output dtypes; worked out from the contract if None.
          input_types: accepted for TensorFlow's sake; the inputs' own dtypes count.
          name: scoped and made unique; one that ends in "/" is taken as it is. `op_type` if None.
          attrs: AttrValue messages or Python values; Python values need a contract that says their type.
          op_def: the contract; looked up by `op_type` if None.

        Raises:
          TypeError: an input is not a Tensor.
          ValueError: an input is of another graph, the name is not valid, or shapes do not fit.
          RuntimeError: the graph is finalized.
        """
        with self._lock:
            self._check_not_finalized()
            for tensor in inputs:
                if not isinstance(tensor, Tensor):
                    raise TypeError(f"Input {tensor!r} of the {op_type} operation is not a tensor.")
            inputs = [tensor if tensor.graph is self else self._taken_in(tensor, name) for tensor in inputs]
            if op_def is None and opdef.exists(op_type):
                op_def = opdef.get(op_type)
            name = op_type if name is None else name.decode() if isinstance(name, bytes) else name
            name = name[:-1] if name.endswith("/") else self.unique_name(name)
            check_op_name(name)
            op = self._make(op_type, name, inputs, dtypes, _attr_protos(attrs or {}, op_def), op_def)
            if compute_shapes:
                shape_rules.infer(op)
            self._add(op)
            self._surround(op, compute_device)
            return op

    def _taken_in(self, tensor: Tensor, name: str | None) -> Tensor:
        """This graph's replacement for a tensor of another graph; a plain graph has none and raises."""
        raise ValueError(f"{tensor} must be from the same graph as the operation that takes it ({name}).")

    def _make(
        self,
        op_type: str,
        name: str,
        inputs: Sequence[Tensor],
        dtypes: Sequence[Any] | None,
        attrs: dict[str, attr_value_pb2.AttrValue],
        op_def: opdef.OpDef | None,
    ) -> Operation:
        deprecations.check(op_type, self._producer)
        if dtypes is None:
            if op_def is None:
                raise ValueError(f"Op type not registered '{op_type}': the dtypes of its outputs must be given.")
            types = signature.output_types(op_def, lambda attr: codec.attr_to_python(attrs[attr]))
        else:
            types = [as_dtype(dtype) for dtype in dtypes]
        control_inputs = self._control_dependencies.for_inputs(tensor.op for tensor in inputs)
        return Operation.make(self, name, op_type, inputs, control_inputs, attrs, types, op_def)

    def _add_node_def(
        self,
        op: Operation,
        node_def: node_def_pb2.NodeDef,
        inputs: Sequence[Tensor],
        output_types: Sequence[Any] | None,
        control_inputs: Sequence[Operation],
        input_types: Sequence[Any] | None,
        waiting: bool = False,
    ) -> None:
        """Makes `op` the node of a NodeDef, and adds it or lets it wait; see `Operation.__init__`."""
        with self._lock:
            self._check_not_finalized()
            check_op_name(node_def.name)
            for tensor in inputs:
                if not isinstance(tensor, Tensor):
                    raise TypeError(f"input needs to be a Tensor: {tensor!r}")
                if tensor.graph is not self:
                    raise ValueError(f"{tensor!r} must be from the same graph as the operation {node_def.name}.")
            for tensor, dtype in zip(inputs, input_types or [tensor.dtype for tensor in inputs], strict=True):
                if not as_dtype(dtype).is_compatible_with(tensor.dtype):
                    raise TypeError(f"In op '{node_def.name}', input types ({[each.dtype for each in inputs]}) are not "
                                    f"compatible with expected types ({input_types})")  # fmt: skip
            for control_input in control_inputs:
                if not isinstance(control_input, Operation):
                    raise TypeError(f"Control input must be an Operation, a Tensor, or IndexedSlices: {control_input}")
            op_def = opdef.get(node_def.op) if opdef.exists(node_def.op) else None
            attrs = _attr_protos(dict(node_def.attr), op_def)
            if op_def is not None:
                found = signature.types_from_inputs(op_def, [tensor.dtype for tensor in inputs])
                for key, dtype in found.items():
                    attrs.setdefault(key, codec.python_to_attr(dtype, "type"))
            made = self._make(node_def.op, node_def.name, inputs, output_types, attrs, op_def)
            op._fill(self, node_def.name, node_def.op, inputs, [*made.control_inputs, *control_inputs], attrs,
                     [tensor.dtype for tensor in made.outputs], op_def)  # fmt: skip
            op._set_device(node_def.device)
            shape_rules.infer(op)
            if waiting:
                self._waiting_ops.append(op)
            else:
                self._add(op)

    def _add(self, op: Operation) -> None:
        """Enters a finished node into the registry and links it to its inputs."""
        op._id = len(self._operation_list) + 1
        self._operations[op.name] = op
        self._operation_list.append(op)
        for tensor in op._inputs:
            tensor._add_consumer(op)
        for control_input in op._control_inputs:
            control_input._control_outputs.append(op)

    def _surround(self, op: Operation, compute_device: bool = True) -> None:
        """Applies what the open blocks say to a node that was just added."""
        self._control_dependencies.record(op)
        if self._default_original_op is not None:
            op._original_op = self._default_original_op
        for key, value in self._attr_scope_map.items():
            if key not in op._attrs:
                value = value(op) if callable(value) else value
                if value is not None:
                    op._set_attr(key, value)
        if op.type in self._gradient_overrides and "_gradient_op_type" not in op._attrs:
            override = self._gradient_overrides[op.type].encode()
            op._set_attr("_gradient_op_type", attr_value_pb2.AttrValue(s=override))
        context = self._control_flow_context
        op._set_control_flow_context(context)
        if context is not None:
            context.add_op(op)
        if compute_device:
            self._devices.apply(op)
        if self._colocation_stack:
            self._colocate(op)
        attr = op._op_def.attr_by_name.get("container") if op._op_def is not None else None
        if self._container and attr is not None and op._op_def.is_stateful and not op.get_attr("container"):  # type: ignore[union-attr]
            op._set_attr("container", attr_value_pb2.AttrValue(s=self._container.encode()))

    def _colocate(self, op: Operation) -> None:
        groups: set[bytes] = set()
        device_found = False
        for anchor in reversed(self._colocation_stack):
            groups.update(anchor.colocation_groups())
            if anchor.device and not device_found:
                op._set_device(anchor.device)
                device_found = True
        value = attr_value_pb2.AttrValue()
        value.list.s.extend(sorted(groups))
        op._set_attr("_class", value)
        op._colocation_blocks = self._open.colocation_blocks

    # Finding operations

    def get_operations(self) -> list[Operation]:
        """All operations, in the order of their making."""
        return list(self._operation_list)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation `name`.

        Raises:
          TypeError: `name` is not a string.
          KeyError: the name is not in the graph.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor `name`, which is "<op name>:<output index>".

        Raises:
          TypeError: `name` is not a string.
          KeyError: the name is not in the graph.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The Tensor or Operation that `obj` (one of these, a name, or a variable) refers to.

        Raises:
          TypeError: `obj` is nothing of the kind, or of the kind that is not allowed.
          ValueError: it is not of this graph, or the name has the wrong form.
          KeyError: there is no element of that name.
        """
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        wanted = " or ".join(
            kind for kind, allowed in (("Tensor", allow_tensor), ("Operation", allow_operation)) if allowed
        )
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str | bytes):
            name = obj if isinstance(obj, str) else obj.decode()
            return self._element_by_name(name, allow_tensor, allow_operation)
        if isinstance(obj, Tensor) and allow_tensor or isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                kind = "Tensor" if isinstance(obj, Tensor) else "Operation"
                raise ValueError(f"{kind} {obj if kind == 'Tensor' else obj.name} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        if ":" in name:
            op_name, _, index = name.partition(":")
            if not allow_tensor:
                raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
            if not index.isdigit() or not op_name:
                raise ValueError(
                    f"The name {name!r} looks like a Tensor name, but is not a valid one. "
                    'Tensor names must be of the form "<op_name>:<output_index>".'
                )
            op = self._operations.get(op_name)
            if op is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. "
                    f"The operation, {op_name!r}, does not exist in the graph."
                )
            if int(index) >= len(op.outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. "
                    f"The operation, {op_name!r}, exists but only has {len(op.outputs)} outputs."
                )
            return op.outputs[int(index)]
        op = self._operations.get(name)
        if not allow_operation:
            what = (
                f"The name {name!r} refers to an Operation, not a Tensor."
                if op is not None
                else f"The name {name!r} looks like an (invalid) Operation name, not a Tensor."
            )
            raise ValueError(f'{what} Tensor names must be of the form "<op_name>:<output_index>".')
        if op is None:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return op

    # Names

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` in the current scope, with a suffix if it is taken; for the making of operations."""
        return self._names.unique(name, mark_as_used)

    def get_name_scope(self) -> str:
        """The current name scope, without a final slash; "" at the root."""
        return self._names.scope

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """A block whose operations are named "<scope>/...".

        Args:
          name: a new scope, made unique; an old one, ending in "/", to enter it again; None or "" for the root.

        Yields:
          The scope with its final slash ("" for the root), fit to be the `name` of one operation.

        Raises:
          ValueError: `name` is not a valid scope name.
        """
        name = name.decode() if isinstance(name, bytes) else name
        previous = self._names.enter(name)
        try:
            yield f"{self._names.scope}/" if name else ""
        finally:
            self._names.scope = previous

    @property
    def _name_stack(self) -> str:
        return self._names.scope

    # Devices, colocation, control dependencies

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """A block whose operations request a device.

        Args:
          device_name_or_function: a device string or DeviceSpec, whose parts fill in parts that inner blocks leave
            open; a function from the operation to a device; or None, to ignore the enclosing blocks.
        """
        devices = self._devices
        block = devices.push(device_name_or_function)
        try:
            yield
        finally:
            devices.pop(block)

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """A block whose operations are placed on the device of `op`, regardless of device blocks.

        Args:
          op: an operation, a tensor or a variable; None, with `ignore_existing`, for no colocation.
          ignore_existing: forget the colocation blocks around this one.

        Raises:
          ValueError: `op` is None without `ignore_existing`.
        """
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        anchor = None if op is None else colocation_op(op)
        old_devices = self._devices.swap([])
        old_colocation = self._colocation_stack
        self._colocation_stack = [] if ignore_existing else list(old_colocation)
        blocks = self._open
        old_blocks = blocks.colocation_blocks
        blocks.colocation_blocks = () if ignore_existing else old_blocks
        if anchor is not None:
            self._colocation_stack.append(anchor)
            blocks.colocation_blocks = (*blocks.colocation_blocks, (anchor.name, block_here(None)))
        try:
            yield
        finally:
            self._devices.swap(old_devices)
            self._colocation_stack = old_colocation
            blocks.colocation_blocks = old_blocks

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """A block whose operations run after all of `control_inputs`.

        Args:
          control_inputs: operations, tensors, variables or IndexedSlices; None to drop the blocks around this one
            and the control flow context.

        Raises:
          TypeError: an entry is none of these.
          ValueError: an entry is of another graph.
        """
        if control_inputs is None:
            old_blocks = self._control_dependencies.swap([])
            old_context, self._control_flow_context = self._control_flow_context, None
            try:
                yield
            finally:
                self._control_dependencies.swap(old_blocks)
                self._control_flow_context = old_context
            return
        waiting = set(self._control_dependencies.current())
        wanted = dict.fromkeys(self._control_op(entry) for entry in control_inputs)
        block = ControlBlock([op for op in wanted if op is not None and op not in waiting])
        self._control_dependencies.push(block)
        try:
            yield
        finally:
            self._control_dependencies.pop(block)

    def _control_op(self, entry: Any) -> Operation | None:
        """The operation that an entry of control inputs means; None if a function's body need not wait for it."""
        entry = getattr(entry, "_control_input", entry)
        if hasattr(entry, "handle") and hasattr(entry, "op"):
            entry = entry.op
        if self.building_function and getattr(entry, "graph", self) is not self:
            return None  # a call begins after what its arguments wait for
        element = self.as_graph_element(entry)
        return element.op if isinstance(element, Tensor) else element

    def _get_control_flow_context(self) -> Any:
        return self._control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        self._control_flow_context = context

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """A block whose stateful operations keep their state in the resource container `container_name`."""
        old, self._container = self._container, container_name
        try:
            yield container_name
        finally:
            self._container = old

    @contextmanager
    def _attr_scope(self, attr_map: dict[str, Any]) -> Iterator[None]:
        """A block whose operations get these attributes (AttrValue messages, or None to hide an outer one)."""
        old = self._attr_scope_map
        merged = {**old, **attr_map}
        self._attr_scope_map = {key: value for key, value in merged.items() if value is not None}
        try:
            yield
        finally:
            self._attr_scope_map = old

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """A block in which ops of the given types use the gradient function registered under another name.

        Args:
          op_type_map: op type -> name given to `tf.RegisterGradient`.

        Raises:
          TypeError: the map is not one from strings to strings.
        """
        if not all(isinstance(text, str) for pair in op_type_map.items() for text in pair):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        old = self._gradient_overrides
        self._gradient_overrides = {**old, **op_type_map}
        try:
            yield
        finally:
            self._gradient_overrides = old

    # Feeds and fetches

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Makes it an error to feed `tensor`."""
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether `tensor` may be fed."""
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Operation) -> None:
        """Makes it an error to fetch `op` or an output of it."""
        self._unfetchable.add(op)

    def is_fetchable(self, tensor_or_op: Tensor | Operation) -> bool:
        """Whether it may be fetched."""
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._unfetchable

    # Collections

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends `value` to the collection `name`."""
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Appends `value` to each collection of `names`, a string or an iterable, once."""
        for name in (names,) if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself, to be changed in place."""
        return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of the collection; with `scope`, only entries whose name matches that prefix (a regex)."""
        import re

        entries = self._collections.get(name, [])
        if scope is None:
            return list(entries)
        pattern = re.compile(scope)
        return [entry for entry in entries if hasattr(entry, "name") and pattern.match(entry.name)]

    def get_all_collection_keys(self) -> list[Any]:
        """The names of the collections that have entries."""
        return [name for name, entries in self._collections.items() if entries and isinstance(name, str)]

    def clear_collection(self, name: Any) -> None:
        """Empties a collection."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    @property
    def collections(self) -> list[Any]:
        """The names of the collections."""
        return list(self._collections)

    # The wire form

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> graph_pb2.GraphDef:
        """This graph as a new GraphDef.

        Args:
          from_version: only the operations made since `version` had this value.
          add_shapes: give every node the attribute "_output_shapes".
        """
        with self._lock:
            graph_def = graph_pb2.GraphDef(versions=self.graph_def_versions)
            graph_def.node.extend(op._to_node_def(add_shapes) for op in self._operation_list[from_version or 0 :])
            if self._library.function or self._library.gradient:
                graph_def.library.CopyFrom(self._library)
            return graph_def


def _attr_protos(
    attrs: dict[str, Any], op_def: opdef.OpDef | None
) -> dict[str, attr_value_pb2.AttrValue]:
    protos = {}
    for name, value in attrs.items():
        if isinstance(value, attr_value_pb2.AttrValue):
            protos[name] = value
        elif op_def is not None and name in op_def.attr_by_name:
            protos[name] = codec.python_to_attr(value, op_def.attr_by_name[name].type)
        else:
            protos[name] = codec.python_to_attr(value, _guess_attr_type(value))
    if op_def is not None:
        for attr in op_def.attrs:
            if attr.name not in protos and attr.has_default:
                protos[attr.name] = codec.python_to_attr(attr.default, attr.type)
    return protos


def _guess_attr_type(value: Any) -> str:
    """The type of an attribute that the contract does not name, such as "_class"."""
    if isinstance(value, list | tuple):
        return f"list({_guess_attr_type(value[0]) if value else 'string'})"
    for python_type, attr_type in ((bool, "bool"), (int, "int"), (float, "float"), (str | bytes, "string")):
        if isinstance(value, python_type):
            return attr_type
    return "type" if isinstance(value, DType) else "shape"


def colocation_op(value: Any) -> Operation:
    """The operation behind an Operation, Tensor, variable or IndexedSlices."""
    if isinstance(value, Operation):
        return value
    if hasattr(value, "op"):
        return value.op
    return convert_to_tensor(value, as_ref=True).op
