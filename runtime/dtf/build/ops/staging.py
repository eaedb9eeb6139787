"""Static shapes of staging areas, barriers and mutexes. Kernels: `run.kernels.staging`; no gradients."""

from __future__ import annotations

from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unknown
from dtf.wire.tensor_shape import TensorShape

_MAPS = ("Map", "OrderedMap")

shape_rule(
    "Stage", "StageClear", "BarrierInsertMany", "BarrierClose", "ConsumeMutexLock",
    *(f"{kind}{what}" for kind in _MAPS for what in ("Stage", "Clear")),
)(no_outputs)  # fmt: skip
shape_rule(
    "StageSize", "BarrierReadySize", "BarrierIncompleteSize", "MutexV2", "MutexLock",
    *(f"{kind}{what}" for kind in _MAPS for what in ("Size", "IncompleteSize")),
)(scalar)  # fmt: skip
shape_rule("StagePeek", "Unstage", *(f"{kind}{what}" for kind in _MAPS for what in ("Peek", "Unstage")))(unknown)


@shape_rule("MapUnstageNoKey", "OrderedMapUnstageNoKey")
def _(op):
    return [TensorShape([]), *[TensorShape(None)] * (len(op.outputs) - 1)]


@shape_rule("Barrier")
def _(op):
    return [TensorShape([2])]


@shape_rule("BarrierTakeMany")
def _(op):
    return [TensorShape([None]), TensorShape([None]), *[TensorShape(None)] * (len(op.outputs) - 2)]
