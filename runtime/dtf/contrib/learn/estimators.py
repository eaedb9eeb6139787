"""tf.contrib.learn's estimators: as in tf.estimator, with `fit` and with model functions that return ModelFnOps.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/learn/Estimator
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import dtf as tf
from dtf.contrib.estimator import clip_gradients_by_norm
from dtf.contrib.learn.experiment import ModeKeys
from dtf.estimator.canned import ChangedOptimizer

__all__ = [
    "DNNClassifier", "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "DNNRegressor", "Estimator",
    "LinearClassifier", "LinearRegressor", "ModelFnOps", "SKCompat", "TaskType",
    "infer_real_valued_columns_from_input",
]  # fmt: skip


class TaskType:
    """The types of tasks."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


class ModelFnOps(NamedTuple):
    """The result of a contrib model function."""

    mode: Any
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Any = None
    output_alternatives: Any = None
    training_chief_hooks: Any = None
    training_hooks: Any = None
    scaffold: Any = None


class _Fitting:
    """An estimator of tf.estimator, with contrib's methods."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def __getattr__(self, name: str) -> Any:
        if name == "_estimator":
            raise AttributeError(name)
        return getattr(self._estimator, name)

    def fit(
        self, x: Any = None, y: Any = None, input_fn: Callable[[], Any] | None = None, steps: int | None = None,
        batch_size: int | None = None, monitors: Any = None, max_steps: int | None = None,
    ) -> Any:  # fmt: skip
        """Trains on arrays, or on the result of `input_fn`. Returns itself.

        Raises:
          ValueError: both or neither are given.
        """
        given = _input_fn(x, y, input_fn, batch_size, shuffle=True, num_epochs=None)
        self._estimator.train(given, monitors, steps, max_steps)
        return self

    partial_fit = fit

    def evaluate(
        self, x: Any = None, y: Any = None, input_fn: Callable[[], Any] | None = None, feed_fn: Any = None,
        batch_size: int | None = None, steps: int | None = None, metrics: Any = None, name: str | None = None,
        checkpoint_path: str | None = None, hooks: Any = None,
    ) -> Any:  # fmt: skip
        """The figures of the last checkpoint.

        Args:
          metrics: {name: MetricSpec}.
        """
        estimator = self._estimator
        if metrics:
            from dtf.contrib.learn.experiment import _with_metrics

            estimator = _with_metrics(estimator, metrics)
        given = _input_fn(x, y, input_fn, batch_size, shuffle=False, num_epochs=1)
        return estimator.evaluate(given, steps, hooks, checkpoint_path, name)

    def predict(
        self, x: Any = None, input_fn: Callable[[], Any] | None = None, batch_size: int | None = None,
        outputs: Any = None, as_iterable: bool = True, iterate_batches: bool = False,
    ) -> Any:  # fmt: skip
        """The predictions, one by one, or as a list without `as_iterable`."""
        given = _input_fn(x, None, input_fn, batch_size, shuffle=False, num_epochs=1)
        found = self._estimator.predict(given, outputs)
        return found if as_iterable else list(found)

    def predict_classes(self, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """The classes alone."""
        return (int(each["class_ids"][0]) for each in self.predict(*args, **kwargs))

    def predict_proba(self, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """The probabilities alone."""
        return (each["probabilities"] for each in self.predict(*args, **kwargs))

    def predict_scores(self, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """The predicted numbers alone."""
        return (each["predictions"][0] for each in self.predict(*args, **kwargs))


def _input_fn(
    x: Any, y: Any, input_fn: Callable[[], Any] | None, batch_size: int | None, shuffle: bool,
    num_epochs: int | None,
) -> Callable[[], Any]:  # fmt: skip
    if (x is None) == (input_fn is None):
        raise ValueError("give either arrays (x and y) or input_fn")
    if input_fn is not None:
        return input_fn
    arrays = {key: np.asarray(value) for key, value in x.items()} if isinstance(x, Mapping) else {"": np.asarray(x)}
    count = len(next(iter(arrays.values())))
    return tf.estimator.inputs.numpy_input_fn(
        arrays, None if y is None else np.asarray(y), batch_size or min(count, 128), num_epochs, shuffle
    )


class Estimator(_Fitting):
    """An estimator of a model function, which may give ModelFnOps, or (predictions, loss, train_op).

    Args:
      model_fn: a function of (features, labels, mode, params, config); it may leave out the last ones.
      params: for it.
      feature_engineering_fn: a function of (features, labels) that comes before it.
    """

    def __init__(
        self, model_fn: Callable[..., Any], model_dir: str | None = None, config: Any = None, params: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:  # fmt: skip
        parameters = inspect.signature(model_fn).parameters

        def adapted(features: Any, labels: Any, mode: Any, params: Any, config: Any) -> Any:
            if isinstance(features, Mapping) and list(features) == [""]:
                features = features[""]
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            given = {"mode": mode, "params": params, "config": config, "model_dir": model_dir}
            found = model_fn(features, labels, **{key: value for key, value in given.items() if key in parameters})
            return _spec(found, mode)

        super().__init__(tf.estimator.Estimator(adapted, model_dir, config, params))


def _spec(found: Any, mode: Any) -> Any:
    if isinstance(found, tf.estimator.EstimatorSpec):
        return found
    ops = found if isinstance(found, ModelFnOps) else ModelFnOps(mode, *found)
    is_training = mode == ModeKeys.TRAIN
    return tf.estimator.EstimatorSpec(
        mode, predictions=ops.predictions, loss=ops.loss, train_op=ops.train_op if is_training else None,
        eval_metric_ops=ops.eval_metric_ops, scaffold=ops.scaffold, training_hooks=ops.training_hooks,
        training_chief_hooks=ops.training_chief_hooks,
    )  # fmt: skip


def _canned(name: str, renamed: Mapping[str, str]) -> Callable[..., Any]:
    """A canned estimator with contrib's names of arguments."""
    defaults = {"optimizer": "Ftrl" if "Linear" in name else "Adagrad"}
    if "Combined" in name:
        defaults = {"linear_optimizer": "Ftrl", "dnn_optimizer": "Adagrad"}

    def make(*args: Any, **kwargs: Any) -> Any:
        ignored = ("enable_centered_bias", "gradient_clip_norm", "_joint_weight", "fix_global_step_increment_bug")
        given = {renamed.get(key, key): value for key, value in kwargs.items() if key not in ignored}
        clip_norm = kwargs.get("gradient_clip_norm")
        if clip_norm is not None:
            for key, default in defaults.items():
                given[key] = ChangedOptimizer(
                    given.get(key) or default, lambda optimizer: clip_gradients_by_norm(optimizer, clip_norm)
                )
        return _Fitting(getattr(tf.estimator, name)(*args, **given))

    make.__name__ = name
    make.__doc__ = f"`tf.estimator.{name}`, with `fit`."
    return make


