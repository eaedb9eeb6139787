"""The kernel table: for each op, how to compute it with numpy.

Owns the table, the decorator that fills it, and the small values that kernels are given (`KernelNode`, `DEAD`). Does
not run anything: that is `executor`. What a kernel may use during a step is described in `step`.

A kernel is a *factory*. It is called once per node when a partition is compiled, with the node, and returns the
function that each step runs, so that attributes are read once and the step pays only for arithmetic::

    @kernel("AddV2", "Add")
    def _(node):
        return np.add                                   # pure: fn(*inputs) -> value(s)

    @kernel("RandomUniform", stateful=True)
    def _(node):
        return lambda step, shape: ...                  # fn(step, *inputs) -> value(s)

    @kernel("QueueDequeueV2", asynchronous=True)
    def _(node):
        return lambda step, done, handle: ...           # fn(step, done, *inputs), returns at once

A function of one output returns the value; of several (or of a list output), a tuple or list of them; of none,
anything. An asynchronous function calls `done(value_or_values)` or `done(error=OpError)` exactly once, from any
thread, holding no lock that the rest of the step could want.

Values are numpy arrays or numpy scalars; strings are object arrays of bytes (0-d too). Inputs are never modified: a
constant, a variable or a peer may share them. List inputs arrive flattened. An input that the OpDef declares `Ref`
arrives as a `resources.Variable`, a resource input as a `resources.ResourceHandle`.

`accepts_dead=True` is for the few kernels that want to see `DEAD` inputs; all others are skipped when one of their
inputs is dead.

Rows have a device type and a priority. Without them a row is the CPU's, of priority 0. The row of the highest priority
that takes the node computes it: its type constraints fit, and its factory does not return None. `below` gives the
function of the rows underneath, for the values that a row does not want::

    @kernel("Conv2D", priority=ONEDNN)
    def _(node):
        plain = below(node, ONEDNN)
        return fn                                       # None: oneDNN is not installed

A row of `DEFAULT` serves all devices, the CPU too: it passes values on and never looks into them. Rows of other device
types get and return the arrays of their `devices.DeviceBackend`, except for the arguments in host memory
(`devices.host_memory`), which are numpy arrays. Their backend registers them: see `DeviceBackend.load_kernels`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from dtf.run.devices import host_memory
from dtf.run.devices.backends import CPU, backend_of
from dtf.run.interfaces import Outputs
from dtf.run.value_types import Array, AttrValue, Library
from dtf.wire import forks, opdef
from dtf.wire.dtypes import DType
from dtf.wire.registry import UnknownNameError, unknown_name_message
from dtf.wire.text_cache import cached_by_text

__all__ = ["CPU", "DEAD", "DEFAULT", "ONEDNN", "Factory", "Function", "Kernel", "KernelNode"]
__all__ += ["below", "bind", "has_kernel", "into_of", "kernel", "load_all", "lookup", "may_wait", "register"]
__all__ += ["Update", "registered_ops", "rows", "update_of", "with_into", "with_update"]

Function = Callable[..., Outputs]
"""What each step runs for a node."""

DEFAULT = "DEFAULT"
"""The device type of rows that serve every device."""
ONEDNN = 10
"""The priority of the rows that oneDNN computes."""


class _Dead:
    """The value on an edge that control flow did not take. Compare with `is DEAD`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DEAD"

    def __reduce__(self) -> str:
        return "DEAD"


DEAD = _Dead()


class KernelNode(NamedTuple):
    """What a kernel factory knows of its node.

    attrs holds python values with the OpDef's defaults filled in (`codec.attr_to_python`). `library` maps the names
    of the graph's functions to their FunctionDefs, for the ops that call functions.
    """

    name: str
    op: str
    device: str
    attrs: Mapping[str, AttrValue]
    num_outputs: int
    library: Library

    def attr(self, name: str) -> AttrValue:
        """The attribute's python value; KeyError names the node when the op has no such attribute."""
        try:
            return self.attrs[name]
        except KeyError:
            raise KeyError(
                f"node {self.name!r} ({self.op}) has no attr {name!r}; it has {sorted(self.attrs)}"
            ) from None

    @property
    def op_def(self) -> opdef.OpDef:
        return opdef.get(self.op)


Factory = Callable[[KernelNode], "Function | None"]
_F = TypeVar("_F", bound=Factory)


