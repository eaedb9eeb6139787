"""How an Estimator calls the functions that users write: input_fn and model_fn.

Owns the choice of arguments, by their names, and the check of the results. A Dataset of an input_fn becomes the
tensors of its next element, and a hook that restarts it in every session.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dtf.build.default_graph import device
from dtf.build.nest import flatten
from dtf.build.ops.data import Dataset
from dtf.estimator.spec import EstimatorSpec, ModeKeys
from dtf.train.session_run_hook import SessionRunHook

Inputs = tuple[Any, Any, list[SessionRunHook]]
_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "config"}


def check_model_fn(model_fn: Any, params: Any) -> None:
    """Raises ValueError unless `model_fn` takes features and nothing unknown, and `params` where they are given."""
    if not callable(model_fn):
        raise ValueError(f"model_fn must be a function, given: {model_fn!r}")
    names = _argument_names(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed.")
    unknown = sorted(_required(model_fn) - _MODEL_FN_ARGUMENTS)
    if unknown:
        raise ValueError(f"model_fn ({model_fn}) has following not expected args: {unknown}")


def call_model_fn(
    model_fn: Callable[..., Any], features: Any, labels: Any, mode: str, params: Any, config: Any
) -> EstimatorSpec:
    """Calls model_fn in the default graph.

    Raises:
      ValueError: labels were given to a function that takes none, or the result is not an EstimatorSpec of the mode.
    """
    names = _argument_names(model_fn)
    offered = {"labels": labels, "mode": mode, "params": params, "config": config}
    if "labels" not in names and labels is not None:
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    spec = model_fn(features=features, **{name: value for name, value in offered.items() if name in names})
    if not isinstance(spec, EstimatorSpec):
        raise ValueError(f"model_fn should return an EstimatorSpec, not {spec!r}")
    if spec.mode != mode:
        raise ValueError(f"model_fn was called in mode {mode!r} and returned an EstimatorSpec of mode {spec.mode!r}")
    return spec


def call_input_fn(input_fn: Any, mode: str, params: Any, config: Any) -> Inputs:
    """Calls input_fn in the default graph, on the CPU of this task.

    Returns:
      (features, labels, hooks); labels are None if missing, or in prediction.

    Raises:
      ValueError: it returns neither features, nor (features, labels), nor a Dataset of these.
    """
    if not callable(input_fn):
        raise ValueError(f"input_fn must be a function, given: {input_fn!r}")
    offered = {"mode": mode, "params": params, "config": config}
    names = _argument_names(input_fn)
    with device("/cpu:0"):
        result = input_fn(**{name: value for name, value in offered.items() if name in names})
        hooks: list[SessionRunHook] = []
        if isinstance(result, Dataset):
            iterator = result.make_initializable_iterator()
            hooks.append(_DatasetInitializerHook(iterator.initializer))
            result = iterator.get_next()
    if isinstance(result, list | tuple):
        if len(result) != 2:
            raise ValueError(f"input_fn should return (features, labels), or features alone; it returned {result}")
        features, labels = result
        if mode == ModeKeys.PREDICT:
            labels = None  # unknown arguments are ignored, because one input_fn may serve all modes
    else:
        features, labels = result, None
    if features is None or not flatten(features):
        raise ValueError(f"input_fn returned no features: {result}")
    return features, labels, hooks


class _DatasetInitializerHook(SessionRunHook):
    """Begins the input in every new session, since an iterator's position does not outlive its worker."""

    def __init__(self, initializer: Any) -> None:
        self._initializer = initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._initializer)


def _argument_names(function: Callable[..., Any]) -> set[str]:
    """The names of all arguments; all that may be offered where it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return {*_MODEL_FN_ARGUMENTS, *(parameter.name for parameter in parameters)}
    return {parameter.name for parameter in parameters}


def _required(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {each.name for each in parameters if each.default is each.empty and each.kind not in kinds}
