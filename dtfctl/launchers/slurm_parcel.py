"""The cluster file's folder as a text in a batch script: for a first node that shares no file system with this machine.

The parcel has the files that hosts get (sync.manifest), the cluster files, and the files of variables that these read.
"""

from __future__ import annotations

import base64
import io
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dtfctl.errors import HostsUnusable
from dtfctl.launchers.agent.look import size_of
from dtfctl.launchers.sync import IGNORE_FILE, manifest
from dtfctl.values.plan import ClusterPlan
from dtfctl.wording import reason_and_file

BYTES_MAX = 3 << 20
"""Of the text. Slurm takes scripts of at most 4 MiB, unless its max_script_size says otherwise."""

LINE = 76
MORE_FILES = ".dtfctl"
"""The folder in the parcel for cluster files from elsewhere."""


@dataclass(frozen=True)
class Parcel:
    """`files` are the cluster files by their paths in the parcel; `words` say what is in it."""

    text: str
    files: tuple[str, ...]
    words: str


def packed(plan: ClusterPlan, files: Iterable[str], read: Iterable[str]) -> Parcel:
    """`files` are the cluster files, the first of them in `plan.folder`; `read` are further files that they read.
    Raises HostsUnusable."""
    top = Path(plan.folder)
    try:
        wanted = {path: str(top / path) for path in manifest(plan)}
        names = []
        for number, file in enumerate(files):
            names.append(_within(top, file) or f"{MORE_FILES}/{number}-{os.path.basename(file)}")
            wanted[names[-1]] = file
        for file in read:
            name = _within(top, file)
            if not name:
                raise HostsUnusable(
                    f"{file} lies outside of {top}, which alone is brought to the nodes; move it there "
                    "(engine.slurm.sync)"
                )
            wanted[name] = file
        data = _archive(wanted, {path for path, values in manifest(plan).items() if values[3]})
    except (ValueError, OSError) as error:
        raise HostsUnusable(str(error) if isinstance(error, ValueError) else reason_and_file(error)) from None
    text = base64.b64encode(data).decode()
    if len(text) > BYTES_MAX:
        raise HostsUnusable(
            f"{top} takes {size_of(len(text))} in the batch script, which may have {size_of(BYTES_MAX)}: list "
            f"unneeded files in {IGNORE_FILE}, or put the folder on a file system that the nodes share "
            "(engine.slurm.sync: false)"
        )
    lines = [text[begin : begin + LINE] for begin in range(0, len(text), LINE)]
    return Parcel("\n".join(lines), tuple(names), f"{len(wanted)} files of {top}, {size_of(len(text))} as text")


def _archive(wanted: dict[str, str], links: set[str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(wanted.items()):
            archive.dereference = name not in links
            archive.add(path, name, recursive=False, filter=_without_owner)
            if buffer.tell() > BYTES_MAX:
                break  # too large by now, whatever follows
    return buffer.getvalue()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _within(top: Path, file: str) -> str:
    """The path below `top`, "" for a file elsewhere."""
    relative = os.path.relpath(file, top)
    return "" if relative.startswith("..") else relative
