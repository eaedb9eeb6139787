"""Work queues: workers take shards of the data from a parameter server, and each record counts exactly once.

Owns the public class. Any number of workers may come and go: a shard of a killed worker goes to another one, which
goes on after the last confirmed record. The confirmation and the update of the variables are one step, and the queue's
state is part of the checkpoint, so both survive the parameter server together.

    queue = tf.train.WorkQueue(filenames, num_epochs=3)
    train_op = queue.confirming(optimizer.minimize(loss, global_step))
    with tf.train.MonitoredTrainingSession(...) as session:
        for lease in queue.leases(session):
            with lease:
                for batch, upto in read(lease.work, lease.position):
                    session.run(train_op, {features: batch, **lease.feed(upto)})
                lease.finish()

The ops are dtf's own: the task that holds the queue must be dtf's. `dtf.run.state.work_queue` has the rules.
"""

from __future__ import annotations

import os
import re
import socket
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, NamedTuple

from dtf import logging
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import add_to_collection, colocate_with, name_scope
from dtf.build.graph_keys import GraphKeys
from dtf.build.ops.array import placeholder
from dtf.build.ops.ordering import group
from dtf.build.saveable_object import SaveableObject, SaveSpec
from dtf.build.tensor import Operation, Tensor
from dtf.train.training_util import get_global_step
from dtf.wire import dtypes, errors

__all__ = ["Lease", "WorkItem", "WorkQueue"]


class WorkItem(NamedTuple):
    """The tensors of one lease, all scalars: its number (int64), the shard's name (string), the epoch (int64, from 0)
    and how many of the shard's records are confirmed (int64).
    """

    lease: Tensor
    work: Tensor
    epoch: Tensor
    position: Tensor


