"""tensorflow.python.framework.ops: the non-public names of the graph module that programs use."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import dtf.train.saver  # noqa: F401 registers the messages of Savers
from dtf.as_tensorflow.historic import context
from dtf.build import gradients
from dtf.build.blocks import block_here
from dtf.build.composite import Composite
from dtf.build.conversion import composite_of, convert_to_tensor
from dtf.build.default_graph import get_collection, get_default_graph, name_scope, reset_default_graph
from dtf.build.default_stack import default_graph_stack, default_session_stack
from dtf.build.graph import Graph, Operation, Tensor
from dtf.build.tensor import session_for
from dtf.train import meta_graph
from dtf.wire.dtypes import as_dtype
from dtf.wire.pb import config_pb2, node_def_pb2

__all__ = [
    "convert_n_to_tensor", "convert_n_to_tensor_or_indexed_slices", "convert_to_tensor_or_indexed_slices",
    "EagerTensor", "enable_eager_execution", "NullContextmanager", "OpStats", "_NodeDef", "_NullContextmanager",
    "_create_c_op", "_gradient_registry", "gradient_registry", "_default_graph_stack", "_default_session_stack",
    "_operation_conversion_error", "_set_call_cpp_shape_fn",
    "register_dense_tensor_like_type", "_device_string", "_UserDeviceSpec", "_eval_using_default_session",
    "_run_using_default_session", "_stats_registry", "set_shape_and_handle_data_for_outputs",
    "add_exit_callback_to_default_func_graph", "numpy_text", "RegisterShape", "enable_tensor_equality",
    "disable_tensor_equality", "_as_graph_element", "colocate_with_for_gradient", "_colocate_with_for_gradient",
    "_assert_same_graph", "RegisterStatistics", "_VALID_OP_NAME_REGEX", "_VALID_SCOPE_NAME_REGEX", "default_session",
    "dismantle_graph", "executing_eagerly_outside_functions", "get_all_collection_keys", "get_collection_proto_type",
    "get_from_proto_function", "get_gradient_function", "get_name_scope", "get_stats_for_node_def",
    "get_to_proto_function", "has_default_graph", "inside_function", "internal_convert_to_tensor",
    "internal_name_scope_v1", "convert_n_to_tensor_or_composite", "convert_to_tensor_or_composite",
    "internal_convert_n_to_tensor", "internal_convert_n_to_tensor_or_composite",
    "internal_convert_n_to_tensor_or_indexed_slices", "internal_convert_to_tensor_or_composite",
    "internal_convert_to_tensor_or_indexed_slices", "name_from_scope_name", "prepend_name_scope", "strip_name_scope",
    "tensor_id", "uid",
]  # fmt: skip

_last_uid = 0


def uid() -> int:
    """A number that no other call gets, from 1 on."""
    global _last_uid
    _last_uid += 1
    return _last_uid


def internal_convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False, preferred_dtype: Any = None, **_: Any
) -> Tensor:
    """`tf.convert_to_tensor`; with `as_ref` a variable's reference."""
    if as_ref and hasattr(value, "_ref"):
        return value._ref()
    return convert_to_tensor(value, dtype, name, preferred_dtype)


def convert_n_to_tensor(values: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None) -> Any:
    """A list of tensors."""
    return [convert_to_tensor(value, dtype, name, preferred_dtype) for value in values]


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Slices as they are, other values as a tensor."""
    from dtf.build.sparse import IndexedSlices, SparseTensor

    if isinstance(value, Composite):
        return value
    if not isinstance(value, IndexedSlices | SparseTensor):
        return _converted(value, dtype, name)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(f"Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with dtype "
                         f"{value.dtype.name}: {value!r}")  # fmt: skip
    return value


def _converted(value: Any, dtype: Any, name: str | None) -> Any:
    """A tensor, or the composite value that a program's own conversion function makes."""
    found = composite_of(value)
    return convert_to_tensor(value, dtype, name) if found is None else found


def internal_convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    """`convert_to_tensor_or_indexed_slices`; with `as_ref` a variable's reference."""
    if as_ref and hasattr(value, "_ref"):
        return value._ref()
    return convert_to_tensor_or_indexed_slices(value, dtype, name)


