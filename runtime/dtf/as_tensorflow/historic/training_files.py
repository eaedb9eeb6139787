"""Names of tensorflow.python.training.training_util and of neighbours that stand for other modules' functions."""

from __future__ import annotations

from dtf.train.graph_io import write_graph

__all__ = ["GLOBAL_STEP_READ_KEY", "write_graph"]

GLOBAL_STEP_READ_KEY = "global_step_read_op_cache"
