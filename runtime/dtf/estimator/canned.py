"""Estimators that come with their models: linear ones, nets of dense layers, and both together.

    classifier = tf.estimator.DNNClassifier([32, 16], feature_columns, n_classes=3, model_dir="model")
    classifier.train(input_fn, max_steps=1000)

Each is an `Estimator` whose model_fn adds up the logits of its parts: a linear part in the scope "linear", a deep one
in "dnn", each with its own optimizer. A head adds the loss, predictions and metrics to the logits.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/DNNLinearCombinedClassifier
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtf import layers
from dtf.build.default_graph import control_dependencies, get_collection
from dtf.build.graph import GraphKeys
from dtf.build.initializers import glorot_uniform_initializer
from dtf.build.ops.activations import relu
from dtf.build.ops.math import add_n
from dtf.build.ops.ordering import group
from dtf.build.ops.state import assign_add
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.estimator.estimator import Estimator
from dtf.estimator.heads import ClassificationHead, Head, RegressionHead, spec_of
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

_OPTIMIZERS: dict[str, Callable[[float], Optimizer]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
_DNN_LEARNING_RATE = 0.05
_LINEAR_LEARNING_RATE_MOST = 0.2


@dataclass(frozen=True)
class Linear:
    """A linear part.

    Attributes:
      columns: feature columns, dense or categorical.
      optimizer: one of tf.train, its name, or a function without arguments that makes one.
      sparse_combiner: see `tf.feature_column.linear_model`.
    """

    columns: Sequence[Any]
    optimizer: Any = "Ftrl"
    sparse_combiner: str = "sum"
    scope: str = "linear"

    @property
    def learning_rate(self) -> float:
        return min(_LINEAR_LEARNING_RATE_MOST, 1.0 / math.sqrt(len(self.columns)))

    def logits(self, features: Mapping[str, Any], width: int, mode: str) -> Tensor:
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
    """

    hidden_units: Sequence[int]
    columns: Sequence[Any]
    optimizer: Any = "Adagrad"
    activation_fn: Callable[[Any], Any] = relu
    dropout: float | None = None
    scope: str = "dnn"

    @property
    def learning_rate(self) -> float:
        return _DNN_LEARNING_RATE

    def logits(self, features: Mapping[str, Any], width: int, mode: str) -> Tensor:
        with variable_scope("input_from_feature_columns"):
            net = input_layer(features, self.columns)
        for number, units in enumerate(self.hidden_units):
            with variable_scope(f"hiddenlayer_{number}") as scope:
                net = _dense(units, self.activation_fn, scope)(net)
                if self.dropout is not None and mode == ModeKeys.TRAIN:
                    net = layers.dropout(net, self.dropout, training=True)
        with variable_scope("logits") as scope:
            return _dense(width, None, scope)(net)


def LinearClassifier(  # noqa: N802  (TensorFlow's names)
    feature_columns: Sequence[Any],
    model_dir: str | None = None,
    n_classes: int = 2,
    weight_column: str | None = None,
    label_vocabulary: Sequence[str] | None = None,
    optimizer: Any = "Ftrl",
    config: RunConfig | None = None,
    warm_start_from: Any = None,
    loss_reduction: str = Reduction.SUM,
    sparse_combiner: str = "sum",
) -> Estimator:
    """A linear classifier."""
    return _estimator(
        ClassificationHead(n_classes, label_vocabulary),
        [Linear(feature_columns, optimizer, sparse_combiner)],
        (model_dir, config, warm_start_from),
        weight_column,
        loss_reduction,
    )


def LinearRegressor(  # noqa: N802
    feature_columns: Sequence[Any],
    model_dir: str | None = None,
    label_dimension: int = 1,
    weight_column: str | None = None,
    optimizer: Any = "Ftrl",
    config: RunConfig | None = None,
    warm_start_from: Any = None,
    loss_reduction: str = Reduction.SUM,
    sparse_combiner: str = "sum",
) -> Estimator:
    """Linear regression."""
    return _estimator(
        RegressionHead(label_dimension),
        [Linear(feature_columns, optimizer, sparse_combiner)],
        (model_dir, config, warm_start_from),
        weight_column,
        loss_reduction,
    )


def DNNClassifier(  # noqa: N802
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    model_dir: str | None = None,
    n_classes: int = 2,
    weight_column: str | None = None,
    label_vocabulary: Sequence[str] | None = None,
    optimizer: Any = "Adagrad",
    activation_fn: Callable[[Any], Any] = relu,
    dropout: float | None = None,
    config: RunConfig | None = None,
    warm_start_from: Any = None,
    loss_reduction: str = Reduction.SUM,
) -> Estimator:
    """A net of dense layers that classifies."""
    return _estimator(
        ClassificationHead(n_classes, label_vocabulary),
        [Deep(hidden_units, feature_columns, optimizer, activation_fn, dropout)],
        (model_dir, config, warm_start_from),
        weight_column,
        loss_reduction,
    )


