"""The output of pods, into the logs of the run: a thread follows each container.

Each line comes with its time. After a lost connection it goes on behind the last line that is here, by that time. The
position is the last time, in a file beside the log, so that a supervisor that comes later goes on there too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import threading
import time
from collections.abc import Iterator
from datetime import datetime

from dtfctl.launchers import log_recorder
from dtfctl.launchers.kubernetes.api import Api, ApiError
from dtfctl.manifests.pods import CONTAINER

SILENCE_S = 3600.0
AGAIN_S = 1.0
TIME_FILE = ".at"
"""Ends the name of the file with the time of a log's last line."""


class PodLogs:
    """Follows the pods of a run. `closed` ends the threads."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._threads: dict[str, tuple[threading.Thread, asyncio.Event]] = {}
        self._ended: set[str] = set()
        self._closed = threading.Event()

    def follow(self, pod: str, log: str) -> None:
        """From the beginning, or behind what is in `log`."""
        if pod in self._threads:
            return
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def work() -> None:
            try:
                self._copy(pod, log)
            finally:
                with contextlib.suppress(RuntimeError):
                    # The loop may have ended.
                    loop.call_soon_threadsafe(done.set)

        thread = threading.Thread(target=work, name=f"log of {pod}", daemon=True)
        self._threads[pod] = thread, done
        thread.start()

    async def drain(self, pod: str, timeout_s: float) -> None:
        """Returns when the log of a pod that has ended is here as a whole, or after the timeout."""
        self._ended.add(pod)
        if pod in self._threads:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._threads[pod][1].wait(), timeout_s)

    def close(self) -> None:
        self._closed.set()

    def _copy(self, pod: str, log: str) -> None:
        while not self._closed.is_set():
            was_ended = pod in self._ended
            try:
                self._copy_on(pod, log)
            except ApiError as error:
                if not error.is_connection and error.status != 400:
                    return
                # 400: its container has not begun to write.
            except OSError:
                return
            else:
                if was_ended:
                    return
            if self._closed.wait(AGAIN_S):
                return

    def _copy_on(self, pod: str, log: str) -> None:
        last = _noted(log)
        query: dict[str, str | int] = {"follow": "true", "timestamps": "true", "container": CONTAINER}
        if last:
            query["sinceTime"] = last
        with self._api.stream(self._api.path("pods", pod, "log"), query, SILENCE_S) as pieces:
            for line in lines(pieces):
                at, _, text = line.partition(b" ")
                stamp = at.decode(errors="replace")
                if last and stamp <= last:
                    continue
                self._write(log, stamp, text)
                last = stamp

    def _write(self, log: str, stamp: str, text: bytes) -> None:
        with open(log, "ab") as file:
            with contextlib.suppress(OSError, struct.error):
                log_recorder.note_growth(log, [(_microseconds(stamp), file.tell() + len(text))])
            file.write(text)
        aside = f"{log}{TIME_FILE}"
        with open(aside, "w", encoding="utf-8") as note:
            note.write(stamp)


def _noted(log: str) -> str:
    try:
        with open(f"{log}{TIME_FILE}", encoding="utf-8") as note:
            return note.read()
    except OSError:
        return ""


def forget_times(folder: str) -> None:
    """The run is over: nobody goes on with its logs."""
    for entry in list(os.scandir(folder)):
        if entry.name.endswith(TIME_FILE):
            os.unlink(entry.path)


def lines(pieces: Iterator[bytes], bytes_max: int | None = None) -> Iterator[bytes]:
    """Each with its end; the last one may have none. Raises ValueError for one that is longer than `bytes_max`."""
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for line in whole:
            yield b"".join((*rest, line, b"\n"))
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if bytes_max is not None and size > bytes_max:
            raise ValueError(f"a line of more than {bytes_max} bytes")
    if size:
        yield b"".join(rest)


def _microseconds(stamp: str) -> int:
    """RFC 3339 with up to nine digits of a second."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    try:
        at = datetime.fromisoformat(f"{whole}+00:00").timestamp()
        return int(at) * 1_000_000 + int(fraction[:6].ljust(6, "0") or 0)
    except ValueError:
        return int(time.time() * 1e6)
