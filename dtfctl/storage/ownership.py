"""What belongs to this user alone: folders that nobody else may enter, sockets at whose other end is nobody else."""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path

from dtfctl.errors import NotPrivate

_PEER = struct.Struct("3i")


def make_private(folder: Path) -> None:
    """Makes a folder that only this user may enter, or sees to it that one which is there is such a folder.

    Raises:
      NotPrivate: it belongs to another user, lets other users in, or another user could replace it.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder)
    around = os.stat(folder.parent)
    if around.st_mode & 0o022 and not around.st_mode & stat.S_ISVTX:
        raise NotPrivate(
            f"other users may replace {folder}: {folder.parent} is writable by them; chmod go-w {folder.parent}, "
            "or use another --state-dir"
        )


def check_private(folder: Path) -> None:
    """Raises NotPrivate, unless only this user may enter the folder."""
    found = os.stat(folder)
    if found.st_uid != os.geteuid():
        raise NotPrivate(f"{folder} belongs to another user (uid {found.st_uid}); use another --state-dir")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise NotPrivate(
            f"{folder} is readable by other users (mode {mode:04o}) and holds keys and secrets: "
            f"chmod 700 {folder}, and check its content for changes by others"
        )


def stranger(connection: socket.socket) -> str:
    """Who is at the other end of a Unix socket, "" if it is this user (or root, who may all)."""
    pid, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return "" if user in (0, os.geteuid()) else f"pid {pid} of uid {user}"
