"""Resources: what outlives a step. Variables, and the containers that share them between sessions by name.

Owns `Variable` (an array with a lock and copy-on-write) and `ResourceManager` (container -> kind, name -> object).
Queues and other kinds live in modules of their own and are kept here by their class.

Copy-on-write. A value that a variable has handed out must never change under its reader (another op, a socket that
still sends it, a fetch), and yet an update should not copy a large table. CPython knows who else holds an array: its
reference count. So `Variable.writable()` gives out the live buffer when the variable is the only holder, and a
private copy when it is not. Views and memoryviews hold a reference to the array whose memory they show, so they count
as well; an array that is itself a view is never written to, because the owner of its memory is unknown here.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from dtf.run.devices.backends import Storage
from dtf.run.interfaces import Value
from dtf.run.value_types import Array, Shape
from dtf.wire import errors
from dtf.wire.codec import ResourceHandle
from dtf.wire.dtypes import DType
from dtf.wire.measures import measures

__all__ = [
    "DEFAULT_CONTAINER", "ResourceHandle", "ResourceManager", "UpdateLock", "Variable", "Watcher", "checked_kind",
    "handle_of", "shown_kind", "unaliased",
]  # fmt: skip

DEFAULT_CONTAINER = "localhost"

_SETTLE_S = 0.05
_SETTLE_LOOK_S = 0.0002

_Resource = TypeVar("_Resource")
_Result = TypeVar("_Result")


class _BinaryOperation(Protocol):
    def __call__(self, left: Array, right: Array, /, out: Array | None = None) -> Array: ...


class Watcher(Protocol):
    """Sees the changes of a variable before they happen; the variable's lock is held. It keeps no reference to the
    array of `before_update`, which is modified next.

    Attributes:
      is_young: its maker has read the value and drops it at once: the next update waits for that, since it would copy
        the whole value otherwise. The variable sets it to False then.
    """

    is_young: bool

    def before_update(self, array: Array, rows: np.ndarray | None) -> None:
        """The value changes: the rows along its first dimension that `rows` names, or (None) any part of it."""

    def before_release(self, array: Array) -> None:
        """The variable gives up this array, which nobody modifies from now on."""


class Variable:
    """A mutable tensor. `lock` (reentrant) guards the array; hold it from `writable()` until the last write::

        with variable.lock:
            array = variable.writable()
            array[rows] -= updates

    Attributes:
      name: what errors call it: the name of the node that made it.
      dtype: its base DType.
      declared_shape: what the node that made it says of its values (None: unknown, and for each unknown dimension).
      lock: a threading.RLock.
      rows_touched: how many rows sparse updates have changed so far, each as often as it was changed.
      storage: the device whose memory its value is in; None: the host's. Its values are arrays of that backend then.
    """

    __slots__ = (
        "__weakref__", "_array", "_watchers", "declared_shape", "dtype", "lock", "name", "rows_touched", "storage",
    )  # fmt: skip

    def __init__(
        self, name: str, dtype: DType, shape: tuple[int | None, ...] | None = None, storage: Storage | None = None
    ) -> None:
        """An uninitialised variable. `shape` is the declared one: None for unknown, and None for each unknown
        dimension.
        """
        self.name = name
        self.dtype = dtype
        self.storage = storage
        self.lock = threading.RLock()
        self.declared_shape = shape
        self.rows_touched = 0
        self._array: Any = None
        self._watchers: tuple[Watcher, ...] = ()

    def __repr__(self) -> str:
        state = "" if self._array is not None else ", uninitialized"
        return f"Variable({self.name!r}, {self.dtype.name}, shape={self.shape}{state})"

    @property
    def is_initialized(self) -> bool:
        return self._array is not None

    @property
    def nbytes(self) -> int:
        """The size of the value; 0 without one."""
        return int(getattr(self._array, "nbytes", 0))

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The shape of the value, or the declared shape without a value (None: unknown)."""
        array = self._array
        return self.declared_shape if array is None else array.shape

    def read(self) -> Array:
        """The current array (or numpy scalar). It is a snapshot: it never changes, and must not be changed.

        Raises:
          FailedPreconditionError: the variable has not been initialised.
        """
        with self.lock:
            array: Array | None = self._array
        if array is None:
            raise errors.FailedPreconditionError.of(f"Attempting to use uninitialized value {self.name}")
        return array

    def look(self, function: Callable[[Array], _Result]) -> _Result:
        """function(value), while nobody updates the value in place: it must not keep it, nor return a view of it. An
        update that finds the value in use by a `read` has to copy all of it; rows of a large table are looked at.

        Raises:
          FailedPreconditionError: the variable has not been initialised.
        """
        with self.lock:
            if self._array is None:
                self.read()
            return function(self._array)

    def assign(self, array: Array, check: Callable[[Shape | None, tuple[int, ...]], None] | None = None) -> None:
        """Replaces the value. The array is shared with the caller, not copied: from now on neither may change it
        in place. `check(shape, array's shape)` raises where an array of another shape than so far must not come.
        """
        with self.lock:
            if check is not None and (type(self._array) is not np.ndarray or self._array.shape != array.shape):
                check(self.shape, array.shape)
            if self._watchers:
                self._announce(True, None)
            self._array = array

    def clear(self) -> None:
        """Makes the variable uninitialised again."""
        with self.lock:
            if self._watchers:
                self._announce(True, None)
            self._array = None

    def writable(self, rows: np.ndarray | None = None) -> np.ndarray:
        """The current value as an array that may be modified in place while the lock is held.

        It is the live buffer when nobody else can see it, else a copy that becomes the live buffer. Do not keep it.

        Args:
          rows: indices (int array of any shape, checked) along the first dimension, if the caller modifies no other
            rows: a save that reads the variable keeps the old values of these alone.

        Raises:
          FailedPreconditionError: the variable has not been initialised.
        """
        with self.lock:
            if self._array is None:
                self.read()
            is_shared = not self._is_exclusive() and not self._settles()
            if rows is not None:
                self.rows_touched += rows.size
            if self._watchers:
                self._announce(is_shared, rows)
            if is_shared:
                self._array = self._copied(self._array)
            array: np.ndarray = self._array
            return array

    def watch(self, watcher: Watcher) -> None:
        """Announces all changes to `watcher` before they happen, until `unwatch`."""
        with self.lock:
            self._watchers = (*self._watchers, watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Ends `watch`; fine if it has ended."""
        with self.lock:
            self._watchers = tuple(each for each in self._watchers if each is not watcher)

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """All that watch it, those that began first before the others."""
        return self._watchers

    def holds(self, array: object) -> bool:
        """Whether this array is the current value. The lock must be held while that matters."""
        return self._array is array

    def _settles(self) -> bool:
        """Waits a moment for the maker of a young watcher to drop the value. Whether nobody else sees it then."""
        young = [watcher for watcher in self._watchers if watcher.is_young]
        if not young:
            return False
        until = time.monotonic() + _SETTLE_S
        while not (is_exclusive := self._is_exclusive()) and time.monotonic() < until:
            time.sleep(_SETTLE_LOOK_S)
        for watcher in young:
            watcher.is_young = False
        return is_exclusive

    def _announce(self, is_released: bool, rows: np.ndarray | None) -> None:
        if self._array is None:
            return
        for watcher in self._watchers:
            if is_released:
                watcher.before_release(self._array)
            watcher.before_update(self._array, rows)

    def allocate(self, shape: tuple[int, ...]) -> None:
        """Makes the value an array of zeros, in the memory of the variable's device."""
        dtype = np.dtype(self.dtype.as_numpy_dtype)
        storage = self.storage
        zeros = np.zeros(shape, dtype) if storage is None else storage.backend.allocate(storage.number, shape, dtype)
        self.assign(cast(Array, zeros))

    def _copied(self, array: Array) -> Array:
        storage = self.storage
        if storage is None:
            return np.array(array)
        return cast(Array, storage.backend.copy_in(storage.number, array))

    def update(self, operation: _BinaryOperation, operand: Array) -> Array:
        """value = operation(value, operand), for a ufunc that keeps the shape; in place when nobody else sees the
        value.

        Returns the new value, to be treated like the result of `read`. A shared value costs one pass here and not a
        copy and a pass as with `writable`.

        Raises:
          FailedPreconditionError: the variable has not been initialised.
        """
        with self.lock:
            if self._array is None:
                self.read()
            is_exclusive = self._is_exclusive() or self._settles()
            if self._watchers:
                self._announce(not is_exclusive, None)
            if is_exclusive:
                operation(self._array, operand, out=self._array)
            else:
                self._array = operation(self._array, operand)
            updated: Array = self._array
            return updated

    def _is_exclusive(self) -> bool:
        """Whether this variable's slot holds the only reference to memory that it owns. The lock is held."""
        array = self._array
        if type(array) is not np.ndarray:
            if self.storage is None or not self.storage.backend.owns_memory(array):
                return False
            del array
        else:
            flags = array.flags
            if not (flags.owndata and flags.writeable):
                return False
            del array, flags
        return _COUNTS_ARE_EXACT and sys.getrefcount(self._array) <= _UNSHARED_COUNT


# What getrefcount says of an object that one slot holds, measured because interpreters differ in what they count; and
# whether the count tells the truth at all, which it does not when threads run without the global lock.
_probe = Variable("probe", None)  # type: ignore[arg-type]
_probe.assign(np.zeros(1))
_UNSHARED_COUNT = sys.getrefcount(_probe._array)
_COUNTS_ARE_EXACT = getattr(sys, "_is_gil_enabled", lambda: True)()
del _probe


def unaliased(values: list[Value], index: int) -> Value:
    """values[index] for a holder who may modify it: the array itself when the list alone holds it, else a copy.

    For what leaves the runtime for good, such as a fetch given to the user.
    """
    value = values[index]
    if type(value) is not np.ndarray:
        return value
    flags = value.flags
    owned = flags.owndata and flags.writeable
    del value, flags
    if owned and _COUNTS_ARE_EXACT and sys.getrefcount(values[index]) <= _UNSHARED_COUNT:
        return values[index]
    return np.array(values[index])


def handle_of(value: object) -> ResourceHandle:
    """The handle that arrived at a resource input. A peer's graph may lead other values there.

    Raises:
      InvalidArgumentError: the value is not one handle.
    """
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if not isinstance(value, ResourceHandle):
        raise errors.InvalidArgumentError.of(f"A resource handle is expected, but {shown_kind(value)} arrived.")
    return value


def checked_kind(resource: object, kind: type[_Resource], name: str) -> _Resource:
    """The resource, if it is of this kind.

    Raises:
      InvalidArgumentError: it is of another kind.
    """
    if isinstance(resource, kind):
        return resource
    raise errors.InvalidArgumentError.of(
        f"Trying to access a handle's resource using the wrong type. The handle points to a resource (name '{name}') "
        f"of type '{type(resource).__name__}', but the type '{kind.__name__}' is expected."
    )


def shown_kind(value: object) -> str:
    """A value's kind for messages, without its contents: "an array of shape [2,3]", "a Queue"."""
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of shape [{','.join(map(str, value.shape))}]"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


class UpdateLock(Protocol):
    """A reentrant lock. Where state outlives the process, its release ends a transaction."""

    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None:
        """Raises OpError, and is released, if what was changed cannot be kept."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class ResourceManager:
    """The resources of one task: objects by (container, kind, name), where the kind is the class of the object.

    All sessions of a task share one manager, which is what lets replicas train the same variables, unless a session
    asks to be isolated. Its own lock guards the dictionary; a factory runs under it and must not wait. Who makes an
    update of several operations holds `update_lock` (see `atomic_updates`).
    """

    def __init__(self) -> None:
        self.update_lock: UpdateLock = threading.RLock()
        self._lock = threading.RLock()
        self._objects: dict[tuple[str, type, str], Any] = {}
        _managers.add(self)

    def is_in_transaction(self) -> bool:
        """Whether this thread changes state that is not recorded yet (see `durability`)."""
        return False

    def __repr__(self) -> str:
        return f"ResourceManager({sorted(f'{container}/{name}' for container, _, name in self._objects)})"

    def variable_bytes(self) -> list[tuple[str, int]]:
        """The variables that have a value, each with the size of it."""
        with self._lock:
            found = [(name, each) for (_, kind, name), each in self._objects.items() if kind is Variable]
        return [(name, each.nbytes) for name, each in found if each.is_initialized]

    def rows_touched(self) -> list[tuple[str, int]]:
        """The variables that sparse updates have changed, each with the number of rows so far."""
        with self._lock:
            found = [(name, each) for (_, kind, name), each in self._objects.items() if kind is Variable]
        return [(name, each.rows_touched) for name, each in found if each.rows_touched]

    def variables(self) -> list[Variable]:
        """All variables, with a value or without."""
        with self._lock:
            return [each for (_, kind, _), each in self._objects.items() if kind is Variable]

    def lookup_or_create(
        self, container: str, name: str, kind: type[_Resource], factory: Callable[[], _Resource]
    ) -> _Resource:
        """The object of that name, made by `factory()` if it does not exist. An empty container is the default one."""
        key = (container or DEFAULT_CONTAINER, kind, name)
        found = self._objects.get(key)
        if found is None:
            with self._lock:
                found = self._objects.get(key)
                if found is None:
                    found = self._objects[key] = factory()
        return found

    def create(self, container: str, name: str, kind: type[_Resource], resource: _Resource) -> None:
        """Adds an object. Raises AlreadyExistsError when there is one of that name."""
        key = (container or DEFAULT_CONTAINER, kind, name)
        with self._lock:
            if key in self._objects:
                raise errors.AlreadyExistsError.of(f"Resource {_describe(*key)} already exists.")
            self._objects[key] = resource

    def lookup(self, container: str, name: str, kind: type[_Resource]) -> _Resource | None:
        """The object of that name, or None."""
        return self._objects.get((container or DEFAULT_CONTAINER, kind, name))

    def get(self, handle: ResourceHandle, kind: type[_Resource]) -> _Resource:
        """The object that a handle names.

        Raises:
          InvalidArgumentError: the value is not a handle.
          NotFoundError: the object does not exist (any more).
        """
        handle = handle_of(handle)
        key = (handle.container or DEFAULT_CONTAINER, kind, handle.name)
        found = self._objects.get(key)
        if found is None:
            raise errors.NotFoundError.of(f"Resource {_describe(*key)} does not exist.")
        resource: _Resource = found
        return resource

    def delete(self, container: str, name: str, kind: type) -> None:
        """Removes an object and closes it, if it has a `close()`. Raises NotFoundError when it does not exist."""
        key = (container or DEFAULT_CONTAINER, kind, name)
        with self._lock:
            resource = self._objects.pop(key, None)
        if resource is None:
            raise errors.NotFoundError.of(f"Resource {_describe(*key)} does not exist.")
        _close(resource)

    def delete_named(self, container: str, name: str) -> None:
        """As `delete`, for whatever kinds of objects have the name: a handle from elsewhere does not say which
        class it means.
        """
        with self._lock:
            kinds = [
                kind for at, kind, other in self._objects if at == (container or DEFAULT_CONTAINER) and other == name
            ]
        if not kinds:
            raise errors.NotFoundError.of(f"Resource {container or DEFAULT_CONTAINER}/{name} does not exist.")
        for kind in kinds:
            self.delete(container, name, kind)

    def cleanup(self, containers: Iterable[str] = ()) -> None:
        """Removes every object of these containers; of the default one when none is named."""
        wanted = {container or DEFAULT_CONTAINER for container in containers} or {DEFAULT_CONTAINER}
        with self._lock:
            doomed = [key for key in self._objects if key[0] in wanted]
            resources = [self._objects.pop(key) for key in doomed]
        for resource in resources:
            _close(resource)

    def clear(self) -> None:
        """Removes everything, as when an isolated session ends."""
        if self._objects:
            self.cleanup({container for container, _, _ in list(self._objects)})


def _describe(container: str, kind: type, name: str) -> str:
    return f"{container}/{name}/{kind.__name__}"


def _close(resource: object) -> None:
    close = getattr(resource, "close", None)
    if close is not None:
        close()


_managers: weakref.WeakSet[ResourceManager] = weakref.WeakSet()
measures.ask("rows_touched", lambda: [pair for manager in list(_managers) for pair in manager.rows_touched()])
measures.ask("variable_bytes", lambda: [pair for manager in list(_managers) for pair in manager.variable_bytes()])
