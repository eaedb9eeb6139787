"""How many sessions one peer has open at a task, so that none takes them all (`limits.SESSIONS_PER_PEER`).

Owns which open session is whose. A peer is an address without its port; all processes of this host are one peer.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from urllib.parse import unquote

from dtf.channel.listener import A_PROCESS_OF_THIS_HOST
from dtf.wire import limits

__all__ = ["PeerSessions", "address_of"]

_THIS_HOST = "this host"
_LOOKED_AT_FROM = 64
"""So many handles of ended sessions are kept without a look at them."""

_PEER = re.compile(r"(?:ipv[46]:)?(?:\[(?P<bracketed>[^\]]*)\]|(?P<plain>[^:]*))(?::\d+)?")
_LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|::1|::ffff:127\..*|localhost")


class PeerSessions:
    """The sessions of one kind at a task. Its lock guards the sets of handles, and how many they hold."""

    def __init__(self, is_open: Callable[[str], bool]) -> None:
        """`is_open(handle)`: whether the task has this session still."""
        self._is_open = is_open
        self._lock = threading.Lock()
        self._handles: dict[str, set[str]] = {}
        self._known = self._open = 0

    def check(self, peer: str) -> None:
        """Raises ResourceExhaustedError where the peer has as many open as it may."""
        address = address_of(peer)
        with self._lock:
            count = len(self._handles.get(address, ()))
            if not limits.SESSIONS_PER_PEER.allows(count + 1):
                self._forget_ended()
                count = len(self._handles.get(address, ()))
        what = f"{address} cannot open another session at this task: their number"
        limits.SESSIONS_PER_PEER.check(count + 1, what)

    def opened(self, peer: str, handle: str) -> None:
        """The peer has opened a session."""
        with self._lock:
            self._handles.setdefault(address_of(peer), set()).add(handle)
            self._known += 1
            if self._known > 2 * self._open + _LOOKED_AT_FROM:
                self._forget_ended()

    def _forget_ended(self) -> None:
        for address, handles in list(self._handles.items()):
            handles.intersection_update([handle for handle in handles if self._is_open(handle)])
            if not handles:
                del self._handles[address]
        self._known = self._open = sum(map(len, self._handles.values()))


def address_of(peer: str) -> str:
    """The address in a peer name of gRPC or the channel, without its port."""
    found = _PEER.fullmatch(unquote(peer))
    if found is None or peer == A_PROCESS_OF_THIS_HOST or peer.startswith("unix:"):
        return _THIS_HOST
    address = found["bracketed"] or found["plain"]
    return _THIS_HOST if _LOOPBACK.fullmatch(address) else address
