"""Heads as programs use them: objects that make the EstimatorSpec of their own models' logits.

Owns the public interface (`create_estimator_spec`) and the heads of several tasks; `heads` has the mathematics.

    head = tf.contrib.estimator.multi_class_head(n_classes=3)
    return head.create_estimator_spec(features, mode, logits, labels, optimizer=tf.train.AdamOptimizer())

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/estimator/multi_class_head
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.build.default_graph import get_collection
from dtf.build.graph import GraphKeys
from dtf.build.ops import cross_entropy as cross_entropy_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.joining import split
from dtf.build.ops.ordering import group, no_op
from dtf.build.tensor import Tensor
from dtf.estimator.export_output import ExportOutput, PredictOutput
from dtf.estimator.heads import ClassificationHead, Head, MultiLabelHead, RegressionHead, spec_of
from dtf.estimator.spec import EstimatorSpec, ModeKeys
from dtf.losses import Reduction
from dtf.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from dtf.train.training_util import get_global_step

__all__ = [
    "binary_classification_head", "logistic_regression_head", "multi_class_head", "multi_head", "multi_label_head",
    "poisson_regression_head", "regression_head",
]  # fmt: skip


@dataclass(frozen=True)
class ModelHead:
    """A head, with the weights of examples and the reduction of their losses.

    Attributes:
      head: the mathematics.
      weight_column: the feature that holds the weight of each example, or its numeric column.
      loss_reduction: of tf.losses.Reduction.
      name: ends the names of the metrics, after a slash; None for none.
      is_regularized_by_graph: add the losses of the graph's collection, unless they are given.
    """

    head: Head
    weight_column: Any = None
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE
    name: str | None = None
    is_regularized_by_graph: bool = False

    def __post_init__(self) -> None:
        Reduction.validate(self.loss_reduction)

    @property
    def logits_dimension(self) -> int:
        """How many logits an example has."""
        return self.head.logits_width

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """The EstimatorSpec of a mode.

        Args:
          features: the features by name.
          mode: one of ModeKeys.
          logits: float32 [batch, logits_dimension].
          labels: needed to train and to evaluate.
          optimizer: minimises the loss, after the operations of the collection UPDATE_OPS; or
          train_op_fn: makes the training op of the loss.
          regularization_losses: scalars to add to the loss.

        Raises:
          ValueError: both of `optimizer` and `train_op_fn` are given, or neither when training.
        """
        if optimizer is not None and train_op_fn is not None:
            raise ValueError("train_op_fn and optimizer can not both be set.")
        if mode == ModeKeys.TRAIN and optimizer is None and train_op_fn is None:
            raise ValueError("train_op_fn and optimizer can not both be None.")

        def train(loss: Any) -> Any:
            return _train_op(loss, optimizer, train_op_fn)

        extra = regularization_losses if self.is_regularized_by_graph else regularization_losses or ()
        spec = spec_of(
            self.head, features, labels, mode, logits, train, self.weight_column, self.loss_reduction, extra
        )  # fmt: skip
        if not self.name:
            return spec
        figures = {f"{key}/{self.name}": value for key, value in (spec.eval_metric_ops or {}).items()}
        return spec._replace(eval_metric_ops=figures)


@dataclass(frozen=True)
class MultiHead:
    """Heads over one model; labels, predictions and losses are by the name of each."""

    heads: Sequence[ModelHead]
    head_weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.heads:
            raise ValueError("Must specify heads. Given: []")
        if self.head_weights and len(self.head_weights) != len(self.heads):
            raise ValueError(
                f"heads and head_weights must have the same size. Given len(heads): {len(self.heads)}. "
                f"Given len(head_weights): {len(self.head_weights)}."
            )
        if not all(head.name for head in self.heads):
            raise ValueError("All given heads must have name specified.")

    @property
    def name(self) -> str:
        """The names of all."""
        return "_".join(str(head.name) for head in self.heads)

    @property
    def logits_dimension(self) -> int:
        """The logits of all."""
        return sum(head.logits_dimension for head in self.heads)

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """See `ModelHead.create_estimator_spec`; logits are one tensor, or a dict by the heads' names."""
        if not isinstance(logits, Mapping):
            parts = split(logits, [head.logits_dimension for head in self.heads], axis=-1)
            logits = dict(zip([head.name for head in self.heads], parts, strict=True))
        specs = {
            str(head.name): head.create_estimator_spec(
                features, mode, logits[head.name], (labels or {}).get(head.name), train_op_fn=lambda _: no_op()
            )
            for head in self.heads
        }
        predictions = {(name, key): value for name, spec in specs.items() for key, value in spec.predictions.items()}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs=_exports(specs))
        weights = self.head_weights or [1.0] * len(specs)
        loss = math_ops.add_n([
            *(math_ops.multiply(spec.loss, weight) for spec, weight in zip(specs.values(), weights, strict=True)),
            *(regularization_losses or ()),
        ])  # fmt: skip
        if mode == ModeKeys.EVAL:
            figures = {key: value for spec in specs.values() for key, value in (spec.eval_metric_ops or {}).items()}
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=figures)
        if (optimizer is None) == (train_op_fn is None):
            raise ValueError("Exactly one of train_op_fn and optimizer must be set.")
        return EstimatorSpec(mode, predictions, loss, _train_op(loss, optimizer, train_op_fn))


