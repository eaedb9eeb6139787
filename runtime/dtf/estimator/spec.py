"""EstimatorSpec: the result of a model_fn, and the modes in which it is called.

    def model_fn(features, labels, mode):
        logits = tf.layers.dense(features["x"], 10)
        predictions = {"class": tf.argmax(logits, 1)}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
        metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["class"])}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/EstimatorSpec
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Operation, Tensor
from dtf.build.ops.array import reshape
from dtf.estimator.export_output import ExportOutput
from dtf.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from dtf.train.scaffold import Scaffold
from dtf.train.session_run_hook import SessionRunHook

LOSS_KEY = "loss"
GLOBAL_STEP_KEY = "global_step"


class ModeKeys:
    """The modes of a model_fn."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


@dataclass(frozen=True)
class EstimatorSpec:
    """The operations of a model in one mode.

    Args:
      mode: one of ModeKeys.
      predictions: a tensor, or a dict of them; needed to predict.
      loss: a scalar tensor; needed to train and to evaluate.
      train_op: one training step; needed to train.
      eval_metric_ops: dict from names to (value, update_op), as the functions of tf.metrics give them.
      export_outputs: dict from names of signatures to ExportOutputs; the predictions by default.
      training_chief_hooks, training_hooks: hooks of the chief, and of all training tasks.
      scaffold: a Scaffold of the model's own.
      evaluation_hooks, prediction_hooks: hooks for these modes.

    Raises:
      ValueError: an argument that the mode needs is missing, is not a scalar, or belongs to another graph.
      TypeError: something is of another type.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/EstimatorSpec
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Mapping[str, tuple[Any, Any]] | None = None
    export_outputs: Mapping[str, ExportOutput] | None = None
    training_chief_hooks: Sequence[SessionRunHook] | None = None
    training_hooks: Sequence[SessionRunHook] | None = None
    scaffold: Scaffold | None = None
    evaluation_hooks: Sequence[SessionRunHook] | None = None
    prediction_hooks: Sequence[SessionRunHook] | None = None
    _is_checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self._is_checked:
            return
        if self.mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
            raise ValueError(f"mode must be one of tf.estimator.ModeKeys, not {self.mode!r}")
        if self.train_op is None and self.mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if self.loss is None and self.mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        if self.predictions is None and self.mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        values: dict[str, Any] = {
            "predictions": {} if self.predictions is None else self.predictions,
            "loss": None if self.loss is None else _scalar(self.loss),
            "eval_metric_ops": dict(self.eval_metric_ops or {}),
            "scaffold": self.scaffold or Scaffold(),
            "_is_checked": True,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_tensors()
        _check_export_outputs(self.export_outputs)
        for name in ("training_chief_hooks", "training_hooks", "evaluation_hooks", "prediction_hooks"):
            object.__setattr__(self, name, _hooks(name, getattr(self, name)))
        if not isinstance(self.scaffold, Scaffold):
            raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {self.scaffold}")

    def _replace(self, **kwargs: Any) -> EstimatorSpec:
        """A copy with other values, by the name that a namedtuple gives it."""
        return replace(self, **{**kwargs, "_is_checked": False})

    def _check_tensors(self) -> None:
        named = {"train_op": self.train_op, "loss": self.loss}
        predictions = self.predictions if isinstance(self.predictions, Mapping) else {"": self.predictions}
        for key, value in predictions.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"predictions[{key!r}] must be a Tensor, given: {value!r}")
            named[f"predictions[{key!r}]"] = value
        assert self.eval_metric_ops is not None
        for key, pair in self.eval_metric_ops.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(
                    f"Values of eval_metric_ops must be (metric_value, update_op) tuples, given: {pair} for key: {key}"
                )
            named |= {f"eval_metric_ops[{key!r}][{index}]": value for index, value in enumerate(pair)}
        graph = get_default_graph()
        for what, value in named.items():
            if value is None:
                continue
            if not isinstance(value, Tensor | Operation) and not hasattr(value, "op"):
                raise TypeError(f"{what} must be an Operation or Tensor, given: {value!r}")
            if value.graph is not graph:
                raise ValueError(f"{what} is not in the graph that model_fn was called in: {value}")


def _scalar(loss: Any) -> Any:
    tensor = convert_to_tensor(loss)
    if tensor.shape.num_elements() not in (1, None):
        raise ValueError(f"Loss must be scalar, given: {tensor}")
    return tensor if tensor.shape.ndims == 0 else reshape(tensor, [])


def _hooks(name: str, hooks: Sequence[SessionRunHook] | None) -> tuple[SessionRunHook, ...]:
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All {name} must be SessionRunHook instances, given: {hook!r}")
    return tuple(hooks or ())


def _check_export_outputs(outputs: Mapping[str, ExportOutput] | None) -> None:
    if outputs is None:
        return
    if not isinstance(outputs, Mapping):
        raise TypeError(f"export_outputs must be dict, given: {outputs!r}")
    for key, value in outputs.items():
        if not isinstance(value, ExportOutput):
            raise TypeError(f"Values in export_outputs must be ExportOutput objects, given: {value!r} for {key!r}")
    if len(outputs) > 1 and DEFAULT_SERVING_SIGNATURE_DEF_KEY not in outputs:
        raise ValueError(
            "Several export_outputs are given; name one of them as the default: "
            f"{DEFAULT_SERVING_SIGNATURE_DEF_KEY!r}"
        )
