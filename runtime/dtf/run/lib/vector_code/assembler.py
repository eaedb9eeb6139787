"""x86-64 machine code for AVX2: the few instructions that loops over float32 arrays need, and memory to run them in.

Owns the encoding of instructions, labels, and executable memory. What a loop computes is in `loops`.

    code = Assembler()
    code.vector(ADD, 0, 1, 2)             # ymm0 = ymm1 + ymm2
    code.vector(ADD, 0, 1, Place(RSP, 32))  # ymm0 = ymm1 + 32 bytes at rsp + 32
    function = Executable(code.finish())

Memory is never writable and executable at once. A system that forbids executable memory raises OSError.
"""

from __future__ import annotations

import ctypes
import mmap
from ctypes import c_int, c_size_t, c_void_p
from typing import NamedTuple

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
R8, R9, R10, R11, R12, R13, R14, R15 = range(8, 16)


class Place(NamedTuple):
    """An operand in memory: `offset` bytes after a base register, and as many as the register `step` has."""

    base: int
    offset: int = 0
    step: int | None = None


class Opcode(NamedTuple):
    """A vector instruction: its opcode, its map (1: 0F, 2: 0F38, 3: 0F3A), and its mandatory prefix."""

    code: int
    map: int = 1
    prefix: int = 0


_66, _F3, _F2 = 1, 2, 3
LOAD, STORE = Opcode(0x10), Opcode(0x11)
LOAD_ONE, STORE_ONE = Opcode(0x10, 1, _F3), Opcode(0x11, 1, _F3)
LOAD_MASKED, STORE_MASKED = Opcode(0x2C, 2, _66), Opcode(0x2E, 2, _66)
BROADCAST = Opcode(0x18, 2, _66)
ADD, MULTIPLY, SUBTRACT, DIVIDE = Opcode(0x58), Opcode(0x59), Opcode(0x5C), Opcode(0x5E)
LESSER, LARGER, SQRT = Opcode(0x5D), Opcode(0x5F), Opcode(0x51)
AND, AND_NOT, OR, XOR = Opcode(0x54), Opcode(0x55), Opcode(0x56), Opcode(0x57)
COMPARE, BLEND, ROUND = Opcode(0xC2), Opcode(0x4A, 3, _66), Opcode(0x08, 3, _66)
MULTIPLY_ADD = Opcode(0xB8, 2, _66)  # first += second * third
TO_INTEGERS, SHIFT, ADD_INTEGERS = Opcode(0x5B, 1, _66), Opcode(0x72, 1, _66), Opcode(0xFE, 1, _66)
UPPER_HALF = Opcode(0x19, 3, _66)  # of reg, to rm
ADD_PAIRS = Opcode(0x7C, 1, _F2)
LESS, UNORDERED, GREATER, NOT_EQUAL = 0x11, 0x03, 0x1E, 0x04  # comparisons, the last one true for undefined operands
_NO_SECOND = 0


