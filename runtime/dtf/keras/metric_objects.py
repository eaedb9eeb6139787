"""tf.keras.metrics as objects: figures that are kept in variables over the batches of an epoch.

Owns `Metric` and its subclasses. A metric is called on (y_true, y_pred): the result includes these. A model resets its
metrics before each epoch and before each evaluation.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/metrics/Metric
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.graph import GraphKeys
from dtf.build.ops import math as math_ops
from dtf.build.ops.array import expand_dims, identity, reshape, squeeze
from dtf.build.ops.confusion_matrix import confusion_matrix
from dtf.build.ops.diagonals import diag_part
from dtf.build.ops.filling import ones_like
from dtf.build.ops.ordering import group
from dtf.build.ops.reductions import reduce_sum
from dtf.build.variables import Variable
from dtf.keras import losses, metrics
from dtf.keras.base import Layer
from dtf.wire import dtypes

__all__ = [
    "AUC", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "CategoricalAccuracy", "CategoricalCrossentropy",
    "CategoricalHinge", "CosineSimilarity", "FalseNegatives", "FalsePositives", "Hinge", "KLDivergence", "LogCoshError",
    "Mean", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanIoU", "MeanMetricWrapper", "MeanSquaredError",
    "MeanSquaredLogarithmicError", "Metric", "Poisson", "Precision", "Recall", "RootMeanSquaredError",
    "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy", "SquaredHinge",
    "Sum", "TopKCategoricalAccuracy", "TrueNegatives", "TruePositives",
]  # fmt: skip


class Metric(Layer):
    """The base of metrics: subclasses write `update_state` and `result`.

    Args:
      name: of the metric.
      dtype: of its variables.
    """

    def __init__(self, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype or "float32", **kwargs)
        self.stateful = True
        self.built = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds values to the state. Returns the result with them."""
        update = self.update_state(*args, **kwargs)
        with control_dependencies([] if update is None else [update]):
            return identity(self.result())

    def add_weight(  # type: ignore[override]
        self, name: str | None = None, shape: Any = (), aggregation: Any = None, synchronization: Any = None,
        initializer: Any = None, dtype: Any = None,
    ) -> Variable:  # fmt: skip
        """A local variable of this metric, which begins at `initializer`, zeros by default."""
        from dtf.keras import initializers

        first = initializers.get(initializer or "zeros")
        number = dtypes.as_dtype(dtype or self.dtype or "float32")
        sizes = [shape] if isinstance(shape, int) else [int(size) for size in shape]
        made = Variable(
            lambda: first(sizes, number), trainable=False, name=f"{self.name}/{name or 'weight'}",
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], dtype=number,
        )  # fmt: skip
        self._own_fixed.append(made)
        return made

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """An operation that adds values to the state."""
        raise NotImplementedError

    def result(self) -> Any:
        """The figure of all values so far."""
        raise NotImplementedError

    def reset_states(self) -> None:
        """Begins anew, in the session of tf.keras.backend."""
        from dtf.keras.backend import get_session

        with self._in_graph():
            get_session().run(self.reset_op())

    reset_state = reset_states

    def reset_op(self) -> Any:
        """The operation that begins anew."""
        return group(*[each.initializer for each in self.weights])


class _Reduced(Metric):
    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total, self.count = self.add_weight("total"), self.add_weight("count")

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Adds values."""
        values = math_ops.cast(convert_to_tensor(values), dtypes.float32)
        if sample_weight is None:
            return group(self.total.assign_add(reduce_sum(values)), self.count.assign_add(_size(values)))
        weights = math_ops.cast(convert_to_tensor(sample_weight), dtypes.float32)
        while weights.shape.ndims is not None and values.shape.ndims and weights.shape.ndims > values.shape.ndims:
            weights = squeeze(weights, [-1])
        while weights.shape.ndims is not None and 0 < weights.shape.ndims < (values.shape.ndims or 0):
            weights = expand_dims(weights, -1)
        weights = weights * ones_like(values)
        return group(
            self.total.assign_add(reduce_sum(values * weights)), self.count.assign_add(reduce_sum(weights))
        )


class Mean(_Reduced):
    """The mean of values."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def result(self) -> Any:
        """The mean; 0 without values."""
        return math_ops.div_no_nan(self.total.read_value(), self.count.read_value())


