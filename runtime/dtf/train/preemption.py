"""Preemption: SIGTERM, the notice that this process has to go, becomes an orderly end of training.

Owns the signal handler and the interruption of steps and waits. The trainer (a MonitoredSession or a
Supervisor) checks `arrived` between steps, saves its state, and calls `leave`. `leave` ends the process with
status 143, the shell's status for a process that died of SIGTERM. A supervisor thus knows that the process was
stopped and has not finished.

A running step has `STEP_PATIENCE_S` to finish. After that it is cut off, because it may wait for tasks that have
already gone, as in synchronous training. The rest of the grace period is left for the checkpoint. A second notice cuts
it off at once.

Nothing happens where the program has a handler of its own, or trains outside of the main thread. A program that waits
in `Server.join` while its session is open is ended there.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dtf import logging, server
from dtf.wire import forks

STEP_PATIENCE_S = 3.0
EXIT_STATUS = 128 + signal.SIGTERM


def _leave_the_server() -> None:
    """An unclosed session would keep a process that only serves from ending."""
    if has_arrived():
        raise Preempted


server.while_joining.append(_leave_the_server)


def has_arrived() -> bool:
    """Whether the training of this process ends because of SIGTERM. It will continue elsewhere or later, so tasks
    that wait for it must keep waiting.
    """
    return any(notice.arrived for notice in _watching)


class Preempted(SystemExit):
    """Ends the process after an orderly end of training; its status is 143."""

    def __init__(self) -> None:
        super().__init__(EXIT_STATUS)


class PreemptionNotice:
    """Watches for SIGTERM from `watch` until `release`, in the main thread.

    The handler may interrupt code that holds any lock, so it only sets a flag and wakes a waiting thread.

    Args:
      on_arrival: called in that thread when the notice arrives.
    """

    def __init__(self, on_arrival: Callable[[], Any] = lambda: None) -> None:
        self._on_arrival = on_arrival
        self._is_watching = False
        self._arrived = False
        self._interruptible = False
        self._at_once = False
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()  # its `put` may be called in a handler

    @property
    def arrived(self) -> bool:
        """Whether this process has received SIGTERM."""
        return self._arrived

    def watch(self) -> None:
        """Installs the handler unless the program has its own."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            threading.Thread(target=self._wait_for_arrival, name="preemption-notice", daemon=True).start()
            signal.signal(signal.SIGTERM, self._handle)
            self._is_watching = True
            _watching.append(self)

    def release(self) -> None:
        """Ends watching; SIGTERM ends the process as before."""
        if self._is_watching and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._is_watching = False
            _watching.remove(self)
            self._wake.put(False)

    def leave(self) -> None:
        """Ends the process if the notice has arrived. To be called when everything is saved and closed.

        Raises:
          Preempted: it has.
        """
        if self._arrived:
            logging.info("SIGTERM received: the training was stopped in order; this process ends.")
            raise Preempted

    def interruptible(self, at_once: bool = False) -> contextlib.AbstractContextManager[None]:
        """A block that the notice may interrupt: `at_once`, or when its patience is over.

        Raises:
          Preempted: it has been interrupted.
        """
        return self._interrupting(at_once) if self._is_watching else _NEVER_INTERRUPTED

    @contextlib.contextmanager
    def _interrupting(self, at_once: bool) -> Iterator[None]:
        if at_once and self._arrived:
            raise Preempted
        around = self._interruptible, self._at_once
        self._interruptible, self._at_once = True, at_once
        try:
            yield
        except BaseException as error:
            # The runtime reports an interrupted step in several ways; a step that was not interrupted keeps its
            # error.
            if self._interruptible:
                raise
            raise Preempted from error
        finally:
            self._interruptible, self._at_once = around

    def _handle(self, *_: Any) -> None:
        is_second, self._arrived = self._arrived, True
        if not is_second:
            self._wake.put(True)
        if self._interruptible and (is_second or self._at_once):
            self._interruptible = False
            raise _CutOff

    def _wait_for_arrival(self) -> None:
        if not self._wake.get():
            return
        logging.info("SIGTERM received: the training stops after this step.")
        self._on_arrival()
        with contextlib.suppress(queue.Empty):
            self._wake.get(timeout=STEP_PATIENCE_S)
            return  # released in time
        if self._is_watching:
            _signal_main_thread()


class _CutOff(KeyboardInterrupt):
    """Interrupts a step as Ctrl-C does."""


def _signal_main_thread() -> None:
    identity = threading.main_thread().ident
    if identity is not None:
        signal.pthread_kill(identity, signal.SIGTERM)


_NEVER_INTERRUPTED = contextlib.nullcontext()
_watching: list[PreemptionNotice] = []


def _before_fork() -> None:
    """Holds SIGTERM back while the child still has this process's handler: Python would drop the signal there."""
    if _watching:
        _masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}))


def _after_fork() -> None:
    if _masks:
        signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop())


def _begin_anew() -> None:
    """In a forked process: its parent's training is not its own, and SIGTERM ends it."""
    for notice in _watching:
        notice._is_watching = False
    if _watching:
        _watching.clear()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _after_fork()


_masks: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork)
forks.in_child(_begin_anew)
