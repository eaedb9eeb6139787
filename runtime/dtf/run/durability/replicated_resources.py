"""ReplicatedResources: durable state that a backup at another place has, too (runtime/durability.md, `host`).

Owns terms and modes, what a record of a transaction carries for the backup, when answers may leave, and how the backup
takes records into its folder. Does not know how records travel (`dtf.places`).

    words of records    t: terms; m: mode, place of the primary, place of its backup (-1: none)
"""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np

from dtf.run.durability.durable_resources import DurableResources
from dtf.run.durability.journal import Block
from dtf.run.durability.records import packed_record
from dtf.run.interfaces import Done
from dtf.run.value_types import Array
from dtf.wire import errors
from dtf.wire.durability import KeptState, Place, described

__all__ = ["ALONE", "PAIR", "Follower", "Part", "Record", "ReplicatedResources", "Rows", "look_at"]

ALONE, PAIR = "alone", "pair"
_TERMS_KEPT = 64
_TERMS_SHOWN = 16
_PART_BYTES = 1 << 20
_BEHIND_MAX = 64
"""How many records a backup has taken and not read yet."""
_Value = TypeVar("_Value")


class Part(NamedTuple):
    """A part of a block of `size` bytes."""

    block: int
    size: int
    offset: int
    data: Array


class Rows(NamedTuple):
    """Rows of a block of `size` bytes that a transaction has changed, and their new bytes [rows, bytes of a row]."""

    block: int
    size: int
    rows: Array
    values: Array


class Record(NamedTuple):
    """One transaction for the backup.

    Attributes:
      text: the record.
      blocks: the blocks that the record names first, with their whole contents. The owner does not change them.
      rows: of blocks that it changed in place.
      dropped: numbers of blocks that are not used any more.
      is_whole: it replaces all records.
    """

    text: bytes
    blocks: Sequence[tuple[int, Array]]
    rows: Sequence[Rows] = ()
    dropped: Sequence[int] = ()
    is_whole: bool = False


class Follower(Protocol):
    """The way to the backup. `follow` is called in the order of the records and neither waits nor fails."""

    def follow(self, record: Record) -> None:
        """Sends a record."""

    def when_acknowledged(self, done: Callable[[], None], failed: Callable[[], None]) -> None:
        """Calls done() when the backup has every record that was sent up to now; failed() when it is lost."""


