"""tf.contrib.tfprof: the older place of tf.profiler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dtf import profiler

__all__ = ["model_analyzer"]


def _print_model_analysis(graph: Any, run_meta: Any = None, op_log: Any = None, tfprof_cmd: str = "scope",
                          tfprof_options: Any = None) -> Any:  # fmt: skip
    return profiler.profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


model_analyzer = SimpleNamespace(
    FLOAT_OPS_OPTIONS=profiler.ProfileOptionBuilder.float_operation(),
    PRINT_ALL_TIMING_MEMORY=profiler.ProfileOptionBuilder.time_and_memory(),
    TRAINABLE_VARS_PARAMS_STAT_OPTIONS=profiler.ProfileOptionBuilder.trainable_variables_parameter(),
    print_model_analysis=_print_model_analysis,
)
