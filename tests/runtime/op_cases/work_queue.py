"""Cases of work queues, which are dtf's own ops."""

from __future__ import annotations

import numpy as np

import dtf as tf
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.io import raises


def a_work_queue_leases_confirms_and_comes_back():
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.train.WorkQueue(["a", "b"], shuffle=False)
        lease, position, state = (tf.placeholder(tf.int64) for _ in range(3))
        confirm, item = queue.confirm(lease, position), queue.take("me")
        release = tf.raw_ops.WorkQueueRelease(handle=queue.handle, lease=lease)
        export = tf.raw_ops.WorkQueueExport(handle=queue.handle)
        restore = tf.raw_ops.WorkQueueRestore(handle=queue.handle, state=state)
        session.run(tf.tables_initializer())
        first = session.run(item)
        assert (first.work, first.epoch, first.position) == (b"a", 0, 0)
        session.run(confirm, {lease: first.lease, position: 2})
        session.run(release, {lease: first.lease})
        with raises(tf.errors.FailedPreconditionError, "has ended"):
            session.run(confirm, {lease: first.lease, position: 3})
        saved = session.run(export)
        assert saved.tolist() == [1, 0, 0, 2]
        assert session.run(item).position == 2
        session.run(restore, {state: saved})
        assert [session.run(item)[1:] for _ in range(2)] == [(b"a", 0, 2), (b"b", 0, 0)]
        with raises(tf.errors.InvalidArgumentError, "state to restore"):
            session.run(restore, {state: np.array([1, 2])})


CASES = [
    Case(f"WorkQueue{name}", run=a_work_queue_leases_confirms_and_comes_back)
    for name in ("", "Confirm", "Create", "Export", "Release", "Restore", "Take")
]