def internal_convert_n_to_tensor_or_indexed_slices(
    values: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> list[Any]:
    """A list of tensors and slices; None is kept.

    Raises:
      TypeError: the values are not a list.
    """
    if not isinstance(values, list | tuple):
        raise TypeError("values must be a sequence.")
    return [None if each is None else internal_convert_to_tensor_or_indexed_slices(each, dtype, name, as_ref)
            for each in values]  # fmt: skip


def internal_convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False, preferred_dtype: Any = None, **_: Any
) -> list[Tensor]:
    """A list of tensors.

    Raises:
      TypeError: the values are not a list.
    """
    if not isinstance(values, list | tuple):
        raise TypeError("values must be a sequence.")
    return [internal_convert_to_tensor(each, dtype, name, as_ref, preferred_dtype) for each in values]


convert_to_tensor_or_composite = internal_convert_to_tensor_or_composite = internal_convert_to_tensor_or_indexed_slices
convert_n_to_tensor_or_composite = internal_convert_n_to_tensor_or_composite = (
    internal_convert_n_to_tensor_or_indexed_slices
)


def convert_n_to_tensor_or_indexed_slices(values: Any, dtype: Any = None, name: str | None = None) -> list[Any]:
    """A list of tensors and slices; None is kept."""
    return [None if each is None else convert_to_tensor_or_indexed_slices(each, dtype, name) for each in values]


def get_all_collection_keys() -> list[str]:
    """The names of the default graph's collections that have members."""
    return [key for key in get_default_graph().get_all_collection_keys() if get_collection(key)]


def inside_function() -> bool:
    """Whether a function's body is being traced."""
    return type(get_default_graph()) is not Graph


def executing_eagerly_outside_functions() -> bool:
    """False: there are only graphs."""
    return False


def get_to_proto_function(collection_name: str) -> Any:
    """How entries of a collection become messages, or None."""
    codec = meta_graph.codec_of(collection_name)
    return codec.to_proto if codec is not None else None


def get_from_proto_function(collection_name: str) -> Any:
    """How messages become entries of a collection, or None."""
    codec = meta_graph.codec_of(collection_name)
    return codec.from_proto if codec is not None else None


def get_collection_proto_type(collection_name: str) -> Any:
    """The type of the messages of a collection, or None."""
    codec = meta_graph.codec_of(collection_name)
    return codec.message_type if codec is not None else None


_VALID_OP_NAME_REGEX = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE_NAME_REGEX = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class EagerTensor:
    """No tensor is one: there are only graphs."""


def _set_call_cpp_shape_fn(_: Any) -> None:
    """Does nothing: static shapes follow from the ops' own rules."""


def name_from_scope_name(name: str) -> str:
    """The name of an operation from a scope's name: without the trailing slash."""
    return name[:-1] if name.endswith("/") else name


def strip_name_scope(name: Any, export_scope: str | None) -> Any:
    """The name without the scope that is exported; in lists of classes (loc:@) and control inputs (^) too."""
    if not export_scope:
        return name
    scope = re.escape(export_scope.rstrip("/"))
    return re.sub(rf"([\^]|loc:@|^){scope}[\/]+(.*)", r"\1\2", _text(name), count=1)


def prepend_name_scope(name: Any, import_scope: str | None) -> Any:
    """The name within the scope into which it is imported."""
    if not import_scope:
        return name
    scope = import_scope.rstrip("/")
    return re.sub(r"([\^]|loc:@|^)(.*)", rf"\1{scope}/\2", _text(name), count=1)


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


internal_name_scope_v1 = name_scope


def _NodeDef(  # noqa: N802
    op_type: str, name: str, device: Any = None, attrs: dict[str, Any] | None = None
) -> node_def_pb2.NodeDef:
    """A NodeDef of a type and a name.

    Args:
      op_type: the op.
      name: the node.
      device: a device's name, a DeviceSpec, or a function of tf.device, which is left out.
      attrs: AttrValue messages by name.
    """
    node = node_def_pb2.NodeDef(op=op_type, name=name)
    for key, value in (attrs or {}).items():
        node.attr[key].CopyFrom(value)
    if device is not None and not callable(device):
        node.device = _device_string(device)
    return node


def _device_string(device: Any) -> str:
    return device.to_string() if hasattr(device, "to_string") else device


