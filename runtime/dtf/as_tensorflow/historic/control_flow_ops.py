"""tensorflow.python.ops.control_flow_ops: its non-public names."""

from __future__ import annotations

from dtf.as_tensorflow.historic.layer_utils import smart_cond
from dtf.build.ops.ordering import with_dependencies

__all__ = ["smart_cond", "with_dependencies"]
