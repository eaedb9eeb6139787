"""Variables: values that a device keeps from one step to the next.

Owns `Variable` and its serialized form (VariableDef). `variable_storage` decides how a value is held and which ops
change it, `variable_scope` shares variables by name, and `variable_collections` lists them.

    w = tf.Variable(tf.zeros([784, 10]), name="w")
    train = w.assign_sub(0.1 * gradient)
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.default_graph import control_dependencies, device, get_default_graph, init_scope, name_scope
from dtf.build.graph import Graph, GraphKeys, Operation, Tensor
from dtf.build.initial_values import without_uninitialized_variables
from dtf.build.ops import operators
from dtf.build.private_names import VariableNames
from dtf.build.save_slice_info import SaveSliceInfo, with_scope, without_scope
from dtf.build.sparse import IndexedSlices
from dtf.build.variable_storage import ReferenceStorage, ResourceStorage, Storage, create_reference, create_resource
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import attr_value_pb2, variable_pb2
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.operator_types import Operators
    from dtf.build.tensor_like import TensorLike
else:
    Operators = object  # `operators.install` puts the real ones on the class

__all__ = [
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "disable_resource_variables",
    "enable_resource_variables",
    "is_variable_initialized",
    "resource_variables_enabled",
]

_resource_by_default = False


class VariableSynchronization(enum.Enum):
    """When the copies of a variable are brought together; accepted, as there is one copy."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How the copies of a variable are brought together; accepted, as there is one copy."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


def enable_resource_variables() -> None:
    """Makes variables held by handle the default."""
    global _resource_by_default
    _resource_by_default = True


def disable_resource_variables() -> None:
    """Makes variables held by reference the default again."""
    global _resource_by_default
    _resource_by_default = False


def resource_variables_enabled() -> bool:
    """Whether variables are held by handle by default."""
    return _resource_by_default


if TYPE_CHECKING:
    _Made = type  # a checker takes the signature of Variable itself
else:

    class _Made(type):
        """Lets the creators of a graph (`tf.variable_creator_scope`) make its variables."""

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            creators = get_default_graph()._variable_creators if cls is Variable else ()
            if not creators:
                return super().__call__(*args, **kwargs)
            make: Callable[..., Any] = super().__call__
            for creator in creators:
                make = functools.partial(creator, make)
            given = dict(zip(_ARGUMENTS, args, strict=False)) | kwargs
            return make(**{**_DEFAULTS, **given})


