"""Unfinished files: what is written aside, under names that say by whom, and what the next writer removes of it.

A checkpoint, an export, a state file is written aside and renamed when it is whole. Who is killed meanwhile leaves that
behind. Each such name ends in a token: host, process, and when the process began. A token of a process of this host
that has ended is abandoned at once; one of another host, or of another program, when nothing was written there for
`DTF_UNFINISHED_FILES_S` seconds, so that nobody's running save is disturbed on a shared file system.

Owns tokens and the removal. Which names a save uses is `checkpoint`'s, `files`' and the Saver's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import time
from collections.abc import Sequence

from dtf.wire import errors, filesystems

__all__ = ["AGE_VARIABLE", "is_abandoned", "new_token", "remove_abandoned"]

AGE_VARIABLE = "DTF_UNFINISHED_FILES_S"
_AGE_DEFAULT_S = 3600.0
# Of this library; of TensorFlow (tempstate and a decimal number); of older versions.
_FILE = re.compile(r"\.(?:tempstate|tmp)([0-9a-f]{32}|[0-9a-f]{16}|\d{10,20})$")
_FOLDER = re.compile(r"(?:_temp_|^temp-\d+-)([0-9a-f]{32})(?:$|/)")


def new_token() -> str:
    """32 hexadecimal digits for one unfinished file or folder of this process."""
    return f"{_host()}{os.getpid():08x}{_began(os.getpid()) or 0:08x}{secrets.token_hex(4)}"


def is_abandoned(token: str, written_at_s: float) -> bool:
    """Whether nobody writes any more under a name with that token.

    Args:
      written_at_s: when something was last written there, in seconds since the epoch.
    """
    if len(token) == 32 and token.startswith(_host()):
        process, began = int(token[8:16], 16), int(token[16:24], 16)
        return _began(process) != began
    return time.time() - written_at_s > _age_s()


def remove_abandoned(folder: str, names: Sequence[str] | None = None) -> None:
    """Removes what killed writers have left in a folder; what cannot be read or removed stays.

    Args:
      names: how the names of what may be removed begin; any by default.
    """
    with contextlib.suppress(OSError, errors.OpError):
        present = filesystems.listdir(folder or ".")
        for name in present:
            if names is None or name.startswith(tuple(names)):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(folder, name, present)


def _remove_if_abandoned(folder: str, name: str, present: Sequence[str]) -> None:
    path = os.path.join(folder, name)
    as_folder, as_file = _FOLDER.search(name), _FILE.search(name)
    if as_folder is not None:
        inside = filesystems.listdir(path)
        if name.startswith("temp-") or all(each.startswith("part") for each in inside):
            written_at_s = max(filesystems.getmtime(os.path.join(path, each)) for each in (*inside, "."))
            if is_abandoned(as_folder[1], written_at_s):
                filesystems.rmtree(path, ignore_errors=True)
    elif as_file is not None and is_abandoned(as_file[1], filesystems.getmtime(path)):
        whole = name[: as_file.start()]
        if whole.endswith(".index") and whole not in present:
            # The data were renamed already, and nothing says any more what is in them.
            data = f"{whole.removesuffix('index')}data-"
            for each in present:
                if each.startswith(data):
                    filesystems.remove(os.path.join(folder, each))
        filesystems.remove(path)


@functools.cache
def _host() -> str:
    """8 digits for this host since it was started, and for the processes that see each other's numbers there."""
    import hashlib  # only saves need these
    import socket

    words = [socket.gethostname()]
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            words.append(file.read().strip())
        words.append(os.readlink("/proc/self/ns/pid"))
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]
    return secrets.token_hex(4)  # where processes cannot be looked up, each is a host of its own


def _began(process: int) -> int | None:
    """When a process began, in ticks since its host did, modulo 2^32; None for a zombie, or without a process."""
    try:
        with open(f"/proc/{process}/stat", encoding="latin1") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19]) & 0xFFFFFFFF


def _age_s() -> float:
    text = os.environ.get(AGE_VARIABLE) or str(_AGE_DEFAULT_S)
    try:
        return float(text)
    except ValueError:
        message = f"The environment variable {AGE_VARIABLE} must be a number of seconds; it is {text!r}."
        raise errors.InvalidArgumentError.of(message) from None
