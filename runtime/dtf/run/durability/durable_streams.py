"""Streams of random numbers whose position outlives the process: TensorFlow's Philox, and numpy's generators.

Owns how a position is written as numbers, and how the numbers of an earlier draw are drawn again (`Draw`). Which
streams there are, and where positions are kept, is `durable_resources`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from dtf.run.lib.philox import PhiloxDraws

__all__ = ["Course", "Draw", "Position", "kept_stream"]

Position: TypeAlias = tuple[int, ...]


class Draw:
    """One run of an operation that draws.

    Attributes:
      again: where its numbers begin when it has run before, and is only repeated; it goes on with each draw.
      began: where its first number was; None: it has drawn from no kept stream.
    """

    __slots__ = ("again", "began")

    def __init__(self, again: Position | None) -> None:
        self.again = again
        self.began: Position | None = None


class Course(Protocol):
    """Where a stream is, for all processes."""

    def begins(self, position: Position) -> Position:
        """Where to draw, for a stream that is at `position`."""

    def moved(self, position: Position) -> None:
        """Numbers were drawn up to here."""


def kept_stream(made: object, position: Position | None, course: Course) -> object | None:
    """As the stream `made`, from `position` on (None: from its beginning), which follows its course.
    None: `made` is no such stream.
    """
    if isinstance(made, PhiloxDraws):
        return _KeptDraws(made, made.counter if position is None else position[0], course)
    if isinstance(made, np.random.Generator) and isinstance(made.bit_generator, np.random.Philox):
        return _KeptGenerator(made.bit_generator, position, course)
    return None


class _KeptDraws(PhiloxDraws):
    def __init__(self, draws: PhiloxDraws, counter: int, course: Course) -> None:
        super().__init__(draws.key, counter)
        self._course = course

    def reserve(self, counters: int) -> int:
        (first,) = self._course.begins((self.counter,))
        if first != self.counter:
            self._course.moved((first + counters,))
            return first
        super().reserve(counters)
        self._course.moved((self.counter,))
        return first


class _KeptGenerator:
    """A numpy generator; each of its methods draws."""

    def __init__(self, bits: np.random.Philox, position: Position | None, course: Course) -> None:
        self._bits = bits
        self._generator = np.random.Generator(bits)
        self._course = course
        if position is not None:
            self._go_to(position)

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(self._generator, name)

        def draw(*arguments: object, **named: object) -> object:
            before = self._position()
            first = self._course.begins(before)
            if first != before:
                self._go_to(first)
            try:
                return method(*arguments, **named)
            finally:
                self._course.moved(self._position())
                if first != before:
                    self._go_to(before)

        return draw

    def _go_to(self, position: Position) -> None:
        numbers = [np.array(position[begin:end], np.uint64) for begin, end in ((0, 4), (4, 6), (6, 10))]
        self._bits.state = {
            "bit_generator": "Philox",
            "state": {"counter": numbers[0], "key": numbers[1]},
            "buffer": numbers[2],
            "buffer_pos": position[10],
            "has_uint32": position[11],
            "uinteger": position[12],
        }

    def _position(self) -> Position:
        state = self._bits.state
        arrays = state["state"]["counter"], state["state"]["key"], state["buffer"]
        numbers = [int(each) for array in arrays for each in array]
        return (*numbers, int(state["buffer_pos"]), int(state["has_uint32"]), int(state["uinteger"]))
