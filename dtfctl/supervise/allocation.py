"""The end of an allocation as dtfctl learns of it: what ends with a job of Slurm has not failed.

Slurm ends a job (scancel, a requeue, the time limit) with SIGTERM to all its processes at the same moment: the tasks,
the pipes to their hosts and the supervisor. What the tasks do then says nothing about them, so the end of a task is
believed only when no end of the job follows at once. A supervisor that survives its job ends its run; of one that was
killed with its job the next command ends the run on record.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from dtfctl.errors import HostsUnusable
from dtfctl.launchers import slurm_job
from dtfctl.launchers.base import Event, Exited, Unreachable
from dtfctl.launchers.keeper.processes import boot_id
from dtfctl.storage.store import Store
from dtfctl.supervise.reconcile import STOPPED
from dtfctl.values import state
from dtfctl.values.engines import SlurmSettings
from dtfctl.values.plan import LOCALHOST, SLURM
from dtfctl.values.task import Exit, TaskStatus

if TYPE_CHECKING:
    from dtfctl.control.cluster import Cluster

LOOK_S = 5.0
"""How long Slurm may take to answer."""

LOOK_AGAIN_S = 0.5
BELIEVED_AFTER_S = 2.0
"""How long the end of a task waits for the end of the job. Slurm's signal reaches all nodes well within this time."""


class Allocation:
    """Stands between the launcher and the supervisor. `take` gets the events; `is_alive` says whether the end of a task
    comes unasked. `end` is called with the reason when the job has ended here, and with whether all its hosts are gone:
    a node that `is_cut_off`, for no other node and no Slurm answers it, ends its own part after `fence_s`. Slurm may
    have queued the job again by then, and there must be one writer. `node` is this one, "" outside the allocation."""

    def __init__(
        self,
        job: str,
        take: Callable[[Event], None],
        end: Callable[[str, bool], None],
        is_alive: Callable[[str], bool],
        is_cut_off: Callable[[], bool] = lambda: False,
        fence_s: Callable[[], float] = lambda: 0.0,
        node: str = "",
    ) -> None:
        self.is_over = False
        self._job = job
        self._take = take
        self._end = end
        self._is_alive = is_alive
        self._is_cut_off = is_cut_off
        self._fence_s = fence_s
        self._node = node
        self._looking: asyncio.Task[None] | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, Exited) and not self.is_over and self._is_alive(event.task):
            asyncio.get_running_loop().call_later(BELIEVED_AFTER_S, self._take, event)
            return
        if isinstance(event, Unreachable) and not self.is_over and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look())
        self._take(event)

    async def _look(self) -> None:
        begun = time.monotonic()
        while not self.is_over:
            try:
                job = await asyncio.wait_for(asyncio.to_thread(slurm_job.look, self._job), LOOK_S)
                break
            except (HostsUnusable, asyncio.TimeoutError):
                fence_s = self._fence_s()
                # Slurm's controller may be away; the job goes on.
                if not (fence_s and self._is_cut_off()):
                    return
            if time.monotonic() >= begun + fence_s:
                self._is_ended(f"neither Slurm nor another node of job {self._job} answered for {fence_s:g}s", False)
            await asyncio.sleep(LOOK_AGAIN_S)
        else:
            return
        if job.state not in slurm_job.HOLDS_NODES:
            self._is_ended(str(job), True)
        elif self._node and job.node not in ("", "n/a", self._node):
            self._is_ended(f"job {self._job} of Slurm was queued again, and runs on {job.node}", True)

    def _is_ended(self, why: str, are_hosts_gone: bool) -> None:
        if not self.is_over:
            self.is_over = True
            self._end(why, are_hosts_gone)


def words_of_signal(job: str) -> str:
    return f"job {job} of Slurm was ended: cancelled, queued again, or at its time limit"


async def why_signalled(number: str) -> str:
    """The same, as exactly as Slurm says it while it ends the job."""
    with contextlib.suppress(HostsUnusable, asyncio.TimeoutError):
        job = await asyncio.wait_for(asyncio.to_thread(slurm_job.look, number), LOOK_S)
        if job.reason == "TimeLimit":
            return f"job {number} of Slurm has reached its time limit"
    return words_of_signal(number)


def settle(cluster: Cluster, own: SlurmSettings | None = None) -> None:
    """Ends the run on record if its job has ended and its supervisor with it. `own` is the allocation in which a new
    run is about to begin. Raises HostsUnusable where Slurm does not answer."""
    found = cluster.find()
    if found is None or found[0].is_over or found[0].plan.engine != SLURM or cluster.has_supervisor():
        return
    run, statuses = found
    former = run.plan.slurm
    if not former.job:
        return
    if own is not None and own.job == former.job:
        if own.restarts == former.restarts:
            return
        why = f"job {former.job} of Slurm was queued again before the run ended"
    else:
        job = slurm_job.look(former.job)
        if job.state in slurm_job.AT_WORK:
            return
        why = f"{job}, before the run ended"
    store = Store(cluster.paths.store)
    try:
        at = store.wall_clock()
        closed = replace(
            run,
            outcome=run.outcome or STOPPED,
            why=run.why or why,
            is_over=True,
            ended_at=at,
            environment={},
            secrets={},
        )
        ended = [_ended(status, why) for status in statuses.values()]
        store.save(closed, ended, [store.happening("", closed.outcome, closed.why)])
    finally:
        store.close()


def job_of_restarted_node(cluster: Cluster, node: str) -> slurm_job.Job | None:
    """The job of the present run, if its batch script and supervisor ended with a restart of this machine, the job's
    first node `node`. Slurm needs up to half an hour to notice. Raises HostsUnusable where Slurm does not answer."""
    found, noted = cluster.find(), slurm_job.noted(cluster.paths.folder)
    if found is None or noted is None or cluster.has_supervisor():
        return None
    run, _ = found
    if run.is_over or run.plan.slurm.job != noted.number or run.boot == boot_id():
        return None
    job = slurm_job.look(noted.number)
    # On another node of the job the boot differs too.
    return job if job.state == "RUNNING" and job.node == node else None


def _ended(status: TaskStatus, why: str) -> TaskStatus:
    if status.state in state.WITH_PROCESS:
        ended = Exit(status.started_at or 0.0, error=why, preempted=why)
        status = status.ended(ended)
    if status.state in (state.EXITED, *state.WAITING):
        status = status.stopped(why)
    return status


def ends_of(statuses: Iterable[TaskStatus], why: str, now: float) -> list[Exited]:
    """What has become of the tasks of a job that has ended."""
    running = [status for status in statuses if status.state in state.WITH_PROCESS]
    ended = Exit(now, error=why, preempted=why)
    return [Exited(status.name, status.generation, ended, status.host or LOCALHOST) for status in running]