class Kernel(NamedTuple):
    """One row of the table: the factory and how the function that it returns is to be called.

    Attributes:
      factory: makes the function of a node; None where it leaves the node to the rows of lower priority.
      device_type: "CPU", "GPU" ... or DEFAULT.
      priority: rows of a higher one are tried first.
      host: names of arguments in host memory, on other devices than the CPU; None: those that TensorFlow keeps there.
      types: the dtypes that a type attribute may have; attributes that are not named here may have any.
    """

    factory: Factory
    stateful: bool = False
    asynchronous: bool = False
    accepts_dead: bool = False
    takes_variable: bool = False
    device_type: str = CPU
    priority: int = 0
    host: frozenset[str] | None = None
    types: Mapping[str, frozenset[DType]] | None = None

    def fits(self, attrs: Mapping[str, AttrValue]) -> bool:
        """Whether the type constraints allow a node with these attributes."""
        return self.types is None or all(attrs.get(name) in allowed for name, allowed in self.types.items())


def kernel(
    *ops: str,
    stateful: bool = False,
    asynchronous: bool = False,
    accepts_dead: bool = False,
    takes_variable: bool = False,
    device_type: str = CPU,
    priority: int = 0,
    host: Iterable[str] | None = None,
    types: Mapping[str, Iterable[DType]] | None = None,
) -> Callable[[_F], _F]:
    """Registers the decorated factory for `ops`. A second row of one op, device type, priority and types is an error
    that names both places.

    Args:
      ops: the op types.
      stateful, asynchronous, accepts_dead: how its functions are called; see this module's text.
      takes_variable: the function gets the Variable itself where its first input is a reference.
      device_type, priority, host, types: see `Kernel`.

    Raises:
      ValueError: there is such a row.
    """

    def add(factory: _F) -> _F:
        constraints = None if types is None else {name: frozenset(allowed) for name, allowed in types.items()}
        in_host = None if host is None else frozenset(host)
        is_stateful = stateful or asynchronous
        calls = (is_stateful, asynchronous, accepts_dead, takes_variable)
        row = Kernel(factory, *calls, device_type, priority, in_host, constraints)
        for op in ops:
            register(op, row)
        return factory

    return add


def register(op: str, row: Kernel) -> None:
    """Adds a row; see `kernel`."""
    code = getattr(row.factory, "__code__", None)
    here = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(row.factory)
    key = op, row.device_type, row.priority, repr(sorted((row.types or {}).items(), key=lambda item: item[0]))
    with _load_lock:
        if key in _places:
            raise ValueError(f"second kernel for {op!r} at {here}; the first one is at {_places[key]}")
        _places[key] = here
        found = [*_rows.get((op, row.device_type), ()), row]
        _rows[op, row.device_type] = tuple(sorted(found, key=lambda each: -each.priority))


def rows(op: str, device_type: str = CPU) -> tuple[Kernel, ...]:
    """The rows of an op for a device type, those of DEFAULT included, the highest priority first. Only what may have
    them is imported.
    """
    _load_family(op)
    found = _rows.get((op, device_type), ())
    if device_type != CPU and not found:
        backend = backend_of(device_type)
        if backend is not None:
            backend.load_kernels(op)
            found = _rows.get((op, device_type), ())
    return found or _rows.get((op, DEFAULT), ())


def has_own_rows(op: str, device_type: str) -> bool:
    """Whether rows of exactly this device type are registered; nothing is imported."""
    return (op, device_type) in _rows


def forget(device_type: str) -> None:
    """Removes the rows of a device type, when its backend goes."""
    with _load_lock:
        for row in [key for key in _rows if key[1] == device_type]:
            del _rows[row]
        for place in [key for key in _places if key[1] == device_type]:
            del _places[place]


def lookup(op: str, device_type: str = CPU) -> Kernel:
    """The row of `op` with the highest priority. None: a LookupError that lists near names."""
    found = rows(op, device_type)
    if not found:
        raise _unknown(op)
    return found[0]


def bind(node: KernelNode, device_type: str = CPU, priority_max: int | None = None) -> tuple[Kernel, Function]:
    """The row that computes a node on a device type, and its function.

    Args:
      node: the node.
      device_type: where it is.
      priority_max: rows of a higher priority are passed over; None: none is.

    Raises:
      LookupError: no row takes the node; lists near names.
    """
    op, attrs = node.op, node.attrs
    if device_type != CPU and host_memory.is_computed_there(op, attrs):
        its_row, its_function = bind(node._replace(device=""))
        return its_row._replace(device_type=device_type, host=host_memory.EVERYTHING), its_function
    for row in rows(op, device_type):
        if (priority_max is None or row.priority <= priority_max) and (row.types is None or row.fits(attrs)):
            function = row.factory(node)
            if function is not None:
                return row, function
    raise _unknown(op)


