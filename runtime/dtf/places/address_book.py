"""AddressBook: where the places of a task are, when some of them have moved since the program of this one was started.

Owns the file `places` of the folder. A place that moves starts with all addresses and connects to the primary, which
notes where it is. So each place knows where the other one was when they were last connected, also after a new start of
its program with the settings of long ago. Clients learn the addresses from the primary.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dtf.wire import errors
from dtf.wire.durability import Place, parse_place

__all__ = ["AddressBook"]


class AddressBook:
    """The addresses of a task's places. The caller's lock guards `note`; others read."""

    def __init__(self, folder: Path, own: int, given: Sequence[Place]) -> None:
        """Reads what the folder says of the other places beside what the program was `given`.

        Args:
          folder: of the place; it exists.
          own: the number of this place, whose address is as given.
          given: by number.
        """
        self._file = folder / "places"
        self._own = own
        self._at = [[place] for place in given]
        for number, noted in self._noted().items():
            if number != own and noted not in self._at[number]:
                self._at[number].append(noted)  # which of the two is newer is not known: both are tried

    def has(self, number: int) -> bool:
        """Whether the task has a place of this number."""
        return 0 <= number < len(self._at)

    def others(self) -> list[tuple[int, Place]]:
        """(number, address) of the other places, one after another."""
        return [(number, at) for number, known in enumerate(self._at) if number != self._own for at in known]

    def all(self) -> tuple[Place, ...]:
        """All addresses, this place's first."""
        return (*self._at[self._own], *(at for _, at in self.others()))

    def note(self, number: int, at: Place) -> bool:
        """A place was met at this address. Returns whether that is new."""
        if self._at[number] == [at]:
            return False
        self._at[number] = [at]
        text = json.dumps({str(other): str(known[0]) for other, known in enumerate(self._at) if len(known) == 1})
        with suppress(OSError):  # a full disk: it is learned again
            temporary = self._file.with_suffix(".new")
            temporary.write_text(text)
            temporary.replace(self._file)
        return True

    def _noted(self) -> dict[int, Place]:
        try:
            document = json.loads(self._file.read_text())
            found = {int(number): parse_place(str(text)) for number, text in document.items()}
        except (OSError, ValueError, AttributeError, errors.OpError):
            return {}
        return {number: at for number, at in found.items() if self.has(number)}
