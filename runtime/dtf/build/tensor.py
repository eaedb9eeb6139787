"""The nodes and edges of a graph: `Operation` and its outputs, `Tensor`.

Owns what a node knows about itself: name, type, inputs, attributes, device, static shapes, and its NodeDef. Makes
no nodes: `Graph.create_op` does, and `apply.apply_op` on top of it. The arithmetic operators of Tensor are put on
the class by `operators`, which needs the ops to exist.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterable, Sequence
from traceback import FrameSummary, StackSummary
from types import CodeType
from typing import TYPE_CHECKING, Any

from dtf.build.default_stack import default_session_stack
from dtf.build.private_names import OperationNames, TensorNames
from dtf.wire import codec, errors, opdef_proto
from dtf.wire.dtypes import DType
from dtf.wire.pb import attr_value_pb2, node_def_pb2, op_def_pb2
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.blocks import Block
    from dtf.build.graph import Graph
    from dtf.build.operator_types import Operators
    from dtf.wire.opdef import OpDef
else:
    Operators = object  # `operators` puts the real ones on the class, when the ops exist

_COLOCATION_PREFIX = b"loc:@"
_FRAMES_MAX = 20


class Operation(OperationNames):
    """One node of a graph.

    Not made directly: use an op function, or `Graph.create_op`. A node's inputs, attributes and device may change
    (back edges of loops, devices set by a caller) until a session has sent it. The underscored methods are for the
    modules of this package that build graphs.
    """

    _device_blocks: tuple[Block, ...] = ()
    _original_op: Operation | None = None
    _colocation_blocks: tuple[tuple[str, Block], ...] = ()

    def __init__(
        self,
        node_def: node_def_pb2.NodeDef,
        g: Graph,
        inputs: Sequence[Tensor] | None = None,
        output_types: Sequence[Any] | None = None,
        control_inputs: Sequence[Operation] | None = None,
        input_types: Sequence[Any] | None = None,
        original_op: Operation | None = None,
        op_def: op_def_pb2.OpDef | None = None,
    ) -> None:
        """Adds the node of a NodeDef to a graph, without the blocks that are open there, as TensorFlow 1.15 does.

        Args:
          node_def: the name, the type, the device and the attributes.
          g: the graph.
          inputs: the input tensors; the NodeDef's own are ignored.
          output_types: the dtypes of the outputs; worked out from the contract if None.
          control_inputs: operations that run before it.
          input_types: the dtypes that the inputs must be compatible with.
          original_op, op_def: accepted for TensorFlow's sake.

        Raises:
          TypeError: an argument is of the wrong kind, or an input of the wrong dtype.
          ValueError: the name is not valid, or shapes do not fit.
        """
        if not isinstance(node_def, node_def_pb2.NodeDef):
            raise TypeError(f"node_def needs to be a NodeDef: {node_def!r}")
        if not hasattr(g, "create_op"):
            raise TypeError(f"g needs to be a Graph: {g!r}")
        g._add_node_def(self, node_def, inputs or [], output_types, control_inputs or [], input_types)

    @classmethod
    def make(
        cls,
        graph: Graph,
        name: str,
        op_type: str,
        inputs: Sequence[Tensor],
        control_inputs: Sequence[Operation],
        attrs: dict[str, attr_value_pb2.AttrValue],
        output_types: Sequence[DType],
        op_def: OpDef | None,
    ) -> Operation:
        """A node that is not yet part of the graph."""
        op = cls.__new__(cls)
        op._fill(graph, name, op_type, inputs, control_inputs, attrs, output_types, op_def)
        return op

    def _fill(
        self,
        graph: Graph,
        name: str,
        op_type: str,
        inputs: Sequence[Tensor],
        control_inputs: Sequence[Operation],
        attrs: dict[str, attr_value_pb2.AttrValue],
        output_types: Sequence[DType],
        op_def: OpDef | None,
    ) -> None:
        self._graph = graph
        self._name = name
        self._type = op_type
        self._inputs = list(inputs)
        self._control_inputs = list(control_inputs)
        self._attrs = attrs
        self._attr_values: dict[str, Any] = {}
        self._op_def = op_def
        self._device = ""
        self._control_flow_context: Any = None
        self._control_outputs: list[Operation] = []
        self._id = -1
        self._made_at = _users_frames(3)
        self._outputs = [Tensor(self, index, dtype) for index, dtype in enumerate(output_types)]

    @property
    def name(self) -> str:
        """The full name, scopes included; unique in the graph."""
        return self._name

    @property
    def type(self) -> str:
        """The op type, such as "MatMul"."""
        return self._type

    @property
    def graph(self) -> Graph:
        """The graph that holds this node."""
        return self._graph

    @property
    def device(self) -> str:
        """The requested device in canonical form, or "" when the runtime may choose."""
        return self._device

    @property
    def inputs(self) -> list[Tensor]:
        """The data inputs, in the order of the op's contract; a list that cannot be changed."""
        return InputList(self._inputs)

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that must have run before this one."""
        return list(self._control_inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The outputs."""
        return self._outputs

    @property
    def op_def(self) -> op_def_pb2.OpDef | None:
        """The contract of this op type as a new message; None for a type that this package does not know."""
        return None if self._op_def is None else opdef_proto.op_def(self._op_def)

    @property
    def node_def(self) -> node_def_pb2.NodeDef:
        """This node as a new NodeDef message."""
        return self._to_node_def(add_shapes=False)

    @property
    def traceback(self) -> StackSummary:
        """Where the user's program made this operation, outermost call first; the package's own frames are left out."""
        frames = [FrameSummary(code.co_filename, line, code.co_name) for code, line in self._made_at]
        return StackSummary.from_list(frames)

    def values(self) -> tuple[Tensor, ...]:
        """The outputs as a tuple."""
        return tuple(self._outputs)

    def get_attr(self, name: str) -> Any:
        """The attribute `name` as a Python value (see `codec.attr_to_python`).

        Raises:
          ValueError: the node does not have the attribute.
        """
        if name in self._attr_values:
            value = self._attr_values[name]
        else:
            if name not in self._attrs:
                raise ValueError(f"Operation '{self._name}' has no attr named '{name}'.")
            value = codec.attr_to_python(self._attrs[name])
            self._attr_values[name] = value
        return copy.copy(value) if isinstance(value, list) else value

    def colocation_groups(self) -> list[bytes]:
        """The groups, as b"loc:@name", that this node shares a device with; its own group if it names none."""
        groups = []
        if "_class" in self._attrs:
            groups = [entry for entry in self._attrs["_class"].list.s if entry.startswith(_COLOCATION_PREFIX)]
        return groups or [_COLOCATION_PREFIX + self._name.encode()]

    def run(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> None:
        """Runs this operation in `session`, or in the default session.

        Raises:
          ValueError: there is no default session, or the session is of another graph.
        """
        session_for(self._graph, session, f"`{self._name}.run()`", "execute operation").run(self, feed_dict)

    def _set_device(self, device: Any) -> None:
        # As given: a function of tf.device may spell it "/gpu:0"; strings of tf.device come here in their full form.
        self._device = (device if isinstance(device, str) else device.to_string()) if device else ""

    def _set_attr(self, name: str, value: attr_value_pb2.AttrValue) -> None:
        self._attrs[name] = value
        self._attr_values.pop(name, None)

    def _clear_attr(self, name: str) -> None:
        self._attrs.pop(name, None)
        self._attr_values.pop(name, None)

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: Iterable[Operation]) -> None:
        known = set(self._control_inputs)
        for op in ops:
            if not isinstance(op, Operation):
                raise TypeError(f"op must be an Operation: {op!r}")
            if op.graph is not self._graph:
                raise ValueError(f"{op!r} must be from the same graph as {self!r}.")
            if op not in known:
                known.add(op)
                self._control_inputs.append(op)
                op._control_outputs.append(self)

    def _remove_all_control_inputs(self) -> None:
        for op in self._control_inputs:
            op._control_outputs.remove(self)
        self._control_inputs.clear()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"tensor must be a Tensor: {tensor}")
        if tensor.graph is not self._graph:
            raise ValueError(f"{tensor!r} must be from the same graph as {self!r}.")
        _check_new_input(self, index, tensor)
        self._inputs[index]._consumers.remove(self)
        self._inputs[index] = tensor
        tensor._add_consumer(self)

    def _set_control_flow_context(self, context: Any) -> None:
        self._control_flow_context = context

    def _get_control_flow_context(self) -> Any:
        return self._control_flow_context

    def _to_node_def(self, add_shapes: bool) -> node_def_pb2.NodeDef:
        node = node_def_pb2.NodeDef(name=self._name, op=self._type, device=self._device)
        node.input.extend(tensor._input_name() for tensor in self._inputs)
        node.input.extend("^" + name for name in sorted(op.name for op in self._control_inputs))
        for name, value in self._attrs.items():
            node.attr[name].CopyFrom(value)
        if add_shapes and self._outputs:
            shapes = [tensor.shape.as_proto() for tensor in self._outputs]
            node.attr["_output_shapes"].list.shape.extend(shapes)
        return node

    def __str__(self) -> str:
        return str(self.node_def)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self._type}>"