def _create_c_op(graph: Graph, node_def: Any, inputs: Any, control_inputs: Any) -> Operation:
    """A node that `Graph._create_op_from_tf_operation` or `_add_new_tf_operations` adds."""
    op = Operation.__new__(Operation)
    graph._add_node_def(op, node_def, inputs, None, control_inputs, None, waiting=True)
    return op


class _DefaultGraphs:
    """The stack of default graphs of this thread."""

    def get_default(self) -> Graph:
        """The innermost graph."""
        return get_default_graph()

    def reset(self) -> None:
        """Begins a new default graph."""
        reset_default_graph()

    @property
    def stack(self) -> list[Graph]:
        """The graphs of the open blocks of this thread, the innermost last."""
        return default_graph_stack.entries()

    def get_controller(self, default: Graph) -> Any:
        """A block in which `default` is the default graph."""
        return default_graph_stack.using(default)


class _DefaultSessions:
    """The stack of default sessions of this thread."""

    @property
    def stack(self) -> list[Any]:
        """The sessions of the open blocks of this thread, the innermost last."""
        return default_session_stack.entries()

    def get_default(self) -> Any:
        """The innermost session, or None."""
        return default_session_stack.top()

    def reset(self) -> None:
        """Leaves all blocks of this thread."""
        default_session_stack.clear()

    def get_controller(self, default: Any) -> Any:
        """A block in which `default` is the default session."""
        return default_session_stack.using(default)


class _Gradients:
    """The registry of gradient functions, by op type."""

    def lookup(self, name: str) -> Any:
        """The gradient function of an op type; None for ops without one.

        Raises:
          LookupError: nothing is registered.
        """
        gradients.load()
        try:
            return gradients.table[name]
        except KeyError:
            raise LookupError(f"gradient registry has no entry for: {name}") from None

    def list(self) -> Any:
        """The op types."""
        gradients.load()
        return list(gradients.table)


gradient_registry = _gradient_registry = _Gradients()
_default_graph_stack = _DefaultGraphs()
_default_session_stack = _DefaultSessions()


def _assert_same_graph(original_item: Any, item: Any) -> None:
    """Raises ValueError unless both are of one graph."""
    if original_item.graph is not item.graph:
        raise ValueError(f"{item} must be from the same graph as {original_item}.")


