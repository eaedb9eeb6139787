"""Names of TensorFlow 1.15 that are not public: its unit tests and tools that look into graphs use them.

Owns the spelling only. The state is in `Graph`, `Operation` and `Tensor`, which take these classes as bases and use
none of the names themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import StackSummary
from typing import TYPE_CHECKING, Any

from dtf.wire import codec, opdef
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import attr_value_pb2, node_def_pb2
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.blocks import Block
    from dtf.build.tensor import Operation, Tensor

__all__ = ["GraphNames", "LibraryFunction", "OperationNames", "Reference", "TensorNames", "VariableNames"]


class OperationNames:
    """The names of `Operation`."""

    if TYPE_CHECKING:
        _id: int
        _device_blocks: tuple[Block, ...]
        _colocation_blocks: tuple[tuple[str, Block], ...]
        _control_flow_context: Any
        _op_def: opdef.OpDef | None
        _graph: Any
        _inputs: list[Tensor]
        _outputs: list[Tensor]
        _made_at: list[Any]
        _original_op: Operation | None

        @property
        def node_def(self) -> node_def_pb2.NodeDef: ...

        @property
        def traceback(self) -> StackSummary: ...

        def _set_attr(self, name: str, value: attr_value_pb2.AttrValue) -> None: ...

    @property
    def _id_value(self) -> int:
        return self._id

    @property
    def _node_def(self) -> node_def_pb2.NodeDef:
        return self.node_def

    @property
    def _input_types(self) -> list[DType]:
        return [tensor.dtype.base_dtype for tensor in self._inputs]

    @property
    def _input_dtypes(self) -> list[DType]:
        return [tensor.dtype for tensor in self._inputs]

    @property
    def _output_types(self) -> list[int]:
        return [tensor.dtype.as_datatype_enum for tensor in self._outputs]

    @property
    def _is_stateful(self) -> bool:
        return self._op_def is not None and self._op_def.is_stateful

    @property
    def _traceback(self) -> StackSummary:
        return self.traceback

    @property
    def traceback_with_start_lines(self) -> list[tuple[str, int, str, str | None, int]]:
        """The traceback with the first line of each function: (file, line, function, text, first line)."""
        return [
            (frame.filename, line, frame.name, frame.line, code.co_firstlineno)
            for frame, (code, line) in zip(self.traceback, self._made_at, strict=True)
        ]

    @property
    def _device_assignments(self) -> list[Block]:
        """The device blocks that were open, the innermost first."""
        return list(self._device_blocks)

    @property
    def _device_code_locations(self) -> list[Block]:
        return self._device_assignments

    @property
    def _colocation_dict(self) -> dict[str, Block]:
        """The names of the operations of the colocation blocks that were open -> these blocks."""
        return dict(self._colocation_blocks)

    @property
    def _colocation_code_locations(self) -> dict[str, Block]:
        return self._colocation_dict

    def _set_attr_with_buf(self, name: str, serialized: bytes) -> None:
        self._set_attr(name, attr_value_pb2.AttrValue.FromString(bytes(serialized)))

    def _set_func_attr(self, name: str, function_name: str) -> None:
        self._set_attr(name, attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name=function_name)))

    def _set_func_list_attr(self, name: str, function_names: Sequence[str]) -> None:
        functions = [attr_value_pb2.NameAttrList(name=each) for each in function_names]
        self._set_attr(name, attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(func=functions)))

    def _set_type_list_attr(self, name: str, types: Sequence[Any]) -> None:
        if types:
            self._set_attr(name, codec.python_to_attr([as_dtype(each) for each in types], "list(type)"))

    def _set_shape_list_attr(self, name: str, shapes: Sequence[Any]) -> None:
        protos = [TensorShape(each).as_proto() for each in shapes]
        self._set_attr(name, attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=protos)))

    def _add_while_inputs(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            if getattr(tensor, "graph", None) is not self._graph:
                raise ValueError(f"{tensor!r} must be from the same graph as {self!r}.")
            self._inputs.append(tensor)
            tensor._add_consumer(self)  # type: ignore[arg-type]

    def _control_flow_post_processing(self) -> None:
        if self._control_flow_context is not None:
            self._control_flow_context.add_op(self)

    def _tf_output(self, output_idx: int) -> tuple[OperationNames, int]:
        return self, output_idx

    def _tf_input(self, input_idx: int) -> tuple[OperationNames, int]:
        return self, input_idx


class TensorNames:
    """The names of `Tensor`."""

    if TYPE_CHECKING:
        _shape: TensorShape

    @property
    def _id(self) -> int:
        return id(self)

    @property
    def _shape_val(self) -> TensorShape:
        return self._shape

    def _shape_as_list(self) -> list[int | None] | None:
        return self._shape.as_list() if self._shape.ndims is not None else None

    def _shape_tuple(self) -> tuple[int | None, ...] | None:
        return tuple(self._shape.as_list()) if self._shape.ndims is not None else None

    def _rank(self) -> int | None:
        return self._shape.ndims

    def _c_api_shape(self) -> TensorShape:
        return self._shape

    def experimental_ref(self) -> Reference:
        """A hashable object that stands for the tensor."""
        return Reference(self)

    ref = experimental_ref

    @classmethod
    def _override_operator(cls, operator: str, func: Any) -> None:
        setattr(cls, operator, func)


@dataclass(frozen=True)
class LibraryFunction:
    """A function of a graph's library.

    Attributes:
      definition: the FunctionDef.
      grad_func_name: the function that gives its gradient, or None.
    """

    definition: Any
    grad_func_name: str | None

    @property
    def name(self) -> str:
        """Its name in the library."""
        return str(self.definition.signature.name)

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """(name, op type) of the body's nodes that have state."""
        return [
            (node.name, node.op)
            for node in self.definition.node_def
            if opdef.exists(node.op) and opdef.get(node.op).is_stateful
        ]