def _train_op(loss: Any, optimizer: Any, train_op_fn: Callable[[Any], Any] | None) -> Any:
    """One step of training, with the updates of the graph's collection."""
    made = optimizer.minimize(loss, global_step=get_global_step()) if train_op_fn is None else train_op_fn(loss)
    return with_updates(made)


def _exports(specs: Mapping[str, EstimatorSpec]) -> dict[str, ExportOutput]:
    outputs: dict[str, ExportOutput] = {}
    everything: dict[str, Tensor] = {}
    for name, spec in specs.items():
        for key, output in (spec.export_outputs or {}).items():
            outputs[name if key == DEFAULT_SERVING_SIGNATURE_DEF_KEY else f"{name}/{key}"] = output
        everything |= {f"{name}/{key}": value for key, value in spec.predictions.items()}
    outputs[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = outputs[next(iter(specs))]
    return outputs | {"predict": PredictOutput(everything)}


def with_updates(train_op: Any) -> Any:
    """`train_op`, with the operations of the collection UPDATE_OPS beside it."""
    updates = get_collection(GraphKeys.UPDATE_OPS)
    return group(train_op, *updates) if updates else train_op


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> ModelHead:
    """A head of two classes; one logit.

    Args:
      weight_column: the feature that holds the weight of each example, or its numeric column.
      thresholds: chances of class 1 from which examples count as such, with metrics of their own.
      label_vocabulary: the words that labels are; None if they are 0 and 1.
      loss_reduction: of tf.losses.Reduction.
      loss_fn: a function of labels and logits, in place of the cross entropy.
      name: ends the names of the metrics.
    """
    head = ClassificationHead(2, label_vocabulary, tuple(thresholds or ()), loss_fn)
    return ModelHead(head, weight_column, loss_reduction, name)


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> ModelHead:
    """A head of more than two classes.

    Raises:
      ValueError: `n_classes` is below 3.
    """
    if n_classes <= 2:
        raise ValueError(f"n_classes must be > 2: {n_classes}. For 2 classes use binary_classification_head")
    head = ClassificationHead(n_classes, label_vocabulary, (), loss_fn)
    return ModelHead(head, weight_column, loss_reduction, name)


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    classes_for_class_based_metrics: Sequence[Any] | None = None,
    name: str | None = None,
) -> ModelHead:
    """A head of classes that do not exclude each other; labels are [batch, n_classes] or a SparseTensor of classes."""
    shown = [
        list(label_vocabulary or ()).index(each) if isinstance(each, str) else int(each)
        for each in classes_for_class_based_metrics or ()
    ]
    head = MultiLabelHead(n_classes, label_vocabulary, tuple(thresholds or ()), loss_fn, shown)
    return ModelHead(head, weight_column, loss_reduction, name)


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    inverse_link_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> ModelHead:
    """A head of numbers; the loss is the square of the difference, or that of `loss_fn`."""
    return ModelHead(RegressionHead(label_dimension, loss_fn, inverse_link_fn), weight_column, loss_reduction, name)


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE, name: str | None = None
) -> ModelHead:
    """A head of chances in [0, 1]."""

    def loss_fn(labels: Any, logits: Any) -> Tensor:
        return cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    return regression_head(weight_column, 1, loss_reduction, loss_fn, math_ops.sigmoid, name)


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> ModelHead:
    """A head of counts; the logits are logarithms of their means."""

    def loss_fn(labels: Any, logits: Any) -> Tensor:
        return cross_entropy_ops.log_poisson_loss(labels, logits, compute_full_loss)

    return regression_head(weight_column, label_dimension, loss_reduction, loss_fn, math_ops.exp, name)


def multi_head(heads: Sequence[ModelHead], head_weights: Sequence[float] | None = None) -> MultiHead:
    """Several heads over one model; the loss is the weighted sum of theirs."""
    return MultiHead(heads, head_weights)
