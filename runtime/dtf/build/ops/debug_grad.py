"""Gradients of the ops that a debugger puts into graphs: they pass what comes."""

from __future__ import annotations

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable

not_differentiable("DebugNanCount")


@gradient("Copy", "CopyHost", "DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3")
def _(op, grad):
    return [grad]


@gradient("CheckNumericsV2")
def _(op, grad):
    message = "Not a number (NaN) or infinity (Inf) values detected in gradient."
    return [apply_op("CheckNumericsV2", tensor=grad, message=message)]
