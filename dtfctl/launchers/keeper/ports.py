"""Ports that are bound, and do not listen, for tasks that have no process just now."""

from __future__ import annotations

import contextlib
import errno
import random
import socket

from dtfctl.launchers.keeper import CHOSEN_PORTS

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Sequence

    from dtfctl.launchers.keeper.records import Entry


OUTGOING_PORTS = "/proc/sys/net/ipv4/ip_local_port_range"


class Ports:
    """By task. All that is held is let go with the process that has this object."""

    def __init__(self) -> None:
        self.held: dict[str, socket.socket] = {}

    def hold(self, task: str, address: str, port: int, fixed: bool, within: Sequence[int] | None = None) -> int:
        """Returns the port. Raises OSError, and then the task keeps what it had."""
        holder = bound(address, port, fixed, within)
        self.release(task)
        self.held[task] = holder
        bound_port: int = holder.getsockname()[1]
        return bound_port

    def release(self, task: str) -> None:
        if task in self.held:
            self.held.pop(task).close()

    def hold_again(self, entry: Entry) -> None:
        """The port of a task without a process stays out of strangers' reach."""
        if entry.address is not None and entry.task not in self.held:
            with contextlib.suppress(OSError):
                address, port = entry.address
                self.held[entry.task] = bound(address, port, fixed=True)


def bound(address: str, port: int, fixed: bool, within: Sequence[int] | None = None) -> socket.socket:
    """A bound socket that does not listen; `within` are the first and the last port to choose from.

    A fixed port is taken with SO_REUSEADDR, which forgives lingering connections. A chosen one is taken
    without: that is refused when anybody has it bound, another keeper's holder too.
    """
    candidates = [port] if port else []
    if not fixed:
        choice = CHOSEN_PORTS if within is None else range(within[0], within[1] + 1)
        outgoing = outgoing_ports()
        quiet = [port for port in choice if port not in outgoing] or choice
        candidates += random.sample(quiet, min(200, len(quiet)))
    for number, candidate in enumerate(candidates):
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if fixed:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((address, candidate))
            return holder
        except OSError as error:
            holder.close()
            if error.errno != errno.EADDRINUSE or number == len(candidates) - 1:
                raise
    raise AssertionError("no candidate")


def outgoing_ports() -> range:
    """The ports of outgoing connections here: one of them could take a port between its holder and its task."""
    with contextlib.suppress(OSError, ValueError):
        with open(OUTGOING_PORTS, encoding="ascii") as file:
            first, last = file.read().split()
        return range(int(first), int(last) + 1)
    return range(0)
