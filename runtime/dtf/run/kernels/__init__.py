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

A kernel with `faster="module"` may be computed by another library where that is installed. That module of this package
is imported when such an op is first compiled, and registers who decides::

    @faster("Conv2D")
    def _(node, plain):
        return fn                                       # plain is numpy's function; it may be what is returned
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dtf.wire import forks, opdef
from dtf.wire.registry import Table

__all__ = ["DEAD", "Function", "Kernel", "KernelNode"]
__all__ += ["faster", "has_kernel", "kernel", "load_all", "lookup", "may_wait", "registered_ops"]

Function = Callable[..., Any]
"""What each step runs for a node."""
Chooser = Callable[["KernelNode", Function], Function]


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
    attrs: Mapping[str, Any]
    num_outputs: int
    library: Mapping[str, Any]

    def attr(self, name: str) -> Any:
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


class Kernel(NamedTuple):
    """One row of the table: the factory and how the function that it returns is to be called."""

    factory: Callable[[KernelNode], Function]
    stateful: bool
    asynchronous: bool
    accepts_dead: bool
    takes_variable: bool
    faster: str = ""

    def function(self, node: KernelNode) -> Function:
        """What each step runs for `node`: numpy's function, or what is chosen over it."""
        plain = self.factory(node)
        if not self.faster:
            return plain
        importlib.import_module(f"{__name__}.{self.faster}")
        return _faster[node.op](node, plain)


def kernel(
    *ops: str,
    stateful: bool = False,
    asynchronous: bool = False,
    accepts_dead: bool = False,
    takes_variable: bool = False,
    faster: str = "",
) -> Callable[[Callable[[KernelNode], Function]], Callable[[KernelNode], Function]]:
    """Registers the decorated factory for `ops`. A second registration of one op is an error that names both places.

    With `takes_variable`, the function gets the Variable itself where its first input is a reference. `faster` is the
    module that registers a `faster` function for these ops.
    """

    def register(factory: Callable[[KernelNode], Function]) -> Callable[[KernelNode], Function]:
        row = Kernel(factory, stateful or asynchronous, asynchronous, accepts_dead, takes_variable, faster)
        for op in ops:
            _kernels.add(op, row, f"{factory.__code__.co_filename}:{factory.__code__.co_firstlineno}")
        return factory

    return register


def faster(*ops: str) -> Callable[[Chooser], Chooser]:
    """Registers the decorated function, which is given a node and numpy's function for it, and returns what runs."""
    return _faster(*ops)


def lookup(op: str) -> Kernel:
    """The kernel of `op`; only its family is imported. Unknown: a LookupError that lists near names."""
    _load_family(op)
    return _kernels[op]


@functools.lru_cache(maxsize=4096)
def may_wait(op: str) -> bool:
    """Whether the kernel of `op` is asynchronous; of an op that has none here, True."""
    try:
        op_def = opdef.get(op)
        calls = any(attr.type in ("func", "list(func)") for attr in op_def.attrs)
        # Only these ever are; what is not asked for is not loaded.
        return (op_def.is_stateful or calls) and lookup(op).asynchronous
    except LookupError:
        return True


def has_kernel(op: str) -> bool:
    """Whether `op` has a kernel."""
    _load_family(op)
    return op in _kernels


def registered_ops() -> list[str]:
    """Sorted names of all ops that have a kernel."""
    load_all()
    return _kernels.names()


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
    """Imports the module that registers `op`; all of them when none seems to."""
    if op in _kernels or _loaded:
        return
    with _load_lock:
        made = [family for family, pattern in _NAMED_IN_PARTS.items() if re.match(pattern, op)]
        for family in [*_families_that_name().get(op, ()), *made]:
            importlib.import_module(f"{__name__}.{family}")
            if op in _kernels:
                return
        load_all()


@functools.cache
def _families_that_name() -> dict[str, list[str]]:
    """Op -> modules in whose sources its name stands; empty where there are no sources.

    Most servers need a few families only; importing the others would cost more time and memory than reading them.
    """
    found: dict[str, list[str]] = {}
    for module in pkgutil.iter_modules(__path__):
        with contextlib.suppress(OSError):
            text = (Path(__path__[0]) / f"{module.name}.py").read_text(encoding="utf-8")
            for name in set(_NAME.findall(text)):
                found.setdefault(name, []).append(module.name)
    return found


_NAMED_IN_PARTS = {
    "training": "(Resource)?(Sparse)?Apply",
    "segment": "SparseSegment",
    "image_resize": "Resize",
    "random": "StatelessRandom",
}
"""Modules that put the names of some of their ops together."""
_NAME = re.compile(r'"(_?[A-Z]\w+)"')
_kernels: Table[Kernel] = Table("kernel")
_faster: Table[Chooser] = Table("faster kernel")
_loaded = False
_load_lock = threading.RLock()


def _begin_anew() -> None:
    global _load_lock
    _load_lock = threading.RLock()


forks.in_child(_begin_anew)
