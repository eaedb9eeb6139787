"""Nothing flows back through the optimizers' updates."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable
from dtf.build.ops.training import UPDATE_OPS

not_differentiable(*UPDATE_OPS)