DNNClassifier = _canned("DNNClassifier", {"weight_column_name": "weight_column"})
DNNRegressor = _canned("DNNRegressor", {"weight_column_name": "weight_column"})
LinearClassifier = _canned("LinearClassifier", {"weight_column_name": "weight_column"})
LinearRegressor = _canned("LinearRegressor", {"weight_column_name": "weight_column"})
DNNLinearCombinedClassifier = _canned("DNNLinearCombinedClassifier", {"weight_column_name": "weight_column"})
DNNLinearCombinedRegressor = _canned("DNNLinearCombinedRegressor", {"weight_column_name": "weight_column"})


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """A numeric column for an array [n, width]."""
    array = np.asarray(x)
    return [tf.feature_column.numeric_column("", (int(np.prod(array.shape[1:])),))]


class SKCompat:
    """An estimator with the methods of scikit-learn.

    Args:
      estimator: one of contrib.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator if isinstance(estimator, _Fitting) else _Fitting(estimator)

    def fit(self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None, max_steps: int | None = None,
            monitors: Any = None) -> SKCompat:  # fmt: skip
        """Trains on arrays. Returns itself."""
        self._estimator.fit(x, y, None, steps, batch_size, monitors, max_steps)
        return self

    def score(self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None, metrics: Any = None,
              name: str | None = None) -> Any:  # fmt: skip
        """The figures of arrays."""
        return self._estimator.evaluate(x, y, None, None, batch_size, steps, metrics, name)

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """The predictions for arrays, {name: array}."""
        rows = self._estimator.predict(x, None, batch_size, outputs, as_iterable=False)
        if not isinstance(rows[0], Mapping):
            return np.stack(rows)
        return {key: np.stack([row[key] for row in rows]) for key in rows[0]}