class Variable(VariableNames, Operators, metaclass=_Made):
    """A tensor that keeps its value between steps; held by reference, or by handle with `use_resource`.

    Args:
      initial_value: the initial value: a value, a tensor, or a function without arguments that makes one. A function's
        ops are on the variable's device, and it may be called inside control flow.
      trainable: whether optimizers train it by default.
      collections: the collections to add it to; GLOBAL_VARIABLES by default.
      validate_shape: whether the shape of `initial_value` is the shape for good; if not it is unknown.
      caching_device: where to keep a copy of the value during a step.
      name: made unique; "Variable" by default.
      variable_def: a VariableDef of a variable that the graph already has; excludes all others but import_scope.
      dtype: the element type to convert `initial_value` to.
      expected_shape: deprecated; not looked at.
      import_scope: the name scope that `variable_def` was imported into.
      constraint: a function that optimizers apply to the value after each update.
      use_resource: hold the value by handle; the default is set by `tf.enable_resource_variables`.
      shape: the static shape, if it is less definite than the shape of `initial_value`.

    Raises:
      ValueError: there is no initial value, or its shape is not known though `validate_shape`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/Variable
    """

    __array_priority__ = 100

    SaveSliceInfo = SaveSliceInfo

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = True,
        collections: Iterable[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        if constraint is not None and not callable(constraint):
            raise ValueError(f"The `constraint` argument must be a callable, but is {constraint!r}.")
        self._save_slice_info: SaveSliceInfo | None = None
        self._constraint = constraint
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._trainable = True if trainable is None else trainable
        self._storage: Storage
        self._snapshot: Tensor
        self._is_cached = False
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._init_from_proto(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        is_resource = _resource_by_default if use_resource is None else use_resource
        if collections is not None and not isinstance(collections, list | tuple | set):
            raise ValueError(
                f"collections argument to Variable constructor must be a list, tuple, or set. Got {collections!r}"
            )
        keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if self._trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        with init_scope():
            self._build(initial_value, validate_shape, caching_device, name, dtype, is_resource, shape)
        get_default_graph().add_to_collections(keys, self)

    def _build(
        self,
        initial_value: Any,
        validate_shape: bool,
        caching_device: Any,
        name: str | None,
        dtype: Any,
        is_resource: bool,
        shape: Any,
    ) -> None:
        wanted = None if dtype is None else as_dtype(dtype).base_dtype
        from_function = callable(initial_value) and not isinstance(initial_value, Tensor | Variable)
        graph = get_default_graph()
        with name_scope(name, "Variable", [] if from_function else [initial_value]) as scope:
            group = attr_value_pb2.AttrValue()
            group.list.s.append(b"loc:@" + scope.rstrip("/").encode())
            grouped = is_resource or from_function
            with graph._attr_scope({"_class": group}) if grouped else nullcontext():
                with graph.name_scope("Initializer") if grouped else nullcontext():
                    if from_function:
                        with device(None):
                            value = convert_to_tensor(initial_value(), wanted, name="initial_value")
                    else:
                        value = convert_to_tensor(initial_value, wanted, name="initial_value")
                static_shape = self._checked_shape(scope, value, validate_shape, shape)
                if value.op._get_control_flow_context() is not None:
                    raise ValueError(
                        f"Initializer for variable {scope} is from inside a control-flow construct, such as a loop or "
                        "conditional. Give a function that makes the initial value instead."
                    )
                element_type = value.dtype.base_dtype
                if is_resource:
                    self._storage = ResourceStorage(create_resource(scope, static_shape, element_type), element_type)
                else:
                    self._storage = ReferenceStorage(create_reference(scope, static_shape, element_type))
            self._initial_value: Tensor | None = value
            if is_resource:
                with graph.name_scope("IsInitialized"):
                    self._storage.is_initialized(None)
            guarded = without_uninitialized_variables(scope.rstrip("/"), value, _find_variable)
            self._initializer = self._storage.initialize(guarded, validate_shape)
            self._static_shape = static_shape
            if caching_device is not None:
                with device(caching_device):
                    self._snapshot = self._storage.read("read" if not is_resource else None)
                self._is_cached = True
            else:
                self._snapshot = self._storage.read_beside("read")

    def _checked_shape(self, scope: str, value: Tensor, validate_shape: bool, shape: Any) -> TensorShape:
        if not validate_shape:
            return unknown_shape()
        if shape is not None:
            return TensorShape(shape)
        if not value.shape.is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {value} (variable {scope})")
        return value.shape

    # Identity and properties

    @property
    def name(self) -> str:
        """The name of the variable, with ":0"."""
        return self._storage.tensor.name

    @property
    def _shared_name(self) -> str:
        return self._storage.tensor.op.name

    @property
    def op(self) -> Operation:
        """The operation that holds the variable."""
        return self._storage.tensor.op

    @property
    def graph(self) -> Graph:
        """The graph of the variable."""
        return self._storage.tensor.graph

    @property
    def device(self) -> str:
        """The requested device."""
        return self._storage.tensor.device

    @property
    def dtype(self) -> DType:
        """The element type; a reference type unless the variable is held by handle."""
        return self._storage.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._static_shape

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self._static_shape

    def set_shape(self, shape: Any) -> None:
        """Adds what the caller knows to the static shape.

        Raises:
          ValueError: it contradicts what is known.
        """
        self._static_shape = self._static_shape.merge_with(shape)
        for tensor in (self._snapshot, *([] if self._storage.is_resource else [self._storage.tensor])):
            tensor.set_shape(shape)

    @property
    def trainable(self) -> bool:
        """Whether optimizers train it by default."""
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """As given."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """As given."""
        return self._aggregation

    @property
    def constraint(self) -> Any:
        """The function that optimizers apply to the value after each update, or None."""
        return self._constraint

    @property
    def handle(self) -> Tensor:
        """The handle of a variable that is held by one.

        Raises:
          AttributeError: the variable is held by reference.
        """
        if not self._storage.is_resource:
            raise AttributeError(f"The variable {self.name} is held by reference: it has no handle.")
        return self._storage.tensor

    @property
    def initializer(self) -> Operation:
        """The operation that assigns the initial value."""
        return self._initializer

    @property
    def initial_value(self) -> Tensor | None:
        """The tensor that the initializer assigns."""
        return self._initial_value

    # Reading

    def value(self) -> Tensor:
        """The value. Read once per step for a variable held by reference, at each use for one held by handle."""
        return self._storage.read(None) if self._storage.is_resource and not self._is_cached else self._snapshot

    def read_value(self) -> Tensor:
        """The value when this new op runs; control dependencies decide when that is."""
        if not self._storage.is_resource:
            return self._storage.read("read")
        with name_scope("Read"):
            value = self._storage.read(None)
        return apply_op("Identity", None, input=value)

    def eval(self, session: Any = None) -> Any:
        """The current value, computed by `session` or the default session."""
        return self._as_graph_element().eval(session=session)

    def initialized_value(self) -> Tensor:
        """The value if the variable is initialized, else its initial value."""
        from dtf.build.ops.control_flow import cond

        with init_scope():
            return cond(is_variable_initialized(self), self.read_value, lambda: self._initial_value)

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A scalar bool."""
        return self._storage.is_initialized(name)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The rows at `indices`."""
        return self._storage.sparse_read(indices, name)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements or slices at `indices`."""
        return self._storage.gather_nd(indices, name)

    def _ref(self) -> Tensor:
        return self._storage.tensor

    def _as_graph_element(self) -> Tensor:
        return self._snapshot if self._storage.is_resource else self._storage.tensor

    # Changing

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Sets the value. Gives the variable after the change, or with `read_value=False` the operation."""
        return self._changed(self._storage.assign("Assign", self._operand(value), use_locking, name), read_value)

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`. Gives the variable after the change, or with `read_value=False` the operation."""
        return self._changed(self._storage.assign("AssignAdd", self._operand(delta), use_locking, name), read_value)

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`. Gives the variable after the change, or with `read_value=False` the operation."""
        return self._changed(self._storage.assign("AssignSub", self._operand(delta), use_locking, name), read_value)

    def _changed(self, change: Any, read_value: bool = True) -> Any:
        """What a change of the variable returns: a reference, or the variable after the operation `change`."""
        if not self._storage.is_resource:
            return change if read_value else change.op
        if not read_value:
            return change
        return ChangedVariable(self, change)

    def _operand(self, value: Any) -> Any:
        return convert_to_tensor(value, self.dtype.base_dtype) if self._storage.is_resource else value

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds to the rows that `sparse_delta` names."""
        return self._scatter("ScatterAdd", sparse_delta, use_locking, name)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts from the rows that `sparse_delta` names."""
        return self._scatter("ScatterSub", sparse_delta, use_locking, name)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies the rows that `sparse_delta` names."""
        return self._scatter("ScatterMul", sparse_delta, use_locking, name)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides the rows that `sparse_delta` names."""
        return self._scatter("ScatterDiv", sparse_delta, use_locking, name)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Keeps the smaller of each row and its row in `sparse_delta`."""
        return self._scatter("ScatterMin", sparse_delta, use_locking, name)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Keeps the larger of each row and its row in `sparse_delta`."""
        return self._scatter("ScatterMax", sparse_delta, use_locking, name)

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Sets the rows that `sparse_delta` names."""
        return self._scatter("ScatterUpdate", sparse_delta, use_locking, name)

    def _scatter(self, op_type: str, slices: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        if not isinstance(slices, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {slices}")
        return self._changed(self._storage.scatter(op_type, slices.indices, slices.values, use_locking, name))

    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Adds `updates` to the elements or slices at `indices`."""
        return self._changed(self._storage.scatter("ScatterNdAdd", indices, updates, True, name))

    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Subtracts `updates` from the elements or slices at `indices`."""
        return self._changed(self._storage.scatter("ScatterNdSub", indices, updates, True, name))

    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Sets the elements or slices at `indices`."""
        return self._changed(self._storage.scatter("ScatterNdUpdate", indices, updates, True, name))

    def count_up_to(self, limit: int) -> Tensor:
        """Adds one and gives the value before that; raises OutOfRangeError when it runs at `limit`."""
        return self._storage.count_up_to(limit)

    def load(self, value: TensorLike, session: Any = None) -> None:
        """Sets the value from numpy, without new operations, in `session` or the default session.

        Raises:
          ValueError: there is no session.
        """
        from dtf.build.default_graph import get_default_session

        session = session or get_default_session()
        if session is None:
            raise ValueError("Either session argument should be provided or default session should be established")
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    # Parts of a partitioned variable

    def _set_save_slice_info(self, save_slice_info: Any) -> None:
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self) -> Any:
        return self._save_slice_info

    # The wire form

    def to_proto(self, export_scope: str | None = None) -> variable_pb2.VariableDef | None:
        """The VariableDef; None if the variable is outside `export_scope`."""
        if export_scope and not self.name.startswith(export_scope):
            return None
        message = variable_pb2.VariableDef(
            variable_name=without_scope(self.name, export_scope),
            initializer_name=without_scope(self._initializer.name, export_scope),
            snapshot_name=without_scope(self._snapshot.name, export_scope),
            trainable=self._trainable,
            is_resource=self._storage.is_resource,
            synchronization=f"VARIABLE_SYNCHRONIZATION_{self._synchronization.name}",
            aggregation=f"VARIABLE_AGGREGATION_{self._aggregation.name}",
        )
        if self._initial_value is not None:
            message.initial_value_name = without_scope(self._initial_value.name, export_scope)
        if self._save_slice_info is not None:
            info = self._save_slice_info.to_proto(export_scope)
            if info is not None:
                message.save_slice_info_def.CopyFrom(info)
        return message

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """The variable that `variable_def` describes and the default graph has."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    def _init_from_proto(self, message: Any, import_scope: str | None) -> None:
        graph = get_default_graph()

        def element(name: str) -> Any:
            return graph.as_graph_element(with_scope(name, import_scope))

        tensor = element(message.variable_name)
        self._initializer = element(message.initializer_name)
        self._snapshot = element(message.snapshot_name)
        self._initial_value = element(message.initial_value_name) if message.initial_value_name else None
        self._trainable = message.trainable
        if message.is_resource:
            self._storage = ResourceStorage(tensor, tensor.op.get_attr("dtype"))
        else:
            self._storage = ReferenceStorage(tensor)
        self._static_shape = TensorShape(tensor.op.get_attr("shape"))
        self._synchronization = VariableSynchronization(message.synchronization)
        self._aggregation = VariableAggregation(message.aggregation)
        if message.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo(
                save_slice_info_def=message.save_slice_info_def, import_scope=import_scope
            )

    # Variables are dictionary keys by identity, as tensors are.
    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        raise TypeError("'Variable' object is not iterable.")

    def __bool__(self) -> bool:
        raise TypeError("Using a `tf.Variable` as a Python `bool` is not allowed; compare with None, or use tf.cond.")

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

operators.install(Variable)


class ChangedVariable(Variable):
    """A variable held by handle after one change: what its `assign` functions return.

    Reads and further changes wait for the operation `change`:

        v.assign_add(1.0).assign_add(2.0)  # the second addition waits for the first
        v.assign_add(1.0).read_value()
    """

    def __init__(self, variable: Variable, change: Operation) -> None:
        self.__dict__.update(variable.__dict__)
        self._change = change
        with control_dependencies([change]):
            self._snapshot = self._storage.read(None)

    @property
    def name(self) -> str:
        """The name of the operation that changes the variable."""
        return self._change.name

    @property
    def op(self) -> Operation:
        """The operation that changes the variable."""
        return self._change

    def value(self) -> Tensor:
        """The value after the change."""
        return self._snapshot


def _after_change(name: str) -> Callable[..., Any]:
    method = getattr(Variable, name)

    def ordered(self: ChangedVariable, *args: Any, **kwargs: Any) -> Any:
        with control_dependencies([self._change]):
            return method(self, *args, **kwargs)

    ordered.__name__, ordered.__doc__ = name, method.__doc__
    return ordered


for _name in (
    "read_value sparse_read gather_nd assign assign_add assign_sub scatter_add scatter_sub scatter_mul scatter_div "
    "scatter_min scatter_max scatter_update scatter_nd_add scatter_nd_sub scatter_nd_update count_up_to"
).split():
    setattr(ChangedVariable, _name, _after_change(_name))


def _to_tensor(variable: Variable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtype.is_compatible_with(variable.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type "
            f"'{variable.dtype.name}' ({variable.name})"
        )
    if as_ref:
        return variable._ref()
    return variable.value()

register_tensor_conversion_function(Variable, _to_tensor, 90)


def is_variable_initialized(variable: Any) -> Tensor:
    """A scalar bool: whether `variable` has a value."""
    if isinstance(variable, Variable):
        return variable.is_initialized()
    return apply_op("IsVariableInitialized", None, ref=variable)


def _find_variable(tensor: Tensor) -> Variable | None:
    graph = tensor.graph
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in graph.get_collection(key):
            if isinstance(variable, Variable) and variable._ref() is tensor:
                return variable
    return None


_PARAMETERS = list(inspect.signature(Variable.__init__).parameters.values())[1:]
_ARGUMENTS = [each.name for each in _PARAMETERS]
_DEFAULTS = {each.name: each.default for each in _PARAMETERS}