class Assembler:
    """Collects the bytes of one function."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def finish(self) -> bytes:
        """The function, with its jumps resolved."""
        for end, label in self._jumps:
            self._bytes[end - 4 : end] = (self._labels[label] - end).to_bytes(4, "little", signed=True)
        return bytes(self._bytes)

    def vector(
        self, opcode: Opcode, target: int, second: int, third: int | Place, more: int | None = None, wide: bool = True
    ) -> None:
        """An instruction of three operands. `more`: its constant byte; `wide`: 256 bits instead of 128."""
        base, index = (third, 0) if isinstance(third, int) else (third.base, third.step or 0)
        first = (~target >> 3 & 1) << 7 | (~index >> 3 & 1) << 6 | (~base >> 3 & 1) << 5 | opcode.map
        self._bytes += bytes((0xC4, first, (~second & 15) << 3 | wide << 2 | opcode.prefix, opcode.code))
        self._operand(target, third)
        if more is not None:
            self._bytes.append(more)

    def pair(
        self, opcode: Opcode, target: int, source: int | Place, more: int | None = None, wide: bool = True
    ) -> None:
        """An instruction of two operands."""
        self.vector(opcode, target, _NO_SECOND, source, more, wide)

    def blend(self, target: int, first: int, second: int, mask: int) -> None:
        """The second's elements where the mask's sign is set, the first's elsewhere."""
        self.vector(BLEND, target, first, second, mask << 4)

    def shift_left(self, target: int, source: int, bits: int) -> None:
        self.vector(SHIFT, 6, target, source, bits)

    def no_wide_state(self) -> None:
        self._bytes += b"\xc5\xf8\x77"

    def move(self, target: int, source: int | Place) -> None:
        self._plain(0x8B, target, source)

    def store(self, target: Place, source: int) -> None:
        self._plain(0x89, source, target)

    def add(self, target: int, source: int | Place) -> None:
        self._plain(0x03, target, source)

    def add_to(self, target: Place, source: int) -> None:
        self._plain(0x01, source, target)

    def compare(self, left: int, right: int | Place) -> None:
        self._plain(0x3B, left, right)

    def clear(self, target: int) -> None:
        self._plain(0x33, target, target)

    def add_number(self, target: int, number: int) -> None:
        self._with_number(0, target, number)

    def subtract_number(self, target: int, number: int) -> None:
        self._with_number(5, target, number)

    def and_number(self, target: int, number: int) -> None:
        self._with_number(4, target, number)

    def push(self, register: int) -> None:
        self._bytes += bytes((0x40 | register >> 3, 0x50 | register & 7))

    def pop(self, register: int) -> None:
        self._bytes += bytes((0x40 | register >> 3, 0x58 | register & 7))

    def back(self) -> None:
        self._bytes.append(0xC3)

    def label(self, name: str) -> None:
        self._labels[name] = len(self._bytes)

    def jump_if_less(self, label: str) -> None:
        self._jump(0x8C, label)

    def jump_if_not_less(self, label: str) -> None:
        self._jump(0x8D, label)

    def jump_if_zero(self, label: str) -> None:
        self._jump(0x84, label)

    def jump_if_not_zero(self, label: str) -> None:
        self._jump(0x85, label)

    def _jump(self, code: int, label: str) -> None:
        self._bytes += bytes((0x0F, code, 0, 0, 0, 0))
        self._jumps.append((len(self._bytes), label))

    def _plain(self, code: int, register: int, other: int | Place) -> None:
        """An instruction of two 64-bit operands."""
        base, index = (other, 0) if isinstance(other, int) else (other.base, other.step or 0)
        self._bytes += bytes((0x48 | register >> 3 << 2 | index >> 3 << 1 | base >> 3, code))
        self._operand(register, other)

    def _with_number(self, kind: int, target: int, number: int) -> None:
        self._bytes += bytes((0x48 | target >> 3, 0x81))
        self._operand(kind, target)
        self._bytes += number.to_bytes(4, "little", signed=True)

    def _operand(self, register: int, other: int | Place) -> None:
        """Which registers, or which place in memory, an instruction works on."""
        if isinstance(other, int):
            self._bytes.append(0xC0 | (register & 7) << 3 | other & 7)
            return
        index = 4 if other.step is None else other.step & 7  # 4: none
        self._bytes += bytes((0x84 | (register & 7) << 3, index << 3 | other.base & 7))
        self._bytes += other.offset.to_bytes(4, "little", signed=True)


class Executable:
    """Machine code in memory of its own, as a function of a pointer and two numbers. Freed with this object.

    Raises:
      OSError: the system gives no memory, or forbids to execute it.
    """

    def __init__(self, code: bytes) -> None:
        self._memory = mmap.mmap(-1, len(code), prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self._memory.write(code)
        whole = ctypes.c_char.from_buffer(self._memory)
        address = ctypes.addressof(whole)
        del whole  # or the memory could not be released
        size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mprotect.argtypes = [c_void_p, c_size_t, c_int]
        if libc.mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        self._function = _FUNCTION(address)

    def __call__(self, table: int, rows: int, columns: int) -> None:
        self._function(table, rows, columns)


_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_int64, ctypes.c_int64)
