"""Staging areas, barriers and mutexes pass no gradients on."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    *(
        "Stage Unstage StagePeek StageSize StageClear Barrier BarrierInsertMany BarrierTakeMany BarrierClose "
        "BarrierReadySize BarrierIncompleteSize MutexV2 MutexLock ConsumeMutexLock"
    ).split(),
    *(
        f"{kind}{what}"
        for kind in ("Map", "OrderedMap")
        for what in ("Stage", "Unstage", "UnstageNoKey", "Peek", "Size", "IncompleteSize", "Clear")
    ),
)
