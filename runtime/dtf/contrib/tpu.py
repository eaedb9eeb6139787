"""tf.contrib.tpu without TPUs: programs that can use one train on CPUs, as with use_tpu=False.

    config = tf.contrib.tpu.RunConfig(model_dir="model", tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=100))
    estimator = tf.contrib.tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=32)

Owns the Estimator that gives `params["batch_size"]` to input_fn and model_fn, and the spec whose metrics are a
function. Settings of TPUs are accepted and have no effect. `use_tpu=True` is refused.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/tpu/TPUEstimator
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dtf as tf

__all__ = [
    "CrossShardOptimizer", "InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator", "TPUEstimatorSpec",
    "bfloat16_scope", "cross_replica_sum",
]  # fmt: skip

_NO_TPU = "TPUs are not supported; give use_tpu=False"


class InputPipelineConfig:
    """Where input_fn runs; accepted, as there is one place."""

    PER_SHARD_V1, PER_HOST_V1, PER_HOST_V2, BROADCAST, SLICED = 1, 2, 3, 4, 5


@dataclasses.dataclass(frozen=True)
class TPUConfig:
    """Settings of TPUs. They have no effect."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: int | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: Any = InputPipelineConfig.PER_HOST_V1


@dataclasses.dataclass(frozen=True)
class _TPURunConfig(tf.estimator.RunConfig):
    tpu_config: TPUConfig = TPUConfig()
    evaluation_master_given: str | None = None


def RunConfig(  # noqa: N802
    tpu_config: TPUConfig | None = None,
    evaluation_master: str | None = None,
    master: str | None = None,
    cluster: Any = None,
    **kwargs: Any,
) -> Any:
    """A RunConfig of Estimators with the settings of TPUs.

    Args:
      tpu_config: a TPUConfig.
      evaluation_master, master, cluster: of TPUs; None or "".
      kwargs: as for tf.estimator.RunConfig.

    Raises:
      ValueError: a TPU is named.
    """
    if cluster is not None or master or evaluation_master:
        raise ValueError(f"{_NO_TPU}, and no master or cluster of TPUs")
    return _TPURunConfig(tpu_config=tpu_config or TPUConfig(), **kwargs)


@dataclasses.dataclass(frozen=True)
class TPUEstimatorSpec:
    """The operations of a model in one mode; metrics are (function, its arguments).

    Args:
      eval_metrics: (metric_fn, tensors), a list for its arguments in order or a dict by name.
      host_call: accepted; what it would write are summaries of a TPU.
      scaffold_fn: a function without arguments that makes the Scaffold.
      The others are those of tf.estimator.EstimatorSpec.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: Any = None
    export_outputs: Mapping[str, Any] | None = None
    scaffold_fn: Callable[[], Any] | None = None
    host_call: Any = None
    training_hooks: Sequence[Any] | None = None
    evaluation_hooks: Sequence[Any] | None = None
    prediction_hooks: Sequence[Any] | None = None

    def as_estimator_spec(self) -> Any:
        """The EstimatorSpec."""
        metrics = None
        if self.eval_metrics is not None:
            metric_fn, tensors = self.eval_metrics
            metrics = metric_fn(**tensors) if isinstance(tensors, Mapping) else metric_fn(*tensors)
        return tf.estimator.EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=metrics,
            export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn is not None else None,
            training_hooks=self.training_hooks,
            evaluation_hooks=self.evaluation_hooks,
            prediction_hooks=self.prediction_hooks,
        )


class TPUEstimator(tf.estimator.Estimator):
    """An Estimator that names the size of batches in `params["batch_size"]`.

    Args:
      use_tpu: False.
      train_batch_size, eval_batch_size, predict_batch_size: the sizes in the three modes.
      model_fn, model_dir, config, params, warm_start_from: as for tf.estimator.Estimator; model_fn may return a
        TPUEstimatorSpec.
      The others concern TPUs and have no effect.

    Raises:
      ValueError: `use_tpu` is true, or `params` have a "batch_size".
    """

    def __init__(
        self,
        model_fn: Any = None,
        model_dir: str | None = None,
        config: Any = None,
        params: Mapping[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        **kwargs: Any,
    ) -> None:
        del batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, kwargs
        if use_tpu:
            raise ValueError(_NO_TPU)
        if params is not None and "batch_size" in params:
            raise ValueError("params must not have the key batch_size: give train_batch_size and its neighbours")
        modes = tf.estimator.ModeKeys
        sizes = {modes.TRAIN: train_batch_size, modes.EVAL: eval_batch_size, modes.PREDICT: predict_batch_size}
        self._batch_sizes = {mode: size for mode, size in sizes.items() if size is not None}
        offered = _arguments(model_fn)

        def plain_model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
            given = {"labels": labels, "mode": mode, "params": self._params_in(mode), "config": config}
            if "labels" not in offered and labels is not None:
                raise ValueError("model_fn does not take labels, but input_fn returns labels.")
            spec = model_fn(features, **{name: value for name, value in given.items() if name in offered})
            return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec

        super().__init__(plain_model_fn, model_dir, config, dict(params or {}), warm_start_from)

    def _params_in(self, mode: str) -> dict[str, Any]:
        size = self._batch_sizes.get(mode)
        return {**self.params, **({} if size is None else {"batch_size": size})}

    def _input_fn(self, input_fn: Any, mode: str) -> Callable[[], Any]:
        names = _arguments(input_fn)
        offered = {"mode": mode, "params": self._params_in(mode), "config": self.config}
        return lambda: input_fn(**{name: value for name, value in offered.items() if name in names})

    def train(self, input_fn: Any, *args: Any, **kwargs: Any) -> Any:
        """See `tf.estimator.Estimator.train`."""
        return super().train(self._input_fn(input_fn, tf.estimator.ModeKeys.TRAIN), *args, **kwargs)

    def evaluate(self, input_fn: Any, *args: Any, **kwargs: Any) -> Any:
        """See `tf.estimator.Estimator.evaluate`."""
        return super().evaluate(self._input_fn(input_fn, tf.estimator.ModeKeys.EVAL), *args, **kwargs)

    def predict(self, input_fn: Any, *args: Any, **kwargs: Any) -> Any:
        """See `tf.estimator.Estimator.predict`."""
        return super().predict(self._input_fn(input_fn, tf.estimator.ModeKeys.PREDICT), *args, **kwargs)


def CrossShardOptimizer(opt: Any, reduction: Any = None, name: str = "CrossShardOptimizer",  # noqa: N802
                        group_assignment: Any = None) -> Any:  # fmt: skip
    """`opt`: with one shard there is nothing to sum."""
    del reduction, name, group_assignment
    return opt


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> Any:
    """`x`: there is one replica."""
    del group_assignment
    return tf.identity(x, name)


def bfloat16_scope() -> Any:
    """A variable scope; values stay float32."""
    return tf.variable_scope(tf.get_variable_scope())


def _arguments(function: Callable[..., Any]) -> set[str]:
    import inspect

    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return {"labels", "mode", "params", "config"}
    return set(parameters)
