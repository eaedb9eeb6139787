"""Containers that grow one element at a time, as queues and buffers of datasets do: the end of memory is an error.

A tensor has the free memory looked at before it is made (`limits.check_room`). What grows slowly never asks for much at
once; it counts what it takes, and has the free memory looked at now and then. Without that, a batch of 2^40 elements
ends the process, and with it all that a parameter server holds.
"""

from __future__ import annotations

from collections.abc import Collection

from dtf.run.interfaces import Value
from dtf.wire import errors, limits

__all__ = ["Growth"]

LOOKED_AT_EACH_BYTES = 1 << 26
"""The free memory is looked at (100 us) whenever so much has been added."""

_ELEMENT_BYTES = 128
"""About what a small value takes beside its data."""


class Growth:
    """What one container has taken since the free memory was looked at. Not guarded: a lost count is no harm."""

    __slots__ = ("_most", "_taken", "_what")

    def __init__(self, what: str) -> None:
        """`what` names the container in the message: "a shuffle buffer"."""
        self._what = what
        self._taken = self._most = 0

    def add(self, values: Collection[Value], size: int) -> None:
        """Called before the values are added to `size` others. What only takes the place of others is not counted.

        Raises:
          ResourceExhaustedError: little memory is free: less than a sixteenth of the machine's, or than 1 GB.
        """
        if size < self._most:
            return
        self._most = size + 1
        taken = self._taken + len(values) * _ELEMENT_BYTES
        for value in values:
            taken += getattr(value, "nbytes", 0)
        if taken < LOOKED_AT_EACH_BYTES:
            self._taken = taken
            return
        self._taken = 0
        free = limits.available_bytes()
        if free < min(limits.machine_bytes() >> 4, 1 << 30):
            raise errors.ResourceExhaustedError.of(
                f"OOM: {self._what} cannot grow: only {limits.text_of(free)} of memory are free"
            )
