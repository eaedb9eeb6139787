"""Link: the primary's end of the connection to its backup.

Owns the order and the sending of frames, the filling of a new backup, and the calls that wait for acknowledgements.
What follows from its loss is `place`'s.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dtf.channel import reactor
from dtf.places import frames
from dtf.places.acknowledgements import Acknowledgements
from dtf.places.frames import Buffer, Reader
from dtf.run.durability.replicated_resources import Part, Record, ReplicatedResources
from dtf.wire import forks

__all__ = ["Link"]

_INLINE_BYTES_MAX = 1 << 16
_WAITING_BYTES_MAX = 16 << 20
_BUFFERS_AT_ONCE = 256
_PINGS_IN_SILENCE = 4
_NO_WAIT = 0x40  # MSG_DONTWAIT

FILLING, IN_SYNC, LOST = "filling", "in sync", "lost"


class Link:
    """A `replicated_resources.Follower`. The lock guards the queue, the numbers, and the calls that wait.

    Attributes:
      place: of the backup.
      state: FILLING, IN_SYNC or LOST.
      bytes_left: of the filling, about.
    """

    def __init__(
        self,
        sock: Any,
        place: int,
        resources: ReplicatedResources,
        silence_s: float,
        on_lost: Callable[[Link, str], None],
        on_given_back: Callable[[Link], None],
        notice_s: float = 0.0,
    ) -> None:
        """A link over a connection after the greeting; see `start`.

        Args:
          on_lost: called once, from any thread, with the reason.
          on_given_back: called when the backup can follow no longer, and has given its right back by itself.
          notice_s: the backup gets its right not earlier than this after the start.
        """
        self.place = place
        self.state = FILLING
        self.bytes_left = resources.bytes_in_blocks
        self._socket = sock
        self._resources = resources
        self._silence_s = silence_s
        self._told_lost = on_lost
        self._told_given_back = on_given_back
        self._right_at = time.monotonic() + notice_s
        self._can_send_inline = not hasattr(sock, "pending")  # TLS is sealed by one thread
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        forks.renew_in_child(self, "_lock")
        self._queue: collections.deque[list[Buffer]] = collections.deque()
        self._queued_bytes = 0
        self._is_sending = False
        self._sent = 0
        self._acknowledged = 0
        self._waiting: collections.deque[tuple[int, Callable[[], None], Callable[[], None]]] = collections.deque()
        self._next_kind = frames.BASE
        self._revoked = threading.Event()
        self._is_revoking = False
        self._own = threading.local()
        self._acknowledgements: Acknowledgements | None = None

    @property
    def lag(self) -> int:
        """How many messages the backup has not acknowledged."""
        return max(0, self._sent - self._acknowledged)

    def start(self) -> None:
        """Begins to fill the backup."""
        frames.set_silence(self._socket, self._silence_s)
        sending = threading.Thread(target=self._send, name="dtf-backup-send", daemon=True)
        if self._can_send_inline and reactor.is_possible():
            taken = self._acknowledgements = Acknowledgements(
                self._socket, self._silence_s, self._acknowledge, self.close
            )
            sending.start()
            taken.begin()
        else:
            sending.start()
            threading.Thread(target=self._read, args=(sending,), name="dtf-backup-acks", daemon=True).start()
        threading.Thread(target=self._fill, name="dtf-backup-fill", daemon=True).start()

    def follow(self, record: Record) -> None:
        """See `Follower.follow`."""
        with self._lock:
            kind, self._next_kind = self._next_kind, frames.RECORD
            if kind == frames.RECORD and record.is_whole:
                kind = frames.WHOLE
            self._sent += 1
            self._own.record = self._sent
            self._enqueue(frames.packed(kind, self._sent, record))

    def when_acknowledged(self, done: Callable[[], None], failed: Callable[[], None]) -> None:
        """See `Follower.when_acknowledged`. A step without a record of its own, just sent by this thread, has a ping
        acknowledged: an older acknowledgement does not prove that the backup still followed when the step read.
        """
        record, self._own.record = getattr(self._own, "record", 0), 0
        with self._lock:
            is_lost = self.state == LOST
            if not is_lost:
                if record != self._sent or self._acknowledged >= record:
                    self._sent += 1
                    self._enqueue(frames.packed(frames.PING, self._sent))
                self._waiting.append((self._sent, done, failed))
        if is_lost:
            failed()

    def revoke(self, timeout_s: float) -> bool:
        """Takes the right back. Whether the backup has answered that it holds none."""
        with self._lock:
            self._is_revoking = True
            self._sent += 1
            self._enqueue(frames.packed(frames.REVOKE, self._sent))
        return self._revoked.wait(timeout_s)

    def close(self, reason: str) -> None:
        """Ends the connection; what waits fails."""
        with self._lock:
            if self.state == LOST:
                return
            self.state = LOST
            waiting, self._waiting = self._waiting, collections.deque()
            self._queue.clear()
            self._changed.notify_all()
        if self._resources.follower is self:
            self._resources.follower = None
        with suppress(OSError):
            self._socket.shutdown(2)
        self._told_lost(self, reason)
        for _, _, failed in waiting:
            _call(failed)

    def close_socket(self) -> None:
        """Closes this process's copy of the socket, and nothing else."""
        self._socket.close()

    # -- filling

    def _fill(self) -> None:
        try:
            if not self._resources.fill(self, self._send_part, self._has_room):
                return
            with self._lock:
                left_s = self._right_at - time.monotonic()
                if left_s > 0 and self._changed.wait_for(lambda: self.state == LOST, left_s):
                    return
            with self._resources.update_lock:
                if self._resources.follower is not self:
                    return
                with self._lock:
                    self._next_kind = frames.FILLED
                self._resources.pair_with(self.place)
                self.state, self.bytes_left = IN_SYNC, 0
        except Exception as error:
            self.close(f"it cannot be filled: {error}")

    def _send_part(self, part: Part) -> None:
        with self._lock:
            self._sent += 1
            self.bytes_left = max(0, self.bytes_left - part.data.nbytes)
            self._enqueue(frames.packed(frames.PARTS, self._sent, parts=[part]))

    def _has_room(self) -> bool:
        with self._lock:
            self._changed.wait_for(lambda: self._queued_bytes < _WAITING_BYTES_MAX or self.state == LOST)
            return self.state != LOST

    # -- sending

    def _enqueue(self, buffers: list[Buffer]) -> None:
        """Sends at once what fits, or leaves it to the sending thread. The lock is held."""
        if self.state == LOST:
            return
        size = sum(map(len, buffers))
        if self._can_send_inline and not self._queue and not self._is_sending and size <= _INLINE_BYTES_MAX:
            try:
                sent = self._socket.sendmsg(buffers, [], _NO_WAIT)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # the reading thread sees it, too
            if sent == size:
                return
            buffers = _rest(buffers, sent)
            size -= sent
        self._queue.append(buffers)
        self._queued_bytes += size
        self._changed.notify_all()

    def _send(self) -> None:
        """Sends what does not go at once until the connection is over. It closes the socket, unless `_read` does."""
        acknowledgements = self._acknowledgements
        try:
            self._send_queued(acknowledgements)
        finally:
            if acknowledgements is not None:
                acknowledgements.close()
                self._socket.close()

    def _send_queued(self, acknowledgements: Acknowledgements | None) -> None:
        try:
            while True:
                if acknowledgements is not None and acknowledgements.is_silent():
                    raise BlockingIOError
                with self._lock:
                    self._is_sending = False
                    if not self._queue and self.state != LOST:
                        self._changed.wait(self._silence_s / _PINGS_IN_SILENCE)
                    if self.state == LOST:
                        return
                    if self._queue:
                        buffers = self._queue.popleft()
                        self._queued_bytes -= sum(map(len, buffers))
                        self._changed.notify_all()
                    else:
                        self._sent += 1
                        buffers = frames.packed(frames.PING, self._sent)
                    self._is_sending = True
                while buffers:
                    buffers = _rest(buffers, self._socket.sendmsg(buffers[:_BUFFERS_AT_ONCE]))
        except OSError as error:
            self.close(_words(error))

    # -- acknowledgements

    def _acknowledge(self, number: int, is_revoked: bool) -> None:
        """The backup has all up to this number."""
        if is_revoked:
            self._revoked.set()
        ready = []
        with self._lock:
            is_given_back = is_revoked and not self._is_revoking
            self._acknowledged = max(self._acknowledged, number)
            while self._waiting and self._waiting[0][0] <= number:
                ready.append(self._waiting.popleft()[1])
        for done in ready:
            _call(done)
        if is_given_back:  # which changes the role of this process: that is not for a thread that reads connections
            threading.Thread(target=self._told_given_back, args=(self,), name="dtf-backup-ends", daemon=True).start()

    def _read(self, sending: threading.Thread) -> None:
        """Takes acknowledgements until the connection is over; then nobody uses the socket any more."""
        try:
            self._read_all()
        finally:
            sending.join()
            self._socket.close()

    def _read_all(self) -> None:
        reader = Reader(self._socket)
        try:
            while True:
                (number,) = frames.ACKNOWLEDGEMENT.unpack(reader.take(frames.ACKNOWLEDGEMENT.size))
                is_revoked = number == frames.REVOKED
                self._acknowledge(-1 if is_revoked else number, is_revoked)
        except EOFError:
            self.close("its process has ended, or closed the connection")
        except OSError as error:
            self.close(_words(error))


def _call(answer: Callable[[], None]) -> None:
    """Answers a step. What goes wrong there is that step's, and others still wait for this thread."""
    try:
        answer()
    except Exception:
        _logger.exception("a step cannot be answered")


def _rest(buffers: list[Buffer], sent: int) -> list[Buffer]:
    """What is left of the buffers after the first bytes of them."""
    for place, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[place + 1 :]]
        sent -= len(buffer)
    return []


def _words(error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        return "nothing has come or gone for too long"
    return f"the connection was lost: {error.strerror or error}"


_logger = logging.getLogger("dtf")
