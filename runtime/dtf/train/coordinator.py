"""Coordinator stops several threads together and passes the first error on to the thread that joins
them.

Owns the stop event and the first exception; does not start threads (QueueRunner and LooperThread do).

    coord = tf.train.Coordinator()
    threads = [threading.Thread(target=loop, args=(coord,)) for _ in range(4)]
    ...
    coord.join(threads)

Source: https://www.tensorflow.org/api_docs/python/tf/train/Coordinator
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dtf import logging
from dtf.wire import errors, forks

ExcInfo = tuple[Any, Any, Any]


class Coordinator:
    """Coordinates the end of a set of threads.

    `_lock` guards the mutable state: the stop event, the first exception, the registered threads.

    Args:
      clean_stop_exception_types: exceptions that mean an ordinary end when a thread reports them, not an error to
        raise again from `join`; (tf.errors.OutOfRangeError,) by default.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Coordinator
    """

    def __init__(self, clean_stop_exception_types: Iterable[type[BaseException]] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean_stop = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        forks.renew_in_child(self, "_lock", "_stop_event")
        self._exc_info: ExcInfo | None = None
        self._threads: set[threading.Thread] = set()
        self._joins: list[threading.Event] = []  # each set when a stop is requested, or its threads have ended
        self._joined = False

    @property
    def joined(self) -> bool:
        """Whether `join` has returned since the last `clear_stop`."""
        return self._joined

    def should_stop(self) -> bool:
        """Whether the threads are asked to stop."""
        return self._stop_event.is_set()

    def request_stop(self, ex: BaseException | ExcInfo | None = None) -> None:
        """Asks all threads to stop; the first exception given is raised again by `join`.

        Args:
          ex: an exception, or a tuple from sys.exc_info(); one of the clean-stop types counts as no
              error.

        Raises:
          The exception itself, if `join` has already returned and could not report it.
        """
        exc_info = self._as_exc_info(ex)
        with self._lock:
            if exc_info is not None and self._joined:
                raise exc_info[1].with_traceback(exc_info[2])
            if self._stop_event.is_set():
                return
            self._exc_info = exc_info
            if exc_info is not None:
                name = type(exc_info[1]).__name__
                logging.info("Error reported to Coordinator: %s, %s", name, exc_info[1])
            self._stop_event.set()
            for join in self._joins:
                join.set()

    def clear_stop(self) -> None:
        """Makes the coordinator usable again after `join`."""
        with self._lock:
            self._joined = False
            self._exc_info = None
            self._stop_event.clear()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Reports an exception of its block by `request_stop` instead of letting it pass."""
        try:
            yield
        except Exception:
            self.request_stop(sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested, at most `timeout` seconds. Returns whether it was."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread to the threads that `join` waits for."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until all threads have ended: without a limit until a stop is requested, a grace period after that.

        Args:
          threads: waited for in addition to the registered ones.
          stop_grace_period_secs: seconds that the threads have once a stop was requested.
          ignore_live_threads: do not raise for threads that outlive the grace period.

        Raises:
          RuntimeError: threads are still alive after the grace period; their names are listed.
          The first exception that was given to `request_stop`.
        """
        with self._lock:
            known = (self._threads | set(threads or ())) - {threading.current_thread()}
        waited_for = {thread for thread in known if thread.is_alive()}
        self._wait_for_stop_or_end(waited_for)
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited_for:
            thread.join(max(0.0, deadline - time.monotonic()))
        alive = [thread.name for thread in waited_for if thread.is_alive()]
        with self._lock:
            self._joined = True
            self._threads = set()
            exc_info = self._exc_info
        if exc_info is not None:
            raise exc_info[1].with_traceback(exc_info[2])
        if alive and ignore_live_threads:
            logging.info("Coordinator stopped with threads still running: %s", " ".join(alive))
        elif alive:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")

    def raise_requested_exception(self) -> None:
        """Raises the exception that was given to `request_stop`, if there was one."""
        with self._lock:
            exc_info = self._exc_info
        if exc_info is not None:
            raise exc_info[1].with_traceback(exc_info[2])

    def _wait_for_stop_or_end(self, threads: set[threading.Thread]) -> None:
        """Returns when a stop is requested or all threads have ended by themselves."""
        over = threading.Event()
        with self._lock:
            if self._stop_event.is_set() or not threads:
                return
            self._joins.append(over)

        def watch() -> None:
            for thread in threads:
                thread.join()
            over.set()

        # One helper thread turns "all have ended" into an event that can be awaited together with the stop.
        threading.Thread(target=watch, name="coordinator-watch", daemon=True).start()
        over.wait()
        with self._lock:
            self._joins.remove(over)

    def _as_exc_info(self, ex: BaseException | ExcInfo | None) -> ExcInfo | None:
        if ex is None:
            return None
        exc_info = ex if isinstance(ex, tuple) else (type(ex), ex, ex.__traceback__)
        return None if isinstance(exc_info[1], self._clean_stop) else exc_info


class LooperThread(threading.Thread):
    """Runs a function again and again until its coordinator stops.

    Args:
      coord: the Coordinator, which learns of exceptions.
      timer_interval_secs: seconds between two calls; the first call is immediate. None: call without a pause.
      target, args, kwargs: the function to call and its arguments; subclasses may override
          `run_loop` instead.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval_s = timer_interval_secs
        self._call = (target, args, kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Makes and starts a looper."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.should_stop():
                if self._interval_s is not None:
                    if self._coord.wait_for_stop(max(0.0, due - time.monotonic())):
                        break
                    due += self._interval_s
                self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once in the thread before the first call."""

    def stop_loop(self) -> None:
        """Called once in the thread after the last call."""

    def run_loop(self) -> None:
        """One turn: calls the target."""
        target, args, kwargs = self._call
        if target is not None:
            target(*args, **kwargs)