def below(node: KernelNode, priority: int, device_type: str = CPU) -> Function:
    """What computes the node where the row of this priority does not: the function of the rows underneath."""
    return bind(node, device_type, priority - 1)[1]


def with_into(function: Function, into: Callable[..., Array | None]) -> Function:
    """Gives the function of a kernel a variant that may overwrite one of its inputs with the result.

    Args:
      function: what a factory returns; takes the inputs.
      into: f(out, *inputs) -> the result, in `out`, which is one of the inputs; None, with nothing changed, where these
        inputs do not allow that. The result is the same to the last bit.
    """
    setattr(function, _INTO, into)
    return function


def into_of(function: Function) -> Callable[..., Array | None] | None:
    """The variant that `with_into` has given a function."""
    return getattr(function, _INTO, None)


_INTO = "_dtf_into"


class Update(NamedTuple):
    """What several updates of one kind need to be applied as one.

    Attributes:
      rule: f(variable, *slots, gradient, *scalars) changes variable and slots in place, element by element.
      variables: how many inputs, the first ones, are the variable and its slots; all have the gradient's shape.
      gradient_at: the place of the gradient among the inputs.
      scalars_at: the places of the scalars.
    """

    rule: Callable[..., None]
    variables: int
    gradient_at: int
    scalars_at: tuple[int, ...]


def with_update(function: Function, update: Update) -> Function:
    """Says of the function of a kernel that it is an update that others may be joined with."""
    setattr(function, _UPDATE, update)
    return function


def update_of(function: Function) -> Update | None:
    """The update that `with_update` has said that a function is."""
    return getattr(function, _UPDATE, None)


_UPDATE = "_dtf_update"


def _unknown(op: str) -> UnknownNameError:
    return UnknownNameError(unknown_name_message("kernel", op, {name for name, _ in _rows} | _modules_of_ops().keys()))


@cached_by_text(4096)
def may_wait(op: str) -> bool:
    """Whether the kernel of `op` is asynchronous; of an op that has none here, True."""
    try:
        op_def = opdef.get(op)
        calls = any(attr.type in ("func", "list(func)") for attr in op_def.attrs)
        # Only these ever are; what is not asked for is not loaded.
        return (op_def.is_stateful or calls) and lookup(op).asynchronous
    except LookupError:
        return True


def has_kernel(op: str, device_type: str = CPU) -> bool:
    """Whether `op` has a kernel for a device type."""
    return bool(rows(op, device_type))


def registered_ops() -> list[str]:
    """Sorted names of all ops that have a kernel for the CPU."""
    load_all()
    return sorted({op for op, device_type in _rows if device_type in (CPU, DEFAULT)})


def load_all() -> None:
    """Imports every module of this package once. Kernels load late so that `import dtf` stays fast."""
    global _loaded
    if _loaded:
        return
    with _load_lock:
        if not _loaded:
            for module in pkgutil.iter_modules(__path__):
                importlib.import_module(f"{__name__}.{module.name}")
            _loaded = True


def _load_family(op: str) -> None:
    """Imports the modules that register `op`, as the generated index says."""
    if op in _known or _loaded:
        return
    with _load_lock:
        for module in _modules_of_ops().get(op, ()):
            importlib.import_module(f"{__name__}.{module}")
        _known.add(op)


@functools.cache
def _modules_of_ops() -> dict[str, list[str]]:
    """Op -> modules. Most servers need a few of them; all would cost more time and memory."""
    from dtf.run.kernels.op_index import OPS

    found: dict[str, list[str]] = {}
    for module, ops in OPS.items():
        for op in ops.split():
            found.setdefault(op, []).append(module)
    return found


_rows: dict[tuple[str, str], tuple[Kernel, ...]] = {}
_places: dict[tuple[str, str, int, str], str] = {}
_known: set[str] = set()
"""Ops whose modules have been imported."""
_loaded = False
_load_lock = threading.RLock()


def _begin_anew() -> None:
    global _load_lock
    _load_lock = threading.RLock()


forks.in_child(_begin_anew)
