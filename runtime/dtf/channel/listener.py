"""Listener: answers calls that come over the channel.

Owns the listening sockets and the connections of peers. The methods are given: `method(request, answer)` returns soon,
and the answer is set or failed once, then or later, from any thread. Methods run in the thread that reads the lane.
Long work must go through `Answer.work` or call `reader_thread.yield_reader` first. Waiting calls hold no thread.
"""

from __future__ import annotations

import collections
import errno
import functools
import logging
import secrets
import selectors
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dtf.channel import lane as lanes
from dtf.channel.client import LARGE_FROM_BYTES, MEMORY_LANE
from dtf.channel.endpoint import Endpoint, is_same_user, new_token, welcome
from dtf.channel.lane import Buffer, Lane
from dtf.channel.shared_memory import SharedMemory, find, is_possible
from dtf.run.lib import rate_limited_log
from dtf.run.threads import growing_pool, reader_thread
from dtf.wire import errors, forks
from dtf.wire.credentials import Credentials
from dtf.wire.measures import CALLERS, RECEIVED, SENT, measures

_STRANGERS_MAX = 1024
_GREETING_TIMEOUT_S = 5.0
_BACKLOG = 1024
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_SHORTAGE_PAUSE_S_MIN = 0.05
_SHORTAGE_PAUSE_S_MAX = 1.0
_MESSAGE_BYTES_MAX = 1 << 16
A_PROCESS_OF_THIS_HOST = "a process of this host"
"""A peer at a Unix socket, for messages."""