class ReplicatedResources(DurableResources):
    """As `DurableResources`, at one of the places of a task. `update_lock` guards terms, mode and follower, too.

    Attributes:
      place: which place this is.
      terms: "NUMBER.NAME" of each term that the state has passed through, the last ones.
      mode: of the last term, ALONE or PAIR; "": the folder is empty.
      primary, backup: their places in this mode; -1: none.
      follower: the way to the backup, if there is one.
      places: where the places of the task are now, for clients.
    """

    def __init__(self, folder: Path, place: int, is_only_read: bool = False) -> None:
        """Reads the folder, or makes it. Raises as `DurableResources`."""
        self.place = place
        self.terms: list[str] = []
        self.mode = ""
        self.primary = self.backup = -1
        self.follower: Follower | None = None
        self.places: tuple[Place, ...] = ()
        self._rows: dict[int, tuple[Block, list[Array]]] = {}
        self._dropped: list[int] = []
        self._raw: dict[int, Block] = {}
        self._behind: list[bytes] = []
        self._is_continued = False
        self._filling_mark = folder / "filling"
        super().__init__(folder, is_standby=True)
        if self._filling_mark.exists() and not is_only_read:
            self._forget_all()

    @property
    def is_empty(self) -> bool:
        """Whether there is no state here, or only a part of one."""
        return not self.lineage

    @property
    def is_filling(self) -> bool:
        """Whether only a part of the primary's state is here."""
        return self._filling_mark.exists()

    @property
    def kept(self) -> KeptState:
        """The state's name and terms."""
        return KeptState(self.lineage, tuple(self.terms))

    @property
    def term(self) -> int:
        """The number of the last term; 0: none."""
        return int(self.terms[-1].partition(".")[0]) if self.terms else 0

    @property
    def description(self) -> str:
        """See `DurableResources.description`."""
        return described(self.lineage, self.terms[-_TERMS_SHOWN:], self.places)

    # -- the primary

    def lead(self) -> None:
        """This place is the primary from now on, in a new term, alone. What a standby has read is taken over."""
        self.catch_up()
        self._is_continued = bool(self._raw)
        self._next_term()
        self.take_over()
        self._raw.clear()
        self.filled()

    def serve_again(self) -> None:
        """This place is the primary that it was before its process started."""
        self.take_over()

    def begin_term(self) -> None:
        """The primary goes on alone in a new term."""
        with self.update_lock:
            self.follower = None
            self._next_term()
            self._say(self._more_words())

    def pair_with(self, backup: int) -> None:
        """From this record on, answers wait for the follower."""
        with self.update_lock:
            self.mode, self.backup = PAIR, backup
            self._say(self._more_words())

    @property
    def is_paused(self) -> bool:
        """Whether no answer may leave because the backup is lost."""
        return self.mode == PAIR and self.follower is None

    def check_serving(self) -> None:
        """See `DurableResources.check_serving`."""
        if self.is_paused:
            raise _paused()

    def confirming(self, done: Done[_Value]) -> Done[_Value]:
        """See `DurableResources.confirming`."""

        def answered(value: _Value | None = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                done(error=error)
                return
            if self.mode == ALONE:
                done(cast(_Value, value))
                return
            follower = self.follower
            if follower is None:
                done(error=_paused())
            else:
                follower.when_acknowledged(lambda: done(cast(_Value, value)), lambda: done(error=_paused()))

        return answered

    def fill(self, follower: Follower, send: Callable[[Part], None], may_go_on: Callable[[], bool]) -> bool:
        """Attaches a follower, which gets all of the state, and then each record. Whether it has got all.

        Args:
          send: called with the parts of blocks, in the order of the records.
          may_go_on: called before each part; waits while too much is on its way. False ends the filling.
        """
        with self.update_lock:
            self._dropped, self._rows = [], {}
            blocks = [(each, each.block) for each in self._variables.values() if each.block is not None]
            follower.follow(Record(self._everything(), [], is_whole=True))
            self.follower = follower
        for variable, block in blocks:
            for offset in range(0, block.nbytes, _PART_BYTES):
                if not may_go_on():
                    return False
                with self.update_lock:
                    if self.follower is not follower:
                        return False
                    if variable.block is not block:
                        break  # a record has brought all of the value
                    send(Part(block.number, block.nbytes, offset, block.bytes[offset : offset + _PART_BYTES].copy()))
        return True

    @property
    def bytes_in_blocks(self) -> int:
        """The bytes of all values in blocks; of those that a standby has so far."""
        blocks = [each.block for each in list(self._variables.values())]
        return sum(each.nbytes for each in (*blocks, *list(self._raw.values())) if each is not None)

    def rows_change(self, block: Block, rows: Array) -> None:
        """See `DurableResources.rows_change`."""
        if self.follower is not None:
            self._rows.setdefault(block.number, (block, []))[1].append(rows.reshape(-1))

    def _written(self, text: bytes, blocks: list[Block], is_whole: bool = False) -> None:
        follower = self.follower
        if follower is None:
            return
        changed, self._rows = self._rows, {}
        dropped, self._dropped = self._dropped, []
        whole = {block.number for block in blocks}
        rows = [_taken(block, parts) for number, (block, parts) in changed.items() if number not in whole]
        follower.follow(Record(text, [(each.number, each.array) for each in blocks], rows, dropped, is_whole))

    def _drop_block(self, number: int) -> None:
        super()._drop_block(number)
        if self.follower is not None:
            self._dropped.append(number)

    def _next_term(self) -> None:
        self.terms = [*self.terms, f"{self.term + 1}.{secrets.token_hex(4)}"][-_TERMS_KEPT:]
        self.mode, self.primary, self.backup = ALONE, self.place, -1

    def _begin(self) -> None:
        if self._is_continued:
            self._say({"g": [[self.generation]], **self._more_words()})
        else:
            super()._begin()

    def _more_words(self) -> dict[str, list[list[object]]]:
        return {"t": [[*self.terms]], "m": [[self.mode, self.primary, self.backup]]}

    def _say(self, words: dict[str, list[list[object]]]) -> None:
        text = packed_record(words, [])
        self.journal.append(text)
        self._written(text, [])

    def _read_words(self, words: dict[str, list[list[object]]], values: Sequence[Array]) -> None:
        super()._read_words(words, values)
        if "t" in words:
            self.terms = [str(each) for each in words["t"][0]]
        if "m" in words:
            mode, primary, backup = words["m"][0]
            self.mode, self.primary, self.backup = str(mode), int(cast(int, primary)), int(cast(int, backup))

    # -- the backup

    def begin_filling(self, text: bytes) -> None:
        """Forgets what is here, and takes the record that says all; blocks come later."""
        self._filling_mark.touch()
        self._forget_all()
        self.journal.begin_anew(text)
        self.apply(text)

    def filled(self) -> None:
        """All blocks are here."""
        self.catch_up()
        self._filling_mark.unlink(missing_ok=True)

    def part(self, number: int, size: int) -> Array:
        """The bytes of a block, which the caller may write until a record names it; made if it is new."""
        block = self._raw.get(number)
        if block is None or block.nbytes != size:
            block = self._raw[number] = self.journal.block_at(number, size)
        return block.bytes

    def take(self, text: bytes, rows: Sequence[Rows], dropped: Sequence[int], is_whole: bool) -> None:
        """Takes one transaction whose new blocks have been written. `catch_up` reads what its record says."""
        for each in rows:
            self.part(each.block, each.size)
            self.journal.save(self._raw[each.block], each.rows, each.values.shape[1])
        for each in rows:
            self._raw[each.block].bytes.reshape(-1, each.values.shape[1])[each.rows] = each.values
        if is_whole:
            self.journal.begin_anew(text)
        else:
            self.journal.append(text)
        self._behind.append(text)
        if len(self._behind) > _BEHIND_MAX:
            self.catch_up()
        for number in dropped:
            self._raw.pop(number, None)
            self.journal.drop_block(number)

    def catch_up(self) -> None:
        """Reads the records that have been taken."""
        behind, self._behind = self._behind, []
        for text in behind:
            self.apply(text)

    def _load_block(self, number: int, dtype: np.dtype, shape: tuple[int, ...]) -> Block:
        raw = self._raw.get(number)
        if raw is None:
            return super()._load_block(number, dtype, shape)
        return self.journal.adopt(number, cast(mmap.mmap, raw.bytes.base), dtype, shape)

    def _forget_all(self) -> None:
        self._raw.clear()
        self._behind.clear()
        self._forget_read()
        self.terms, self.mode, self.primary, self.backup = [], "", -1, -1
        self.journal.clear()


def look_at(folder: Path) -> dict[str, object]:
    """What a folder has. Nothing in it changes.

    Raises:
      FailedPreconditionError: a process has it.
    """
    with closing(ReplicatedResources(folder, -1, is_only_read=True)) as found:
        return {
            "lineage": found.lineage,
            "term": found.term,
            "terms": found.terms,
            "mode": found.mode,
            "primary": found.primary,
            "backup": found.backup,
            "is_complete": not found.is_empty and not found.is_filling,
        }


def _taken(block: Block, parts: list[Array]) -> Rows:
    """The rows of a block as they are now."""
    count = block.array.shape[0]
    rows = np.unique(np.concatenate(parts)).astype(np.int64) if len(parts) > 1 else parts[0].astype(np.int64)
    rows = rows.clip(0, count - 1)
    return Rows(block.number, block.nbytes, rows, block.bytes.reshape(count, -1)[rows])


def _paused() -> errors.OpError:
    return errors.UnavailableError.of(
        "The parameter server is paused: its backup is lost, and it may not confirm without it. It goes on when the "
        "backup is back, or with `python -m dtf.places alone`."
    )
