"""Ports that nothing else takes while the tests of a module run."""

from __future__ import annotations

import atexit
import os
import random
import socket

_FIRST, _LAST = 20_000, 32_000
"""Below the ports of outgoing connections, so that a client which connects before its server listens never connects
to itself.
"""
_reserved: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Reserves and returns `count` distinct ports of the loopback interface.

    Servers with SO_REUSEADDR can listen there. Another caller, in another process too, gets other ports.
    """
    found: list[socket.socket] = []
    for port in random.Random(os.urandom(8)).sample(range(_FIRST, _LAST), _LAST - _FIRST):
        if len(found) == count:
            break
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", port))
        except OSError:
            holder.close()
            continue
        found.append(holder)
    _reserved.extend(found)
    if len(found) < count:
        raise OSError(f"only {len(found)} of {count} ports are free")
    for holder in found:
        # Set after the bind: a port that another program has with SO_REUSEADDR must make the bind fail.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return [holder.getsockname()[1] for holder in found]


@atexit.register
def release_ports() -> None:
    """Frees all that this process has reserved."""
    while _reserved:
        _reserved.pop().close()
