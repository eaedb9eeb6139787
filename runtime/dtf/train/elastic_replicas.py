"""Synchronous replicas whose number follows the workers that exist: members, their reports, and the chief's decisions.

Owns `Membership` (reports and times in, decisions out; no graph, no clock) and the operations and threads that feed it.
`sync_replicas_optimizer` has the accumulators, the update and the queue of tokens.

    worker                                         chief, in a thread beside its own steps
    ------                                         ---------------------------------------
    hands its gradients in                         reads the reports
    reports: member, step, hand-ins, tokens taken  updates as soon as all members but the backups have handed in
    waits for a token                              gives each waiting member a token
    every second: the same report

A member joins with its first report and leaves with its last, or when no report has come for `LEASE_S`. A gradient of
an earlier step is dropped by the accumulators; its member waits for the next update, which does not wait for it. A
token may be lost with a worker that is killed while it takes one. A member that still waits some reports later is
treated in the same way. A chief that returns learns all of this from the reports.

The environment variable DTF_ELASTIC=1 turns it on. dtfctl sets it for `cluster_spec: elastic`, for all tasks alike.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtf import logging
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, device
from dtf.build.ops import data_flow as data_flow_ops
from dtf.build.ops.array import placeholder, placeholder_with_default, reshape
from dtf.build.ops.filling import fill
from dtf.build.ops.joining import stack
from dtf.build.ops.math import cast
from dtf.build.ops.slicing import boolean_mask
from dtf.build.tensor import Operation, Tensor
from dtf.build.variables import Variable
from dtf.wire.dtypes import int64

__all__ = ["HEARTBEAT_S", "LEASE_S", "Membership", "Report", "ReportQueue"]

HEARTBEAT_S = 1.0
LEASE_S = 5.0
"""A member that has not reported for so long is gone."""
_AGAIN_S = 3 * HEARTBEAT_S
"""A member that still waits so long after it was given a token has lost it."""
_BACKLOG_MAX = 1000
_WORDS, _STEP = 6, 2
_NOBODY_READS = -1


@dataclass(frozen=True)
class Report:
    """What a worker says of itself. `member` is its place in the cluster, `life` grows with each start of it; `step` is
    its local step. It waits for a token when it has handed in more often than it has taken one."""

    member: int
    life: int
    step: int
    hand_ins: int
    tokens: int
    leaves: bool = False

    @property
    def waits(self) -> bool:
        return self.hand_ins > self.tokens


@dataclass
class _Member:
    report: Report
    heard_at: float
    contributed: bool = False
    given_at: float | None = None
    """When the token was given for which it waits."""


class Membership:
    """Who takes part, whether the next update is due, and how many tokens are.

    Args:
      aggregate, total: as the program gives them to SyncReplicasOptimizer. `total - aggregate` members are backups;
        with more gradients than members, each member gives that many times as many.
      step: the global step.
      trusts: whether the gradients that first reports speak of are in the accumulators. Otherwise those members get a
        token, and compute them again.
      now: a time in seconds; the first update waits until `total` members are there, or for `LEASE_S`.
    """

    def __init__(self, aggregate: int, total: int, step: int, now: float, trusts: bool = True) -> None:
        self._aggregate = aggregate
        self._trusts = trusts
        self._total = total
        self._step = step
        self._begins_by = now + LEASE_S
        self._members: dict[int, _Member] = {}
        self._left: dict[int, int] = {}
        self._gradients = 0

    @property
    def members(self) -> frozenset[int]:
        return frozenset(self._members)

    def required(self, now: float) -> int:
        """How many gradients the next update takes. A member that waits for it without a gradient in it gives none."""
        count = sum(not self._is_out(member, now) for member in self._members.values())
        if self._has_several:
            return max(1, -(-count * self._aggregate // self._total))
        return max(1, count - (self._total - self._aggregate))

    def missing(self, now: float) -> int:
        """How many reports have to come at least before an update may be due."""
        return 1 if self._has_several else max(1, self.required(now) - self._collected())

    def hear(self, report: Report, now: float) -> None:
        """Takes note of one report. Those of an earlier life of a member are ignored."""
        known = self._members.get(report.member)
        if report.life <= self._left.get(report.member, -1) or (known and report.life < known.report.life):
            return
        if report.leaves:
            self._left[report.member] = report.life
            self._members.pop(report.member, None)
            return
        if known is None or known.report.life != report.life:
            known = self._members[report.member] = _Member(report, now)
            handed_in = report.waits and self._trusts
        else:
            handed_in = report.hand_ins > known.report.hand_ins
            if report.tokens > known.report.tokens:
                known.given_at = None
            if report.hand_ins >= known.report.hand_ins and report.tokens >= known.report.tokens:
                known.report = report
            known.heard_at = now
        if handed_in and report.step == self._step:
            known.contributed = True
            self._gradients += 1

    def lose(self, now: float) -> int:
        """Forgets the members that have not reported for a lease; returns how many."""
        lost = [name for name, member in self._members.items() if now - member.heard_at > LEASE_S]
        for name in lost:
            del self._members[name]
        return len(lost)

    def is_due(self, now: float) -> bool:
        """Whether enough gradients of the present step are in."""
        if len(self._members) < self._total and now < self._begins_by:
            return False
        return self.required(now) <= self._collected()

    def tokens_due(self, now: float) -> int:
        """How many tokens of the present step are to be given before its update; they count as given. Any waiting
        member may take one, so members without a gradient in this update get one only when all members are such.
        """
        out = [member for member in self._members.values() if self._is_out(member, now)]
        if not self._has_several and len(out) < len(self._members):
            return 0
        for member in out:
            member.given_at = now
        return len(out)

    def waiting(self) -> int:
        """How many tokens the next update gives."""
        return sum(member.report.waits for member in self._members.values())

    def updated(self, step: int, now: float) -> None:
        """An update has been made, and `waiting` tokens given."""
        self._step, self._gradients = step, 0
        self._begins_by = now
        for member in self._members.values():
            member.contributed = False
            if member.report.waits:
                member.given_at = now

    @property
    def _has_several(self) -> bool:
        return self._aggregate > self._total

    def _collected(self) -> int:
        if self._has_several:
            return self._gradients
        return sum(member.contributed for member in self._members.values())

    def _is_out(self, member: _Member, now: float) -> bool:
        """Whether it waits and has nothing in this update: its gradient was dropped, or its token was lost."""
        if not member.report.waits or (member.contributed and not self._has_several):
            return False
        return member.given_at is None or now - member.given_at > _AGAIN_S


class ReportQueue:
    """The reports of all members: their queue beside the global step, the operations of a worker and those of a chief.

    Made while `SyncReplicasOptimizer.apply_gradients` builds its graph, with the variable of the local step.

    Attributes:
      init_op: for sessions without the hook: their steps report to nobody.
    """

    def __init__(self, where: str, anchor: Operation, local_step: Variable) -> None:
        """where: the device of the global step. anchor: an operation on the worker, with the local step."""
        self._where = where
        self._anchor = anchor
        self._local_step = local_step
        place = anchor.device
        self._member = zlib.crc32(place.encode()) if place else int.from_bytes(os.urandom(6), "big")
        with device(where):
            self._queue = data_flow_ops.FIFOQueue(
                -1, [int64], shapes=[[_WORDS]], name="sync_reports_q", shared_name="sync_reports_q"
            )
        with self._here():
            # A report as it would be sent now. Its last word, for a member that leaves, is negative while nobody reads.
            self._state = Variable(
                np.array([0, 0, 0, 0, 0, _NOBODY_READS], np.int64),
                trainable=False,
                collections=[],
                use_resource=False,
                name="sync_rep_state",
            )
        self.init_op = self._state.initializer

    def report_hand_in(self, hand_in: Iterable[Operation]) -> Operation:
        """The operation of a step that reports its gradients once they are in."""
        with self._here(), control_dependencies(hand_in):
            state = self._state.assign_add(_change(hand_ins=1))
            rows = reshape(boolean_mask(state, fill([_WORDS], state[-1] >= 0)), [-1, _WORDS])
        with device(self._where):
            return self._queue.enqueue_many([rows])

    def note_token(self, token: Tensor) -> Operation:
        """The operation of a step that notes the token that it has taken."""
        with self._here(), control_dependencies([token]):
            taken = cast(token, int64) - self._state.value()[_STEP]
            change = stack([np.int64(0), np.int64(0), taken, np.int64(0), np.int64(1), np.int64(0)])
            return self._state.assign_add(change).op

    def make_worker_ops(self) -> None:
        """Makes what `join`, `keep_reporting` and `leave` run."""
        with self._here():
            self._life = placeholder(int64, [])
            step = cast(convert_to_tensor(self._local_step), int64)
            zero = np.int64(0)
            begun = self._state.assign(stack([np.int64(self._member), self._life, step, zero, zero, zero]))
            state = self._state.value()
            leaving = state + _change(leaves=1)
        with device(self._where):
            self._join_op = self._queue.enqueue(begun)
            self._heartbeat_op = self._queue.enqueue(state)
            self._leave_op = self._queue.enqueue(leaving)
            self._size = self._queue.size()

    def make_chief_ops(self) -> None:
        """Makes what `read` and `close` run, and `size`, the number of reports that are there."""
        with device(self._where):
            self._count = placeholder_with_default(1, [])
            self._rows = self._queue.dequeue_many(self._count)
            self._close_op = self._queue.close(cancel_pending_enqueues=True)
            self._size = self._queue.size()

    def join(self, session: Any) -> None:
        """Begins a life of this member; its local step is set."""
        session.run(self._join_op, {self._life: time.time_ns()})

    def keep_reporting(self, session: Any, coord: Any) -> None:
        """Reports every second until the session ends, in a thread of its own."""
        threading.Thread(
            target=self._report_on, args=(session, coord), name="SyncReplicas-reports", daemon=True
        ).start()

    def leave(self, session: Any) -> None:
        """Ends this life of the member."""
        session.run(self._leave_op)

    def reports(self, session: Any, count: int) -> list[Report]:
        """Waits for so many reports, 0 for all that are there."""
        count = count or int(session.run(self._size))
        rows = session.run(self._rows, {self._count: count}) if count else np.zeros([0, _WORDS], np.int64)
        return [
            Report(member, life, step, hand_ins, tokens, leaves > 0)
            for member, life, step, hand_ins, tokens, leaves in rows.tolist()
        ]

    def close(self, session: Any) -> None:
        """The training is over: nobody reads any more."""
        session.run(self._close_op)

    def _report_on(self, session: Any, coord: Any) -> None:
        try:
            while not coord.wait_for_stop(HEARTBEAT_S):
                if session.run(self._size) < _BACKLOG_MAX:
                    session.run(self._heartbeat_op)
        except Exception as error:  # the session's next step meets the same, and reports it
            logging.vlog(1, "The reports of this replica end: %s", error)

    def _here(self) -> Any:
        return colocate_with(self._anchor)


def _change(hand_ins: int = 0, leaves: int = 0) -> np.ndarray:
    return np.array([0, 0, 0, hand_ins, 0, leaves], np.int64)
