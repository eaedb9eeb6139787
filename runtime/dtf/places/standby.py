"""Standby: the backup's end of the connection to its primary.

Owns how frames get into the folder, and when the right is held. What is done with the right is `place`'s.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from dtf.places import frames
from dtf.places.frames import Frame, Reader
from dtf.run.durability.replicated_resources import ReplicatedResources
from dtf.wire import errors

__all__ = ["Standby"]


class Standby:
    """One connection to a primary.

    Attributes:
      has_right: whether this process may begin the next term by itself.
      is_revoked: whether the primary has taken the right back.
    """

    def __init__(self, sock: Any, reader: Reader, resources: ReplicatedResources) -> None:
        self.has_right = False
        self.is_revoked = False
        self._socket = sock
        self._reader = reader
        self._resources = resources

    def run(self) -> str:
        """Follows until the connection is over; the reason.

        Raises:
          OpError: the folder cannot be written, or the primary has sent nonsense. The right is gone, and the primary
            knows it.
        """
        try:
            while True:
                frame = frames.read_frame(self._reader)
                self._take(frame)
                if self._reader.is_at_end:
                    self._socket.sendall(frames.ACKNOWLEDGEMENT.pack(frame.number))
                    self._resources.catch_up()  # after the acknowledgement, for which a step waits
        except EOFError:
            return "the primary's process has ended, or closed the connection"
        except BlockingIOError:
            return "the primary is silent"
        except OSError as error:
            return f"the connection was lost: {error.strerror or error}"
        except errors.OpError:
            self._give_back()
            raise
        except Exception as error:  # a record of another version, or of another program
            self._give_back()
            raise errors.DataLossError.of(f"The primary has sent a record that cannot be read: {error!r}") from error

    def _give_back(self) -> None:
        """This process follows no longer: its primary need not wait for it."""
        self.has_right = False
        with suppress(OSError):
            self._socket.sendall(frames.ACKNOWLEDGEMENT.pack(frames.REVOKED))

    def close(self) -> None:
        """Ends the connection."""
        try:
            self._socket.shutdown(2)
        except OSError:
            return

    def close_socket(self) -> None:
        """Closes this process's copy of the socket, and nothing else."""
        self._socket.close()

    def _take(self, frame: Frame) -> None:
        resources = self._resources
        if frame.kind == frames.PING:
            return
        if frame.kind == frames.REVOKE:
            self.has_right, self.is_revoked = False, True
            self._socket.sendall(frames.ACKNOWLEDGEMENT.pack(frames.REVOKED))
            return
        if frame.kind == frames.BASE:
            resources.begin_filling(frame.text)
            return
        rows, dropped = [], []
        for head in frame.parts:
            if frames.is_drop(head.kind):
                dropped.append(head.block)
            elif frames.is_rows(head.kind):
                rows.append(frames.rows_of(head, self._reader.take(head.data_bytes)))
            elif head.at + head.data_bytes <= head.size:
                into = resources.part(head.block, head.size)
                self._reader.fill(into.data[head.at : head.at + head.data_bytes])
            else:
                raise errors.DataLossError.of("The primary has sent a part that its block does not have")
        if frame.kind != frames.PARTS:
            resources.take(frame.text, rows, dropped, frame.kind == frames.WHOLE)
        if frame.kind == frames.FILLED:
            resources.filled()
            self.has_right = True
