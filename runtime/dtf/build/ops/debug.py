"""Static shapes of the ops that a debugger puts into graphs. Kernels: `run.kernels.debug`; gradients: `debug_grad`."""

from __future__ import annotations

from dtf.build.shape_rules import shape_rule, unchanged, unknown

shape_rule(
    "CheckNumericsV2", "Copy", "CopyHost", "DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2",
    "DebugIdentityV3",
)(unchanged)  # fmt: skip
shape_rule("DebugNanCount")(unknown)
