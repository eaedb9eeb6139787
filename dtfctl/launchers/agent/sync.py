"""Takes in the files of a folder that differ here; ../sync.py is the other end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dtfctl.launchers.agent.lines import Lines, write_line
from dtfctl.launchers.agent.places import absolute
from dtfctl.launchers.agent.protocol import FILE, WAY
from dtfctl.wire.messages import BadMessage, checked, table

MANIFEST = ".dtfctl-sync.json"
"""In the folder that is synced: what was brought there, so that what the user deletes is deleted there too."""

MTIME_TOLERANCE_NS = 2000


def sync(lines: Lines, folder: str, files: Mapping[str, Sequence[Any]], inode: int = 0) -> dict[str, Any]:
    """`files` is path -> [size, mtime in ns, mode, target of a link or ""], all below `folder`. `inode` is that of the
    folder from which they come: where it is the same and nothing differs, the two are one folder that is shared.

    Answers with those that differ here; then comes either a tar of them, or, when rsync has brought them, nothing.
    Only files that an earlier sync brought, and that are as it left them, are ever removed.
    """
    place = absolute(folder)
    os.makedirs(place, exist_ok=True)
    os.umask(0o022)
    for path in files:
        if not is_below(path):
            raise OSError(0, "lies outside the folder", path)
    former = former_files(place)
    gone = [path for path in former if path not in files and is_same(place, path, former[path])]
    wanted = [path for path, entry in files.items() if not is_same(place, path, entry)]
    refuse_links(place, wanted)
    write_line({"folder": place, "wanted": wanted})
    way = checked(lines.wait(), WAY)["way"]
    if way == "tar":
        take_tar(lines, place, set(wanted))
    for path in gone:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(place, path))
        with contextlib.suppress(OSError):
            os.removedirs(os.path.dirname(os.path.join(place, path)))
    missing = []
    for path in wanted:
        if way == "tar" and not files[path][3]:
            with contextlib.suppress(OSError):
                os.utime(os.path.join(place, path), ns=(files[path][1], files[path][1]))
        if not is_same(place, path, files[path]):
            missing.append(path)
    if not wanted and os.stat(place).st_ino == inode:
        return {"missing": [], "removed": []}
    aside = os.path.join(place, f"{MANIFEST}.{os.getpid()}")
    os.makedirs(place, exist_ok=True)
    with open(aside, "w") as file:
        json.dump({path: entry for path, entry in files.items() if path not in missing}, file)
    os.replace(aside, os.path.join(place, MANIFEST))
    return {"missing": missing, "removed": gone}


def former_files(place: str) -> dict[str, Sequence[Any]]:
    try:
        with open(os.path.join(place, MANIFEST), "rb") as file:
            former = checked(file.read(), table(FILE))
    except (OSError, BadMessage):
        return {}
    return {path: entry for path, entry in former.items() if is_below(path)}


def is_below(path: str) -> bool:
    return path != "" and not path.startswith("/") and ".." not in path.split("/")


def is_same(place: str, path: str, entry: Sequence[Any]) -> bool:
    size, mtime_ns, mode, target = entry
    try:
        found = os.lstat(os.path.join(place, path))
        if target or stat.S_ISLNK(found.st_mode):
            return bool(target) and os.readlink(os.path.join(place, path)) == target
    except OSError:
        return False
    is_equal = found.st_size == size and bool(found.st_mode & 0o100) == bool(mode & 0o100)
    return is_equal and stat.S_ISREG(found.st_mode) and abs(found.st_mtime_ns - mtime_ns) <= MTIME_TOLERANCE_NS


def take_tar(lines: Lines, place: str, wanted: set[str]) -> None:
    """Each file is complete or as it was before. What is no wanted file is not taken."""
    stream: Any = lines  # of a file, tarfile uses read() alone
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.name not in wanted or not (member.isreg() or member.issym()):
                continue
            path = os.path.join(place, member.name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            aside = f"{path}.{os.getpid()}.dtfctl"
            if member.issym():
                os.symlink(member.linkname, aside)
            else:
                content = archive.extractfile(member)
                assert content is not None
                with open(aside, "wb") as file:
                    shutil.copyfileobj(content, file)
                os.chmod(aside, member.mode & 0o777)
            if os.path.isdir(path) and not os.path.islink(path):
                os.unlink(aside)
                raise OSError(0, "is a folder here and a file there", path)
            os.replace(aside, path)


def refuse_links(place: str, paths: Iterable[str]) -> None:
    """Through real folders only: a link on the way could lead out of the place."""
    for folder in {os.path.dirname(path) for path in paths}:
        while folder:
            path = os.path.join(place, folder)
            if os.path.islink(path):
                raise OSError(0, "is a link on this host, and files must be copied below it", path)
            folder = os.path.dirname(folder)