def DNNRegressor(  # noqa: N802
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    model_dir: str | None = None,
    label_dimension: int = 1,
    weight_column: str | None = None,
    optimizer: Any = "Adagrad",
    activation_fn: Callable[[Any], Any] = relu,
    dropout: float | None = None,
    config: RunConfig | None = None,
    warm_start_from: Any = None,
    loss_reduction: str = Reduction.SUM,
) -> Estimator:
    """A net of dense layers for regression."""
    return _estimator(
        RegressionHead(label_dimension),
        [Deep(hidden_units, feature_columns, optimizer, activation_fn, dropout)],
        (model_dir, config, warm_start_from),
        weight_column,
        loss_reduction,
    )


def DNNLinearCombinedClassifier(  # noqa: N802
    model_dir: str | None = None,
    linear_feature_columns: Sequence[Any] | None = None,
    linear_optimizer: Any = "Ftrl",
    dnn_feature_columns: Sequence[Any] | None = None,
    dnn_optimizer: Any = "Adagrad",
    dnn_hidden_units: Sequence[int] | None = None,
    dnn_activation_fn: Callable[[Any], Any] = relu,
    dnn_dropout: float | None = None,
    n_classes: int = 2,
    weight_column: str | None = None,
    label_vocabulary: Sequence[str] | None = None,
    config: RunConfig | None = None,
    warm_start_from: Any = None,
    loss_reduction: str = Reduction.SUM,
    linear_sparse_combiner: str = "sum",
) -> Estimator:
    """A classifier both wide and deep."""
    return _estimator(
        ClassificationHead(n_classes, label_vocabulary),
        _wide_and_deep(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
        ),
        (model_dir, config, warm_start_from),
        weight_column,
        loss_reduction,
    )


def DNNLinearCombinedRegressor(  # noqa: N802
    model_dir: str | None = None,
    linear_feature_columns: Sequence[Any] | None = None,
    linear_optimizer: Any = "Ftrl",
    dnn_feature_columns: Sequence[Any] | None = None,
    dnn_optimizer: Any = "Adagrad",
    dnn_hidden_units: Sequence[int] | None = None,
    dnn_activation_fn: Callable[[Any], Any] = relu,
    dnn_dropout: float | None = None,
    label_dimension: int = 1,
    weight_column: str | None = None,
    config: RunConfig | None = None,
    warm_start_from: Any = None,
    loss_reduction: str = Reduction.SUM,
    linear_sparse_combiner: str = "sum",
) -> Estimator:
    """Regression both wide and deep."""
    return _estimator(
        RegressionHead(label_dimension),
        _wide_and_deep(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
        ),
        (model_dir, config, warm_start_from),
        weight_column,
        loss_reduction,
    )


def _wide_and_deep(
    linear_columns: Sequence[Any] | None,
    linear_optimizer: Any,
    combiner: str,
    dnn_columns: Sequence[Any] | None,
    dnn_optimizer: Any,
    hidden_units: Sequence[int] | None,
    activation_fn: Callable[[Any], Any],
    dropout: float | None,
) -> list[Linear | Deep]:
    parts: list[Linear | Deep] = []
    if dnn_columns:
        if not hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        parts.append(Deep(hidden_units, dnn_columns, dnn_optimizer, activation_fn, dropout))
    if linear_columns:
        parts.append(Linear(linear_columns, linear_optimizer, combiner))
    return parts


def _estimator(
    head: Head,
    parts: Sequence[Linear | Deep],
    place: tuple[str | None, RunConfig | None, Any],
    weight_column: str | None,
    loss_reduction: str,
) -> Estimator:
    if not parts or not all(part.columns for part in parts):
        raise ValueError("A model needs feature_columns")
    optimizers = [_optimizer(part.optimizer, part.learning_rate) for part in parts]
    Reduction.validate(loss_reduction)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if not isinstance(features, Mapping):
            raise ValueError(f"features should be a dictionary of Tensors. Given: {features!r}")
        logits = []
        for part in parts:
            with variable_scope(part.scope):
                logits.append(part.logits(features, head.logits_width, mode))

        def train(loss: Any) -> Any:
            steps = [
                made().minimize(loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{part.scope}/"))
                for part, made in zip(parts, optimizers, strict=True)
            ]
            with control_dependencies(steps):
                return group(assign_add(get_global_step(), 1))

        whole = logits[0] if len(logits) == 1 else add_n(logits)
        return spec_of(head, features, labels, mode, whole, train, weight_column, loss_reduction)

    model_dir, config, warm_start_from = place
    return Estimator(model_fn, model_dir, config, warm_start_from=warm_start_from)


def _optimizer(given: Any, learning_rate: float) -> Callable[[], Optimizer]:
    """The optimizer of a part, or a function that makes it.

    Raises:
      ValueError: it is neither an optimizer, a function, nor a name.
    """
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
