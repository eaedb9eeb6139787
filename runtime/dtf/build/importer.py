"""`tf.import_graph_def`: adds the nodes of a GraphDef to the default graph.

Owns the checks (op contracts, attributes, types, names) and the order of nodes in graphs with loops. Also owns the
changes of an import: names get a prefix, defaults are filled in, colocation follows the names. The GraphDef may be
TensorFlow's own message; it is read through its serialized form.
"""

from __future__ import annotations

import graphlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dtf.build import shape_rules, signature
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, name_scope
from dtf.build.graph import Graph, Operation, Tensor
from dtf.build.ops import load_shape_rules
from dtf.build.scopes import check_op_name
from dtf.wire import codec, errors, opdef, versions
from dtf.wire.dtypes import DType, runtime_name
from dtf.wire.names import parse_tensor_name, shown
from dtf.wire.node_checks import check_attributes, check_function, check_node
from dtf.wire.opdef import OpDef
from dtf.wire.pb import attr_value_pb2, graph_pb2, node_def_pb2
from dtf.wire.tensor_shape import TensorShape

__all__ = ["import_graph_def"]

_COLOCATION_PREFIX = b"loc:@"


def import_graph_def(
    graph_def: Any,
    input_map: dict[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of `graph_def` to the default graph.

    Args:
      graph_def: a GraphDef.
      input_map: name of a tensor of `graph_def` ("node", "node:1"; "^node" for control inputs) -> what to use in
        its place.
      return_elements: names of operations or tensors of `graph_def` to return.
      name: the name scope of the new operations; "import" by default, "" for none.
      op_dict: deprecated; not looked at.
      producer_op_list: an OpList of the ops as the producer knew them; attributes at a default that only the
        producer knows are dropped.

    Returns:
      The requested operations and tensors, or None if `return_elements` is None.

    Raises:
      TypeError: an argument is of the wrong type.
      ValueError: the graph is not valid, or a name in the arguments is not in it.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/graph_util/import_graph_def
    """
    load_shape_rules()
    message = _own_graph_def(graph_def)
    if input_map is not None and not (
        isinstance(input_map, Mapping) and all(isinstance(key, str) for key in input_map)
    ):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    replacements = dict(input_map or {})
    wanted = None if return_elements is None else list(return_elements)
    if wanted is not None and not all(isinstance(element, str) for element in wanted):
        raise TypeError("return_elements must be a list of strings.")
    graph = get_default_graph()
    if name == "" and any(not isinstance(value, Tensor) for key, value in replacements.items() if key[:1] != "^"):
        raise ValueError(
            "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values. Convert them "
            "with tf.convert_to_tensor before."
        )
    with name_scope(name, "import") as scope:
        mapped = _converted_replacements(replacements)
    try:
        versions.check_versions(message.versions, versions.GRAPH, "GraphDef")
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None
    importer = _Importer(graph, message, mapped, scope, producer_op_list)
    try:
        importer.run()
    except errors.OpError as error:
        raise ValueError(error.message) from None
    return None if wanted is None else [importer.element(element) for element in wanted]


class _Importer:
    """One import. `_made` holds the new operation of each node that is done."""

    def __init__(
        self, graph: Graph, graph_def: graph_pb2.GraphDef, mapped: dict[str, Any], scope: str, producer_op_list: Any
    ) -> None:
        self._graph = graph
        self._scope = scope
        self._nodes = {node.name: node for node in graph_def.node}
        if len(self._nodes) != len(graph_def.node):
            counts = Counter(node.name for node in graph_def.node)
            raise ValueError(f"Node '{counts.most_common(1)[0][0]}' is not unique in the GraphDef.")
        self._graph_def = graph_def
        self._mapped = mapped
        self._used: set[str] = set()
        self._made: dict[str, Operation] = {}
        self._names: dict[str, str] = {}  # node -> operation
        self._functions = {function.signature.name: function.signature for function in graph_def.library.function}
        self._producer_defaults = _producer_defaults(producer_op_list)
        # (merge operation, input index, name of the tensor that comes around)
        self._back_edges: list[tuple[Operation, int, str]] = []

    def run(self) -> None:
        """Adds everything."""
        graph = self._graph
        with graph._lock:
            graph._check_not_finalized()
            self._add_library()
            self._names = {name: self._reserve(self._scope + name) for name in self._nodes}
            for node in self._sorted():
                self._made[node.name] = self._add(node)
            for merge, index, source in self._back_edges:
                merge._update_input(index, self._tensor(source, merge.name))
            unused = [key for key in self._mapped if key not in self._used and not self._is_known(key)]
            if unused:
                raise ValueError(
                    f"Attempted to map inputs that were not found in graph_def: [{', '.join(sorted(unused))}]"
                )
            for name, op in self._made.items():
                self._place(op, self._nodes[name])
            written = self._graph_def.versions
            if written.producer:
                graph._producer = min(graph._producer, written.producer)
            graph._min_consumer = max(graph._min_consumer, written.min_consumer)

    def element(self, name: str) -> Any:
        """The new operation or tensor for a name in the GraphDef.

        Raises:
          ValueError: the name is not found.
        """
        op_name, _, index = name.partition(":")
        op = self._made.get(op_name)
        if op is None or index and (not index.isdigit() or int(index) >= len(op.outputs)):
            raise ValueError(f"Requested return_element '{name}' not found in graph_def.")
        if not index:
            return op
        return self._mapped.get(_canonical(name), op.outputs[int(index)])

    def _is_known(self, key: str) -> bool:
        return key.lstrip("^").partition(":")[0] in self._nodes

    def _add_library(self) -> None:
        known = {function.signature.name: function for function in self._graph._library.function}
        for function in self._graph_def.library.function:
            name = function.signature.name
            if name not in known:
                check_function(function)
                if opdef.exists(name):
                    raise ValueError(f"Cannot add function '{name}' because an op with the same name already exists.")
                self._graph._library.function.add().CopyFrom(function)
                known[name] = function
            elif known[name] != function:
                raise ValueError(
                    f"Cannot add function '{name}' because a different function with the same name already exists."
                )
        self._graph._library.gradient.extend(self._graph_def.library.gradient)

    # The order of the nodes

    def _sorted(self) -> Iterator[node_def_pb2.NodeDef]:
        """The nodes in the GraphDef's order, as far as producers come first.

        The inputs of a Merge that come around a loop do not count. `Graph.get_operations` has this order, and programs
        take its last operation for the output of a frozen graph.
        """
        sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
        for node in self._nodes.values():
            before = []
            for text in node.input:
                source = parse_tensor_name(text)[0]
                if self._mapped.get(_canonical(text)) is None and not self._is_back_edge(node, source):
                    if source not in self._nodes:
                        raise ValueError(f"Node '{node.name}': Unknown input node {shown(text)}")
                    before.append(source)
            sorter.add(node.name, *before)
        try:
            sorter.prepare()
        except graphlib.CycleError as error:
            raise ValueError(f"The GraphDef has a cycle outside of a loop: {' -> '.join(error.args[1])}") from None
        places = {name: place for place, name in enumerate(self._nodes)}
        names = list(self._nodes)
        ready = [places[name] for name in sorter.get_ready()]
        heapq.heapify(ready)
        while ready:
            name = names[heapq.heappop(ready)]
            yield self._nodes[name]
            sorter.done(name)
            for following in sorter.get_ready():
                heapq.heappush(ready, places[following])

    def _is_back_edge(self, node: node_def_pb2.NodeDef, source: str) -> bool:
        if node.op not in ("Merge", "RefMerge") or source not in self._nodes:
            return False
        return self._nodes[source].op in ("NextIteration", "RefNextIteration")

    # One node

    def _add(self, node: node_def_pb2.NodeDef) -> Operation:
        graph = self._graph
        name = self._names[node.name]
        check_node(node)
        check_op_name(name)
        op_def = self._contract(node)
        attrs = self._attrs(node, op_def)
        values: dict[str, Any] = {}

        def get_attr(key: str) -> Any:
            if key not in values:
                values[key] = codec.attr_to_python(attrs[key])
            return values[key]

        inputs, control_inputs, back_edges = self._inputs(node)
        types = signature.output_types(op_def, get_attr)
        self._check_inputs(name, op_def, inputs, get_attr)
        shapes = attrs.pop("_output_shapes", None)
        op = Operation.make(graph, name, node.op, inputs, control_inputs, attrs, types, op_def)
        try:
            shape_rules.infer(op)
            if shapes is not None and len(shapes.list.shape) == len(op.outputs):
                for tensor, shape in zip(op.outputs, shapes.list.shape, strict=True):
                    tensor.set_shape(TensorShape(shape))
        except Exception as error:  # a graph of another program may have attributes that a shape rule does not expect
            raise ValueError(f"Node '{name}': {error}") from error
        graph._add(op)
        context = graph._get_control_flow_context()
        op._set_control_flow_context(context)
        if context is not None:
            context.add_op(op)
        self._back_edges.extend((op, index, source) for index, source in back_edges)
        return op

    def _reserve(self, name: str) -> str:
        """Marks a name and its enclosing scopes as used; a name that is taken gets a number."""
        names = self._graph._names
        old, names.scope = names.scope, ""
        unique = names.unique(name)
        name = unique if name in self._graph._operations else name
        parts = name.split("/")
        for end in range(1, len(parts)):
            prefix = "/".join(parts[:end])
            if names.unique(prefix, mark_as_used=False) == prefix:
                names.unique(prefix)
        names.scope = old
        return name

    def _contract(self, node: node_def_pb2.NodeDef) -> OpDef:
        if node.op in self._functions:
            return signature.contract_of_function(self._functions[node.op])
        if not opdef.exists(node.op):
            raise ValueError(f"Op type not registered '{node.op}' (node '{node.name}')")
        check_attributes(node)
        return opdef.get(node.op)

    def _attrs(self, node: node_def_pb2.NodeDef, op_def: OpDef) -> dict[str, attr_value_pb2.AttrValue]:
        attrs: dict[str, attr_value_pb2.AttrValue] = {}
        for key, value in node.attr.items():
            if key in op_def.attr_by_name or key.startswith("_") or node.op in self._functions:
                attrs[key] = attr_value_pb2.AttrValue()
                attrs[key].CopyFrom(value)
            elif self._producer_defaults.get((node.op, key)) != value.SerializeToString(deterministic=True):
                raise ValueError(
                    f"NodeDef mentions attr '{key}' not in Op<name={node.op}> (node '{node.name}'). "
                    "The graph may have been made by a newer version."
                )
        for attr in op_def.attrs:
            if attr.name in attrs:
                limited = attr.allowed is not None or attr.minimum is not None
                refusal = attr.refusal(codec.attr_to_python(attrs[attr.name])) if limited else None
                if refusal is not None:
                    raise ValueError(f"{refusal} (node '{node.name}', {node.op})")
                continue
            if not attr.has_default:
                raise ValueError(f"NodeDef missing attr '{attr.name}' from Op<name={node.op}> (node '{node.name}')")
            attrs[attr.name] = codec.python_to_attr(attr.default, attr.type)
        if "_class" in attrs:
            entries = [self._renamed(entry) for entry in attrs["_class"].list.s]
            del attrs["_class"].list.s[:]
            attrs["_class"].list.s.extend(entries)
        return attrs

    def _renamed(self, entry: bytes) -> bytes:
        if not entry.startswith(_COLOCATION_PREFIX):
            return entry
        target = entry[len(_COLOCATION_PREFIX) :]
        name = self._names.get(target.decode())
        return entry if name is None else _COLOCATION_PREFIX + name.encode()

    def _inputs(self, node: node_def_pb2.NodeDef) -> tuple[list[Tensor], list[Operation], list[tuple[int, str]]]:
        inputs: list[Tensor | None] = []
        control_inputs: list[Operation] = []
        back_edges = []
        for text in node.input:
            if text.startswith("^"):
                control_inputs.append(self._control_input(text))
            elif self._is_back_edge(node, parse_tensor_name(text)[0]) and _canonical(text) not in self._mapped:
                back_edges.append((len(inputs), text))
                inputs.append(None)
            else:
                inputs.append(self._tensor(text, node.name))
        # Until the loop is closed, the value that enters it takes the place of the next iteration's value.
        entering = next((tensor for tensor in inputs if tensor is not None), None)
        if entering is None and inputs:
            raise ValueError(f"Node '{node.name}': every input of this Merge comes around a loop.")
        filled = [entering if tensor is None else tensor for tensor in inputs]
        return [tensor for tensor in filled if tensor is not None], control_inputs, back_edges

    def _control_input(self, text: str) -> Operation:
        mapped = self._mapped.get(text)
        if mapped is not None:
            self._used.add(text)
            return mapped if isinstance(mapped, Operation) else mapped.op
        return self._made[text[1:]]

    def _tensor(self, text: str, consumer: str) -> Tensor:
        key = _canonical(text)
        if key in self._mapped:
            self._used.add(key)
            return self._mapped[key]
        op_name, index = parse_tensor_name(key)
        outputs = self._made[op_name].outputs
        if index >= len(outputs):
            raise ValueError(
                f"Node '{consumer}': Connecting to invalid output {index} of source node {op_name} which has "
                f"{len(outputs)} outputs."
            )
        return outputs[index]

    def _check_inputs(self, name: str, op_def: OpDef, inputs: list[Tensor], get_attr: Callable[[str], Any]) -> None:
        expected = signature.input_types(op_def, get_attr)
        if len(expected) != len(inputs):
            raise ValueError(
                f"Node '{name}': NodeDef expected inputs '{', '.join(map(_type_in_message, expected))}' do not match "
                f"{len(inputs)} inputs specified; op: {op_def.name}"
            )
        for index, (tensor, dtype) in enumerate(zip(inputs, expected, strict=True)):
            if not _accepts(dtype, tensor.dtype):
                raise ValueError(
                    f"Input {index} of node {name} was passed {_type_in_message(tensor.dtype)} from {tensor.name} "
                    f"incompatible with expected {_type_in_message(dtype)}."
                )

    # Devices

    def _place(self, op: Operation, node: node_def_pb2.NodeDef) -> None:
        """The requested device: the node's device, merged with the device blocks around the import."""
        op._set_device(node.device)
        anchors = [group[len(_COLOCATION_PREFIX) :].decode() for group in op.colocation_groups()]
        anchors = [anchor for anchor in anchors if anchor != op.name]
        if not anchors:
            self._graph._devices.apply(op)
            return
        for anchor in anchors:
            target = self._graph._operations.get(anchor)
            if target is None:
                asked_for = anchor.removeprefix(op.name.removesuffix(node.name))
                raise ValueError(
                    f"Node {node.name!r} expects to be colocated with unknown node {asked_for!r}, which does not exist "
                    "during import."
                )
            if target is not op and target.device:
                op._set_device(target.device)
                break


def _type_in_message(dtype: DType) -> str:
    return runtime_name(dtype.base_dtype) + ("_ref" if dtype._is_ref_dtype else "")


def _own_graph_def(graph_def: Any) -> graph_pb2.GraphDef:
    if isinstance(graph_def, graph_pb2.GraphDef):
        return graph_def
    if type(graph_def).__name__ == "GraphDef" and hasattr(graph_def, "SerializeToString"):
        return graph_pb2.GraphDef.FromString(graph_def.SerializeToString())
    raise TypeError("graph_def must be a GraphDef proto.")


def _converted_replacements(replacements: dict[str, Any]) -> dict[str, Any]:
    mapped: dict[str, Any] = {}
    for key, value in replacements.items():
        if key.startswith("^"):
            mapped[key] = value
        elif isinstance(value, Tensor):
            mapped[_canonical(key)] = value
        else:
            with name_scope("_inputs"):
                mapped[_canonical(key)] = convert_to_tensor(value)
    return mapped


def _canonical(text: str) -> str:
    """A data input with its output index, "node" being "node:0"; control inputs as they are."""
    return text if text.startswith("^") or ":" in text else text + ":0"


def _accepts(expected: DType, found: DType) -> bool:
    """Whether an input of type `expected` accepts `found`; a reference can be used as its value, not the reverse."""
    return expected == found or not expected._is_ref_dtype and expected == found.base_dtype


def _producer_defaults(op_list: Any) -> dict[tuple[str, str], bytes]:
    if op_list is None:
        return {}
    return {
        (op.name, attr.name): attr.default_value.SerializeToString(deterministic=True)
        for op in op_list.op
        for attr in op.attr
        if attr.HasField("default_value")
    }
