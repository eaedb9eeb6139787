"""Estimators that come with their models: linear ones, nets of dense layers, both together, and constants.

    classifier = tf.estimator.DNNClassifier([32, 16], feature_columns, n_classes=3, model_dir="model")
    classifier.train(input_fn, max_steps=1000)

Each is an `Estimator` whose model_fn adds up the logits of its parts: a linear part in the scope "linear", a deep one
in "dnn", each with its own optimizer. A head adds the loss, predictions and metrics to the logits. Classifiers and
regressors make their heads themselves; DNNEstimator and its like take them.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/DNNLinearCombinedClassifier
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dtf import layers
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, get_collection
from dtf.build.graph import GraphKeys
from dtf.build.initializers import glorot_uniform_initializer, zeros_initializer
from dtf.build.ops.activations import relu
from dtf.build.ops.array import expand_dims
from dtf.build.ops.array import shape as shape_of
from dtf.build.ops.joining import tile
from dtf.build.ops.math import add_n, cast
from dtf.build.ops.ordering import group
from dtf.build.ops.state import assign_add
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable, get_variable_scope, variable_scope
from dtf.estimator.estimator import Estimator
from dtf.estimator.heads import ClassificationHead, RegressionHead
from dtf.estimator.model_heads import ModelHead, with_updates
from dtf.estimator.run_config import RunConfig
from dtf.estimator.spec import EstimatorSpec, ModeKeys
from dtf.feature_column import input_layer, linear_model
from dtf.losses import Reduction
from dtf.train.adagrad import AdagradOptimizer
from dtf.train.adam import AdamOptimizer
from dtf.train.ftrl import FtrlOptimizer
from dtf.train.gradient_descent import GradientDescentOptimizer
from dtf.train.optimizer import Optimizer
from dtf.train.rmsprop import RMSPropOptimizer
from dtf.train.training_util import get_global_step
from dtf.wire import dtypes

_OPTIMIZERS: dict[str, Callable[[float], Optimizer]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
_DNN_LEARNING_RATE = 0.05
_LINEAR_LEARNING_RATE_MOST = 0.2
_BASELINE_LEARNING_RATE = 0.3
_BATCH_NORM_MOMENTUM = 0.999


@dataclass(frozen=True)
class Linear:
    """A linear part.

    Attributes:
      columns: feature columns, dense or categorical.
      optimizer: one of tf.train, its name, or a function without arguments that makes one.
      sparse_combiner: see `tf.feature_column.linear_model`.
      partitioner: of the weights.
    """

    columns: Sequence[Any]
    optimizer: Any = "Ftrl"
    sparse_combiner: str = "sum"
    partitioner: Any = None
    scope: str = "linear"

    @property
    def learning_rate(self) -> float:
        return min(_LINEAR_LEARNING_RATE_MOST, 1.0 / math.sqrt(len(self.columns)))

    def logits(self, features: Mapping[str, Any], width: int, mode: str) -> Tensor:
        with variable_scope(get_variable_scope(), partitioner=self.partitioner):
            return linear_model(features, self.columns, width, self.sparse_combiner)


@dataclass(frozen=True)
class Deep:
    """A part of dense layers.

    Attributes:
      hidden_units: the widths of the hidden layers.
      columns: dense feature columns.
      optimizer: as of Linear.
      activation_fn: after each hidden layer.
      dropout: while training, the part of each hidden layer's outputs that is zeroed.
      input_layer_partitioner: of the variables of the feature columns.
      batch_norm: normalise the outputs of each hidden layer.
    """

    hidden_units: Sequence[int]
    columns: Sequence[Any]
    optimizer: Any = "Adagrad"
    activation_fn: Callable[[Any], Any] = relu
    dropout: float | None = None
    input_layer_partitioner: Any = None
    batch_norm: bool = False
    scope: str = "dnn"

    @property
    def learning_rate(self) -> float:
        return _DNN_LEARNING_RATE

    def logits(self, features: Mapping[str, Any], width: int, mode: str) -> Tensor:
        is_training = mode == ModeKeys.TRAIN
        with variable_scope("input_from_feature_columns", partitioner=self.input_layer_partitioner):
            net = input_layer(features, self.columns)
        for number, units in enumerate(self.hidden_units):
            with variable_scope(f"hiddenlayer_{number}") as scope:
                net = _dense(units, self.activation_fn, scope)(net)
                if self.dropout is not None and is_training:
                    net = layers.dropout(net, self.dropout, training=True)
                if self.batch_norm:
                    name = f"batchnorm_{number}"
                    net = layers.batch_normalization(
                        net, momentum=_BATCH_NORM_MOMENTUM, training=is_training, name=name
                    )
        with variable_scope("logits") as scope:
            return _dense(width, None, scope)(net)


@dataclass(frozen=True)
class Baseline:
    """A part that ignores the features: a bias."""

    optimizer: Any = "Ftrl"
    scope: str = "baseline"

    @property
    def learning_rate(self) -> float:
        return _BASELINE_LEARNING_RATE

    @property
    def columns(self) -> Sequence[str]:
        return ("bias",)

    def logits(self, features: Mapping[str, Any], width: int, mode: str) -> Tensor:
        bias = get_variable("bias", [width], initializer=zeros_initializer())
        first = next(iter(features.values()))
        rows = shape_of(first.values if hasattr(first, "dense_shape") else first)[0]
        if hasattr(first, "dense_shape"):
            rows = cast(first.dense_shape[0], dtypes.int32)
        return tile(expand_dims(convert_to_tensor(bias), 0), [rows, 1])


class LinearClassifier(Estimator):
    """A linear classifier."""

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        part = Linear(feature_columns, optimizer, sparse_combiner, partitioner)
        head = _own_head(ClassificationHead(n_classes, label_vocabulary), weight_column, loss_reduction)
        super().__init__(_model_fn(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """Linear regression."""

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        part = Linear(feature_columns, optimizer, sparse_combiner, partitioner)
        head = _own_head(RegressionHead(label_dimension), weight_column, loss_reduction)
        super().__init__(_model_fn(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class LinearEstimator(Estimator):
    """A linear model with a head of its own."""

    def __init__(
        self,
        head: Any,
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        part = Linear(feature_columns, optimizer, sparse_combiner, partitioner)
        super().__init__(_model_fn(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(Estimator):
    """A net of dense layers that classifies."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        part = Deep(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        head = _own_head(ClassificationHead(n_classes, label_vocabulary), weight_column, loss_reduction)
        super().__init__(_model_fn(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """A net of dense layers for regression."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        part = Deep(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        head = _own_head(RegressionHead(label_dimension), weight_column, loss_reduction)
        super().__init__(_model_fn(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class DNNEstimator(Estimator):
    """A net of dense layers with a head of its own."""

    def __init__(
        self,
        head: Any,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        part = Deep(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        super().__init__(_model_fn(head, [part]), model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(Estimator):
    """A classifier both wide and deep."""

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        linear = Linear(linear_feature_columns or (), linear_optimizer, linear_sparse_combiner)
        parts = _wide_and_deep(
            linear, dnn_hidden_units, dnn_feature_columns, dnn_optimizer, dnn_activation_fn, dnn_dropout,
            input_layer_partitioner, batch_norm,
        )  # fmt: skip
        head = _own_head(ClassificationHead(n_classes, label_vocabulary), weight_column, loss_reduction)
        super().__init__(_model_fn(head, parts), model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressor(Estimator):
    """Regression both wide and deep."""

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        linear = Linear(linear_feature_columns or (), linear_optimizer, linear_sparse_combiner)
        parts = _wide_and_deep(
            linear, dnn_hidden_units, dnn_feature_columns, dnn_optimizer, dnn_activation_fn, dnn_dropout,
            input_layer_partitioner, batch_norm,
        )  # fmt: skip
        head = _own_head(RegressionHead(label_dimension), weight_column, loss_reduction)
        super().__init__(_model_fn(head, parts), model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedEstimator(Estimator):
    """A model both wide and deep, with a head of its own."""

    def __init__(
        self,
        head: Any,
        model_dir: str | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        linear = Linear(linear_feature_columns or (), linear_optimizer, linear_sparse_combiner)
        parts = _wide_and_deep(
            linear, dnn_hidden_units, dnn_feature_columns, dnn_optimizer, dnn_activation_fn, dnn_dropout,
            input_layer_partitioner, batch_norm,
        )  # fmt: skip
        super().__init__(_model_fn(head, parts), model_dir, config)


class BaselineClassifier(Estimator):
    """A classifier that learns how often each class is."""

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        part = Baseline(optimizer)
        head = _own_head(ClassificationHead(n_classes, label_vocabulary), weight_column, loss_reduction)
        super().__init__(_model_fn(head, [part]), model_dir, config)


class BaselineRegressor(Estimator):
    """Regression that learns the mean."""

    def __init__(
        self,
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        part = Baseline(optimizer)
        head = _own_head(RegressionHead(label_dimension), weight_column, loss_reduction)
        super().__init__(_model_fn(head, [part]), model_dir, config)


class BaselineEstimator(Estimator):
    """A constant with a head of its own."""

    def __init__(
        self,
        head: Any,
        model_dir: str | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
    ) -> None:
        part = Baseline(optimizer)
        super().__init__(_model_fn(head, [part]), model_dir, config)


def _own_head(head: Any, weight_column: Any, loss_reduction: str) -> ModelHead:
    return ModelHead(head, weight_column, loss_reduction, is_regularized_by_graph=True)


def _wide_and_deep(
    linear: Linear, hidden_units: Sequence[int] | None, columns: Sequence[Any] | None, *settings: Any
) -> list[Linear | Deep]:
    """The parts that have columns. `hidden_units`, `columns` and `settings` are those of `Deep`, in its order."""
    parts: list[Linear | Deep] = []
    if columns:
        if not hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        parts.append(Deep(hidden_units, columns, *settings))
    if linear.columns:
        parts.append(linear)
    return parts


def _model_fn(head: Any, parts: Sequence[Linear | Deep | Baseline]) -> Callable[..., EstimatorSpec]:
    if not parts or not all(part.columns for part in parts):
        raise ValueError("A model needs feature_columns")
    optimizers = [_optimizer(part.optimizer, part.learning_rate) for part in parts]

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if not isinstance(features, Mapping):
            raise ValueError(f"features should be a dictionary of Tensors. Given: {features!r}")
        logits = []
        for part in parts:
            with variable_scope(part.scope):
                logits.append(part.logits(features, head.logits_dimension, mode))

        def train(loss: Any) -> Any:
            steps = [
                made().minimize(loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{part.scope}/"))
                for part, made in zip(parts, optimizers, strict=True)
            ]
            with control_dependencies([with_updates(group(*steps))]):
                return group(assign_add(get_global_step(), 1))

        whole = logits[0] if len(logits) == 1 else add_n(logits)
        return head.create_estimator_spec(features, mode, whole, labels, train_op_fn=train)

    return model_fn


class ChangedOptimizer(NamedTuple):
    """An optimizer of a part, with `change(optimizer)` applied to it: `given` is what the part takes otherwise."""

    given: Any
    change: Callable[[Optimizer], Optimizer]


def _optimizer(given: Any, learning_rate: float) -> Callable[[], Optimizer]:
    """The optimizer of a part, or a function that makes it.

    Raises:
      ValueError: it is neither an optimizer, a function, nor a name.
    """
    if isinstance(given, ChangedOptimizer):
        made = _optimizer(given.given, learning_rate)
        return lambda: given.change(made())
    if isinstance(given, Optimizer):
        return lambda: given
    if isinstance(given, str) and given in _OPTIMIZERS:
        return lambda: _OPTIMIZERS[given](learning_rate)
    if callable(given):
        return given
    raise ValueError(
        f"An optimizer must be an object of tf.train, a function that makes one, or one of {sorted(_OPTIMIZERS)}"
    )


def _dense(units: int, activation: Any, scope: Any) -> layers.Dense:
    initializer = glorot_uniform_initializer()
    return layers.Dense(units, activation, kernel_initializer=initializer, name="dense", _scope=scope)
