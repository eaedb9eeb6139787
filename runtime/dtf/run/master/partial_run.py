"""PartialRun: one step that a client feeds and fetches in several calls.

Owns which feeds and fetches are still open. The step itself is an ordinary one whose endpoints are not tied to the call
that starts it: feeds are sent from the master's own device, fetches are received at it, when the client asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from dtf.run.interfaces import Cancel, ServingWorker, Value
from dtf.run.master.compiled_step import CompiledStep, MasterStep, StepOwner
from dtf.run.master.registered_partition import RegisteredPartition
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors


class PartialRun:
    """One partial run. Its lock guards `_fed`, `_open_fetches` and `_receives`.

    The step may fail before it has begun at the task that a fetch comes from; that task then never hears of the step.
    Therefore the end of the step ends all receives here.
    """

    def __init__(
        self,
        session_handle: str,
        partitions: Sequence[RegisteredPartition],
        own_worker: ServingWorker,
        feeds: Sequence[str],
        dependencies: Mapping[str, frozenset[str]],
    ) -> None:
        """A run that has not started.

        Args:
          partitions: registered with the master's own device as the client's.
          own_worker: the worker of the master's own task.
          feeds: all that may be fed, also what no fetch needs.
          dependencies: the fetches, each with the feeds that it needs.
        """
        self._own_worker = own_worker
        self._dependencies = dependencies
        self._feeds = frozenset(feeds)
        self._needed_feeds = frozenset(name for partition in partitions for name in partition.feeds)
        self._partitions = list(partitions)
        bare = [partition._replace(feeds={}, fetches={}) for partition in partitions]
        self._step = MasterStep(CompiledStep(session_handle, bare, []), {}, None)
        self._check_feeds = CompiledStep(session_handle, partitions, []).check_feeds
        self._lock = threading.Lock()
        self._fed: set[str] = set()
        self._open_fetches = set(dependencies)
        self._receives: list[Cancel] = []
        self._over = threading.Event()

    def start(self, owner: StepOwner) -> None:
        """Starts the step; it waits for its feeds."""
        owner.add_step(self._step)
        self._step.when_ended(self._step_ended)
        growing_pool.submit(self._step.start_apart)  # what needs no feeds may take any time
        self._step.watch(None)

    def run(
        self, feeds: Mapping[str, Value], fetches: Sequence[str], timeout_s: float | None
    ) -> tuple[list[Value], bool]:
        """Gives some feeds and returns (values of some fetches, whether that was the last part).

        Raises:
          InvalidArgumentError: a feed or fetch is not open, or a fetch needs a feed that has not come.
          OpError: why the step failed.
        """
        self._check_feeds(feeds)
        self._take(feeds, fetches)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if timeout_s is None:
            self._send(feeds)
        else:
            growing_pool.submit(self._send, feeds)  # what it makes ready may take any time
        values = self._receive(fetches, deadline)
        with self._lock:
            is_last = not self._open_fetches and self._fed >= self._needed_feeds
        if is_last:
            if not self._over.wait(_left_s(deadline)):
                self._step.cancel(errors.DeadlineExceededError.of("Timed out waiting for the end of the partial run"))
                self._over.wait()
            if self._step.error is not None:
                raise self._step.error
        return values, is_last

    def obey(self, cancellation: CancellationManager | None) -> None:
        """Lets `cancellation` stop the step; None: what could so far no longer can."""
        self._step.obey(cancellation)

    def finish(self, owner: StepOwner) -> None:
        """Ends the step wherever it stands."""
        self._step.cancel(errors.CancelledError.of("The partial run was given up."))
        owner.remove_step(self._step)
        for partition in self._partitions:
            partition.worker.cleanup_graph(self._step.step_id)
        self._own_worker.cleanup_graph(self._step.step_id)

    def _take(self, feeds: Mapping[str, Value], fetches: Sequence[str]) -> None:
        with self._lock:
            for name in feeds:
                if name not in self._feeds:
                    raise _not_set_up(name)
                if name in self._fed:
                    raise errors.InvalidArgumentError.of(f"The feed {name} has already been fed.")
            for name in fetches:
                if name not in self._dependencies:
                    raise _not_set_up(name)
                if name not in self._open_fetches:
                    raise errors.InvalidArgumentError.of(f"The fetch {name} has already been fetched.")
                missing = self._dependencies[name] - self._fed - set(feeds)
                if missing:
                    raise errors.InvalidArgumentError.of(
                        f"Fetch {name} can't be computed from the feeds that have been fed so far: "
                        f"it needs {', '.join(sorted(missing))}.",
                    )
            self._fed.update(feeds)
            self._open_fetches.difference_update(fetches)

    def _send(self, feeds: Mapping[str, Value]) -> None:
        try:
            for partition in self._partitions:
                for name, key in partition.feeds.items():
                    if name in feeds:
                        self._own_worker.send(self._step.step_id, key, feeds[name])
        except errors.AbortedError:  # the step is over; why, is found when its values are asked for
            return

    def _receive(self, fetches: Sequence[str], deadline: float | None) -> list[Value]:
        answers: dict[str, Value] = {}
        arrived = threading.Semaphore(0)
        for partition in self._partitions:
            for name, key in partition.fetches.items():
                if name in fetches:

                    def done(value: Value = None, error: errors.OpError | None = None, name: str = name) -> None:
                        answers[name] = value if error is None else error
                        arrived.release()

                    self._keep(partition.worker.recv_tensor(self._step.step_id, key, done))
        for _ in fetches:
            if not arrived.acquire(timeout=_left_s(deadline)):
                raise errors.DeadlineExceededError.of(f"Timed out waiting for {', '.join(fetches)}")
        failed = [answer for answer in answers.values() if isinstance(answer, errors.OpError)]
        if failed:
            self._over.wait(1.0)  # the step knows the cause, if it had one
            raise self._step.error or failed[0]
        return [answers[name] for name in fetches]

    def _keep(self, receive: Cancel) -> None:
        """Lets the failure of the step cancel a receive."""
        with self._lock:
            self._receives.append(receive)
            is_over = self._over.is_set()
        if is_over and self._step.error is not None:
            receive()

    def _step_ended(self) -> None:
        self._over.set()
        with self._lock:
            receives, self._receives = self._receives, []
        if self._step.error is not None:
            for receive in receives:
                receive()


def _left_s(deadline: float | None) -> float | None:
    """The seconds until a deadline, at least 0; None: no deadline."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _not_set_up(name: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError.of(f"The feed or fetch {name} was not specified in partial_run_setup.")
