"""Loops over float32 arrays as machine code: many operations of each element, in one pass over memory.

A `Loop` is a small program: a list of nodes, each an operation of earlier ones, and the nodes whose values are stored.
Its arrays are matrices of the same rows and columns, or have one element for each row, or one in all. What is stored
may be summed over all rows. A sum over the columns of a row is a node like others: the row is then read again, from the
cache, by what comes after the sum.

    add = Builder()
    total = add.node("add", add.array(MATRIX), add.array(MATRIX))
    add.store(total, MATRIX)
    run = compiled(add.loop())                              # None where this processor has no code
    run(rows, columns, [(address, pitch in bytes), ...])    # a place for each array, in order

Arithmetic is that of numpy, to the last bit, but for `exp` and `tanh`, which are within 2 and 3 units of the last
place, and for the order of sums over columns. Undefined elements pass through all of them.

Owns the program and its translation; instructions are in `assembler`. Nothing here knows of operations of graphs.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import logging
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dtf.run.lib.onednn_library import is_switched_off
from dtf.run.lib.vector_code import assembler
from dtf.run.lib.vector_code.assembler import RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, Assembler, Executable, Place

__all__ = ["COLUMN_SUM", "MATRIX", "ROW", "SINGLE", "Builder", "Loop", "Runner", "compiled", "is_there"]

MATRIX, ROW, SINGLE, COLUMN_SUM = "matrix", "row", "single", "column sum"
"""Kinds of arrays: rows x columns; one element for each row; one element; sums over all rows, to be zero before."""

Runner = Callable[[int, int, Sequence[tuple[int, int]]], None]


class Node(NamedTuple):
    """An operation of earlier nodes, by their numbers; of `load`: an array's number; of `number`: a float's bits."""

    op: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """A program. `stores`: (node, array) in order; the arrays' kinds are in `kinds`."""

    kinds: tuple[str, ...]
    nodes: tuple[Node, ...]
    stores: tuple[tuple[int, int], ...]


class Builder:
    """Makes a Loop. The same operation of the same arguments is one node."""

    def __init__(self) -> None:
        self._kinds: list[str] = []
        self._nodes: dict[Node, int] = {}
        self._stores: list[tuple[int, int]] = []

    def array(self, kind: str) -> int:
        """The elements of another array that is read."""
        self._kinds.append(kind)
        return self._node("load", len(self._kinds) - 1)

    def store(self, node: int, kind: str) -> None:
        """Stores a node's values in another array."""
        self._kinds.append(kind)
        self._stores.append((node, len(self._kinds) - 1))

    def store_back(self, node: int, loaded: int) -> None:
        """Stores a node's values in the array that `loaded` gives the elements of."""
        (array,) = list(self._nodes)[loaded].arguments
        self._stores.append((node, array))

    def number(self, value: float) -> int:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return self._node("number", bits)

    def node(self, op: str, *arguments: int) -> int:
        """`add`, `subtract`, `multiply`, `divide`, `larger`, `lesser`, `square root`, `round down`, `negative`,
        `absolute`, `row sum`; `one above zero`: 1 where the argument is above zero, else 0; `zero where zero`: the
        second argument, or 0 where the first one is 0; `exp`, `tanh`.
        """
        made_of_others = {"exp": self._exp, "tanh": self._tanh}.get(op)
        return made_of_others(*arguments) if made_of_others else self._node(op, *arguments)

    def loop(self) -> Loop:
        return Loop(tuple(self._kinds), tuple(self._nodes), tuple(self._stores))

    def _node(self, op: str, *arguments: int) -> int:
        return self._nodes.setdefault(Node(op, arguments), len(self._nodes))

    def _exp(self, x: int) -> int:
        """2 ** n * exp(r), with r at most log(2) / 2 (Cephes' polynomial)."""
        node, number = self._node, self.number
        x = node("lesser of", number(89.0), node("larger of", number(-104.0), x))
        n = node("round", node("multiply", x, number(1.44269504088896341)))
        r = node("multiply add", n, number(-0.693359375), x)
        r = node("multiply add", n, number(2.12194440e-4), r)
        y = number(1.9875691500e-4)
        for coefficient in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
            y = node("multiply add", y, r, number(coefficient))
        y = node("multiply add", y, node("multiply", r, r), r)
        y = node("add", y, number(1.0))
        half = node("round down", node("multiply", n, number(0.5)))  # 2 ** n alone may be too large or small
        return node("multiply", node("multiply", y, node("power of two", half)),
                    node("power of two", node("subtract", n, half)))  # fmt: skip

    def _tanh(self, x: int) -> int:
        node, number = self._node, self.number
        size = node("absolute", x)
        square = node("multiply", x, x)
        near = number(-5.70498872745e-3)
        for coefficient in (2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1):
            near = node("multiply add", near, square, number(coefficient))
        near = node("multiply add", node("multiply", near, square), x, x)
        other = node("add", self._exp(node("add", size, size)), number(1.0))
        far = node("subtract", number(1.0), node("divide", number(2.0), other))
        return node("with sign", node("where larger", size, number(0.625), far, near), x)


