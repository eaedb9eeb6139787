"""Work queues pass no gradients on."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    *(
        "WorkQueue WorkQueueConfirm WorkQueueCreate WorkQueueExport WorkQueueRelease WorkQueueRestore WorkQueueTake"
    ).split()
)
