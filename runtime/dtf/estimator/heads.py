"""Heads turn a model's logits into the loss, the predictions, the metrics and the served outputs.

Owns the mathematics of classification into two or more classes and of regression; `canned` makes the logits.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/DNNClassifier
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtf import losses, metrics
from dtf.build.constant import constant
from dtf.build.ops import activations as activations_ops
from dtf.build.ops import array as array_ops
from dtf.build.ops import cross_entropy as cross_entropy_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.joining import concat, tile
from dtf.build.ops.lookup import KeyValueTensorInitializer, StaticHashTable
from dtf.build.ops.reductions import argmax, reduce_mean
from dtf.build.ops.sparse import sparse_to_indicator
from dtf.build.ops.string import as_string
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.estimator.export_output import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from dtf.estimator.spec import EstimatorSpec, ModeKeys
from dtf.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from dtf.wire import dtypes


@dataclass(frozen=True)
class Outcome:
    """The results that follow from logits and labels.

    Attributes:
      losses: float32 [batch, 1], of each example.
      figures: name -> (value, update), as the functions of tf.metrics give them.
    """

    losses: Tensor
    figures: dict[str, Any]


class Head:
    """Base of the kinds.

    Attributes:
      logits_width: how many logits an example has.
    """

    logits_width: int

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        raise NotImplementedError("a Head must have the method predictions")

    def outcome(self, labels: Any, logits: Tensor, weights: Any) -> Outcome:
        raise NotImplementedError("a Head must have the method outcome")

    def export_outputs(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        raise NotImplementedError("a Head must have the method export_outputs")


def spec_of(
    head: Head,
    features: Mapping[str, Any],
    labels: Any,
    mode: str,
    logits: Tensor,
    train: Callable[[Any], Any],
    weight_column: Any,
    loss_reduction: str,
    regularization: Sequence[Any] | None = None,
) -> EstimatorSpec:
    """The EstimatorSpec of a model's logits.

    Args:
      train: makes the training op of the loss.
      weight_column: the feature that holds the weight of each example, or its numeric column; None: all examples have
          the same weight.
      loss_reduction: of tf.losses.Reduction.
      regularization: losses to add; None: those of the graph's collection.

    Raises:
      ValueError: labels are missing, or weights are missing.
    """
    predictions = head.predictions(logits)
    if mode == ModeKeys.PREDICT:
        return EstimatorSpec(mode, predictions, export_outputs=head.export_outputs(predictions))
    if labels is None:
        raise ValueError("The input_fn returns no labels; training and evaluation need them")
    weights: Any = 1.0
    if weight_column is not None:
        key = getattr(weight_column, "key", weight_column)
        if key not in features:
            raise ValueError(f"The features lack the weight column {key!r}; they are {sorted(features)}")
        normalize = getattr(weight_column, "normalizer_fn", None)
        given = features[key] if normalize is None else normalize(features[key])
        weights = column_of(math_ops.cast(given, dtypes.float32))
    outcome = head.outcome(labels, logits, weights)
    loss = losses.compute_weighted_loss(outcome.losses, weights, reduction=loss_reduction)
    regularization = losses.get_regularization_losses() if regularization is None else regularization
    if regularization:
        loss = math_ops.add_n([loss, *regularization])
    if mode == ModeKeys.EVAL:
        return EstimatorSpec(mode, predictions, loss, eval_metric_ops=outcome.figures)
    return EstimatorSpec(mode, predictions, loss, train(loss))


@dataclass(frozen=True)
class RegressionHead(Head):
    """Numbers; the loss is the square of the difference.

    Attributes:
      label_dimension: how many numbers a label has.
      loss_fn: a function of labels and logits, in place of the square.
      inverse_link_fn: from logits to predictions.
    """

    label_dimension: int = 1
    loss_fn: Callable[..., Any] | None = None
    inverse_link_fn: Callable[[Any], Any] | None = None

    @property
    def logits_width(self) -> int:  # type: ignore[override]
        return self.label_dimension

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        if self.inverse_link_fn is None:
            return {"predictions": logits}
        return {"predictions": self.inverse_link_fn(logits), "logits": logits}

    def outcome(self, labels: Any, logits: Tensor, weights: Any) -> Outcome:
        labels = array_ops.reshape(math_ops.cast(labels, dtypes.float32), [-1, self.label_dimension])
        loss_fn = math_ops.squared_difference if self.loss_fn is None else self.loss_fn
        each = loss_fn(labels, logits)
        figures = {
            "average_loss": metrics.mean(each, weights),
            "label/mean": metrics.mean(labels, weights),
            "prediction/mean": metrics.mean(self.predictions(logits)["predictions"], weights),
        }
        return Outcome(each, figures)

    def export_outputs(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        regression = RegressionOutput(predictions["predictions"])
        return {
            DEFAULT_SERVING_SIGNATURE_DEF_KEY: regression,
            "regression": regression,
            "predict": PredictOutput(dict(predictions)),
        }


@dataclass(frozen=True)
class ClassificationHead(Head):
    """One of several classes.

    Attributes:
      n_classes: how many classes; two classes have one logit, for class 1.
      label_vocabulary: the words that labels are; None if they are numbers from 0.
      thresholds: of two classes, chances of class 1 from which examples count as such, with figures of their own.
      loss_fn: a function of labels and logits, in place of the cross entropy.
    """

    n_classes: int = 2
    label_vocabulary: Sequence[str] | None = None
    thresholds: Sequence[float] = ()
    loss_fn: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, but is {self.n_classes}")
        if self.label_vocabulary is not None and len(self.label_vocabulary) != self.n_classes:
            raise ValueError(
                f"label_vocabulary must have one word for each of the classes, {self.n_classes}; "
                f"it is {self.label_vocabulary}"
            )

    @property
    def logits_width(self) -> int:  # type: ignore[override]
        return 1 if self.n_classes == 2 else self.n_classes

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        found = {"logits": logits}
        all_logits = logits
        if self.n_classes == 2:
            found["logistic"] = math_ops.sigmoid(logits)
            all_logits = concat([filling_ops.zeros_like(logits), logits], -1)
        class_ids = array_ops.expand_dims(argmax(all_logits, -1), -1)
        return found | {
            "probabilities": activations_ops.softmax(all_logits),
            "class_ids": class_ids,
            "classes": self._words(class_ids),
        }

    def outcome(self, labels: Any, logits: Tensor, weights: Any) -> Outcome:
        ids = self._ids(labels)
        predictions = self.predictions(logits)
        if self.n_classes > 2:
            if self.loss_fn is not None:
                each = self.loss_fn(ids, logits)
            else:
                each = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=ids[:, 0], logits=logits)
                each = array_ops.expand_dims(each, -1)
            return Outcome(each, self._shared_figures(ids, predictions, each, weights))
        truths = math_ops.cast(ids, dtypes.float32)
        if self.loss_fn is not None:
            each = self.loss_fn(truths, logits)
        else:
            each = cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=truths, logits=logits)
        chances, choices = predictions["logistic"], predictions["class_ids"]
        mean = metrics.mean(truths, weights)
        baseline = tuple(math_ops.maximum(part, 1.0 - part) for part in mean)
        return Outcome(
            each,
            self._shared_figures(ids, predictions, each, weights)
            | {
                "accuracy_baseline": baseline,
                "auc": metrics.auc(truths, chances, weights),
                "auc_precision_recall": metrics.auc(truths, chances, weights, curve="PR"),
                "label/mean": mean,
                "precision": metrics.precision(truths, choices, weights),
                "prediction/mean": metrics.mean(chances, weights),
                "recall": metrics.recall(truths, choices, weights),
            }
            | figures_at(self.thresholds, truths, chances, weights),
        )

    def export_outputs(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        scores = predictions["probabilities"]
        names = constant([list(self._names())], dtypes.string)
        classification = ClassificationOutput(scores, tile(names, [array_ops.shape(scores)[0], 1]))
        return {
            DEFAULT_SERVING_SIGNATURE_DEF_KEY: classification,
            "classification": classification,
            "predict": PredictOutput(dict(predictions)),
        }

    def _shared_figures(
        self, ids: Tensor, predictions: Mapping[str, Tensor], each: Tensor, weights: Any
    ) -> dict[str, Any]:
        return {
            "accuracy": metrics.accuracy(ids, predictions["class_ids"], weights),
            "average_loss": metrics.mean(each, weights),
        }

    def _names(self) -> Sequence[str]:
        return self.label_vocabulary or [str(number) for number in range(self.n_classes)]

    def _words(self, class_ids: Tensor) -> Tensor:
        if self.label_vocabulary is None:
            return as_string(class_ids)
        ids = list(range(self.n_classes))
        table = KeyValueTensorInitializer(ids, list(self.label_vocabulary), dtypes.int64, dtypes.string)
        return StaticHashTable(table, "").lookup(class_ids)

    def _ids(self, labels: Any) -> Tensor:
        """int64 [batch, 1]."""
        labels = column_of(labels)
        if self.label_vocabulary is None:
            if labels.dtype == dtypes.string:
                raise ValueError("Labels are strings: pass the class names as label_vocabulary")
            return math_ops.cast(labels, dtypes.int64)
        words = list(self.label_vocabulary)
        table = KeyValueTensorInitializer(words, list(range(self.n_classes)), dtypes.string, dtypes.int64)
        return StaticHashTable(table, -1).lookup(labels)


@dataclass(frozen=True)
class MultiLabelHead(Head):
    """Any number of several classes, each with a logit of its own.

    Attributes:
      n_classes: how many classes.
      label_vocabulary: the words that labels are; None if they are numbers from 0.
      thresholds: as of ClassificationHead.
      loss_fn: a function of labels [batch, n_classes] and logits.
      shown_classes: the classes with figures of their own.
    """

    n_classes: int
    label_vocabulary: Sequence[str] | None = None
    thresholds: Sequence[float] = ()
    loss_fn: Callable[..., Any] | None = None
    shown_classes: Sequence[int] = ()

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, but is {self.n_classes}")

    @property
    def logits_width(self) -> int:  # type: ignore[override]
        return self.n_classes

    def predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {"logits": logits, "probabilities": math_ops.sigmoid(logits)}

    def outcome(self, labels: Any, logits: Tensor, weights: Any) -> Outcome:
        truths = math_ops.cast(self._indicators(labels), dtypes.float32)
        chances = math_ops.sigmoid(logits)
        if self.loss_fn is not None:
            each = self.loss_fn(truths, logits)
        else:
            each = cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=truths, logits=logits)
        each = reduce_mean(each, -1, keepdims=True)
        figures: dict[str, Any] = {
            "average_loss": metrics.mean(each, weights),
            "auc": metrics.auc(truths, chances, weights),
            "auc_precision_recall": metrics.auc(truths, chances, weights, curve="PR"),
        }
        for number in self.shown_classes:
            words = f"class{number}" if self.label_vocabulary is None else self.label_vocabulary[number]
            truth, chance = truths[:, number, None], chances[:, number, None]
            figures |= {
                f"probability_mean/{words}": metrics.mean(chance, weights),
                f"auc/{words}": metrics.auc(truth, chance, weights),
                f"auc_precision_recall/{words}": metrics.auc(truth, chance, weights, curve="PR"),
            }
        return Outcome(each, figures | figures_at(self.thresholds, truths, chances, weights))

    def export_outputs(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        scores = predictions["probabilities"]
        words = self.label_vocabulary or [str(number) for number in range(self.n_classes)]
        names = constant([list(words)], dtypes.string)
        classification = ClassificationOutput(scores, tile(names, [array_ops.shape(scores)[0], 1]))
        return {
            DEFAULT_SERVING_SIGNATURE_DEF_KEY: classification,
            "classification": classification,
            "predict": PredictOutput(dict(predictions)),
        }

    def _indicators(self, labels: Any) -> Any:
        """[batch, n_classes], 1 for the classes of an example; from such a tensor, or a SparseTensor of classes."""
        if not isinstance(labels, SparseTensor):
            return labels
        if labels.dtype == dtypes.string:
            words = list(self.label_vocabulary or ())
            table = KeyValueTensorInitializer(words, list(range(self.n_classes)), dtypes.string, dtypes.int64)
            labels = StaticHashTable(table, -1).lookup(labels)
        return sparse_to_indicator(labels, self.n_classes)


def figures_at(thresholds: Sequence[float], truths: Tensor, chances: Tensor, weights: Any) -> dict[str, Any]:
    """Accuracy, precision and recall when chances from a threshold on count as 1."""
    figures: dict[str, Any] = {}
    for threshold in thresholds:
        choices = math_ops.cast(math_ops.greater(chances, threshold), dtypes.float32)
        for name, figure in [
            ("accuracy", metrics.accuracy), ("precision", metrics.precision), ("recall", metrics.recall)
        ]:  # fmt: skip
            figures[f"{name}/positive_threshold_{threshold:g}"] = figure(truths, choices, weights)
    return figures


def column_of(values: Any) -> Tensor:
    """[batch] or [batch, 1] as [batch, 1]."""
    return array_ops.reshape(values, [-1, 1])