class WorkQueue:
    """Shards of records, kept by a parameter server and leased to workers.

    All workers make the queue with the same arguments. It is on the task of the global step if there is one, else where
    a device scope puts it. Its initializer joins the table initializers, which MonitoredSession runs.

    Each record is in exactly one confirmed step while workers are killed and added, and when the parameter server is
    restored from a checkpoint. That holds if the variables that a step changes are on the queue's task. With variables
    on several tasks, a step whose worker is killed may have changed only some of them, as without a queue. A step of
    SyncReplicasOptimizer whose gradients are dropped as stale counts as confirmed.

    Args:
      works: the names of the shards, strings: files, or ranges as `ranges` makes them.
      num_epochs: how often each shard is given out; None: without end.
      shuffle: whether each epoch has an order of its own.
      seed: an integer for that order; by default it follows from `name`, so that all workers agree.
      lease_s: seconds without a confirmation after which a shard goes to another worker. It must be longer than the
        slowest step.
      name: the queue's name in the graph, its task and checkpoints.

    Raises:
      ValueError: there are no works, or a number is out of range.

    Source: https://www.tensorflow.org/api_docs/python/tf/data/experimental/service (dynamic sharding)
    """

    def __init__(
        self,
        works: Sequence[str],
        num_epochs: int | None = 1,
        shuffle: bool = True,
        seed: int | None = None,
        lease_s: float = 60.0,
        name: str = "work_queue",
    ) -> None:
        works = list(works)
        if not works:
            raise ValueError(f"Work queue {name} needs at least one shard.")
        if num_epochs is not None and num_epochs < 1:
            raise ValueError(f"num_epochs must be positive or None, but was {num_epochs}.")
        if not lease_s > 0:
            raise ValueError(f"lease_s must be positive, but was {lease_s}.")
        if seed is None:
            seed = zlib.crc32(name.encode())
        with name_scope(name), _at_global_step():
            self._handle: Tensor = apply_op("WorkQueue", "handle", shared_name=name)
        self._name = name
        with name_scope(name), colocate_with(self._handle.op):
            self._initializer: Operation = apply_op(
                "WorkQueueCreate",
                "initializer",
                handle=self._handle,
                works=convert_to_tensor(works, dtypes.string),
                num_epochs=num_epochs or 0,
                shuffle=shuffle,
                seed=seed,
                lease_s=float(lease_s),
            )
            self._holder = placeholder(dtypes.string, [], name="holder")
            self._lease = placeholder(dtypes.int64, [], name="lease")
            self._position = placeholder(dtypes.int64, [], name="position")
            self._is_done = placeholder(dtypes.bool, [], name="is_done")
            self._confirm = self.confirm(self._lease, self._position, self._is_done)
            self._release = apply_op("WorkQueueRelease", "release", handle=self._handle, lease=self._lease)
            self._item = self.take(self._holder)
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, self._initializer)
        add_to_collection(GraphKeys.SAVEABLE_OBJECTS, _WorkQueueSaveable(self))

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._name

    @property
    def handle(self) -> Tensor:
        """The resource handle."""
        return self._handle

    @property
    def initializer(self) -> Operation:
        """The operation that fills the queue, once; a second worker's does nothing."""
        return self._initializer

    @staticmethod
    def ranges(records: int, shard_records: int) -> list[str]:
        """Names of shards for records that are numbered: "0:100", "100:200" ... up to `records`.

        Raises:
          ValueError: a number is not positive.
        """
        if records < 1 or shard_records < 1:
            raise ValueError(f"records and shard_records must be positive, but are {records} and {shard_records}.")
        return [f"{begin}:{min(begin + shard_records, records)}" for begin in range(0, records, shard_records)]

    def take(self, holder: Any = "", name: str | None = None) -> WorkItem:
        """The next shard. It waits while all that is left is leased to others.

        Args:
          holder: string scalar that names the worker in messages.

        Returns:
          WorkItem. Its step raises OutOfRangeError when all epochs are confirmed.
        """
        with colocate_with(self._handle.op):
            made = apply_op(
                "WorkQueueTake",
                name or f"{self._name}_take",
                handle=self._handle,
                holder=convert_to_tensor(holder, dtypes.string),
            )
        return WorkItem(*made)

    def confirm(self, lease: Any, position: Any, is_done: Any = False, name: str | None = None) -> Operation:
        """The operation that confirms a shard's records before `position`, and renews its lease.

        Args:
          lease, position: int64 scalars.
          is_done: bool scalar; whether the shard is finished.

        Its step raises FailedPreconditionError when the lease has ended; then nothing is confirmed.
        """
        with colocate_with(self._handle.op):
            return apply_op(
                "WorkQueueConfirm",
                name or f"{self._name}_confirm",
                handle=self._handle,
                lease=convert_to_tensor(lease, dtypes.int64),
                position=convert_to_tensor(position, dtypes.int64),
                is_done=convert_to_tensor(is_done, dtypes.bool),
            )

    def confirming(self, train_op: Any, name: str | None = None) -> Operation:
        """Makes the updates of `train_op` wait for the confirmation of the step's records.

        A worker that has lost its lease then changes nothing. Each step that runs `train_op` feeds `Lease.feed`.

        Args:
          train_op: an operation or tensor, such as the result of `minimize`. All changes of variables that it needs
            get a control input, those before the gradients too.

        Returns:
          The operation that runs `train_op`.

        Raises:
          ValueError: `train_op` changes no variable.
        """
        updates = _updates_of(train_op)
        if not updates:
            raise ValueError(f"{train_op} changes no variable: work queue {self._name} has no update to confirm.")
        confirm = self.confirm(self._lease, self._position, self._is_done)
        for update in updates:
            update._add_control_input(confirm)
        return group(train_op, confirm, name=name or f"{self._name}_confirmed")

    def leases(self, session: Any, holder: str | None = None) -> Iterator[Lease]:
        """This worker's shards, one after the other, until all epochs are confirmed.

        Args:
          session: a Session or MonitoredSession; hooks do not see these runs.
          holder: names this worker in messages; by default its host and process.
        """
        holder = holder or f"{socket.gethostname()}:{os.getpid()}"
        while True:
            try:
                number, work, epoch, position = _run(session, self._item, {self._holder: holder})
            except errors.OutOfRangeError:
                return
            yield Lease(self, session, int(number), work.decode(), int(epoch), int(position))