def is_there() -> bool:
    """Whether this processor and system can run such code. `DTF_KERNELS=numpy` answers no."""
    return not is_switched_off() and _can_run()


@functools.cache
def _can_run() -> bool:
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    try:
        features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):
        return False
    if sys.maxsize <= 1 << 32 or not (features.get("AVX2") and features.get("FMA3")):
        return False
    try:
        Executable(b"\xc3")
    except OSError as error:
        logging.getLogger("dtf").info("numpy computes elementwise operations one by one: %s", error)
        return False
    return True


@functools.lru_cache(512)
def compiled(loop: Loop) -> Runner | None:
    """A function f(rows, columns, [(address, pitch), ...]) that runs the program; None where no code can be made.

    Both extents are at least 1. A pitch is the number of bytes from a row to the next one: 0 where all rows are the
    same. Elements of a row are contiguous.
    """
    if not _can_run():
        return None
    try:
        code = Executable(_Translation(loop).code())
    except (_TooManyValuesError, OSError):
        return None
    count = len(loop.kinds)
    table_type = ctypes.c_uint64 * (2 * count)

    def run(rows: int, columns: int, places: Sequence[tuple[int, int]]) -> None:
        table = table_type(*[address for address, _ in places], *[pitch for _, pitch in places])
        code(ctypes.addressof(table), rows, columns)

    return run


class _TooManyValuesError(Exception):
    """The values that are needed at once do not fit the registers."""


_REGISTERS = 15  # the last one holds the mask of a row's last elements
_MASK = 15
_BASES = tuple(range(8, 15))  # registers for the addresses of the first arrays
_LANES, _VECTOR_BYTES, _ELEMENT_BYTES = 8, 32, 4
_BINARY = {
    "add": assembler.ADD, "subtract": assembler.SUBTRACT, "multiply": assembler.MULTIPLY, "divide": assembler.DIVIDE,
    "larger of": assembler.LARGER, "lesser of": assembler.LESSER,
}  # fmt: skip
_OF_ALL, _OF_ROW, _OF_ELEMENT = range(3)


