"""What checkpoints a folder holds: lists, verifies and removes them.

Owns the view of one folder; the formats are `wire.checkpoint`'s, the state file `train.checkpoint_management`'s. Only
`prune` changes files, and it never removes the newest whole checkpoint, nor what another one needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dtf.train.checkpoint_management import (
    get_checkpoint_state,
    remove_checkpoint,
    remove_unfinished,
    update_checkpoint_state,
)
from dtf.wire import checkpoint, errors, filesystems
from dtf.wire.checkpoint_v1 import open_checkpoint

__all__ = ["NEWEST", "OLDER", "UNLISTED", "Found", "Pruned", "found_in", "problems_of", "prune"]

NEWEST, OLDER, UNLISTED = "newest", "kept", "unlisted"
"""Standings of a checkpoint in the state file: named as the newest, named too, not named."""
_STEP = re.compile(r"-(\d+)$")


@dataclass(frozen=True)
class Found:
    """One checkpoint.

    Attributes:
      prefix: its path without endings.
      step: the number at the end of its name; None without one.
      written_at: seconds since the epoch.
      size: bytes of its files, the meta graph included.
      tensors: how many names it holds; None where its index cannot be read.
      standing: NEWEST, OLDER or UNLISTED.
      based_on: the name of the checkpoint that this increment needs; "" where it is whole.
      problem: "" where the index can be read and the data files are long enough; contents are `problems_of`'s.
    """

    prefix: str
    step: int | None
    written_at: float
    size: int
    tensors: int | None
    standing: str
    based_on: str
    problem: str

    @property
    def name(self) -> str:
        """The last part of the prefix."""
        return os.path.basename(self.prefix)


@dataclass(frozen=True)
class Pruned:
    """What `prune` removes and keeps, oldest first, and why."""

    removed: list[Found]
    kept: list[tuple[Found, str]]


def found_in(folder: str) -> list[Found]:
    """The checkpoints of a folder, oldest first: those with an index, and those that the state file names.

    The state file has its own in their order, which the times of files do not have in a copied folder. Others stand
    among them by their times.

    Raises:
      NotFoundError: the folder does not exist.
    """
    if not filesystems.isdir(folder):
        raise errors.NotFoundError.of(f"{folder}: no such folder")
    state = get_checkpoint_state(folder)
    listed = list(state.all_model_checkpoint_paths) if state is not None else []
    newest = state.model_checkpoint_path if state is not None else ""
    names = [name.removesuffix(".index") for name in filesystems.listdir(folder) if name.endswith(".index")]
    prefixes = [os.path.join(folder, name) for name in names]
    known = {_place(prefix) for prefix in prefixes}
    for path in [*listed, newest]:
        if path and _place(path) not in known:
            prefixes.append(path)
            known.add(_place(path))
    whole = {_place(path) for path in listed}
    found = [_found(prefix, whole, newest) for prefix in prefixes]
    found.sort(key=lambda each: (each.written_at, each.step or 0))
    in_order = [*listed, newest] if newest else listed
    ranks = {os.path.basename(path): number for number, path in enumerate(in_order)}  # a copy's are of the original
    ranked = [each for each in found if each.name in ranks]
    ordered = iter(sorted(ranked, key=lambda each: ranks[each.name]))
    return [next(ordered) if each.name in ranks else each for each in found]


def _place(prefix: str) -> str:
    """The prefix of a checkpoint, the same by whatever links the way to its folder goes."""
    folder, name = os.path.split(prefix)
    return os.path.join(os.path.realpath(folder), name)


def _found(prefix: str, listed: set[str], newest: str) -> Found:
    path = _place(prefix)
    standing = NEWEST if newest and path == _place(newest) else OLDER if path in listed else UNLISTED
    files = [*checkpoint.bundle_files(prefix), *filesystems.glob(f"{_escaped(prefix)}.meta")]
    size, written_at = 0, 0.0
    for file in files:
        try:
            status = filesystems.stat(file)
        except OSError:  # removed meanwhile
            continue
        size += status.size
        if not file.endswith(".meta"):
            written_at = max(written_at, status.mtime_ns / 1e9)
    tensors, based_on, problem = None, "", ""
    try:
        reader = open_checkpoint(prefix)
        tensors = len(reader.keys())
        based_on = os.path.basename(next(iter(reader.bases()), ""))
        if not reader.is_whole():
            problem = "files are missing or cut short"
    except errors.OpError as error:
        problem = error.message
    step = _STEP.search(prefix)
    return Found(prefix, int(step[1]) if step else None, written_at, size, tensors, standing, based_on, problem)


def _escaped(prefix: str) -> str:
    import glob

    return glob.escape(prefix)


def problems_of(prefix: str) -> Iterator[str]:
    """Reads all of a checkpoint and yields what is wrong with it: the file and the tensor, one line each."""
    try:
        reader = open_checkpoint(prefix)
    except errors.OpError as error:
        yield error.message
        return
    for name in list(reader.keys()):
        try:
            reader.read(name)
        except errors.OpError as error:
            yield error.message


def prune(folder: str, keep: int, every_hours: float | None = None, is_trial: bool = False) -> Pruned:
    """Removes all but the newest `keep` whole checkpoints, and what killed saves have left.

    A checkpoint that cannot be read does not count, and is removed. The newest whole one stays in any case, and so do
    those that a kept increment is based on. Checkpoints of other folders are left alone: the state file of a copied
    folder names those of the original.

    Args:
      every_hours: besides, one for each so many hours stays.
      is_trial: change nothing, only say.

    Raises:
      ValueError: `keep` is below 1.
      NotFoundError: the folder does not exist.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}; at least the newest checkpoint must stay")
    home = os.path.realpath(folder)
    found = [each for each in found_in(folder) if os.path.dirname(_place(each.prefix)) == home]
    reasons = _kept(found, keep, every_hours)
    removed = [each for each in found if each.prefix not in reasons]
    if not is_trial:
        kept = [each.prefix for each in found if each.prefix in reasons]
        if kept and removed:  # first the names, then the files: a name never stands for nothing
            update_checkpoint_state(folder, kept[-1], kept)
        for each in removed:
            remove_checkpoint(each.prefix)
        remove_unfinished(folder)
    return Pruned(removed, [(each, reasons[each.prefix]) for each in found if each.prefix in reasons])


def _kept(found: Sequence[Found], keep: int, every_hours: float | None) -> dict[str, str]:
    """The prefixes that stay, each with its reason."""
    whole = [each for each in found if not each.problem]
    reasons = {each.prefix: f"one of the newest {keep}" for each in whole[-keep:]}
    if every_hours is not None:
        last: float | None = None
        for each in whole:
            if last is None or each.written_at - last >= every_hours * 3600:
                reasons.setdefault(each.prefix, f"one of every {every_hours:g} hours")
                last = each.written_at
    by_place = {_place(each.prefix): each.prefix for each in found}
    for prefix in list(reasons):
        for base in open_checkpoint(prefix).bases():
            if _place(base) in by_place:
                reasons.setdefault(by_place[_place(base)], f"{os.path.basename(prefix)} is based on it")
    return reasons