class Lease:
    """A shard that this worker has for a while.

    The loss of the lease ends its `with` block and not the program. A block that ends without `finish` gives the shard
    back. A block that an error ends leaves it until the lease's time is over.

    Attributes:
      number: the lease's number.
      work: the shard's name.
      epoch: from 0.
      position: how many of its records are confirmed; reading goes on there.
    """

    def __init__(self, queue: WorkQueue, session: Any, number: int, work: str, epoch: int, position: int) -> None:
        self._queue = queue
        self._session = session
        self.number = number
        self.work = work
        self.epoch = epoch
        self.position = position
        self._is_done = False

    def __repr__(self) -> str:
        return f"Lease({self.work!r}, epoch={self.epoch}, position={self.position})"

    def feed(self, position: int, is_done: bool = False) -> dict[Tensor, Any]:
        """The feeds that make a step confirm the records before `position`; `is_done`: the shard has no others."""
        self.position = position
        self._is_done = is_done
        queue = self._queue
        return {queue._lease: self.number, queue._position: position, queue._is_done: is_done}

    def finish(self) -> None:
        """Confirms that the shard has no other records."""
        _run(self._session, self._queue._confirm, self.feed(self.position, True))

    def release(self) -> None:
        """Gives the shard back; another worker goes on after the last confirmed record."""
        self._is_done = True
        _run(self._session, self._queue._release, {self._queue._lease: self.number})

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None and not self._is_done:
            try:
                self.release()
            except errors.FailedPreconditionError as lost:
                error = lost
                if not self._is_lost(lost):
                    raise
        if not isinstance(error, errors.FailedPreconditionError) or not self._is_lost(error):
            return False
        logging.warning("%s", error.message.partition("\n")[0])
        return True

    def _is_lost(self, error: errors.FailedPreconditionError) -> bool:
        return f"Lease {self.number} of work queue {self._queue.name} has ended" in error.message


class _WorkQueueSaveable(SaveableObject):
    """The state of a queue, as `<name>`: int64 [1 + 3 * unfinished shards]."""

    def __init__(self, queue: WorkQueue) -> None:
        with name_scope(queue.name), colocate_with(queue.handle.op):
            state = apply_op("WorkQueueExport", "export", handle=queue.handle)
        super().__init__(queue, [SaveSpec(state, "", queue.name)], queue.name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Tensor] | None) -> Operation:
        with colocate_with(self.op.handle.op):
            return apply_op("WorkQueueRestore", None, handle=self.op.handle, state=restored_tensors[0])


def _at_global_step() -> AbstractContextManager[Any]:
    global_step = get_global_step()
    return nullcontext() if global_step is None else colocate_with(global_step.op)


_UPDATE = re.compile(r"(Resource)?(Sparse)?(Assign|Scatter|Apply|StridedSliceAssign)")


def _updates_of(train_op: Any) -> list[Operation]:
    """The operations that change variables, among all that `train_op` needs."""
    stack = [getattr(train_op, "op", train_op)]
    seen = set(stack)
    while stack:
        operation = stack.pop()
        sources = [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
        stack.extend(source for source in sources if source not in seen)
        seen.update(sources)
    found = (each for each in seen if _UPDATE.match(each.type) and each.inputs)
    updates = [each for each in found if each.inputs[0].dtype._is_ref_dtype or each.inputs[0].dtype == dtypes.resource]
    return sorted(updates, key=lambda each: each.name)


def _run(session: Any, fetches: Any, feeds: dict[Tensor, Any]) -> Any:
    without_hooks: Callable[[Any], Any] | None = getattr(session, "run_step_fn", None)
    if without_hooks is None:
        return session.run(fetches, feeds)
    return without_hooks(lambda step_context: step_context.session.run(fetches, feeds))
