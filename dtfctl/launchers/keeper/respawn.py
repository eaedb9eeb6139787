"""When the keeper starts the daemon again, and how."""

from __future__ import annotations

import os

from dtfctl.launchers.keeper.program import default_signals, dying, leave

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from typing import Any

DELAY_S = 0.1
DELAY_S_MAX = 10.0


class Respawn:
    """The time of the next start. Delays double while starts fail, so that a daemon that cannot run costs little."""

    def __init__(self) -> None:
        self.command: dict[str, Any] = {}
        """`argv`, `environment` and `log`; empty while no daemon is wanted."""
        self.at: float | None = None
        self._delay_s = DELAY_S
        self._connected_at: float | None = None

    def connected(self, now: float) -> None:
        """A daemon is there."""
        self.at = None
        self._connected_at = now

    def lost(self, now: float) -> None:
        """The daemon that was connected has gone: the first start follows soon if it had run for a while."""
        if self._connected_at is not None and now - self._connected_at > DELAY_S_MAX:
            self._delay_s = DELAY_S
        self._connected_at = None
        self.plan(now)

    def plan(self, now: float) -> None:
        """Sets the time of the next start, in case the present one fails."""
        if self.command:
            self.at = now + self._delay_s
            self._delay_s = min(DELAY_S_MAX, self._delay_s * 2)

    def end(self) -> None:
        """No daemon is wanted any more."""
        self.command = {}
        self.at = None


def start_again(command: dict[str, Any]) -> int:
    """Starts the daemon of a `Respawn.command` in a session of its own; returns its pid."""
    pid = os.fork()
    if pid == 0:
        with dying():
            os.setsid()
            leave()
            log = os.open(command["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            null = os.open(os.devnull, os.O_RDONLY)
            for target, source in ((0, null), (1, log), (2, log)):
                os.dup2(source, target)
            default_signals()
            os.execve(command["argv"][0], command["argv"], command["environment"])
    return pid
