"""Cases of the ops that a debugger puts into graphs."""

from __future__ import annotations

import numpy as np

from dtf.build.apply import apply_op
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, fails_with


def refused(words, values):
    return lambda: fails_with(
        errors.InvalidArgumentError, f"here : Tensor had {words} values",
        lambda x: apply_op("CheckNumericsV2", tensor=x, message="here"), np.array(values),
    )  # fmt: skip


PASSING = ("Copy", "CopyHost", "DebugGradientIdentity", "DebugIdentityV2")
WATCHED = {"tensor_name": "x:0"}

CASES = [
    *[Case(op, [doubles(2, 3)], expect=lambda x: x, grad=True) for op in PASSING],
    Case("DebugIdentity", [doubles(2, 3)], WATCHED, lambda x: x, grad=True),
    Case("DebugIdentityV3", [doubles(2, 3)], WATCHED, lambda x: x, grad=True),
    Case("DebugNanCount", [np.array([1.0, np.nan, np.inf, np.nan])], WATCHED, np.array([2])),
    Case("DebugNanCount", [np.array([1, 2])], WATCHED, np.array([0]), name="of_integers"),
    Case("CheckNumericsV2", [doubles(3)], {"message": "here"}, lambda x: x, grad=True),
    Case("CheckNumericsV2", run=refused("+Inf and NaN", [1.0, np.nan, np.inf]), name="two_kinds"),
    Case("CheckNumericsV2", run=refused("-Inf", [1.0, -np.inf]), name="one_kind"),
]
