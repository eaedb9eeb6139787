"""Variables shared by name: `tf.get_variable` and `tf.variable_scope`.

Owns the store of variables of a graph, the scopes with their defaults (initializer, regularizer, partitioner, ...),
and the rules of reuse. A variable scope opens a name scope too; entered a second time its variables keep their
names, while its ops get a new name scope.

    with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", [784, 10])    # "layer/w"
"""

from __future__ import annotations

import enum
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dtf.build.constant import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import (
    Graph,
    GraphKeys,
    add_to_collection,
    colocate_with,
    get_collection,
    get_default_graph,
    graph_of,
    init_scope,
    name_scope,
)
from dtf.build.partitioned import PartitionedVariable
from dtf.build.variables import SaveSliceInfo, Variable, VariableAggregation, VariableSynchronization
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "AUTO_REUSE", "VariableScope", "get_local_variable", "get_variable", "get_variable_scope", "no_regularizer",
    "variable_op_scope", "variable_scope",
]  # fmt: skip


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


#: Take the variable if it exists, else make it.
AUTO_REUSE = _ReuseMode.AUTO_REUSE

_STATE_KEY = ("__variable_store_and_scopes",)


def get_variable(
    name: str,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """The variable `name` of the current variable scope, made or found as the scope's `reuse` says.

    Args:
      name: its name inside the scope.
      shape: its shape; not given if `initializer` is a value.
      dtype: its element type; float32, or what the scope says, by default.
      initializer: a function of shape and dtype, or a value; Glorot's uniform one (zeros for integers) by default.
      regularizer: a function from the variable to a loss, which is added to REGULARIZATION_LOSSES.
      trainable: whether optimizers train it by default; yes unless `synchronization` is ON_READ.
      collections: the collections to add it to; GLOBAL_VARIABLES by default.
      caching_device: where to keep a copy of the value during a step.
      partitioner: a function from shape and dtype to the number of parts per dimension.
      validate_shape: whether the shape must be known.
      use_resource: hold the value by handle.
      custom_getter: a function called instead, with the true getter as its first argument.
      constraint: a function that optimizers apply to the value after each update.

    Returns:
      A Variable, or a PartitionedVariable.

    Raises:
      ValueError: the variable exists and reuse is not set, does not exist and reuse is set, or is of another shape
        or dtype; or no shape is known for a new one.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/get_variable
    """
    return get_variable_scope().get_variable(
        _state().store,
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """`get_variable`, for a variable of this task alone: LOCAL_VARIABLES, not trainable, not saved."""
    collections = list(kwargs.pop("collections", None) or [])
    if GraphKeys.LOCAL_VARIABLES not in collections:
        collections.append(GraphKeys.LOCAL_VARIABLES)
    kwargs.update(collections=collections, trainable=False)
    return get_variable(name, *args, **kwargs)


@dataclass
class VariableScope:
    """The defaults of `get_variable` in one scope.

    Attributes:
      reuse: None or False, True, or AUTO_REUSE.
      name: the prefix of the variables' names.
      original_name_scope: the name scope that was opened with it, with a final slash.
    """

    reuse: Any
    name: str = ""
    initializer: Any = None
    regularizer: Any = None
    caching_device: Any = None
    partitioner: Any = None
    custom_getter: Any = None
    name_scope: str = ""
    dtype: Any = dtypes.float32
    use_resource: bool | None = None
    constraint: Any = None

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened with it, with a final slash; "" at the root."""
        return self.name_scope

    def reuse_variables(self) -> None:
        """From now on, variables must exist."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets the default caching device."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the custom getter."""
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: DTypeLike) -> None:
        """Sets the default dtype."""
        self.dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: bool) -> None:
        """Sets whether values are held by handle."""
        self.use_resource = use_resource

    def get_collection(self, name: str) -> list[Any]:
        """The entries of a collection that belong to this scope."""
        return get_collection(name, self.name + "/" if self.name else "")

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, store: VariableStore, name: str, **given: Any) -> Any:
        """`tf.get_variable` with this scope's name and defaults; `given` has the same arguments."""
        dtype, initializer = given.get("dtype"), given.get("initializer")
        if dtype is not None and initializer is not None and not callable(initializer):
            found = convert_to_tensor(initializer).dtype.base_dtype
            if found != as_dtype(dtype).base_dtype:
                raise ValueError(
                    f"Initializer type '{found.name}' and explicit dtype '{as_dtype(dtype).name}' don't match."
                )
        for default in (
            "initializer", "regularizer", "caching_device", "partitioner", "custom_getter", "dtype", "use_resource",
            "constraint", "reuse",
        ):  # fmt: skip
            if given.get(default) is None:
                given[default] = getattr(self, default)
        custom_getter = given.pop("custom_getter")
        full_name = f"{self.name}/{name}" if self.name else name
        # Variables are named by their scope alone, wherever in the name scopes they are made.
        with name_scope(None):
            if custom_getter is None:
                return store.get_variable(full_name, **given)
            return custom_getter(store.get_variable, full_name, **given)


class VariableStore:
    """The variables of one graph that `get_variable` has made, by full name."""

    def __init__(self) -> None:
        self._variables: dict[str, Variable] = {}
        self._partitioned: dict[str, PartitionedVariable] = {}

    def get_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Any = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        custom_getter: Any = None,
    ) -> Any:
        """The true getter, which custom getters call; see `tf.get_variable`."""
        make = functools.partial(
            Variable,
            trainable=synchronization is not VariableSynchronization.ON_READ if trainable is None else trainable,
            collections=collections,
            caching_device=caching_device,
            validate_shape=validate_shape,
            constraint=constraint,
            use_resource=use_resource,
            synchronization=synchronization,
            aggregation=aggregation,
        )
        request = _Request(
            name, None if shape is None else TensorShape(shape), as_dtype(dtype), initializer, regularizer, reuse,
            validate_shape, make,
        )  # fmt: skip
        if partitioner is not None and (shape is None or TensorShape(shape).ndims != 0):
            return self._get_partitioned(request, partitioner)
        if f"{name}/part_0" in self._variables:
            raise ValueError(
                f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return self._get_single(request)

    def _get_single(self, request: _Request) -> Variable:
        found = self._variables.get(request.name)
        if found is not None:
            request.check_found(found)
            return found
        if request.reuse is True:
            raise ValueError(
                f"Variable {request.name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=tf.AUTO_REUSE in VarScope?"
            )
        initial_value, dtype = request.initial_value()
        variable = request.make(initial_value=initial_value, name=request.name, dtype=dtype)
        self._variables[request.name] = variable
        if request.regularizer is not None:
            self._regularize(variable, request)
        return variable

    def _regularize(self, variable: Any, request: _Request) -> None:
        with colocate_with(variable), name_scope(request.name + "/Regularizer/"), init_scope():
            loss = request.regularizer(variable)
        if loss is not None:
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def _get_partitioned(self, request: _Request, partitioner: Any) -> PartitionedVariable:
        name = request.name
        if name in self._variables:
            raise ValueError(
                f"A partitioner was provided, but an unpartitioned version of the variable was found: {name}."
            )
        if not callable(partitioner):
            raise ValueError(f"The partitioner of {name} is no function of a shape and a dtype: {partitioner!r}")
        found = self._partitioned.get(name)
        if found is not None:
            request.check_found(found)
            partitions = _checked_partitions(name, partitioner(shape=found.shape, dtype=found.dtype), found.shape)
            if partitions != found._get_partitions():
                raise ValueError(
                    f"Trying to reuse partitioned variable {name}, but its partitioner gives {partitions}, and it has "
                    f"{found._get_partitions()}."
                )
            return found
        if request.reuse is True:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
            )
        shape = request.full_shape()
        partitions = _checked_partitions(name, partitioner(shape=shape, dtype=request.dtype), shape)
        axis = next((axis for axis, count in enumerate(partitions) if count > 1), 0)
        sizes = [int(size) for size in shape.as_list() if size is not None]
        parts = []
        for index, (offset, length) in enumerate(_slices(sizes[axis], partitions[axis])):
            offsets = [0] * len(sizes)
            offsets[axis] = offset
            part_shape = list(sizes)
            part_shape[axis] = length
            part = self._get_single(request.part(index, part_shape, offsets, sizes))
            part._set_save_slice_info(SaveSliceInfo(name, sizes, offsets, part_shape))
            parts.append(part)
        whole = PartitionedVariable(name, shape, request.dtype, parts, partitions)
        self._partitioned[name] = whole
        return whole


@dataclass(frozen=True)
class _Request:
    """One call of the getter, for a variable or for a part of one."""

    name: str
    shape: TensorShape | None
    dtype: DType
    initializer: Any
    regularizer: Any
    reuse: Any
    validate_shape: bool
    make: Callable[..., Variable]
    partition_info: Any = None

    def check_found(self, found: Any) -> None:
        """Raises ValueError unless the variable that exists may be taken."""
        if self.reuse is False:
            raise ValueError(
                f"Variable {self.name} already exists, disallowed. "
                "Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?"
            )
        if self.shape is not None and not self.shape.is_compatible_with(found.shape):
            raise ValueError(
                f"Trying to share variable {self.name}, but specified shape {self.shape} and found shape {found.shape}."
            )
        if not self.dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {self.name}, but specified dtype {self.dtype.name} and found dtype "
                f"{found.dtype.name}."
            )

    def full_shape(self) -> TensorShape:
        """The shape of the whole, which has to be known."""
        shape = self.shape
        if self.initializer is not None and not callable(self.initializer):
            shape = convert_to_tensor(self.initializer).shape
        if shape is None or not shape.is_fully_defined():
            raise ValueError(
                f"Shape of a new partitioned variable ({self.name}) must be fully defined, but instead was {shape}."
            )
        return shape

    def part(self, index: int, shape: list[int], offset: list[int], full_shape: list[int]) -> _Request:
        """The request for one part of this variable."""
        from dtf.build.initializers import PartitionInfo

        initializer = self.initializer
        if initializer is not None and not callable(initializer):
            where = tuple(slice(start, start + length) for start, length in zip(offset, shape, strict=True))
            value = constant_value(convert_to_tensor(initializer))
            initializer = convert_to_tensor(initializer)[where] if value is None else value[where]
        return replace(
            self,
            name=f"{self.name}/part_{index}",
            shape=TensorShape(shape),
            initializer=initializer,
            partition_info=PartitionInfo(full_shape, offset),
        )

    def initial_value(self) -> tuple[Any, DType | None]:
        """What the variable starts with (a value, or a function that makes one), and the dtype to convert it to."""
        initializer = self.initializer
        if initializer is not None and not callable(initializer):
            if self.shape is not None and self.partition_info is None:
                raise ValueError("If initializer is a constant, do not specify shape.")
            return initializer, None
        if initializer is None:
            initializer = self._default_initializer()
        if inspect.isclass(initializer):
            initializer = initializer()
        shape = self.shape
        if shape is None and not _required_arguments(initializer):
            return initializer, self.dtype.base_dtype
        if shape is None or (self.validate_shape and not shape.is_fully_defined()):
            raise ValueError(
                f"Shape of a new variable ({self.name}) must be fully defined, but instead was "
                f"{'<unknown>' if shape is None else shape}."
            )
        sizes = shape.as_list()
        arguments: dict[str, Any] = {"dtype": self.dtype.base_dtype}
        if self.partition_info is not None and _takes(initializer, "partition_info"):
            arguments["partition_info"] = self.partition_info
        return lambda: initializer(sizes, **arguments), self.dtype.base_dtype

    def _default_initializer(self) -> Any:
        from dtf.build.initializers import glorot_uniform_initializer, zeros_initializer

        if self.dtype.is_floating:
            return glorot_uniform_initializer()
        if self.dtype.is_integer or self.dtype.is_bool:
            return zeros_initializer()
        raise ValueError(f"An initializer for variable {self.name} of {self.dtype.base_dtype} is required")


