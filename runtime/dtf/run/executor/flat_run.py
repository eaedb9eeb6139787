"""FlatRun: one step of a flat program.

Owns the counts of what each segment still waits for, the values that cross segments, and which thread goes on. What the
end of a step comes to when several things fail is `outcome`'s.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import cast

import numpy as np

from dtf.run.executor.flat_program import FlatProgram, Variant
from dtf.run.executor.instructions import single, with_node
from dtf.run.executor.segments import Segment, group_node
from dtf.run.executor.step import StepContext
from dtf.run.executor.step_status import Outcome
from dtf.run.interfaces import Key, Value
from dtf.run.kernels import DEAD
from dtf.run.lib import numpy_warnings
from dtf.run.state.resources import UpdateLock
from dtf.run.threads import growing_pool, reader_thread, thread_pool
from dtf.wire import errors

__all__ = ["FlatRun"]

_VERY_LONG_NS = 4_000_000
"""Of one that took longer than this, others need the first results before the last are there."""


class FlatRun:
    """One step of a flat program. Its lock guards the counts; `live` is how many segments and asynchronous nodes
    are not over.
    """

    __slots__ = (
        "_done",
        "_interrupt",
        "_left",
        "_live",
        "_lock",
        "_pending",
        "_program",
        "_started_async",
        "_token",
        "_users",
        "_variant",
        "careful",
        "outcome",
        "shared",
        "step",
    )

    def __init__(self, program: FlatProgram, step: StepContext, done: Callable[[errors.OpError | None], None]) -> None:
        self._program = program
        self._done = done
        self._lock = threading.Lock()
        self._pending = list(program.predecessors)
        self._users = list(program.slot_users)
        self._left = list(program.group_sizes)
        self._token: int | None = None
        self._live = len(program.roots) + len(self._left)
        self._interrupt: BaseException | None = None
        self._started_async: dict[int, int] = {}
        self._variant = program.plain if step.collector is None else program.variant(False, True)
        self.careful = False
        self.outcome = Outcome(step)
        self.shared: list[Value] = [None] * program.slot_count
        self.step = step

    def start(self) -> None:
        if not self._live:
            self._done(None)
            return
        if self._left:
            self._token = self.step.cancellation.register(self._stop_waiting)
            if self._token is None:
                self.outcome.fail(_cancelled())
                self._stop_waiting()
        if self._program.roots:
            self._drain(list(self._program.roots), False)

    def finish(self, index: int, value: Value = None, error: BaseException | None = None) -> None:
        """An asynchronous node has its value or error."""
        if error is None:
            self.finish_all([(index, value)])
        elif self._take([index]):
            self.outcome.fail(with_node(error, self._program.instructions[index].node))
            self._advance([index])

    def finish_all(self, values: Sequence[tuple[int, Value]]) -> None:
        """Asynchronous nodes have their values."""
        started = self._take([index for index, _ in values])
        for index, value in values:
            if index not in started:
                continue
            try:
                self._store(index, value)
            except Exception as broken:
                self.outcome.fail(with_node(broken, self._program.instructions[index].node))
            if self.step.collector is not None:
                outputs = tuple(value) if isinstance(value, (tuple, list)) else (value,)
                self.record(index, started[index], time.time_ns(), outputs)
        if started:
            self._advance(started)

    def arrive(self, source: int, numbers: Sequence[Key], values: Sequence[Value]) -> None:
        """Values have come from another task; goes on with what waited for them."""
        program, shared, left = self._program, self.shared, self._left
        places = program.arrivals[source]
        complete: list[int] = []
        with self._lock:
            if not left:
                return
            for number, value in zip(numbers, values, strict=True):
                group, slot, token = places[number]
                if slot is not None:
                    shared[slot] = value
                if value is DEAD:
                    self.careful = True
                    if token is not None:
                        shared[token] = DEAD
                left[group] -= 1
                if not left[group]:
                    complete.append(group_node(group))
        if complete:
            self._advance(complete)

    def _stop_waiting(self) -> None:
        """Nothing that arrives from now on counts: the step has been cancelled."""
        with self._lock:
            waiting = sum(count > 0 for count in self._left)
            self._left = []
            self._live -= waiting
            over = waiting > 0 and self._live == 0
        if waiting:
            self.outcome.fail(_cancelled())
        if over:
            self._end()

    def skip(self, index: int) -> None:
        """An asynchronous node in a branch that was not taken."""
        if self._take([index]):
            slots, token = self._program.output_slots[index]
            for _, slot in slots:
                self.shared[slot] = DEAD
            if token is not None:
                self.shared[token] = DEAD
            self._advance([index])

    def check(self) -> None:
        """Raises CancelledError when the step has been cancelled: between the nodes of a segment."""
        if self.step.cancellation.is_cancelled:
            raise _cancelled()

    def record(self, index: int, start_ns: int, end_ns: int, outputs: tuple[Value, ...]) -> None:
        instruction = self._program.instructions[index]
        assert self.step.collector is not None
        for node in instruction.absorbed:  # its time is that of the instruction, which computes it too
            self.step.collector.record(node.name, node.op, start_ns, start_ns, ())
        self.step.collector.record(instruction.name, instruction.op, start_ns, end_ns, outputs)

    def _take(self, indices: Sequence[int]) -> dict[int, int]:
        """The start times of those nodes that were waiting, which they no longer are."""
        with self._lock:
            waiting = self._started_async
            return {index: waiting.pop(index) for index in indices if index in waiting}

    def _store(self, index: int, value: Value) -> None:
        slots, token = self._program.output_slots[index]
        if value is DEAD:
            self.careful = True
            for _, slot in slots:
                self.shared[slot] = DEAD
            if token is not None:
                self.shared[token] = DEAD
            return
        instruction = self._program.instructions[index]
        if instruction.node.num_outputs == 1:
            values: Sequence[Value] = (single(value) if instruction.has_list_output else value,)
        else:
            values = cast(Sequence[Value], value)
        for number, slot in slots:
            self.shared[slot] = values[number]

    def _advance(self, nodes: Collection[int]) -> None:
        """Asynchronous nodes are over: goes on with the segments that only they were missing for."""
        ready = []
        program, pending = self._program, self._pending
        with self._lock:
            self._live -= len(nodes)
            if self.outcome.error is None:
                for node in nodes:
                    for waiter in program.waiters.get(node, ()):
                        pending[waiter] -= 1
                        if pending[waiter] == 0:
                            ready.append(program.segments[waiter])
                self._live += len(ready)
            over = self._live == 0
        if over:
            self._end()
        elif ready:
            drains = _thread.drains
            if not drains:
                self._drain(ready, True)
                return
            for run, its_ready in reversed(drains):
                if run is self:
                    its_ready.extend(ready)
                    return
            # This thread is at another step, which woke this one. That one goes on to where it waits itself before
            # anybody can answer it: a replica stands in line for the token of the update that its gradient makes.
            reader_thread.afterwards(self._drain, ready, True)

    def _drain(self, ready: list[Segment], is_borrowed: bool) -> None:
        """Runs segments until none is ready. A borrowed thread hands long ones over to the pool."""
        drains = _thread.drains
        is_quiet = bool(drains) or numpy_warnings.are_off()
        drains.append((self, ready))
        try:
            if is_quiet:
                over = self._run_ready(ready, is_borrowed)
            else:
                with np.errstate(all="ignore"):
                    over = self._run_ready(ready, is_borrowed)
        finally:
            drains.pop()
        try:
            if over:
                self._end()
            else:
                self.outcome.flush()
        finally:
            if not drains:
                reader_thread.do_afterwards()
        if self._interrupt is not None:
            raise self._interrupt

    def _run_ready(self, ready: list[Segment], is_borrowed: bool) -> bool:
        """Runs segments until none is ready, or others do. True when the step is over."""
        over = False
        while ready:
            now, ready[:] = ready[:], []
            if self._program.has_functions_of_user and self._is_for_others(now):
                growing_pool.submit(self._drain, now, False)
                break
            for segment in now:
                if segment.cost_ns > self._program.long_ns:
                    break
            else:
                over = self._run_together(now, ready)
                continue
            if is_borrowed and not reader_thread.is_lent():
                thread_pool.submit(self._drain, now, False)
                break
            reader_thread.yield_reader()
            if len(now) > 1:
                ready.extend(now[:-1])
                now = now[-1:]
            over = self._run_segments(now, ready)
        return over

    def _is_for_others(self, segments: Sequence[Segment]) -> bool:
        """Whether this thread is one that waits for a step, perhaps with a lock that a function of the user's wants."""
        return reader_thread.is_waiting() and any(segment.is_of_user for segment in segments)

    def _begin_asynchronous(self, segments: Sequence[Segment]) -> None:
        """Counts the asynchronous nodes that the segments are about to start."""
        waiting = [index for segment in segments for index in segment.asynchronous]
        now = time.time_ns()
        with self._lock:
            self._live += len(waiting)
            self._started_async.update(dict.fromkeys(waiting, now))

    def _run_together(self, segments: Sequence[Segment], ready: list[Segment]) -> bool:
        """As `_run_segments`. Changes of durable state that follow each other without a wait are one transaction."""
        program = self._program
        if not program.keeps or not all(segment.is_update for segment in segments):
            return self._run_segments(segments, ready)
        lock = self._lock_for_update()
        try:
            over = self._run_segments(segments, ready, is_locked=True)
            while ready and all(each.is_update and each.cost_ns <= program.long_ns for each in ready):
                now, ready[:] = ready[:], []
                over = self._run_segments(now, ready, is_locked=True)
        finally:
            try:
                lock.release()
            except errors.OpError as error:  # what they have changed cannot be kept
                self.outcome.fail(error)
        return over

    def _run_segments(self, segments: Sequence[Segment], ready: list[Segment], is_locked: bool = False) -> bool:
        """Runs segments and adds what they make ready. True when the step is over.

        Args:
          is_locked: this thread has the lock for updates.
        """
        if self._program.has_asynchronous:
            self._begin_asynchronous(segments)
        if self.step.cancellation.is_cancelled:
            self.outcome.fail(_cancelled())
        for segment in segments:
            self._run_segment(segment, is_locked)
        program, pending, users = self._program, self._pending, self._users
        with self._lock:
            self._live -= len(segments)
            if self.outcome.error is None:
                for segment in segments:
                    for slot in segment.shared_slots:
                        users[slot] -= 1
                        if users[slot] == 0:
                            self.shared[slot] = None
                    for successor in segment.successors:
                        pending[successor] -= 1
                        if pending[successor] == 0:
                            self._live += 1
                            ready.append(program.segments[successor])
            return self._live == 0

    def _run_segment(self, segment: Segment, is_locked: bool) -> None:
        if self.outcome.error is not None:
            self._abandon(segment.asynchronous)
            return
        variant = self._variant
        if self.careful:
            variant = self._program.variant(True, self.step.collector is not None)
        if segment.cost_ns > _VERY_LONG_NS:
            self.step.exchange.computing()
        lock = self._lock_for_update() if segment.is_update and not is_locked else None
        started = time.perf_counter_ns()
        try:
            variant.functions[segment.index](self.step, self.shared, self)
        except BaseException as error:
            self._segment_failed(segment, variant, error)
        if lock is not None:
            try:
                lock.release()
            except errors.OpError as error:  # what the segment has changed cannot be kept
                self.outcome.fail(error)
        segment.cost_ns = (segment.cost_ns + time.perf_counter_ns() - started) // 2

    def _lock_for_update(self) -> UpdateLock:
        """The task's lock for updates, acquired."""
        lock = self.step.resources.update_lock
        if not lock.acquire(blocking=False):
            reader_thread.yield_reader()
            lock.acquire()
        return lock

    def _segment_failed(self, segment: Segment, variant: Variant, error: BaseException) -> None:
        index = variant.culprit(error)
        node = self._program.instructions[index if index >= 0 else segment.instructions[0]].node
        position = segment.instructions.index(index) if index in segment.instructions else 0
        # The frames would keep every value of the segment alive for as long as the error is referenced.
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            self._interrupt = error
        never_started = set(segment.instructions[position:])
        self._abandon([number for number in segment.asynchronous if number in never_started])
        self.outcome.fail(with_node(error, node))

    def _abandon(self, nodes: list[int]) -> None:
        """Asynchronous nodes that will not be started after all."""
        with self._lock:
            for index in nodes:
                if self._started_async.pop(index, None) is not None:
                    self._live -= 1

    def _end(self) -> None:
        self.outcome.flush(is_last=True)
        self.shared.clear()
        self.step.cancellation.deregister(self._token)  # else the step would wait for the garbage collector
        self._done(self.outcome.error)


def _cancelled() -> errors.OpError:
    return errors.CancelledError.of("Step was cancelled")


class _Thread(threading.local):
    def __init__(self) -> None:
        self.drains: list[tuple[FlatRun, list[Segment]]] = []


_thread = _Thread()