class Sum(_Reduced):
    """The sum of values."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def result(self) -> Any:
        """The sum."""
        return identity(self.total.read_value())


class MeanMetricWrapper(Mean):
    """The mean of a function of (y_true, y_pred)."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name or getattr(fn, "__name__", "metric"), dtype)
        self._function, self._arguments = fn, kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Adds examples."""
        values = self._function(convert_to_tensor(y_true), convert_to_tensor(y_pred), **self._arguments)
        return super().update_state(values, sample_weight)


def _mean_class(name: str, default: str, function: Callable[..., Any], *arguments: str) -> Any:
    """The class of a mean, whose arguments are those of the function behind `name` and `dtype`."""

    def start(self: Any, *given: Any, **kwargs: Any) -> None:
        order = [*(arguments if arguments[:1] == ("k",) else ()), "name", "dtype", *arguments]
        known = {**dict(zip(order, given, strict=False)), **kwargs}
        own, kind = known.pop("name", None) or default, known.pop("dtype", None)
        MeanMetricWrapper.__init__(self, function, own, kind, **known)

    made = type(name, (MeanMetricWrapper,), {"__init__": start, "__doc__": f"The mean of `{function.__name__}`."})
    made.__module__ = __name__
    return made


def _equal(y_true: Any, y_pred: Any) -> Any:
    return math_ops.cast(math_ops.equal(math_ops.cast(y_true, y_pred.dtype), y_pred), dtypes.float32)


_equal.__name__ = "accuracy"
Accuracy = _mean_class("Accuracy", "accuracy", _equal)
BinaryAccuracy = _mean_class("BinaryAccuracy", "binary_accuracy", metrics.binary_accuracy, "threshold")
CategoricalAccuracy = _mean_class("CategoricalAccuracy", "categorical_accuracy", metrics.categorical_accuracy)
SparseCategoricalAccuracy = _mean_class(
    "SparseCategoricalAccuracy", "sparse_categorical_accuracy", metrics.sparse_categorical_accuracy)  # fmt: skip
TopKCategoricalAccuracy = _mean_class(
    "TopKCategoricalAccuracy", "top_k_categorical_accuracy", metrics.top_k_categorical_accuracy, "k")  # fmt: skip
SparseTopKCategoricalAccuracy = _mean_class(
    "SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy",
    metrics.sparse_top_k_categorical_accuracy, "k")  # fmt: skip
BinaryCrossentropy = _mean_class(
    "BinaryCrossentropy", "binary_crossentropy", losses.binary_crossentropy, "from_logits", "label_smoothing")
CategoricalCrossentropy = _mean_class(
    "CategoricalCrossentropy", "categorical_crossentropy", losses.categorical_crossentropy, "from_logits",
    "label_smoothing")  # fmt: skip
SparseCategoricalCrossentropy = _mean_class(
    "SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", losses.sparse_categorical_crossentropy,
    "from_logits", "axis")  # fmt: skip
MeanAbsoluteError = _mean_class("MeanAbsoluteError", "mean_absolute_error", losses.mean_absolute_error)
MeanAbsolutePercentageError = _mean_class(
    "MeanAbsolutePercentageError", "mean_absolute_percentage_error", losses.mean_absolute_percentage_error)
MeanSquaredError = _mean_class("MeanSquaredError", "mean_squared_error", losses.mean_squared_error)
MeanSquaredLogarithmicError = _mean_class(
    "MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", losses.mean_squared_logarithmic_error)
Hinge, SquaredHinge = (
    _mean_class("Hinge", "hinge", losses.hinge), _mean_class("SquaredHinge", "squared_hinge", losses.squared_hinge))
CategoricalHinge = _mean_class("CategoricalHinge", "categorical_hinge", losses.categorical_hinge)
KLDivergence = _mean_class("KLDivergence", "kullback_leibler_divergence", losses.kullback_leibler_divergence)
Poisson = _mean_class("Poisson", "poisson", losses.poisson)
LogCoshError = _mean_class("LogCoshError", "logcosh", losses.logcosh)


def _cosine(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    return -losses.cosine_similarity(y_true, y_pred, axis)


_cosine.__name__ = "cosine_similarity"
CosineSimilarity = _mean_class("CosineSimilarity", "cosine_similarity", _cosine, "axis")


class RootMeanSquaredError(Mean):
    """The root of the mean square of differences."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Adds examples."""
        y_pred = convert_to_tensor(y_pred)
        return super().update_state(
            math_ops.squared_difference(math_ops.cast(y_true, y_pred.dtype), y_pred), sample_weight)  # fmt: skip

    def result(self) -> Any:
        """The root."""
        return math_ops.sqrt(super().result())


