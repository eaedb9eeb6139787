"""Cases of collective operations in a group of one; rings of several tasks are in tests/runtime/test_collectives.py."""

from __future__ import annotations

import numpy as np

import dtf as tf
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.io import raises

ops = tf.raw_ops
ALONE = {"group_size": 1, "group_key": 1, "instance_key": 1}
VALUES = np.array([[1.5, -2.0], [3.0, 4.0]], np.float32)


def a_group_of_one_has_its_own_value():
    with tf.Graph().as_default(), tf.Session() as session:
        reduce = {"merge_op": "Add", "final_op": "Div"}
        found = [
            ops.CollectiveReduce(input=VALUES, subdiv_offsets=[0], **reduce, **ALONE),
            ops.CollectiveReduceV2(input=VALUES, ordering_token=[], **reduce, **ALONE),
            ops.CollectiveGather(input=VALUES, shape=[2, 2], **ALONE),
            ops.CollectiveGatherV2(input=VALUES, ordering_token=[], **ALONE),
            ops.CollectiveBcastSend(input=VALUES, shape=[2, 2], **ALONE),
            ops.CollectiveBcastSendV2(input=VALUES, **ALONE),
        ]
        for tensor in found:
            assert tensor.shape.as_list() == [2, 2]
            np.testing.assert_array_equal(session.run(tensor), VALUES)


def nobody_sends_in_a_group_of_one():
    with tf.Graph().as_default(), tf.Session() as session:
        for receive in (
            ops.CollectiveBcastRecv(T=tf.float32, shape=[2], **ALONE),
            ops.CollectiveBcastRecvV2(T=tf.float32, shape=[2], **ALONE),
        ):
            assert receive.shape.as_list() == [2]
            with raises(tf.errors.InvalidArgumentError, "no other member to receive from"):
                session.run(receive)
            session.run(tf.no_op())


CASES = [
    *[
        Case(f"Collective{name}{version}", run=a_group_of_one_has_its_own_value)
        for name in ("Reduce", "Gather", "BcastSend")
        for version in ("", "V2")
    ],
    *[Case(f"CollectiveBcastRecv{version}", run=nobody_sends_in_a_group_of_one) for version in ("", "V2")],
]
