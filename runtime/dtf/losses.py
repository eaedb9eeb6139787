"""The namespace tf.losses: losses with weights and a reduction, collected in the graph's LOSSES.

Every loss function takes `weights`: a number, or a tensor that broadcasts to the elementwise losses (each dimension is
equal or 1). It adds its result to `loss_collection` and reduces as `Reduction` says.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/losses
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf import late as _late
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import add_to_collection, control_dependencies, get_collection, name_scope
from dtf.build.graph import GraphKeys
from dtf.build.ops import activations as activations_ops
from dtf.build.ops import array as array_ops
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.ops import cross_entropy as cross_entropy_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import reductions, searching
from dtf.build.shape_rules import broadcast_shape
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


class Reduction:
    """How the weighted losses of the elements become one.

    NONE: not at all. SUM: their sum. MEAN: the sum over the sum of weights. SUM_OVER_BATCH_SIZE: the sum over their
    number. SUM_BY_NONZERO_WEIGHTS (the default), SUM_OVER_NONZERO_WEIGHTS: the sum over the number of weights that are
    not zero. A divisor of zero gives zero.
    """

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All values."""
        return (
            cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )  # fmt: skip

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for an unknown value."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The reduced losses * weights, in the dtype of `losses`."""
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        exact = math_ops.cast(losses, dtypes.float32)
        weights = math_ops.cast(weights, exact.dtype)
        weights = check_weights(weights, exact)
        weighted = math_ops.multiply(exact, weights)
        if reduction == Reduction.NONE:
            loss = weighted
        else:
            loss = reductions.reduce_sum(weighted)
            if reduction == Reduction.MEAN:
                loss = _ratio(loss, reductions.reduce_sum(filling_ops.ones_like(exact) * weights))
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                loss = _ratio(loss, _count_present(exact, weights))
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                loss = _ratio(loss, math_ops.cast(array_ops.size(exact, name="num_elements"), exact.dtype))
        loss = math_ops.cast(loss, losses.dtype)
        add_loss(loss, loss_collection)
        return loss