class InputList(list["Tensor"]):
    """The inputs of an operation: a list whose methods that change a list are not there."""

    def __getattribute__(self, name: str) -> Any:
        if name in _CHANGES:
            raise AttributeError(f"'_InputList' object has no attribute '{name}'")
        return super().__getattribute__(name)

    def __setitem__(self, *_: Any) -> None:
        raise TypeError("'_InputList' object does not support item assignment")

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


_CHANGES = frozenset({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"})


class Tensor(TensorNames, Operators):
    """One output of an Operation: a handle on a value that exists only while a session runs.

    Two tensors are equal only if they are the same object, as in TensorFlow 1.x. Tensors can thus be keys of a feed
    dictionary.
    """

    # numpy arrays on the left of an operator leave the operation to us.
    __array_priority__ = 100

    def __init__(self, op: Operation, value_index: int, dtype: DType) -> None:
        self._op = op
        self._value_index = value_index
        self._dtype = dtype
        self._shape = TensorShape(None)
        self._consumers: list[Operation] = []

    @property
    def op(self) -> Operation:
        """The operation that produces this tensor."""
        return self._op

    @property
    def dtype(self) -> DType:
        """The element type; a reference type for an output that is a variable's buffer."""
        return self._dtype

    @property
    def graph(self) -> Graph:
        """The graph of the operation."""
        return self._op.graph

    @property
    def name(self) -> str:
        """The name "<op name>:<output index>"."""
        return f"{self._op.name}:{self._value_index}"

    @property
    def device(self) -> str:
        """The requested device of the operation."""
        return self._op.device

    @property
    def value_index(self) -> int:
        """Which output of the operation this is."""
        return self._value_index

    @property
    def shape(self) -> TensorShape:
        """The static shape, as far as it is known."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The static shape, as far as it is known."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Adds what the caller knows to the static shape.

        Raises:
          ValueError: `shape` contradicts what is known.
        """
        self._shape = self._shape.merge_with(shape)

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input, each as often as it does."""
        return list(self._consumers)

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """The value of this tensor, computed by `session` or by the default session.

        Raises:
          ValueError: there is no default session, or the session is of another graph.
        """
        return session_for(self.graph, session, "`eval()`", "evaluate tensor").run(self, feed_dict)

    def _as_node_def_input(self) -> str:
        return self._input_name()

    def _input_name(self) -> str:
        return self._op.name if self._value_index == 0 else self.name

    def _add_consumer(self, op: Operation) -> None:
        """Enters an operation, to be called once for each of its inputs that is this tensor."""
        self._consumers.append(op)

    def _as_tf_output(self) -> tuple[Operation, int]:
        return self._op, self._value_index

    # No __eq__: tensors are dictionary keys by identity. Named here so that a reader looks no further.
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            "using a `tf.Tensor` as a Python `bool` is not allowed in Graph execution. Compare with None "
            "(`if t is not None`) to check that a tensor was passed, and use tf.cond to act on the value of a tensor."
        )

    def __iter__(self) -> Any:
        raise TypeError(
            "iterating over `tf.Tensor` is not allowed in Graph execution. "
            "To iterate over this tensor use tf.map_fn, or tf.unstack."
        )

    def __len__(self) -> int:
        raise TypeError(f"len is not well defined for a symbolic Tensor ({self.name}). Use `x.shape` instead.")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array.")

    def __copy__(self) -> Tensor:
        copied = Tensor(self._op, self._value_index, self._dtype)
        copied._shape = self._shape
        copied._consumers = self._consumers
        return copied

    def __str__(self) -> str:
        shape = f", shape={self._shape}" if self._shape.ndims is not None else ""
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype.name}{device})'

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self._dtype.name}>"


def _check_new_input(op: Operation, index: int, tensor: Tensor) -> None:
    """Refuses an input that does not fit the node as it is.

    Raises:
      errors.OutOfRangeError: the node has fewer inputs.
      errors.InvalidArgumentError: the shape does not fit. A dtype is checked when a session gets the node.
    """
    if not 0 <= index < len(op._inputs):
        raise errors.OutOfRangeError(
            None, None, f"Cannot update edge. Input index [{index}] is greater than the number of total inputs "
            f"[{len(op._inputs)}].")  # fmt: skip
    old = op._inputs[index]
    # A loop's Merge takes a back edge of its own shape; see `build.ops.while_loops`.
    if op.type != "Merge" and not old.shape.is_compatible_with(tensor.shape):
        shapes = [re.sub(r"\s", "", str(TensorShape(each).as_list()).replace("None", "?"))
                  for each in (tensor.shape, old.shape)]  # fmt: skip
        raise errors.InvalidArgumentError(
            None, None, f"Cannot update edge, incompatible shapes: {shapes[0]} and {shapes[1]}.")  # fmt: skip


def session_for(graph: Graph, session: Any, what: str, action: str) -> Any:
    """`session`, or the default one, which must be of `graph`; `what` and `action` are words of the ValueErrors."""
    if session is None:
        session = default_session_stack.top()
        if session is None:
            raise ValueError(
                f"Cannot {action} using {what}: No default session is registered. "
                "Use `with sess.as_default()` or pass an explicit session to it."
            )
        if session.graph is not graph:
            raise ValueError(
                f"Cannot use the default session to {action}: the {action.split()[1]}'s graph is different "
                "from the session's graph. Pass an explicit session."
            )
    elif session.graph is not graph:
        raise ValueError(
            f"Cannot use the given session to {action}: the {action.split()[1]}'s graph is different "
            "from the session's graph."
        )
    return session


def _users_frames(depth: int) -> list[tuple[CodeType, int]]:
    """The innermost frames outside this package, outermost first. Code objects only: a frame would keep its locals."""
    found: list[tuple[CodeType, int]] = []
    frame = sys._getframe(depth)
    while frame is not None and len(found) < _FRAMES_MAX:
        if frame.f_globals.get("__name__", "").partition(".")[0] != "dtf":
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    found.reverse()
    return found
