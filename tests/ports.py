"""Ports that nothing listens on just now."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """Returns `count` distinct ports of the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return [held.getsockname()[1] for held in sockets]
    finally:
        for held in sockets:
            held.close()