class GraphNames:
    """The names of `Graph`.

    An operation of `_create_c_op` waits until `_create_op_from_tf_operation` or `_add_new_tf_operations` adds it.
    """

    if TYPE_CHECKING:
        _operations: dict[str, Operation]
        _operation_list: list[Operation]
        _attr_scope_map: dict[str, Any]
        _gradient_overrides: dict[str, str]
        _collections: dict[Any, list[Any]]
        _unfeedable: set[Tensor]
        _unfetchable: set[Operation]
        _library: Any
        _control_dependencies: Any
        _waiting_ops: list[Operation]
        _default_original_op: Operation | None
        _names: Any
        graph_def_versions: Any

        def _add(self, op: Operation) -> None: ...
        def _surround(self, op: Operation, compute_device: bool = True) -> None: ...
        def _attr_scope(self, attr_map: dict[str, Any]) -> Any: ...
        def colocate_with(self, op: Any, ignore_existing: bool = False) -> Any: ...

    @property
    def _last_id(self) -> int:
        return len(self._operation_list)

    def _next_id(self) -> int:
        return len(self._operation_list) + 1

    @property
    def _nodes_by_name(self) -> dict[str, Operation]:
        return self._operations

    @property
    def _nodes_by_id(self) -> dict[int, Operation]:
        return {op._id: op for op in self._operation_list}

    @property
    def _names_in_use(self) -> dict[str, int]:
        return self._names.counts()

    @property
    def _graph_def_versions(self) -> Any:
        return self.graph_def_versions

    @property
    def _gradient_override_map(self) -> dict[str, str]:
        return self._gradient_overrides

    @property
    def _unfeedable_tensors(self) -> set[Tensor]:
        return self._unfeedable

    @property
    def _unfetchable_ops(self) -> set[Operation]:
        return self._unfetchable

    @property
    def _functions(self) -> dict[str, LibraryFunction]:
        """The functions of the library by their names."""
        gradients = {each.function_name: each.gradient_func for each in self._library.gradient}
        return {
            function.signature.name: LibraryFunction(function, gradients.get(function.signature.name))
            for function in self._library.function
        }

    def _get_function(self, name: Any) -> Any:
        return self._functions.get(name.decode() if isinstance(name, bytes) else str(name))

    def _is_function(self, name: Any) -> bool:
        text = name.decode() if isinstance(name, bytes) else str(name)
        return any(function.signature.name == text for function in self._library.function)

    def _current_control_dependencies(self) -> set[Operation]:
        return set(self._control_dependencies.current())

    def _control_dependencies_for_inputs(self, input_ops: Iterable[Operation]) -> list[Operation]:
        return self._control_dependencies.for_inputs(input_ops)

    def _record_op_seen_by_control_dependencies(self, op: Operation) -> None:
        self._control_dependencies.record(op)

    def _colocate_with_for_gradient(self, op: Any, gradient_uid: Any, ignore_existing: bool = False) -> Any:
        return self.colocate_with(op, ignore_existing)

    @contextmanager
    def _original_op(self, op: Operation) -> Iterator[None]:
        """A block whose operations have `op` as their `_original_op`."""
        old, self._default_original_op = self._default_original_op, op
        try:
            yield
        finally:
            self._default_original_op = old

    @contextmanager
    def _scoped_c_graph(self) -> Iterator[GraphNames]:
        yield self

    @contextmanager
    def _kernel_label_map(self, op_to_kernel_label_map: dict[str, str]) -> Iterator[None]:
        """A block whose operations of these types name the kernel that runs them.

        Raises:
          TypeError: the map is not one from strings to strings.
        """
        if not all(isinstance(text, str) for pair in op_to_kernel_label_map.items() for text in pair):
            raise TypeError("op_to_kernel_label_map must be a dictionary mapping strings to strings")

        def label(op: Operation) -> attr_value_pb2.AttrValue | None:
            found = op_to_kernel_label_map.get(op.type)
            return None if found is None else attr_value_pb2.AttrValue(s=found.encode())

        with self._attr_scope({"_kernel": label}):
            yield

    def _create_op_from_tf_operation(self, c_op: Operation, compute_device: bool = True) -> Operation:
        """Adds an operation of `_create_c_op`."""
        self._waiting_ops.remove(c_op)
        self._names.use(c_op.name)
        self._add(c_op)
        self._surround(c_op, compute_device)
        return c_op

    def _add_new_tf_operations(self, compute_devices: bool = True) -> list[Operation]:
        """Adds the operations of `_create_c_op` that wait."""
        for op in self._waiting_ops:
            op._add_control_inputs(self._control_dependencies.for_inputs(tensor.op for tensor in op.inputs))
        return [self._create_op_from_tf_operation(op, compute_devices) for op in list(self._waiting_ops)]