class _Translation:
    """The translation of one program.

    Registers: rdi the table of addresses, then pitches; rsi rows left; rdx the bytes of a row's whole vectors; rcx the
    place in the row. Values of a row, and of all rows, are on the stack, each as a whole vector.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._asm = Assembler()
        self._labels = 0
        self._level: list[int] = []
        self._phase: list[int] = []
        for node in loop.nodes:
            self._classify(node)
        self._phases = 1 + max((self._phase[node] for node, _ in loop.stores), default=0)
        self._stack: dict[int, int] = {}  # nodes' places
        self._stack_used = 2 * _VECTOR_BYTES  # the mask, then numbers of the loop
        self._base = {array: register for register, array in zip(_BASES, range(len(loop.kinds)), strict=False)}

    def _classify(self, node: Node) -> None:
        if node.op == "number":
            level, phase = _OF_ALL, 0
        elif node.op == "load":
            level, phase = {SINGLE: _OF_ALL, ROW: _OF_ROW}.get(self._loop.kinds[node.arguments[0]], _OF_ELEMENT), 0
        else:
            level = max(self._level[argument] for argument in node.arguments)
            phase = max(self._phase[argument] for argument in node.arguments)
            if node.op == "row sum":
                level, phase = _OF_ROW, phase + 1
        self._level.append(level)
        self._phase.append(phase)

    def code(self) -> bytes:
        asm = self._asm
        saved = (RBX, 12, 13, 14, 15)
        asm.push(RBP)
        asm.move(RBP, RSP)
        for register in saved:
            asm.push(register)
        self._reserve()
        asm.subtract_number(RSP, self._stack_used)
        asm.and_number(RSP, -_VECTOR_BYTES)
        self._begin()
        asm.label("row")
        for phase in range(self._phases):
            self._write_phase(phase)
        for array, kind in enumerate(self._loop.kinds):
            if kind != SINGLE:
                pitch = Place(RDI, 8 * (len(self._loop.kinds) + array))
                if array in self._base:
                    asm.add(self._base[array], pitch)
                else:
                    asm.move(RBX, pitch)
                    asm.add_to(Place(RDI, 8 * array), RBX)
        asm.add_number(RSI, -1)
        asm.jump_if_not_zero("row")
        for node, array in self._loop.stores:
            if self._loop.kinds[array] == SINGLE:
                self._store_one(node, array)
        asm.no_wide_state()
        asm.move(RSP, RBP)
        asm.subtract_number(RSP, 8 * len(saved))
        for register in reversed(saved):
            asm.pop(register)
        asm.pop(RBP)
        asm.back()
        return asm.finish()

    def _reserve(self) -> None:
        """Places on the stack for all values that are not of one element."""
        for node, level in enumerate(self._level):
            if level != _OF_ELEMENT:
                self._stack[node] = self._stack_used
                self._stack_used += _VECTOR_BYTES
        self._sign = self._constant(0x80000000)
        self._one = self._constant(0x3F800000)
        self._constants = [(self._sign, 0x80000000), (self._one, 0x3F800000)]

    def _constant(self, bits: int) -> int:
        self._stack_used += _VECTOR_BYTES
        return self._stack_used - _VECTOR_BYTES

    def _begin(self) -> None:
        """Numbers, the mask and the values of all rows on the stack, addresses in registers."""
        asm = self._asm
        for place, bits in self._constants:
            self._write_number(place, bits)
        asm.move(RAX, RDX)  # elements: their number modulo the lanes gives the mask
        asm.and_number(RAX, _LANES - 1)
        asm.store(Place(RSP, _VECTOR_BYTES), RAX)
        asm.and_number(RDX, -_LANES)
        for _ in range(2):  # times four
            asm.add(RDX, RDX)
        for lane in range(_LANES):
            asm.clear(RCX)
            asm.compare(RAX, RCX)
            asm.jump_if_zero(f"lane {lane}")
            asm.subtract_number(RCX, 1)
            asm.subtract_number(RAX, 1)
            asm.label(f"lane {lane}")
            asm.store(Place(RSP, lane * _ELEMENT_BYTES), RCX)  # eight bytes: the next lane overwrites the upper ones
            if lane == _LANES - 2:
                asm.move(RBX, Place(RSP, _VECTOR_BYTES))
        asm.store(Place(RSP, _VECTOR_BYTES), RBX)  # which the last lane's upper bytes had overwritten
        for array, register in self._base.items():
            asm.move(register, Place(RDI, 8 * array))
        singles = [node for node, level in enumerate(self._level) if level == _OF_ALL]
        block = _Block(self, singles, [], is_masked=False)
        for node in singles:
            each = self._loop.nodes[node]
            if each.op == "number":
                self._write_number(self._stack[node], each.arguments[0])
            else:
                block.compute_to_stack(node)

    def _write_number(self, place: int, bits: int) -> None:
        asm = self._asm
        asm.clear(RCX)
        asm.add_number(RCX, bits - (1 << 32) if bits >= 1 << 31 else bits)
        asm.store(Place(RSP, place), RCX)
        asm.pair(assembler.BROADCAST, 0, Place(RSP, place))
        asm.pair(assembler.STORE, 0, Place(RSP, place))

    def _write_phase(self, phase: int) -> None:
        """One walk over a row: first what has one value for the row, then what has one for each element."""
        loop, asm = self._loop, self._asm
        of_row = [
            node
            for node, level in enumerate(self._level)
            if level == _OF_ROW and self._phase[node] == phase and loop.nodes[node].op != "row sum"
        ]
        block = _Block(self, of_row, [], is_masked=False)
        for node in of_row:
            block.compute_to_stack(node)
        sums = [
            node
            for node, each in enumerate(loop.nodes)
            if each.op == "row sum" and self._phase[node] == phase + 1 and phase + 1 < self._phases
        ]
        stores = [
            (node, array)
            for node, array in loop.stores
            if loop.kinds[array] in (MATRIX, COLUMN_SUM) and self._phase[node] == phase
        ]
        for node, array in loop.stores:
            if loop.kinds[array] == ROW and self._phase[node] == phase:
                self._store_one(node, array)
        if not sums and not stores:
            return
        accumulators = {node: _REGISTERS - 1 - number for number, node in enumerate(sums)}
        if len(accumulators) > _REGISTERS // 2:
            raise _TooManyValuesError
        for register in accumulators.values():
            asm.vector(assembler.XOR, register, register, register)
        self._labels += 1
        begin, end, done = (f"{name} {self._labels}" for name in ("begin", "end", "done"))
        asm.clear(RCX)
        asm.compare(RCX, RDX)
        asm.jump_if_not_less(end)
        asm.label(begin)
        self._write_body(stores, accumulators, is_masked=False)
        asm.add_number(RCX, _VECTOR_BYTES)
        asm.compare(RCX, RDX)
        asm.jump_if_less(begin)
        asm.label(end)
        asm.clear(RAX)
        asm.compare(RAX, Place(RSP, _VECTOR_BYTES))
        asm.jump_if_zero(done)
        asm.pair(assembler.LOAD, _MASK, Place(RSP, 0))
        self._write_body(stores, accumulators, is_masked=True)
        asm.label(done)
        for node, register in accumulators.items():
            asm.pair(assembler.UPPER_HALF, register, 0, 1)
            asm.vector(assembler.ADD, register, register, 0, wide=False)
            for _ in range(2):
                asm.vector(assembler.ADD_PAIRS, register, register, register, wide=False)
            asm.pair(assembler.STORE_ONE, register, Place(RSP, self._stack[node]), wide=False)
            asm.pair(assembler.BROADCAST, register, Place(RSP, self._stack[node]))
            asm.pair(assembler.STORE, register, Place(RSP, self._stack[node]))

    def _write_body(self, stores: list[tuple[int, int]], accumulators: dict[int, int], is_masked: bool) -> None:
        summed = [self._loop.nodes[node].arguments[0] for node in accumulators]
        wanted = [node for node, _ in stores] + summed
        block = _Block(self, self._needed(wanted), wanted, is_masked, set(accumulators.values()))
        sources = zip(summed, accumulators.values(), strict=True)
        pending = [(node, functools.partial(block.add_up, node, register)) for node, register in sources]
        pending += [(node, functools.partial(block.store, node, array)) for node, array in stores]
        for _, write in sorted(pending, key=lambda item: item[0]):
            write()

    def _needed(self, wanted: list[int]) -> list[int]:
        """The nodes of one value for each element that are to be computed, in order."""
        found: set[int] = set()
        waiting = [node for node in wanted if self._level[node] == _OF_ELEMENT]
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found.add(node)
            if self._loop.nodes[node].op != "load":
                arguments = self._loop.nodes[node].arguments
                waiting.extend(each for each in arguments if self._level[each] == _OF_ELEMENT)
        return sorted(found)

    def _store_one(self, node: int, array: int) -> None:
        self._asm.pair(assembler.LOAD_ONE, 0, Place(RSP, self._stack[node]), wide=False)
        self._asm.pair(assembler.STORE_ONE, 0, self.place(array, is_row=True), wide=False)

    def place(self, array: int, is_row: bool) -> Place:
        """Where the elements of an array are now."""
        base = self._base.get(array)
        if base is None:
            self._asm.move(RBX, Place(RDI, 8 * array))
            base = RBX
        return Place(base, 0, None if is_row else RCX)


class _Block:
    """Straight code for one vector of elements: nodes in registers, each for as long as it is needed."""

    def __init__(
        self,
        translation: _Translation,
        nodes: list[int],
        wanted: list[int],
        is_masked: bool,
        taken: set[int] | None = None,
    ) -> None:
        self._t = translation
        self._asm = translation._asm
        self._loop = translation._loop
        self._is_masked = is_masked
        self._free = [register for register in range(_REGISTERS) if register not in (taken or ())]
        self._register: dict[int, int] = {}
        self._uses: dict[int, int] = {}
        for node in nodes:
            if self._loop.nodes[node].op not in ("load", "number"):
                for argument in self._loop.nodes[node].arguments:
                    self._uses[argument] = self._uses.get(argument, 0) + 1
        for node in wanted:
            self._uses[node] = self._uses.get(node, 0) + 1

    def add_up(self, node: int, accumulator: int) -> None:
        """Adds a node's elements to those of an accumulator; none of those beyond the end of the row."""
        value = self._value(node)
        if self._is_masked:
            masked = self._take()
            self._asm.vector(assembler.AND, masked, value, _MASK)
            self._asm.vector(assembler.ADD, accumulator, accumulator, masked)
            self._free.append(masked)
        else:
            self._asm.vector(assembler.ADD, accumulator, accumulator, value)
        self._used(node)

    def store(self, node: int, array: int) -> None:
        value = self._value(node)
        if self._loop.kinds[array] == COLUMN_SUM:
            total = self._take()
            self._load(total, array)
            self._asm.vector(assembler.ADD, total, total, value)
            self._store(total, array)
            self._free.append(total)
        else:
            self._store(value, array)
        self._used(node)

    def compute_to_stack(self, node: int) -> None:
        """A value of a row or of all rows, on the stack."""
        each = self._loop.nodes[node]
        self._free = list(range(_REGISTERS))
        self._register.clear()
        if each.op == "load":
            self._asm.pair(assembler.BROADCAST, 0, self._t.place(each.arguments[0], is_row=True))
            register = 0
        else:
            register = self._compute(node)
        self._asm.pair(assembler.STORE, register, Place(RSP, self._t._stack[node]))

    def _load(self, register: int, array: int) -> None:
        place = self._t.place(array, is_row=False)
        if self._is_masked:
            self._asm.vector(assembler.LOAD_MASKED, register, _MASK, place)
        else:
            self._asm.pair(assembler.LOAD, register, place)

    def _store(self, register: int, array: int) -> None:
        place = self._t.place(array, is_row=False)
        if self._is_masked:
            self._asm.vector(assembler.STORE_MASKED, register, _MASK, place)
        else:
            self._asm.pair(assembler.STORE, register, place)

    def _value(self, node: int) -> int:
        """The register of a node, which is computed now if it has not been."""
        found = self._register.get(node)
        if found is not None:
            return found
        stack = self._t._stack.get(node)
        if stack is not None:
            register = self._take()
            self._asm.pair(assembler.LOAD, register, Place(RSP, stack))
        elif self._loop.nodes[node].op == "load":
            register = self._take()
            self._load(register, self._loop.nodes[node].arguments[0])
        else:
            register = self._compute(node)
        self._register[node] = register
        return register

    def _operand(self, node: int) -> int | Place:
        """A node as a last operand: where it is on the stack, or its register."""
        stack = self._t._stack.get(node)
        return self._value(node) if stack is None else Place(RSP, stack)

    def _compute(self, node: int) -> int:
        op, arguments = self._loop.nodes[node]
        for argument in arguments:  # deep ones first, in registers before the result's is taken
            if argument not in self._t._stack:
                self._value(argument)
        asm = self._asm
        if op in _BINARY:
            first = self._value(arguments[0])
            second = self._operand(arguments[1])
            self._used(*arguments)
            target = self._take()
            asm.vector(_BINARY[op], target, first, second)
            return target
        if op in ("larger", "lesser"):  # of undefined elements the second one is given: then the first one, if it is
            first, second = self._value(arguments[0]), self._operand(arguments[1])
            target, mask = self._take(), self._take()
            asm.vector(_BINARY[f"{op} of"], target, first, second)
            asm.vector(assembler.COMPARE, mask, first, first, assembler.UNORDERED)
            asm.blend(target, target, first, mask)
            self._free.append(mask)
            self._used(*arguments)
            return target
        if op == "multiply add":  # of the first two, plus the third
            third = self._value(arguments[2])
            first, second = self._value(arguments[0]), self._operand(arguments[1])
            target = self._take()
            asm.vector(assembler.OR, target, third, third)
            asm.vector(assembler.MULTIPLY_ADD, target, first, second)
            self._used(*arguments)
            return target
        if op == "where larger":
            first, limit = self._value(arguments[0]), self._operand(arguments[1])
            mask = self._take()
            asm.vector(assembler.COMPARE, mask, first, limit, assembler.GREATER)
            then, other = self._value(arguments[2]), self._value(arguments[3])
            asm.blend(mask, other, then, mask)
            self._used(*arguments)
            return mask
        first = self._value(arguments[0])
        sign, one = Place(RSP, self._t._sign), Place(RSP, self._t._one)
        if op == "one above zero":
            target = self._take()
            asm.vector(assembler.XOR, target, target, target)
            asm.vector(assembler.COMPARE, target, target, first, assembler.LESS)
            asm.vector(assembler.AND, target, target, one)
            self._used(*arguments)
            return target
        if op == "with sign":  # of the second argument
            second = self._value(arguments[1])
            target = self._take()
            asm.vector(assembler.AND, target, second, sign)
            asm.vector(assembler.OR, target, target, first)
            self._used(*arguments)
            return target
        if op == "zero where zero":  # the second argument, or zero where the first one is
            second = self._value(arguments[1])
            target = self._take()
            asm.vector(assembler.XOR, target, target, target)
            asm.vector(assembler.COMPARE, target, target, first, assembler.NOT_EQUAL)
            asm.vector(assembler.AND, target, target, second)
            self._used(*arguments)
            return target
        if op == "absolute":
            target = self._take()
            asm.pair(assembler.LOAD, target, sign)
            asm.vector(assembler.AND_NOT, target, target, first)
            self._used(*arguments)
            return target
        self._used(*arguments)
        target = self._take()
        if op == "square root":
            asm.pair(assembler.SQRT, target, first)
        elif op == "negative":
            asm.vector(assembler.XOR, target, first, sign)
        elif op in ("round", "round down"):
            asm.pair(assembler.ROUND, target, first, 8 | (op == "round down"))
        elif op == "power of two":
            asm.pair(assembler.TO_INTEGERS, target, first)
            asm.shift_left(target, target, 23)
            asm.vector(assembler.ADD_INTEGERS, target, target, one)
        else:
            raise ValueError(f"unknown operation {op!r}")
        return target

    def _take(self) -> int:
        if not self._free:
            raise _TooManyValuesError
        return self._free.pop(0)

    def _used(self, *nodes: int) -> None:
        """Frees the registers of nodes that nothing else needs."""
        for node in nodes:
            self._uses[node] = self._uses.get(node, 1) - 1
            if self._uses[node] <= 0 and node in self._register:
                self._free.insert(0, self._register.pop(node))
