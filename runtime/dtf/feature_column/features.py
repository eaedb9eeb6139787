"""The features of a batch, as columns look at them.

A feature is a tensor [batch], or [batch, ...], or a SparseTensor [batch, ...].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import array as array_ops
from dtf.build.ops.gathering import gather, gather_nd
from dtf.build.ops.math import cast, not_equal
from dtf.build.ops.searching import where
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike


@dataclass(frozen=True)
class Entries:
    """The entries of the examples of a batch, in one list.

    Attributes:
      rows: int64 [entries], the example of each.
      values: [entries].
      count: int64 scalar, the number of examples.
      weights: float32 [entries]; None for 1 each.
    """

    rows: Tensor
    values: Tensor
    count: Tensor
    weights: Tensor | None = None

    def with_values(self, values: Tensor) -> Entries:
        """The same entries with other values."""
        return replace(self, values=values)

    def where(self, condition: Tensor) -> Entries:
        """The entries selected by a bool [entries]."""
        kept = array_ops.reshape(where(condition), [-1])
        weights = None if self.weights is None else gather(self.weights, kept)
        return Entries(gather(self.rows, kept), gather(self.values, kept), self.count, weights)


def feature_of(features: Mapping[str, Any], key: str) -> Any:
    """One feature, with a dimension for its values.

    Raises:
      ValueError: the name is unknown.
    """
    if key not in features:
        raise ValueError(f"Feature {key} is not in features dictionary. It has {sorted(features)}")
    feature = features[key]
    if isinstance(feature, SparseTensor):
        return feature
    tensor = convert_to_tensor(feature)
    return array_ops.expand_dims(tensor, -1) if tensor.shape.ndims == 1 else tensor


def entries_of(feature: Any) -> Entries:
    """The entries of a feature; in a dense one, "" and -1 mean no entry."""
    if isinstance(feature, SparseTensor):
        return Entries(feature.indices[:, 0], feature.values, feature.dense_shape[0])
    nothing = "" if feature.dtype == dtypes.string else -1
    indices = where(not_equal(feature, cast_like(nothing, feature)))
    return Entries(indices[:, 0], gather_nd(feature, indices), array_ops.shape(feature, out_type=dtypes.int64)[0])


def cast_like(value: TensorLike, tensor: Tensor) -> Tensor:
    """A constant of the dtype of a tensor."""
    return convert_to_tensor(value, tensor.dtype) if tensor.dtype == dtypes.string else cast(value, tensor.dtype)
