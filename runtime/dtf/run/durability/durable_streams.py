"""Streams of random numbers whose position outlives the process: TensorFlow's Philox, and numpy's generators.

Owns how a position is written as numbers. Which streams there are, and where positions are kept, is
`durable_resources`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dtf.run.lib.philox import PhiloxDraws

__all__ = ["Position", "kept_stream"]

Position: TypeAlias = tuple[int, ...]
_Moved: TypeAlias = Callable[[Position], None]


def kept_stream(made: object, position: Position | None, moved: _Moved) -> object | None:
    """As the stream `made`, from `position` on (None: from its beginning); calls moved(position) after each draw.
    None: `made` is no such stream.
    """
    if isinstance(made, PhiloxDraws):
        return _KeptDraws(made, made.counter if position is None else position[0], moved)
    if isinstance(made, np.random.Generator) and isinstance(made.bit_generator, np.random.Philox):
        return _KeptGenerator(made.bit_generator, position, moved)
    return None


class _KeptDraws(PhiloxDraws):
    def __init__(self, draws: PhiloxDraws, counter: int, moved: _Moved) -> None:
        super().__init__(draws.key, counter)
        self._moved = moved

    def reserve(self, counters: int) -> int:
        first = super().reserve(counters)
        self._moved((self.counter,))
        return first


class _KeptGenerator:
    """A numpy generator; each of its methods draws."""

    def __init__(self, bits: np.random.Philox, position: Position | None, moved: _Moved) -> None:
        self._bits = bits
        self._generator = np.random.Generator(bits)
        self._moved = moved
        if position is not None:
            numbers = [np.array(position[begin:end], np.uint64) for begin, end in ((0, 4), (4, 6), (6, 10))]
            bits.state = {
                "bit_generator": "Philox",
                "state": {"counter": numbers[0], "key": numbers[1]},
                "buffer": numbers[2],
                "buffer_pos": position[10],
                "has_uint32": position[11],
                "uinteger": position[12],
            }

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(self._generator, name)

        def draw(*arguments: object, **named: object) -> object:
            try:
                return method(*arguments, **named)
            finally:
                self._moved(self._position())

        return draw

    def _position(self) -> Position:
        state = self._bits.state
        arrays = state["state"]["counter"], state["state"]["key"], state["buffer"]
        numbers = [int(each) for array in arrays for each in array]
        return (*numbers, int(state["buffer_pos"]), int(state["has_uint32"]), int(state["uinteger"]))