def _takes(function: Callable[..., Any], argument: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _required_arguments(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _checked_partitions(name: str, partitions: Any, shape: TensorShape) -> list[int]:
    if not isinstance(partitions, Sequence):
        raise ValueError(f"Partitioner must return a sequence, but saw: {partitions}")
    partitions = [int(count) for count in partitions]
    if len(partitions) != shape.ndims:
        raise ValueError(
            f"Partitioner returned a partition list that does not match the Variable's rank: {partitions} vs. {shape}"
        )
    if any(count < 1 for count in partitions):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {partitions}")
    if sum(count > 1 for count in partitions) > 1:
        raise ValueError(f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {partitions}")
    if any(count > max(size or 1, 1) for count, size in zip(partitions, shape.as_list(), strict=True)):
        raise ValueError(f"{name} of shape {shape} is too small for the parts that its partitioner gives: {partitions}")
    return partitions


def _slices(size: int, parts: int) -> Iterator[tuple[int, int]]:
    """(offset, length) of each part; the first ones are longer where the size does not divide evenly."""
    offset = 0
    for index in range(parts):
        length = size // parts + (index < size % parts)
        yield offset, length
        offset += length


# Scopes


@dataclass
class _GraphState:
    """What a graph knows of variable scopes: its variables, and for each thread the open scope."""

    store: VariableStore = field(default_factory=VariableStore)
    of_thread: _ScopesOfThread = field(default_factory=lambda: _ScopesOfThread())

    @property
    def current(self) -> VariableScope:
        """This thread's innermost scope."""
        return self.of_thread.current

    @current.setter
    def current(self, scope: VariableScope) -> None:
        self.of_thread.current = scope

    @property
    def opened(self) -> dict[str, int]:
        """Scope name -> how often this thread opened it, for unique names of scopes with a default name."""
        return self.of_thread.opened

    @opened.setter
    def opened(self, counts: dict[str, int]) -> None:
        self.of_thread.opened = counts


class _ScopesOfThread(threading.local):
    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.opened: dict[str, int] = {}


def _state(graph: Graph | None = None) -> _GraphState:
    graph = graph or get_default_graph()
    entries = graph.get_collection_ref(_STATE_KEY)
    if not entries:
        with graph._lock:
            if not entries:
                entries.append(_GraphState())
    return entries[0]


def get_variable_scope() -> VariableScope:
    """The current variable scope.

    Returns:
      The VariableScope of this thread and the default graph.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/get_variable_scope
    """
    return _state().current


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """A block whose variables are named "<scope>/..." and share defaults.

    Args:
      name_or_scope: a name, put inside the current scope; or a VariableScope, entered again as it is.
      default_name: the name, made unique, if `name_or_scope` is None.
      values: tensors that the enclosing function got; they must be of one graph.
      initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource, constraint: defaults
        of the block; those of the scope around it where None.
      reuse: True, AUTO_REUSE, or None to inherit; what is set around holds inside, too.
      auxiliary_name_scope: whether to open a name scope as well.

    Returns:
      An iterator that gives the VariableScope to the block.

    Raises:
      ValueError: no name is given, or `reuse` with a default name.
      TypeError: an argument is of the wrong type.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/variable_scope
    """
    if default_name is None and name_or_scope is None:
        raise TypeError("If default_name is None then name_or_scope is required")
    if name_or_scope is not None and not isinstance(name_or_scope, str | VariableScope):
        raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
    if reuse not in (None, False, True, AUTO_REUSE):
        raise ValueError("The reuse parameter must be True or False or None.")
    if reuse and name_or_scope is None:
        raise ValueError("reuse=True cannot be used without a name_or_scope")
    with graph_of(values or []).as_default() as graph:
        state = _state(graph)
        old = state.current
        if name_or_scope is None:
            ops_name = str(default_name)
            name_or_scope = _unique_name(state, ops_name)
        elif isinstance(name_or_scope, VariableScope):
            ops_name = name_or_scope.name.split("/")[-1]
        else:
            ops_name = name_or_scope
        with _auxiliary_scope(graph, ops_name, auxiliary_name_scope) as opened:
            new = _derived(old, name_or_scope, opened, reuse)
            overrides = {
                "initializer": initializer,
                "regularizer": regularizer,
                "caching_device": caching_device,
                "partitioner": partitioner,
                "dtype": None if dtype is None else as_dtype(dtype),
                "use_resource": use_resource,
                "constraint": constraint,
            }
            new = replace(new, **{key: value for key, value in overrides.items() if value is not None})
            if custom_getter is not None:
                new.custom_getter = _composed(custom_getter, new.custom_getter)
            with _opened(state, new, restore_counts=isinstance(name_or_scope, VariableScope)):
                yield new


def variable_op_scope(values: TensorLike, name_or_scope: Any, default_name: str | None = None, **kwargs: Any) -> Any:
    """The old form of `variable_scope`, with other places of the first arguments."""
    return variable_scope(name_or_scope, default_name, values, **kwargs)


def no_regularizer(_: Any) -> None:
    """A regularizer that regularizes nothing, to switch off that of the scope around."""
    return None


@contextmanager
def _auxiliary_scope(graph: Graph, name: str, wanted: bool) -> Iterator[str]:
    if not wanted:
        scope = graph.get_name_scope()
        yield scope + "/" if scope else ""
        return
    if not name:
        # The root scope, entered again: ops stay in the name scope that they are in.
        scope = graph.get_name_scope()
        yield scope + "/" if scope else ""
        return
    with graph.name_scope(name) as opened:
        yield opened


def _derived(old: VariableScope, name_or_scope: str | VariableScope, opened: str, reuse: Any) -> VariableScope:
    if isinstance(name_or_scope, VariableScope):
        return replace(name_or_scope, reuse=reuse or name_or_scope.reuse)
    name = f"{old.name}/{name_or_scope}" if old.name else name_or_scope
    return replace(old, name=name, name_scope=opened, reuse=reuse or old.reuse)


def _unique_name(state: _GraphState, prefix: str) -> str:
    base = f"{state.current.name}/{prefix}" if state.current.name else prefix
    if not state.opened.get(base):
        return prefix
    index = 1
    while state.opened.get(f"{base}_{index}"):
        index += 1
    return f"{prefix}_{index}"


@contextmanager
def _opened(state: _GraphState, scope: VariableScope, restore_counts: bool) -> Iterator[None]:
    old, counts = state.current, dict(state.opened)
    state.opened[scope.name] = state.opened.get(scope.name, 0) + 1
    state.current = scope
    try:
        yield
    finally:
        state.current = old
        if restore_counts:
            state.opened = counts
        else:
            # Names inside this scope start anew when it is entered again.
            for name in state.opened:
                if not scope.name or name.startswith(scope.name + "/"):
                    state.opened[name] = 0


def _composed(getter: Callable[..., Any], outer: Callable[..., Any] | None) -> Callable[..., Any]:
    if outer is None:
        return getter
    return lambda true_getter, *args, **kwargs: getter(functools.partial(outer, true_getter), *args, **kwargs)