class VariableNames:
    """The names of `Variable`."""

    if TYPE_CHECKING:
        _initializer: Operation
        _snapshot: Tensor
        _is_cached: bool

        @property
        def name(self) -> str: ...

        @property
        def handle(self) -> Tensor: ...

        @property
        def initializer(self) -> Operation: ...

        def _ref(self) -> Tensor: ...
        def _as_graph_element(self) -> Tensor: ...
        def read_value(self) -> Tensor: ...
        def value(self) -> Tensor: ...

    @property
    def _variable(self) -> Tensor:
        return self._ref()

    @property
    def _handle(self) -> Tensor:
        return self.handle

    @property
    def _handle_name(self) -> str:
        return self.name

    @property
    def _unique_id(self) -> str:
        return f"{self.name.partition(':')[0]}_{id(self)}"

    @property
    def _graph_element(self) -> Tensor:
        return self._as_graph_element()

    @property
    def _initializer_op(self) -> Operation:
        return self._initializer

    @property
    def create(self) -> Operation:
        """The operation that initializes the variable."""
        return self._initializer

    @property
    def _in_graph_mode(self) -> bool:
        return True

    @property
    def _cached_value(self) -> Tensor | None:
        return self._snapshot if self._is_cached else None

    @property
    def _caching_device(self) -> str | None:
        return self._snapshot.device if self._is_cached else None

    def _read_variable_op(self) -> Tensor:
        return self.read_value()

    def _AsTensor(self) -> Tensor:  # noqa: N802
        return self.value()

    def experimental_ref(self) -> Reference:
        """A hashable object that stands for the variable."""
        return Reference(self)

    ref = experimental_ref

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"VARIABLE_VALUE": self}


class Reference:
    """A tensor or a variable as a key of dictionaries; `deref()` gives it."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        """The tensor or the variable."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._wrapped is self._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"
