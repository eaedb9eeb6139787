"""Kernels of ops that a debugger puts into graphs, and of those that watch values pass.

Copies and identities hand their value on; nothing is published at `debug_urls`.
"""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid


@kernel("Copy", "CopyHost", "DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3")
def _(node: KernelNode) -> Function:
    return lambda value: value


@kernel("DebugNanCount")
def _(node: KernelNode) -> Function:
    if not node.attr("T").is_floating:
        return lambda value: np.zeros(1, np.int64)
    return lambda value: np.array([np.isnan(value).sum()])


@kernel("CheckNumericsV2")
def _(node: KernelNode) -> Function:
    message = as_text(node.attr("message"))
    tests = (("-Inf", np.isneginf), ("+Inf", np.isposinf), ("NaN", np.isnan))

    def check_numerics(value: np.ndarray) -> np.ndarray:
        if not np.isfinite(value).all():
            found = [word for word, test in tests if test(value).any()]
            words = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
            raise invalid(f"{message} : Tensor had {words} values")
        return value

    return check_numerics
