"""The op that a loader runs last, so that a loaded model is ready: tables filled, local variables initialised.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model/main_op
"""

from __future__ import annotations

from typing import Any

from dtf.build.default_graph import control_dependencies, get_default_graph
from dtf.build.graph import Operation
from dtf.build.ops.lookup import tables_initializer
from dtf.build.ops.ordering import group
from dtf.build.variable_collections import global_variables_initializer, local_variables_initializer


def main_op() -> Operation:
    """Initialises global and local variables and tables: for models whose variables are not saved."""
    return group(global_variables_initializer(), local_variables_initializer(), tables_initializer())


def main_op_with_restore(restore_op_name: str) -> Operation:
    """Runs the op or tensor of that name, then initialises local variables and tables."""
    restore: Any = get_default_graph().as_graph_element(restore_op_name)
    with control_dependencies([restore]):
        return group(local_variables_initializer(), tables_initializer())
