"""Variables shared by name: `tf.get_variable` and `tf.variable_scope`.

Owns the scopes with their defaults (initializer, regularizer, partitioner, ...) and the rules of reuse.
`variable_store` makes the variables. A variable scope also opens a name scope. When it is entered again, its
variables keep their names, and its ops get a new name scope.

    with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", [784, 10])    # "layer/w"
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_collection, get_default_graph, graph_of, name_scope
from dtf.build.graph import Graph, GraphKeys
from dtf.build.scope_counts import ScopeCounts
from dtf.build.variable_store import AUTO_REUSE, VariableStore
from dtf.build.variables import VariableAggregation, VariableSynchronization
from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "VariableScope",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "op_scope",
    "variable_creator_scope",
    "variable_op_scope",
    "variable_scope",
]

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
      dtype: its element type; by default the scope's dtype, or float32.
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
      ValueError: the variable exists and reuse is not set; it does not exist and reuse is set; it has another shape or
        dtype; or a new variable has no known shape.

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
        """`tf.get_variable` with this scope's name and defaults; arguments in `given` are the same."""
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
            if not callable(custom_getter):
                raise ValueError(f"The argument custom_getter must be callable, not {custom_getter!r}.")
            return custom_getter(store.get_variable, full_name, **given)


# Scopes


@dataclass
class _GraphState:
    """The variable scopes of a graph: its variables, and the open scope of each thread."""

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
    def opened(self) -> ScopeCounts:
        """How often this thread opened each scope, for unique names of scopes with a default name."""
        return self.of_thread.opened


class _ScopesOfThread(threading.local):
    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.opened = ScopeCounts()


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
      name_or_scope: a name, put inside the current scope; or a VariableScope, re-entered unchanged.
      default_name: the name, made unique, if `name_or_scope` is None.
      values: tensors that the enclosing function got; they must be of one graph.
      initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource, constraint: defaults
        of the block; None inherits from the enclosing scope.
      reuse: True, AUTO_REUSE, or None to inherit; True of an enclosing scope also holds inside.
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


@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """A block whose variables are made by `variable_creator(next_creator, **kwargs)`.

    Args:
      variable_creator: takes the next creator, which an inner function calls to go on, and the keyword arguments of
        tf.Variable; returns a variable.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/variable_creator_scope
    """
    creators = get_default_graph()._variable_creators
    creators.append(variable_creator)
    try:
        yield
    finally:
        creators.remove(variable_creator)


def variable_op_scope(values: TensorLike, name_or_scope: Any, default_name: str | None = None, **kwargs: Any) -> Any:
    """The old form of `variable_scope`, with other places of the first arguments."""
    return variable_scope(name_or_scope, default_name, values, **kwargs)


def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Any:
    """The old form of `name_scope`, with another order of arguments."""
    return name_scope(name, default_name, values)


def no_regularizer(_: Any) -> None:
    """A regularizer without effect; overrides the enclosing scope's regularizer."""
    return None


@contextmanager
def _auxiliary_scope(graph: Graph, name: str, wanted: bool) -> Iterator[str]:
    if not wanted:
        scope = graph.get_name_scope()
        yield scope + "/" if scope else ""
        return
    if not name:
        # The root scope, re-entered: ops stay in their current name scope.
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
    outer = f"{state.current.name}/" if state.current.name else ""
    return state.opened.unique(f"{outer}{prefix}").removeprefix(outer)


@contextmanager
def _opened(state: _GraphState, scope: VariableScope, restore_counts: bool) -> Iterator[None]:
    old, opened = state.current, state.opened
    mark = opened.mark() if restore_counts else None
    opened.open(scope.name)
    state.current = scope
    try:
        yield
    finally:
        state.current = old
        if mark is not None:
            opened.restore(mark)
        else:
            # Names inside this scope are counted from the start when it is re-entered.
            opened.close_inside(scope.name)


def _composed(getter: Callable[..., Any], outer: Callable[..., Any] | None) -> Callable[..., Any]:
    if outer is None:
        return getter
    return lambda true_getter, *args, **kwargs: getter(functools.partial(outer, true_getter), *args, **kwargs)
