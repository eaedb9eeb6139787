"""tf.contrib.losses: the losses of tf.losses, which take predictions before labels.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/losses
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf import late
from dtf.contrib.arg_scopes import add_arg_scope

_NAMESPACES = {"metric_learning": "dtf.contrib.metric_learning"}
__getattr__, __dir__ = late.names(globals(), {}, _NAMESPACES)

__all__ = [
    "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_losses", "get_total_loss", "hinge_loss", "log_loss", "mean_pairwise_squared_error",
    "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy",
]  # fmt: skip

add_loss = tf.losses.add_loss
get_losses = tf.losses.get_losses
get_regularization_losses = tf.losses.get_regularization_losses


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Any:
    """The sum of all losses of the graph.

    Args:
      add_regularization_losses: whether the penalties of weights count.
    """
    return tf.losses.get_total_loss(add_regularization_losses, name)


@add_arg_scope
def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: Any = None) -> Any:
    """The mean of losses whose weights are not 0."""
    return tf.losses.compute_weighted_loss(losses, weights, scope)


@add_arg_scope
def absolute_difference(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """The mean absolute difference."""
    return tf.losses.absolute_difference(labels, predictions, weights, scope)


@add_arg_scope
def mean_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """The mean squared difference."""
    return tf.losses.mean_squared_error(labels, predictions, weights, scope)


@add_arg_scope
def mean_pairwise_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """The mean squared difference between the differences of all pairs."""
    return tf.losses.mean_pairwise_squared_error(labels, predictions, weights, scope)


@add_arg_scope
def log_loss(
    predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7, scope: Any = None
) -> Any:
    """The mean cross entropy of probabilities."""
    return tf.losses.log_loss(labels, predictions, weights, epsilon, scope)


@add_arg_scope
def hinge_loss(logits: Any, labels: Any = None, scope: Any = None) -> Any:
    """relu(1 - labels * logits) of each element, for labels 0 and 1."""
    with tf.name_scope(scope, "hinge_loss", [logits, labels]):
        signs = 2.0 * tf.to_float(labels) - 1.0
        return tf.nn.relu(1.0 - signs * logits)


@add_arg_scope
def cosine_distance(
    predictions: Any, labels: Any = None, axis: int | None = None, weights: Any = 1.0, scope: Any = None,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The mean of 1 - the product of unit vectors."""
    return tf.losses.cosine_distance(labels, predictions, axis if axis is not None else dim, weights, scope)


@add_arg_scope
def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Any:
    """The mean cross entropy of several yes-no questions."""
    return tf.losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


@add_arg_scope
def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Any:
    """The mean cross entropy of rows of probabilities."""
    return tf.losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


@add_arg_scope
def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: Any = None) -> Any:
    """The mean cross entropy of classes."""
    return tf.losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)
