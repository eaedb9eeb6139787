"""Groups: which tasks take part in a collective operation, in which order, and for how long they belong together.

Owns `GroupLeader`, with which one task of the cluster brings the members of each group together; `Collectives`, the
groups that one session has joined at one task; and `Group`. How values go round a group is `ring`'s matter.

A group is known by a key that all members give. When as many have joined as each says there are, the group is complete:
it gets a number of its own (its epoch) and its members their ranks, in the order of their names. From then on nobody
asks the leader any more. A member that fails, is cancelled, or leaves breaks the group: whoever waits for it is told
why, and so on round the ring. The next sessions join anew, which makes a new group with another epoch.

The leader is the task that ConfigProto.experimental.collective_group_leader names, as in TensorFlow, else the first one
of the jobs chief, master and worker.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dtf.run.exchange.rendezvous import Rendezvous, StepRendezvous
from dtf.run.interfaces import Device, Done, Membership, Worker
from dtf.wire import errors
from dtf.wire.device import DeviceSpec, task_of

__all__ = ["BROKEN", "Collectives", "Group", "GroupLeader", "Membership", "default_leader"]

BROKEN = "Collective group"
"""How the message of every error begins that tells of a broken group, so that it is passed on as it is."""

_EPOCH_BIT = 1 << 57
_LEADING_JOBS = ("chief", "master", "worker")


class GroupLeader:
    """Brings the members of groups together. Its lock guards `_forming`; nobody is told under it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forming: dict[int, _Forming] = {}

    def join(self, group_key: int, group_size: int, device: Device, done: Done[Membership]) -> Callable[[], None]:
        """Adds a member: done(Membership) when all have come, or done(error=OpError). Returns what takes it back.

        Errors:
          InvalidArgumentError: members differ in the size of the group, or it is not positive.
          AbortedError: the same device has joined again.
        """
        if group_size < 1:
            done(error=errors.InvalidArgumentError.of(f"{BROKEN} {group_key} has the size {group_size}"))
            return _nothing
        member = _Member(device, done)
        told: list[_Member] = []
        error: errors.OpError | None = None
        membership: Membership | None = None
        with self._lock:
            forming = self._forming.setdefault(group_key, _Forming(group_size))
            former = forming.members.get(device.name)
            forming.members[device.name] = member
            if forming.size != group_size:
                error = _sizes_differ(group_key, forming, device, group_size)
                told = list(self._forming.pop(group_key).members.values())
            elif len(forming.members) == group_size:
                del self._forming[group_key]
                told = list(forming.members.values())
                devices = sorted((each.device for each in told), key=lambda each: _order(each.name))
                membership = Membership(_EPOCH_BIT | secrets.randbits(57), tuple(devices))
            names = ", ".join(sorted(map(task_of, forming.members)))
        if former is not None:
            message = f"{BROKEN} {group_key}: {device.name} has joined it again"
            former.done(error=errors.AbortedError.of(message))
        _logger.info(
            "Collective group %d: %d of %d members are here: %s", group_key, len(forming.members), group_size, names
        )
        for each in told:
            if membership is not None:
                each.done(membership)
            elif error is not None:
                each.done(error=error)

        def leave() -> None:
            with self._lock:
                forming = self._forming.get(group_key)
                if forming is None or forming.members.get(device.name) is not member:
                    return
                del forming.members[device.name]
                if not forming.members:
                    del self._forming[group_key]
            cancelled = errors.CancelledError.of(f"{BROKEN} {group_key}: {device.name} no longer waits for it")
            cancelled.derived = True
            done(error=cancelled)

        return leave

    def refuse(self, group_key: int, error: errors.OpError) -> None:
        """Ends a group that is not complete yet: all that wait for it get `error`."""
        with self._lock:
            forming = self._forming.pop(group_key, None)
        for each in forming.members.values() if forming is not None else ():
            each.done(error=error)


class Group:
    """A complete group as one of its members sees it. Its lock guards the turns and the error.

    Attributes:
      key: of the group.
      rank: this member's place in `members`.
      members: the devices, by rank.
      table: where this member lays down what its right neighbour takes.
    """

    def __init__(self, key: int, membership: Membership, device: Device, table: StepRendezvous) -> None:
        self.key = key
        self.epoch = membership.epoch
        self.members = membership.members
        self.rank = [member.name for member in membership.members].index(device.name)
        self.table = table
        self._lock = threading.Lock()
        self._turns: dict[int, int] = {}
        self._error: errors.OpError | None = None

    def __len__(self) -> int:
        return len(self.members)

    @property
    def left(self) -> Device:
        """The neighbour from whom this member receives."""
        return self.members[self.rank - 1]

    @property
    def right(self) -> Device:
        """The neighbour who takes what this member sends."""
        return self.members[(self.rank + 1) % len(self.members)]

    @property
    def error(self) -> errors.OpError | None:
        """Why the group is broken; None while it is not."""
        return self._error

    def next_turn(self, instance_key: int) -> int:
        """How many times this member has begun the collective of this key before: the same at all members."""
        with self._lock:
            turn = self._turns.get(instance_key, 0)
            self._turns[instance_key] = turn + 1
            return turn

    def breaks(self, error: errors.OpError) -> errors.OpError:
        """Breaks the group for this and all later collectives. Returns the error that counts, the first one."""
        with self._lock:
            if self._error is None:
                self._error = error
            else:
                error = self._error
        self.table.abort(error)
        return error

    def loss_of(self, member: Device, cause: errors.OpError) -> errors.OpError:
        """What the failure of a neighbour is for everybody: an error that recovery mends, and names whom it began
        with.
        """
        if cause.message.startswith(BROKEN):
            return errors.error_from_code(cause.error_code, cause.message)
        lines = [line for line in cause.message.splitlines() if line.strip()]
        message = f"{BROKEN} {self.key} has lost {task_of(member.name)}: {lines[0] if lines else cause}"
        if isinstance(cause, errors.UnimplementedError):
            return errors.UnimplementedError.of(message)
        return errors.AbortedError.of(message)


