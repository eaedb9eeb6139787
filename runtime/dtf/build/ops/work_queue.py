"""Static shapes of work queues. Kernels: `run.kernels.work_queue`; the class is `dtf.train.work_queue`'s."""

from __future__ import annotations

from dtf.build.shape_rules import no_outputs, scalar, shape_rule
from dtf.wire.tensor_shape import TensorShape

shape_rule("WorkQueueConfirm", "WorkQueueCreate", "WorkQueueRelease", "WorkQueueRestore")(no_outputs)
shape_rule("WorkQueue", "WorkQueueTake")(scalar)


@shape_rule("WorkQueueExport")
def _(op):
    return [TensorShape([None])]
