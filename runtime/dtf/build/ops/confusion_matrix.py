"""`tf.confusion_matrix`: how often each class was taken for each.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/confusion_matrix
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, name_scope
from dtf.build.ops.array import identity, rank, squeeze
from dtf.build.ops.check_ops import assert_less, assert_non_negative
from dtf.build.ops.control_flow import cond
from dtf.build.ops.filling import ones_like
from dtf.build.ops.gathering import scatter_nd
from dtf.build.ops.joining import stack
from dtf.build.ops.math import cast, equal, maximum
from dtf.build.ops.reductions import reduce_max
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["confusion_matrix", "remove_squeezable_dimensions"]


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: Any = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """A square matrix: row is the label, column the prediction, the value how often both met.

    Args:
      labels, predictions: vectors of class numbers from 0.
      num_classes: one more than the largest class by default.
      weights: of each example; 1 by default.
    """
    with name_scope(name, "confusion_matrix", [labels, predictions, num_classes, weights]):
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        labels, predictions = cast(labels, dtypes.int64), cast(predictions, dtypes.int64)
        labels = _checked("labels", labels, num_classes)
        predictions = _checked("predictions", predictions, num_classes)
        largest = None
        if num_classes is None:
            known = [constant_value(each.op.inputs[0]) for each in (labels, predictions)]
            if all(each is not None and each.size for each in known):
                largest = max(int(each.max()) for each in known if each is not None) + 1
            num_classes = maximum(reduce_max(predictions), reduce_max(labels)) + 1
        count = cast(num_classes, dtypes.int64)
        dtype = dtypes.as_dtype(dtype)
        values = cast(ones_like(labels) if weights is None else weights, dtype)
        matrix = scatter_nd(stack([labels, predictions], axis=1), values, stack([count, count]))
        if largest is not None:
            matrix.set_shape([largest, largest])
        return matrix


def remove_squeezable_dimensions(
    labels: TensorLike, predictions: TensorLike, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Labels and predictions, without a last dimension of 1 that one of them has too many.

    Args:
      labels, predictions: tensors of any shapes.
      expected_rank_diff: how many dimensions more the predictions shall have.
      name: the name scope.
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        if labels.shape.ndims is not None and predictions.shape.ndims is not None:
            difference = predictions.shape.ndims - labels.shape.ndims
            if difference == expected_rank_diff + 1 and predictions.shape[-1].is_compatible_with(1):
                predictions = squeeze(predictions, [-1])
            elif difference == expected_rank_diff - 1 and labels.shape[-1].is_compatible_with(1):
                labels = squeeze(labels, [-1])
            return labels, predictions
        found = rank(predictions) - rank(labels)
        return (
            _squeezed_if(equal(found, expected_rank_diff - 1), labels),
            _squeezed_if(equal(found, expected_rank_diff + 1), predictions),
        )


def _squeezed_if(condition: Tensor, tensor: Tensor) -> Tensor:
    if tensor.shape.ndims is not None and not tensor.shape[-1].is_compatible_with(1):
        return tensor
    return cond(condition, lambda: squeeze(tensor, [-1]), lambda: identity(tensor))


def _checked(word: str, classes: Any, num_classes: Any) -> Tensor:
    """The class numbers, which are in [0, num_classes)."""
    checks = [assert_non_negative(classes, message=f"`{word}` contains negative values")]
    if num_classes is not None:
        bound = cast(num_classes, classes.dtype)
        checks.append(assert_less(classes, bound, message=f"`{word}` out of bound"))
    with control_dependencies([each for each in checks if each is not None]):
        return identity(classes)