def absolute_difference(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """|predictions - labels|."""
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope_name:
        predictions, labels = _as_floats(predictions, labels)
        losses = math_ops.abs(predictions - labels)
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """1 - sum(labels * predictions) along `axis`; both must be of unit length already."""
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope_name:
        predictions, labels = _as_floats(predictions, labels)
        losses = 1 - reductions.reduce_sum(predictions * labels, axis=axis, keepdims=True)
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def hinge_loss(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """max(0, 1 - (2 * labels - 1) * logits), for labels 0 and 1."""
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as scope_name:
        logits, labels = _as_floats(logits, labels)
        losses = activations_ops.relu(1 - (2 * labels - 1) * logits)
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def huber_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """error ** 2 / 2 up to an error of `delta`, and straight from there."""
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as scope_name:
        predictions, labels = _as_floats(predictions, labels)
        error = math_ops.abs(predictions - labels)
        quadratic = math_ops.minimum(error, constant(delta, dtype=error.dtype))
        losses = 0.5 * quadratic * quadratic + delta * (error - quadratic)
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """-labels * log(predictions + epsilon) - (1 - labels) * log(1 - predictions + epsilon)."""
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as scope_name:
        predictions, labels = _as_floats(predictions, labels)
        losses = -labels * math_ops.log(predictions + epsilon) - (1 - labels) * math_ops.log(1 - predictions + epsilon)
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """(predictions - labels) ** 2.

    Args:
      labels: of the shape of `predictions`.
      predictions: a tensor of numbers.
      weights: a number or tensor that broadcasts to the shape of `predictions`; 0 leaves an element
          out.
      scope: a name scope.
      loss_collection: the collection that the loss is added to.
      reduction: one of tf.losses.Reduction.

    Returns:
      The loss: a scalar, or of the shape of `predictions` with the reduction NONE.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/losses/mean_squared_error
    """
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope_name:
        predictions, labels = _as_floats(predictions, labels)
        losses = math_ops.squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """The mean over pairs of elements of one example of (difference in predictions - difference in labels) ** 2.

    predictions and labels are [examples, ...]; weights are [examples, 1, ...], or one number.
    """
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        weights = math_ops.cast(weights, dtypes.float32)
        predictions, labels = _as_floats(predictions, labels)
        weights = check_weights(weights, labels)
        errors = predictions - labels
        axes = _axes_of_an_example(errors)
        square = reductions.reduce_sum(math_ops.square(errors), axis=axes, keepdims=True)
        total = reductions.reduce_sum(errors, axis=axes, keepdims=True)
        count = _count_present(errors, weights, per_example=True)
        pairs = math_ops.maximum(count - 1, 0)
        mean_of_squares = 2.0 * math_ops.div_no_nan(square, pairs)
        square_of_mean = 2.0 * math_ops.div_no_nan(math_ops.square(total), count * pairs)
        weighted = math_ops.multiply(mean_of_squares - square_of_mean, weights)
        loss = reductions.reduce_sum(weighted)
        present = reductions.reduce_sum(count)
        result = searching.where(math_ops.greater(present, 0), loss, filling_ops.zeros_like(loss), name="value")
        add_loss(result, loss_collection)
        return result


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The sigmoid cross entropy; label_smoothing moves labels towards 1/2."""
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as scope_name:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(multi_class_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The softmax cross entropy of one-hot labels; label_smoothing spreads a part of them over all classes.

    Args:
      onehot_labels: [batch, classes].
      logits: [batch, classes] of floating-point numbers.
      weights: a scalar or [batch].
      label_smoothing: which part of the labels is spread over all classes.
      scope: a name scope.
      loss_collection: the collection that the loss is added to.
      reduction: one of tf.losses.Reduction.

    Returns:
      The loss: a scalar, or [batch] with the reduction NONE.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/losses/softmax_cross_entropy
    """
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope_name:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(onehot_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = math_ops.cast(array_ops.shape(labels)[-1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
        losses = cross_entropy_ops.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The softmax cross entropy of class numbers; labels may have a last dimension of 1 more.

    Args:
      labels: integers of the shape of `logits` without the last dimension, or with a last dimension of 1.
      logits: [..., classes] of floating-point numbers.
      weights: a number or tensor that broadcasts to the shape of `labels`.
      scope: a name scope.
      loss_collection: the collection that the loss is added to.
      reduction: one of tf.losses.Reduction.

    Returns:
      The loss: a scalar, or of the shape of `labels` with the reduction NONE.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/losses/sparse_softmax_cross_entropy
    """
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope_name:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        weights = convert_to_tensor(weights)
        labels = without_last_one(labels, logits, 0)
        weights = without_last_one(weights, labels, 1)
        losses = cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope_name, loss_collection, reduction)


# The collections


def add_loss(loss: Tensor, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to the collection, if that is not None."""
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Tensor]:
    """The losses of the collection, of those whose names `scope` matches."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """The losses that regularizers of variables have added."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """Their sum."""
    losses = get_regularization_losses(scope)
    return math_ops.add_n(losses, name=name) if losses else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses, including regularization losses.

    Args:
      add_regularization_losses: include regularization losses.
      name: the name of the sum.
      scope: a regular expression that the start of a loss's name matches.

    Returns:
      A scalar.

    Raises:
      ValueError: the list of losses is empty.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/losses/get_total_loss
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return math_ops.add_n(losses, name=name)


# Weights


def _as_floats(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Both arguments (predictions and labels, in either order) as float32, with compatible shapes."""
    if first is None or second is None:
        raise ValueError(f"{'predictions' if first is None else 'labels'} must not be None.")
    first, second = math_ops.cast(first, dtypes.float32), math_ops.cast(second, dtypes.float32)
    first.shape.assert_is_compatible_with(second.shape)
    return first, second


def check_weights(weights: Tensor, losses: Tensor) -> Tensor:
    """The weights, which broadcast to the losses, never the other way round.

    Raises:
      ValueError: they are known not to. Unknown dimensions are checked in the step:
          InvalidArgumentError.
    """
    if weights.shape.ndims == 0:
        return weights
    if weights.shape.ndims is None or losses.shape.ndims is None:
        return _checked_in_the_step(weights, losses)
    fits = weights.shape.ndims == losses.shape.ndims
    if fits:
        try:
            fits = broadcast_shape(weights.shape, losses.shape).is_compatible_with(losses.shape)
        except ValueError:
            fits = False
    if not fits:
        raise ValueError(
            f"weights can not be broadcast to values. values.rank={losses.shape.ndims}. weights.rank="
            f"{weights.shape.ndims}. values.shape={losses.shape}. weights.shape={weights.shape}."
        )
    sizes = zip(weights.shape.as_list(), losses.shape.as_list(), strict=True)
    if all(size == 1 or (size is not None and size == wanted) for size, wanted in sizes):
        return weights
    return _checked_in_the_step(weights, losses)


def _checked_in_the_step(weights: Tensor, losses: Tensor) -> Tensor:
    with name_scope(None, "assert_broadcastable", [weights, losses]):
        shape, wanted = array_ops.shape(weights), array_ops.shape(losses)

        def fits() -> Tensor:
            return reductions.reduce_all(math_ops.logical_or(math_ops.equal(shape, wanted), math_ops.equal(shape, 1)))

        rank, wanted_rank = array_ops.rank(weights), array_ops.rank(losses)
        same_rank = math_ops.equal(rank, wanted_rank)
        broadcasts = math_ops.logical_or(
            math_ops.equal(rank, 0), control_flow_ops.cond(same_rank, fits, lambda: constant(False))
        )
        told = ["weights can not be broadcast to values: weights.shape=", shape, "values.shape=", wanted]
        with control_dependencies([control_flow_ops.Assert(broadcasts, told)]):
            return array_ops.identity(weights)


def without_last_one(tensor: Tensor, rank_of: Tensor, more: int, expand: bool = False) -> Tensor:
    """`tensor` without its last dimension where it has `more` dimensions more than `rank_of`: seen in the step, where
    a rank is not known. With `expand` it gets one where it has `more` fewer.
    """
    ranks = tensor.shape.ndims, rank_of.shape.ndims
    may_squeeze = ranks[0] is None or ranks[0] > 0 and tensor.shape[-1:].is_compatible_with([1])
    if ranks[0] is not None and ranks[1] is not None:
        if ranks[0] - ranks[1] == more and may_squeeze:
            return array_ops.squeeze(tensor, [-1])
        return array_ops.expand_dims(tensor, -1) if expand and 0 < ranks[0] == ranks[1] - more else tensor
    if ranks[0] == 0:
        return tensor
    difference = array_ops.rank(tensor) - array_ops.rank(rank_of)
    made = tensor
    if expand:
        small = math_ops.logical_and(math_ops.equal(difference, -more), math_ops.greater(array_ops.rank(tensor), 0))
        made = control_flow_ops.cond(small, lambda: array_ops.expand_dims(tensor, -1), lambda: tensor)
    if not may_squeeze:
        return made
    return control_flow_ops.cond(
        math_ops.equal(difference, more), lambda: array_ops.squeeze(tensor, [-1]), lambda: made
    )


def _count_present(losses: Tensor, weights: Tensor, per_example: bool = False) -> Tensor:
    """The number of elements of `losses` whose weight is not zero."""
    with name_scope(None, "num_present", [losses, weights]):
        present = math_ops.cast(math_ops.not_equal(weights, 0), losses.dtype) * filling_ops.ones_like(losses)
        if per_example:
            return reductions.reduce_sum(present, axis=_axes_of_an_example(losses), keepdims=True)
        return reductions.reduce_sum(present)


def _axes_of_an_example(batch: Tensor) -> Any:
    """All axes but the first: a list, or a tensor where only the step knows the rank."""
    rank = batch.shape.ndims
    return math_ops.range(1, array_ops.rank(batch)) if rank is None else list(range(1, rank))


def _ratio(loss: Tensor, divisor: Tensor) -> Tensor:
    return math_ops.div_no_nan(loss, divisor, name="value")

__getattr__ = _late.refusals(__name__)
