"""Static shapes of collective operations. Kernels: `run.kernels.collective`. Users reach the ops through `tf.raw_ops`;
`train.AllReduceOptimizer` makes them.
"""

from __future__ import annotations

from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.shape_rules import shape_rule, unchanged
from dtf.wire.tensor_shape import TensorShape

shape_rule("CollectiveReduce", "CollectiveReduceV2", "CollectiveBcastSendV2")(unchanged)


@shape_rule("CollectiveGather", "CollectiveBcastSend", "CollectiveBcastRecv")
def _(op):
    return [op.get_attr("shape")]


@shape_rule("CollectiveGatherV2")
def _(op):
    value, size = op.inputs[0].shape, constant_value(op.inputs[1])
    if value.ndims is None:
        return [TensorShape(None)]
    rows = value.as_list()[0]
    return [TensorShape([None if rows is None or size is None else rows * int(size), *value.as_list()[1:]])]


@shape_rule("CollectiveBcastRecvV2")
def _(op):
    return [constant_value_as_shape(op.inputs[3])]