def _operation_conversion_error(op: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    """Raises TypeError: an operation is no tensor."""
    raise TypeError(f"Can't convert Operation '{op.name}' to Tensor (target dtype={dtype!r}, name={name!r}, "
                    f"as_ref={as_ref!r})")  # fmt: skip


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Raises, like every use of eager execution, once the arguments are checked.

    Raises:
      TypeError, ValueError: an argument is not valid.
      NotImplementedError: in all other cases.
    """
    if config is not None and not isinstance(config, config_pb2.ConfigProto):
        raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
    if device_policy not in (None, 0, 1, 2, 3):
        raise ValueError("device_policy must be one of None, DEVICE_PLACEMENT_*")
    if execution_mode not in (None, context.SYNC, context.ASYNC):
        raise ValueError("execution_mode must be one of None, SYNC, ASYNC")
    context.eager_mode()


def register_dense_tensor_like_type(tensor_type: Any) -> None:
    """Accepts a class whose values stand for tensors: it must have the properties `name` and `dtype`.

    Raises:
      TypeError: a property is missing.
    """
    for name in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, name, None), property):
            raise TypeError(f"Type {tensor_type.__name__} does not define a `{name}` property")


class _UserDeviceSpec:
    """The argument of `tf.device` with the function and the text made of it."""

    def __init__(self, device_name_or_function: Any) -> None:
        self._device_name_or_function = device_name_or_function
        self.display_name = block_here(device_name_or_function).obj
        self.function = device_name_or_function
        self.raw_string = device_name_or_function if isinstance(device_name_or_function, str) else None


def _eval_using_default_session(tensors: Any, feed_dict: Any, graph: Graph, session: Any = None) -> Any:
    """The values of tensors, by the session or the default session."""
    return session_for(graph, session, "`eval()`", "evaluate tensor").run(tensors, feed_dict)


def _run_using_default_session(operation: Any, feed_dict: Any, graph: Graph, session: Any = None) -> None:
    """Runs an operation in the session or the default session."""
    session_for(graph, session, "`run()`", "execute operation").run(operation, feed_dict)


def set_shape_and_handle_data_for_outputs(_: Any) -> None:
    """Does nothing: shapes are known when a node has been made."""


def add_exit_callback_to_default_func_graph(fn: Any) -> None:
    """Raises RuntimeError: functions of dtf have no callbacks at their end."""
    raise RuntimeError("Cannot add exit callbacks when the default graph is not a FuncGraph.")


def numpy_text(tensor: Any, is_repr: bool = False) -> str:
    """"<unprintable>": a tensor of a graph has no value to print."""
    return "<unprintable>"


def RegisterShape(op_type: str) -> Any:  # noqa: N802
    """Returns the function as it is: shapes follow from the ops' own rules."""
    return lambda function: function


def enable_tensor_equality() -> None:
    """Does nothing: two tensors are equal if they are one object."""


def disable_tensor_equality() -> None:
    """Does nothing: two tensors are equal if they are one object."""


def _as_graph_element(obj: Any) -> Any:
    """What `obj._as_graph_element()` gives; None if it lacks that method."""
    convert = getattr(obj, "_as_graph_element", None)
    return convert() if callable(convert) else None


def colocate_with_for_gradient(op: Any, gradient_uid: Any = None, ignore_existing: bool = False) -> Any:
    """`Graph.colocate_with` of the default graph."""
    return get_default_graph().colocate_with(op, ignore_existing)


_colocate_with_for_gradient = colocate_with_for_gradient


@contextlib.contextmanager
def NullContextmanager(*_: Any, **__: Any) -> Iterator[None]:  # noqa: N802
    """A block that does nothing."""
    yield


_NullContextmanager = NullContextmanager


def get_name_scope() -> str:
    """The open name scope of the default graph."""
    return get_default_graph().get_name_scope()


def has_default_graph() -> bool:
    """True: there always is one."""
    return True


def default_session(session: Any) -> Any:
    """A block in which the session is the default session."""
    return session.as_default()


def tensor_id(tensor: Any) -> int:
    """A number that no other tensor has."""
    return id(tensor)


def dismantle_graph(graph: Graph) -> None:
    """Does nothing: an unreferenced graph is freed by Python."""


def get_gradient_function(op: Any) -> Any:
    """The gradient function of an operation, or None.

    Raises:
      LookupError: nothing is registered for its type.
    """
    gradients.load()
    if not op.inputs:
        return None
    name = op.get_attr("_gradient_op_type") if "_gradient_op_type" in op._attrs else op.type
    return gradients.table[_text(name)]


class OpStats:
    """A figure of a node, of one type such as "flops"."""

    def __init__(self, statistic_type: str, value: Any = None) -> None:
        self.statistic_type = statistic_type
        self.value = value

    def __iadd__(self, other: OpStats) -> OpStats:
        if other.statistic_type != self.statistic_type:
            raise ValueError(f"Can't add an OpStat of type {self.statistic_type} to one of {other.statistic_type}.")
        self.value = other.value if self.value is None else self.value + (other.value or 0)
        return self


class _StatisticsRegistry(dict[str, Any]):
    """The functions of `RegisterStatistics`, by "op,type"."""

    lookup = dict.__getitem__


_stats_registry = _statistics = _StatisticsRegistry()


class RegisterStatistics:
    """A decorator: the function computes a figure of the nodes of one op, from (graph, node)."""

    def __init__(self, op_type: str, statistic_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string.")
        if "," in op_type:
            raise TypeError("op_type must not contain a comma.")
        if not isinstance(statistic_type, str):
            raise TypeError("statistic_type must be a string.")
        if "," in statistic_type:
            raise TypeError("statistic_type must not contain a comma.")
        self._key = f"{op_type},{statistic_type}"

    def __call__(self, f: Any) -> Any:
        if self._key in _statistics:
            raise KeyError(f"Registering two statistics with name {self._key!r}!")
        _statistics[self._key] = f
        return f


def get_stats_for_node_def(graph: Graph, node: Any, statistic_type: str) -> OpStats:
    """A figure of a node; without a value where nothing is registered."""
    found = _statistics.get(f"{node.op},{statistic_type}")
    return found(graph, node) if found is not None else OpStats(statistic_type)
