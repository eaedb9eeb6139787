"""Ports that nothing listens on just now."""

from __future__ import annotations

import os
import random
import socket

_FIRST, _LAST = 20_000, 32_000
"""Below what systems give to outgoing connections, one of which could take a port before its server does: also the one
that looks whether somebody listens there already, and then finds itself.
"""


def free_ports(count: int) -> list[int]:
    """Returns `count` distinct ports of the loopback interface."""
    found: list[int] = []
    for port in random.Random(os.urandom(8)).sample(range(_FIRST, _LAST), _LAST - _FIRST):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError("there are no free ports")