class Collectives:
    """The groups of one session at one task. Its lock guards `_joined`.

    Attributes:
      devices: the task's devices. Each device may be a member of its own group.
      leader: the task that brings groups together.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        rendezvous: Rendezvous,
        worker: Callable[[str], Worker],
        leader: Callable[[], str],
    ) -> None:
        """No groups yet.

        Args:
          devices: of the task; a member that names none of them is the first one.
          rendezvous: of the task.
          worker: task name -> its worker, this task's own included.
          leader: gives the leader's task name.
        """
        self.devices = {device.name: device for device in devices}
        self._first = devices[0]
        self.leader = leader
        self.worker = worker
        self._rendezvous = rendezvous
        self._lock = threading.Lock()
        self._joined: dict[tuple[int, str], _Joining] = {}
        self._is_closed = False

    def group(self, key: int, size: int, name: str, done: Done[Group]) -> None:
        """Calls done(Group) when the group is complete, or done(error=OpError). The first call of a device joins it."""
        is_first = False
        device = self.devices.get(name, self._first)
        with self._lock:
            joining = self._joined.get((key, device.name))
            closed = self._is_closed
            if joining is None and not closed:
                joining = self._joined[key, device.name] = _Joining(size)
                is_first = True
            if joining is not None and joining.outcome is None:
                joining.waiting.append(done)
        if closed:
            done(error=self._has_left(key))
            return
        assert joining is not None
        if joining.size != size:
            message = f"{BROKEN} {key} has the size {joining.size} and, in another op, {size}"
            done(error=errors.InvalidArgumentError.of(message))
            return
        if is_first:
            self._join(key, size, device, joining)
        elif joining.outcome is not None:
            joining.tell(done)

    def close(self) -> None:
        """Leaves all groups: neighbours that still wait are told."""
        with self._lock:
            self._is_closed = True
            joined, self._joined = self._joined, {}
        for joining in joined.values():
            joining.cancel()
            if isinstance(joining.outcome, Group):
                self._leave(joining.outcome)

    def _join(self, key: int, size: int, device: Device, joining: _Joining) -> None:
        def joined(membership: Membership | None = None, error: errors.OpError | None = None) -> None:
            outcome: Group | errors.OpError
            if membership is not None:
                table = self._rendezvous.step(membership.epoch)
                outcome = Group(key, membership, device, table)
            else:
                assert error is not None
                outcome = self._refusal(key, error)
            with self._lock:
                joining.outcome = outcome
                waiting, joining.waiting = joining.waiting, []
                came_too_late = self._is_closed
            if came_too_late and isinstance(outcome, Group):
                self._leave(outcome)
            for done in waiting:
                joining.tell(done)

        if size == 1:
            joined(Membership(_EPOCH_BIT | secrets.randbits(57), (device,)))
            return
        try:
            joining.cancel = self.worker(self.leader()).complete_group(key, size, device, joined)
        except errors.OpError as error:
            joined(error=error)

    def _leave(self, group: Group) -> None:
        """From now on, every request for a part of the group fails with the reason."""
        self._rendezvous.forget(group.epoch, group.breaks(self._has_left(group.key)))

    def _refusal(self, key: int, error: errors.OpError) -> errors.OpError:
        if error.message.startswith(BROKEN):
            return errors.error_from_code(error.error_code, error.message)
        kind = type(error) if isinstance(error, (errors.UnavailableError, errors.AbortedError)) else None
        message = f"{BROKEN} {key} cannot be formed by its leader {self.leader()}: {error.message}"
        return kind.of(message) if kind else errors.error_from_code(error.error_code, message)

    def _has_left(self, key: int) -> errors.OpError:
        return errors.AbortedError.of(f"{BROKEN} {key}: {task_of(self._first.name)} has left it")


def default_leader(tasks: Iterable[str]) -> str:
    """The leader of a cluster that names none; tasks are "/job:worker/replica:0/task:0"."""

    def place(task: str) -> tuple[int, tuple[str, int]]:
        job = DeviceSpec.from_string(task).job or ""
        return (_LEADING_JOBS.index(job) if job in _LEADING_JOBS else len(_LEADING_JOBS), _order(task)[:2])

    return min(tasks, key=place)


@dataclass(frozen=True, eq=False)
class _Member:
    device: Device
    done: Done[Membership]


@dataclass
class _Forming:
    size: int
    members: dict[str, _Member] = field(default_factory=dict)


@dataclass(eq=False)
class _Joining:
    """A group that the session has asked for. `outcome` is the Group or the reason why it failed."""

    size: int
    waiting: list[Done[Group]] = field(default_factory=list)
    outcome: Group | errors.OpError | None = None
    cancel: Callable[[], None] = lambda: None

    def tell(self, done: Done[Group]) -> None:
        if isinstance(self.outcome, Group):
            done(self.outcome)
        elif self.outcome is not None:
            done(error=self.outcome)


def _sizes_differ(key: int, forming: _Forming, device: Device, size: int) -> errors.OpError:
    others = ", ".join(sorted(task_of(name) for name in forming.members if name != device.name))
    return errors.InvalidArgumentError.of(
        f"{BROKEN} {key}: members differ in its size: {task_of(device.name)} says {size}, {others} {forming.size}.",
    )


def _order(device: str) -> tuple[str, int, str]:
    spec = DeviceSpec.from_string(device)
    return (spec.job or "", spec.task or 0, device)


def _nothing() -> None:
    """There is nothing to take back."""


_logger = logging.getLogger("dtf")