class _Counts(Metric):
    """Counts of right and wrong answers at thresholds."""

    _wanted: tuple[str, ...] = ()

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        self.top_k, self.class_id = kwargs.pop("top_k", None), kwargs.pop("class_id", None)
        super().__init__(name=name, dtype=dtype, **kwargs)
        if self.top_k is not None:
            raise ValueError(f"{type(self).__name__} with top_k is not supported; use TopKCategoricalAccuracy")
        self.thresholds = thresholds
        self._is_scalar = thresholds is None or np.isscalar(thresholds)
        self._at = np.array(0.5 if thresholds is None else thresholds, np.float32).reshape(-1)
        self._counts = {each: self.add_weight(each, [len(self._at)]) for each in self._wanted}

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds examples."""
        y_pred = math_ops.cast(convert_to_tensor(y_pred), dtypes.float32)
        y_true = math_ops.cast(convert_to_tensor(y_true), dtypes.float32)
        if self.class_id is not None:
            y_pred, y_true = y_pred[..., self.class_id], y_true[..., self.class_id]
        weights = ones_like(y_pred)
        if sample_weight is not None:
            given = math_ops.cast(convert_to_tensor(sample_weight), dtypes.float32)
            while given.shape.ndims is not None and 0 < given.shape.ndims < (y_pred.shape.ndims or 0):
                given = expand_dims(given, -1)
            weights = weights * given
        guess = math_ops.cast(reshape(y_pred, [1, -1]) > reshape(self._at, [-1, 1]), dtypes.float32)
        truth, weights = math_ops.cast(reshape(y_true, [1, -1]) > 0.5, dtypes.float32), reshape(weights, [1, -1])
        found = {
            "tp": lambda: truth * guess, "fp": lambda: (1 - truth) * guess, "fn": lambda: truth * (1 - guess),
            "tn": lambda: (1 - truth) * (1 - guess),
        }  # fmt: skip
        return group(*[v.assign_add(reduce_sum(found[key]() * weights, 1)) for key, v in self._counts.items()])

    def _count(self, key: str) -> Any:
        return self._counts[key].read_value()

    def _shown(self, values: Any) -> Any:
        return values[0] if self._is_scalar else values


class TruePositives(_Counts):
    """The number of right yes."""

    _wanted = ("tp",)

    def result(self) -> Any:
        """The number."""
        return self._shown(self._count(self._wanted[0]))


class FalsePositives(TruePositives):
    """The number of wrong yes."""

    _wanted = ("fp",)


class TrueNegatives(TruePositives):
    """The number of right no."""

    _wanted = ("tn",)


class FalseNegatives(TruePositives):
    """The number of wrong no."""

    _wanted = ("fn",)


class Precision(_Counts):
    """The part of yes that is right."""

    _wanted = ("tp", "fp")

    def __init__(
        self, thresholds: Any = None, top_k: Any = None, class_id: Any = None, name: str | None = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(thresholds, name, dtype, top_k=top_k, class_id=class_id)

    def result(self) -> Any:
        """The part; 0 without any."""
        right, wrong = (self._count(key) for key in self._wanted)
        return self._shown(math_ops.div_no_nan(right, right + wrong))


class Recall(Precision):
    """The part of the true examples that is found."""

    _wanted = ("tp", "fn")


class AUC(_Counts):
    """The area under the curve of ROC, or of precision and recall, by sums over thresholds."""

    _wanted = ("tp", "fp", "tn", "fn")

    def __init__(
        self, num_thresholds: int = 200, curve: str = "ROC", summation_method: str = "interpolation",
        name: str | None = None, dtype: Any = None, thresholds: Any = None,
    ) -> None:  # fmt: skip
        if curve not in ("ROC", "PR") or summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(f"AUC takes the curves ROC and PR, not {curve!r} by {summation_method!r}")
        inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        super().__init__([-1e-7, *sorted(inner if thresholds is None else thresholds), 1.0 + 1e-7], name, dtype)
        self.num_thresholds, self.curve, self.summation_method = num_thresholds, curve, summation_method

    def result(self) -> Any:
        """The area."""
        tp, fp, tn, fn = (self._count(key) for key in self._wanted)
        recall = math_ops.div_no_nan(tp, tp + fn)
        if self.curve == "PR":
            if self.summation_method == "interpolation":
                return self._interpolated(tp, fp, fn)
            x, y = recall, math_ops.div_no_nan(tp, tp + fp)
        else:
            x, y = math_ops.div_no_nan(fp, fp + tn), recall
        heights = {
            "interpolation": lambda: (y[:-1] + y[1:]) / 2.0,
            "minoring": lambda: math_ops.minimum(y[:-1], y[1:]),
            "majoring": lambda: math_ops.maximum(y[:-1], y[1:]),
        }[self.summation_method]()
        return reduce_sum((x[:-1] - x[1:]) * heights)

    def _interpolated(self, tp: Any, fp: Any, fn: Any) -> Any:
        """The area under precision and recall, as in Davis and Goadrich, 2006."""
        dtp, p = tp[:-1] - tp[1:], tp + fp
        slope = math_ops.div_no_nan(dtp, math_ops.maximum(p[:-1] - p[1:], 0.0))
        intercept = tp[1:] - slope * p[1:]
        both = math_ops.cast((p[:-1] > 0) & (p[1:] > 0), dtypes.float32)
        ratio = math_ops.div_no_nan(both * p[:-1], math_ops.maximum(p[1:], 0.0)) + (1.0 - both)
        steps = slope * (dtp + intercept * math_ops.log(ratio))
        return reduce_sum(math_ops.div_no_nan(steps, math_ops.maximum(tp[1:] + fn[1:], 0.0)))


class MeanIoU(Metric):
    """The mean over classes of intersection over union."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight("total_confusion_matrix", [num_classes, num_classes])

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds examples, the numbers of classes."""
        labels = reshape(math_ops.cast(y_true, dtypes.int64), [-1])
        guesses = reshape(math_ops.cast(y_pred, dtypes.int64), [-1])
        weights = None if sample_weight is None else reshape(sample_weight, [-1])
        matrix = confusion_matrix(labels, guesses, self.num_classes, dtype=dtypes.float32, weights=weights)
        return self.total_cm.assign_add(matrix)

    def result(self) -> Any:
        """The mean of the classes that occur."""
        matrix = self.total_cm.read_value()
        right = diag_part(matrix)
        union = reduce_sum(matrix, 0) + reduce_sum(matrix, 1) - right
        count = reduce_sum(math_ops.cast(math_ops.not_equal(union, 0.0), dtypes.float32))
        return math_ops.div_no_nan(reduce_sum(math_ops.div_no_nan(right, union)), count)


def _size(values: Any) -> Any:
    return reduce_sum(ones_like(values)) if values.shape.num_elements() is None else float(values.shape.num_elements())

