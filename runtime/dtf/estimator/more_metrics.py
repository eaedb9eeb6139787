"""add_metrics: an Estimator that is evaluated by more figures than its model_fn gives.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/add_metrics
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dtf.estimator.estimator import Estimator
from dtf.estimator.run_config import RunConfig
from dtf.estimator.spec import EstimatorSpec, ModeKeys

_ARGUMENTS = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., dict[str, Any]]) -> Estimator:
    """An Estimator of the same model and folder with additional metrics; a metric of the same name is replaced.

    Args:
      metric_fn: takes some of features, labels, predictions and config, returns a dict as `eval_metric_ops`.

    Raises:
      ValueError: the function takes other arguments.
    """
    names = list(inspect.signature(metric_fn).parameters)
    unknown = sorted(set(names) - set(_ARGUMENTS))
    if unknown:
        raise ValueError(f"metric_fn ({metric_fn}) has following not expected args: {unknown}")
    model_fn = estimator.model_fn

    def with_metrics(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        spec = model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        offered = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        more = metric_fn(**{name: offered[name] for name in names})
        return spec._replace(eval_metric_ops={**(spec.eval_metric_ops or {}), **more})

    return Estimator(with_metrics, config=estimator.config, warm_start_from=estimator._warm_start)