class Answer:
    """The answer to one request. If the caller disconnects first, the `on_cancel` callback runs."""

    __slots__ = ("_cancel", "_is_gone", "_reply", "peer")

    def __init__(
        self, reply: Callable[[Sequence[Buffer], errors.OpError | None], None], peer: str = ""
    ) -> None:
        """`reply(pieces, None)` or `reply((), error)` is called once, from any thread. `peer` names the caller in
        messages.
        """
        self.peer = peer
        self._reply: Callable[[Sequence[Buffer], errors.OpError | None], None] | None = reply
        self._cancel: Callable[[], Any] | None = None
        self._is_gone = False

    def set(self, pieces: Sequence[Buffer]) -> None:
        """The response, in pieces that may be the memory of immutable arrays."""
        reply, self._reply, self._cancel = self._reply, None, None
        if reply is not None:
            reply(pieces, None)

    def fail(self, error: errors.OpError) -> None:
        """The error that the caller gets. Only the first answer counts."""
        reply, self._reply, self._cancel = self._reply, None, None
        if reply is not None:
            reply((), error)

    def work(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls function(*arguments), which may take long or wait: in this thread if its owner can spare it, else in
        the pool.
        """
        if reader_thread.is_spare():
            reader_thread.yield_reader()
            function(*arguments)
        else:
            growing_pool.submit(function, *arguments)

    def on_cancel(self, cancel: Callable[[], Any] | None) -> None:
        """Has `cancel()` called when the caller goes away before the answer."""
        if cancel is None or self._reply is None:
            return
        self._cancel = cancel
        if self._is_gone:
            cancel()

    def cancel(self) -> None:
        """The caller has disconnected."""
        self._is_gone = True
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()


Method = Callable[[Any, Answer], None]


class Listener:
    """The channel's side of a server. The lock guards `_peers` and `_strangers`: the unfinished greetings by family of
    sockets, so that connections from elsewhere keep no process of this host out.
    """

    def __init__(self, host: str, name: str, credentials: Credentials | None = None) -> None:
        """Listens at a port of `host` that the system chooses, and for peers of this host at a Unix socket.

        Args:
          name: of the task, for messages.
          credentials: with them, TCP is wrapped in TLS, and the Unix socket is for this user's processes alone.

        Raises:
          OSError: the host is not one of this machine's addresses.
        """
        self._name = name
        self._credentials = credentials
        self._token = new_token()
        self._methods: list[Method] = []
        self._method_names: list[str] = []
        self._told: frozenset[int] = frozenset()
        self._lock = threading.Lock()
        self._peers: dict[bytes, _Peer] = {}
        self._strangers: collections.Counter[int] = collections.Counter()
        self._is_stopped = False
        self._stopping = threading.Event()
        family, kind, protocol, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        tcp = socket.socket(family, kind, protocol)
        try:
            tcp.bind(place)
        except OSError:
            tcp.close()
            raise
        self._sockets = [tcp]
        unix = ""
        if sys.platform == "linux":
            unix = f"dtf-{secrets.token_hex(16)}"
            local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            local.bind("\0" + unix)
            self._sockets.append(local)
        for sock in self._sockets:
            sock.listen(_BACKLOG)
            sock.setblocking(False)
        self._wake, self._woken = socket.socketpair()
        _listeners.add(self)
        self.endpoint = Endpoint(unix, tcp.getsockname()[1], self._token)

    def start(self, methods: Mapping[str, Method], told: Collection[str] | None = None) -> None:
        """Begins to answer calls.

        Args:
          told: the methods that may be called without an answer; None: all. Long work must not be among them, since it
            would not end with its caller.
        """
        self._method_names = list(methods)
        self._told = frozenset(i for i, name in enumerate(methods) if told is None or name in told)
        self._methods = list(methods.values())
        threading.Thread(target=self._accept, name="dtf-channel-accept", daemon=True).start()

    def stop(self, grace_s: float = 0.5) -> None:
        """Frees the port, gives running calls `grace_s`, and ends the connections. Harmless when repeated."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            self._stopping.set()
            peers = list(self._peers.values())
        self._wake.close()
        if not self._methods:
            self._close_sockets()
        deadline = time.monotonic() + grace_s
        for peer in peers:
            peer.finish(max(0.0, deadline - time.monotonic()))

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            for sock in (*self._sockets, self._woken):
                selector.register(sock, selectors.EVENT_READ)
            pause_s = 0.0
            while not self._is_stopped:
                shortage: Exception | None = None
                for key, _ in selector.select():
                    if key.fileobj is not self._woken:
                        shortage = self._accept_one(key.fileobj) or shortage
                if shortage is None:
                    pause_s = 0.0
                    continue
                # A pending connection keeps the socket readable, so without a pause this thread would spin.
                pause_s = min(2 * pause_s or _SHORTAGE_PAUSE_S_MIN, _SHORTAGE_PAUSE_S_MAX)
                rate_limited_log.shared.warn(
                    "connections not accepted", "%s: cannot accept connections for now: %s", self._name, shortage
                )
                self._stopping.wait(pause_s)
        self._close_sockets()

    def _accept_one(self, listening: Any) -> Exception | None:
        """Accepts a connection; returns the missing resource (descriptors, memory, threads) if that is impossible
        now."""
        try:
            sock, _ = listening.accept()
        except OSError as error:
            return error if error.errno in _SHORTAGES else None  # otherwise it has already gone
        family = sock.family
        with self._lock:
            is_welcome = self._strangers[family] < _STRANGERS_MAX
            self._strangers[family] += is_welcome
        if not is_welcome:
            sock.close()
            return None
        try:
            threading.Thread(target=self._serve, args=(sock,), name="dtf-channel", daemon=True).start()
        except RuntimeError as error:  # the thread limit is reached
            sock.close()
            with self._lock:
                self._strangers[family] -= 1
            return error
        return None

    def _close_sockets(self) -> None:
        for sock in (*self._sockets, self._woken):
            sock.close()

    def _serve(self, sock: Any) -> None:
        """The greeting of one connection. Runs in a thread of its own, because an unknown peer may be slow."""
        known, family = None, sock.family
        try:
            sock.settimeout(_GREETING_TIMEOUT_S)
            sock = self._secured(sock)
            known = welcome(sock, self._token)
            if known is None:
                self._complain(sock, "it does not know the token")
        except OSError as error:
            if self._credentials is not None:
                self._complain(sock, str(error))
        finally:
            with self._lock:
                self._strangers[family] -= 1
        if known is None:
            sock.close()
            return
        identity, number = known
        if number == MEMORY_LANE:
            self._share(sock, identity)
            return
        with self._lock:
            fresh = _Peer(self, identity, peer_name(sock))
            peer = None if self._is_stopped else self._peers.setdefault(identity, fresh)
        if peer is None:
            sock.close()
            return
        lane = Lane(sock, peer.on_frame, peer.on_lost, holds=True)
        peer.add(lane, number)
        lane.send(lanes.WELCOME, 0, 0, 0, ["\n".join(self._method_names).encode()])
        lane.begin()

    def _complain(self, sock: Any, reason: str) -> None:
        rate_limited_log.shared.warn(
            "strangers cut off", "%s: disconnected an unauthenticated peer at the channel's port, %s: %s", self._name,
            peer_name(sock), reason,
        )  # fmt: skip

    def _share(self, sock: socket.socket, identity: bytes) -> None:
        """A peer offers memory for its large bodies. The socket is for this alone."""
        with self._lock:
            peer = self._peers.get(identity)
        with sock:
            try:
                if peer is not None and is_possible(sock):
                    peer.memory = SharedMemory.accepted(sock)
                    peer.memory.answer(sock)
            except OSError as error:
                _logger.debug("%s: no shared memory: %s", self._name, error)

    def _secured(self, sock: socket.socket) -> Any:
        """The authenticated connection; raises OSError if the peer is not trusted."""
        if self._credentials is None:
            return sock
        if sock.family == socket.AF_UNIX:
            if not is_same_user(sock):
                raise PermissionError("it belongs to another user")
            return sock
        from dtf.channel.tls import TlsSocket

        return TlsSocket(sock, self._credentials.server_context)

    def _call(self, number: int, request: Any, answer: Answer) -> None:
        if number >= len(self._methods):
            answer.fail(errors.UnimplementedError.of(f"{self._name} has no method {number}"))
            return
        try:
            self._methods[number](request, answer)
        except Exception as error:
            if not isinstance(error, errors.OpError):
                rate_limited_log.shared.warn(
                    "failed requests", "%s: a request of %s failed: %s: %s (%s)", self._name, answer.peer,
                    type(error).__name__, error, rate_limited_log.place_of(error),
                )  # fmt: skip
                error = errors.InternalError.of(f"{type(error).__name__}: {error}")
            answer.fail(error)

    def _forget(self, identity: bytes) -> None:
        with self._lock:
            self._peers.pop(identity, None)


class _Peer:
    """One connection: its lanes, and the unanswered calls. Its lock guards `_lanes` and `_is_lost`; `_running` and
    `_being_answered` are changed by single operations only.
    """

    def __init__(self, listener: Listener, identity: bytes, name: str) -> None:
        self._listener = listener
        self._identity = identity
        self._name = name
        self._lock = threading.Lock()
        self._lanes: dict[int, Lane] = {}
        self._running: dict[int, Answer] = {}
        self._being_answered: set[int] = set()
        self._is_lost = False
        self._finishing = threading.Event()
        self._is_finishing = False
        self.memory: SharedMemory | None = None
        self._received = measures.traffic(CALLERS, "channel", RECEIVED)
        self._sent = measures.traffic(CALLERS, "channel", SENT)

    def add(self, lane: Lane, number: int) -> None:
        with self._lock:
            is_new = not self._is_lost and self._lanes.setdefault(number, lane) is lane
        if not is_new:
            lane.close("it is over already")

    def on_frame(self, lane: Lane, kind: int, flags: int, number: int, call_id: int, body: Any) -> None:
        if kind & lanes.IN_MEMORY:
            memory = self.memory
            if memory is None and self._is_lost:
                return
            try:
                body = find(memory, body)
            except ValueError as error:
                rate_limited_log.shared.warn("peers cut off", "%s: disconnected %s: %s", self._listener._name,
                                             self._name, error)  # fmt: skip
                lane.close(str(error))
                return
            kind ^= lanes.IN_MEMORY
        if kind == lanes.REQUEST:
            self._received.messages += 1
            self._received.bytes += len(body)
            if flags & lanes.NO_REPLY and number in self._listener._told:
                self._listener._call(number, body, _UNWANTED)
                return
            answer = Answer(functools.partial(self._reply, call_id), self._name)
            if self._running.setdefault(call_id, answer) is not answer:
                # The former call would have no owner, and its work would not end with this peer.
                lane.close(f"it called twice under the number {call_id}")
                return
            self._listener._call(number, body, answer)
        elif kind == lanes.CANCEL:
            running = self._running.pop(call_id, None)
            if running is not None:
                running.cancel()
        elif kind == lanes.PING:
            lane.send(lanes.PONG, 0, 0, call_id)

    def on_lost(self, reason: str) -> None:
        """Ends the other lane too, and cancels all work for this peer."""
        with self._lock:
            if self._is_lost:
                return
            self._is_lost = True
            open_lanes = list(self._lanes.values())
        for lane in open_lanes:
            lane.close(reason)
        self._listener._forget(self._identity)
        for call_id in list(self._running):
            running = self._running.pop(call_id, None)
            if running is not None:
                running.cancel()
        # Its pages go back now, and not when the garbage collector finds the lanes, which know this object.
        self.memory = None
        self._finishing.set()

    def finish(self, grace_s: float) -> None:
        """Gives the running calls some time, then ends the connection."""
        self._is_finishing = True
        if self._running or self._being_answered:
            self._finishing.wait(grace_s)
        for lane in list(self._lanes.values()):
            lane.drain(grace_s)
        self.on_lost("the server was stopped")

    def _reply(self, call_id: int, pieces: Sequence[Buffer], error: errors.OpError | None) -> None:
        self._being_answered.add(call_id)
        if self._running.pop(call_id, None) is not None:
            self._send(call_id, pieces, error)
        self._being_answered.discard(call_id)
        if self._is_finishing and not self._running and not self._being_answered:
            self._finishing.set()

    def _send(self, call_id: int, pieces: Sequence[Buffer], error: errors.OpError | None) -> None:
        if error is not None:
            lane = self._lanes[min(self._lanes)]
            message = error.message.encode()[:_MESSAGE_BYTES_MAX]
            lane.send(lanes.ERROR, lanes.DERIVED if error.derived else 0, error.error_code, call_id, (message,))
            return
        size = sum(map(len, pieces))
        self._sent.messages += 1
        self._sent.bytes += size
        is_large = size >= LARGE_FROM_BYTES
        memory = self.memory if is_large else None
        place = memory.place(pieces, size) if memory is not None else None
        if place is not None:
            self._lanes[min(self._lanes)].send(lanes.RESPONSE | lanes.IN_MEMORY, 0, 0, call_id, (place,))
        else:
            lane = self._lanes[max(self._lanes) if is_large else min(self._lanes)]
            lane.send(lanes.RESPONSE, 0, 0, call_id, pieces, size)


def peer_name(sock: Any) -> str:
    """The peer of a connection, for messages."""
    if sock.family == socket.AF_UNIX:
        return A_PROCESS_OF_THIS_HOST
    try:
        host, port = sock.getpeername()[:2]
    except (OSError, AttributeError):
        return "a disconnected peer"
    return f"{host}:{port}"


_UNWANTED = Answer(lambda pieces, error: None)
"""The answer to requests that expect none."""
_UNWANTED.set(())

_logger = logging.getLogger("dtf")


_listeners: weakref.WeakSet[Listener] = weakref.WeakSet()


def _begin_anew() -> None:
    """In a forked process: closes its copies of the listening sockets, so that the parent's end frees the ports."""
    for listener in list(_listeners):
        listener._close_sockets()
        listener._wake.close()


forks.in_child(_begin_anew)
