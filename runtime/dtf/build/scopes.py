"""The scopes that a new node gets: unique names, the device stack, control dependencies, colocation.

Owns the rules, each as a small object that `graph.Graph` holds and consults when it creates an operation. Does not
know how nodes are stored.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.blocks import Block, block_here
from dtf.wire import forks
from dtf.wire.device import DeviceSpec
from dtf.wire.names import shown

if TYPE_CHECKING:
    from dtf.build.tensor import Operation

_OP_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_INNER_SCOPE_NAME = re.compile(r"[A-Za-z0-9_.\\/>-]*")


class NameTable:
    """The names in use, and for each thread the name scope that new ones are put in. Its lock guards the names."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        forks.renew_in_child(self, "_lock")
        self._of_thread = _NameScope()

    @property
    def scope(self) -> str:
        """This thread's name scope, without the final slash."""
        return self._of_thread.name

    @scope.setter
    def scope(self, name: str) -> None:
        self._of_thread.name = name

    def unique(self, name: str, mark_as_used: bool = True) -> str:
        """`name` inside the current scope, with the first free suffix "_1", "_2", ... if it is taken.

        Names that differ only in case count as equal, because some file systems of event files and checkpoints ignore
        case.
        """
        scope = self.scope
        full = f"{scope}/{name}" if scope else name
        with self._lock:
            return self._unique(full, mark_as_used)

    def use(self, name: str) -> None:
        """Takes a full name, which nothing else gets from now on."""
        with self._lock:
            self._counts.setdefault(name.lower(), 1)

    def counts(self) -> dict[str, int]:
        """The names in use, in lower case -> how often each was asked for."""
        with self._lock:
            return dict(self._counts)

    def _unique(self, full: str, mark_as_used: bool) -> str:
        key = full.lower()
        count = self._counts.get(key, 0)
        if mark_as_used:
            self._counts[key] = count + 1
        if not count:
            return full
        suffix = count
        while f"{key}_{suffix}" in self._counts:
            suffix += 1
        if mark_as_used:
            self._counts[key] = suffix + 1
            self._counts[f"{key}_{suffix}"] = 1
        return f"{full}_{suffix}"

    def enter(self, name: str | None) -> str:
        """Makes a new current scope and returns the previous one, for `scope` to be set back.

        None or "" is the root. A name that ends in "/" is used unchanged; this re-enters an existing scope.

        Raises:
          ValueError: `name` is not a valid scope name.
        """
        previous = self.scope
        if not name:
            self.scope = ""
            return previous
        if not (_INNER_SCOPE_NAME if previous else _OP_NAME).fullmatch(name):
            raise ValueError(f"{shown(name)} is not a valid scope name")
        self.scope = name[:-1] if name.endswith("/") else self.unique(name)
        return previous


class _NameScope(threading.local):
    name = ""


def check_op_name(name: str) -> None:
    """Raises ValueError unless `name` may be the name of an operation."""
    if not _OP_NAME.fullmatch(name):
        raise ValueError(f"{shown(name)} is not a valid node name")


@dataclass(frozen=True, eq=False)
class _DeviceBlock:
    """One block: the function that gives an operation its device (None hides the outer blocks), and its place."""

    function: Callable[[Any], Any] | None
    block: Block


class DeviceStack:
    """The devices requested by the `with tf.device(...)` blocks around the point where nodes are made."""

    def __init__(self) -> None:
        self._entries: list[_DeviceBlock] = []
        self._places: tuple[Block, ...] | None = ()

    def push(self, device: Any) -> object:
        """Enters a block: a device string or DeviceSpec, a function from an operation to one, or None.

        Returns:
          The block, for `pop`.
        """
        function = device if device is None or callable(device) else _merger(device)
        entry = _DeviceBlock(function, block_here("None" if device is None else device))
        self._entries.append(entry)
        self._places = None
        return entry

    def pop(self, entry: object) -> None:
        """Leaves the innermost block, which must be `entry`.

        Raises:
          RuntimeError: a block that was entered later is still open.
        """
        if not self._entries or self._entries[-1] is not entry:
            raise RuntimeError("Exiting device scope without proper scope nesting")
        self._entries.pop()
        self._places = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The open blocks, the innermost first."""
        if self._places is None:
            self._places = tuple(entry.block for entry in reversed(self._entries))
        return self._places

    def copy(self) -> DeviceStack:
        """A separate stack with the same blocks."""
        copy = DeviceStack()
        copy._entries = list(self._entries)
        copy._places = self._places
        return copy

    def swap(self, entries: list[_DeviceBlock]) -> list[_DeviceBlock]:
        """Replaces the whole stack and returns the old one."""
        old, self._entries = self._entries, entries
        self._places = None
        return old

    def apply(self, op: Operation) -> None:
        """Gives `op` its device, from the innermost block to the outermost.

        A string fills in the parts that are still open. A function may replace the device that inner blocks have
        decided (`op.device`). None hides the enclosing blocks.
        """
        op._device_blocks = self.blocks
        for entry in reversed(self._entries):
            if entry.function is None:
                return
            op._set_device(entry.function(op) or "")


def _merger(device: Any) -> Callable[[Any], str]:
    outer = device if isinstance(device, DeviceSpec) else DeviceSpec.from_string(device)

    def merge(op: Any) -> str:
        return outer.make_merged_spec(DeviceSpec.from_string(op.device or "")).to_string()

    return merge


class ControlDependencies:
    """The `with tf.control_dependencies(...)` blocks; a stack of the operations each one waits for."""

    def __init__(self) -> None:
        self._blocks: list[ControlBlock] = []

    def current(self) -> list[Operation]:
        """All operations that some open block waits for."""
        return list(dict.fromkeys(op for block in self._blocks for op in block.ops))

    def push(self, block: ControlBlock) -> None:
        """Enters a block."""
        self._blocks.append(block)

    def pop(self, block: ControlBlock) -> None:
        """Leaves the innermost block, which must be `block`."""
        assert self._blocks[-1] is block
        self._blocks.pop()

    def swap(self, blocks: list[ControlBlock]) -> list[ControlBlock]:
        """Replaces the whole stack and returns the old one."""
        old, self._blocks = self._blocks, blocks
        return old

    def for_inputs(self, input_ops: Iterable[Operation]) -> list[Operation]:
        """The control inputs of a new node with these data inputs.

        A block adds nothing if an input was made inside it: that input waits already. An operation that is a data
        input is not a control input as well.
        """
        inputs = set(input_ops)
        found: dict[Operation, None] = {}
        for block in self._blocks:
            if inputs.isdisjoint(block.made_inside):
                found.update((op, None) for op in block.ops if op not in inputs)
        return list(found)

    def record(self, op: Operation) -> None:
        """Notes that `op` was made inside all open blocks."""
        for block in self._blocks:
            block.made_inside.add(op)


class ControlBlock:
    """One block: the operations that it waits for, and the operations made inside it."""

    def __init__(self, ops: list[Operation]) -> None:
        self.ops = ops
        self.made_inside: set[Operation] = set()
