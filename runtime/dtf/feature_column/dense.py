"""Dense columns: so many numbers for each example.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.initializers import truncated_normal_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops.embedding import embedding_lookup
from dtf.build.ops.math import cast, maximum, sqrt
from dtf.build.ops.parsing import FixedLenFeature
from dtf.build.ops.segment import unsorted_segment_sum
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable
from dtf.feature_column.categorical import CategoricalColumn
from dtf.feature_column.features import Entries, feature_of
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike


class DenseColumn:
    """Base of the kinds.

    Attributes:
      name: of the column, and of its variables' scope.
      width: how many numbers it gives for an example.
      parse_example_spec: how its features are read from an Example.
      classes: as how many classes of an example a linear model counts them; 1 for plain numbers.
    """

    name: str
    width: int
    parse_example_spec: dict[str, Any]
    classes = 1

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        """float32 [batch, width]. Variables are made in the scope in which it is called."""
        raise NotImplementedError("a DenseColumn must have the method values")


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> DenseColumn:
    """Numbers as they are, or as `normalizer_fn` gives them.

    Args:
      shape: of one example.
      default_value: for Examples without the feature.

    Returns:
      A dense column.

    Raises:
      ValueError: the dtype is not of numbers, or the shape is not positive.
      TypeError: `normalizer_fn` is no function.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column/numeric_column
    """
    sizes = (int(shape),) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if any(size <= 0 for size in sizes):
        raise ValueError(f"shape dimensions must be greater than 0, shape: {sizes}, key: {key}")
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype.name}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn!r}")
    return _Numeric(key, sizes, default_value, dtype, normalizer_fn)


def bucketized_column(source_column: DenseColumn, boundaries: Sequence[float]) -> DenseColumn:
    """1 for the range in which a number is, 0 for the others: (..., b0), [b0, b1), ..., [bn, ...).

    Raises:
      ValueError: the source is no numeric column, or the boundaries do not ascend.
    """
    if not isinstance(source_column, _Numeric) or len(source_column.shape) > 1:
        raise ValueError(f"source_column must be a numeric column with one dimension. Given: {source_column}")
    edges = tuple(float(boundary) for boundary in boundaries)
    if not edges or any(low >= high for low, high in zip(edges, edges[1:], strict=False)):
        raise ValueError(f"boundaries must be a sorted list of different numbers. Given: {boundaries}")
    return _Bucketized(source_column, edges)


def indicator_column(categorical_column: CategoricalColumn) -> DenseColumn:
    """How often an example has each class."""
    return _Indicator(_checked(categorical_column))


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    trainable: bool = True,
) -> DenseColumn:
    """A vector for each class, and for an example the mean of those that it has, or 0 if it has none.

    Args:
      dimension: the width of the vectors.
      combiner: "mean", "sum", or "sqrtn", the sum divided by the root of how many there are.
      initializer: of the vectors; truncated normal values with a deviation of 1 / sqrt(dimension) by default.

    Returns:
      A dense column.

    Raises:
      ValueError: the dimension is not positive, or the combiner or initializer is none.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column/embedding_column
    """
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    check_combiner(combiner)
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. Given: {initializer!r}")
    return _Embedding(_checked(categorical_column), dimension, combiner, initializer, trainable)


@dataclass(frozen=True)
class _Numeric(DenseColumn):
    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: Any
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.key

    @property
    def width(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    @property
    def parse_example_spec(self) -> dict[str, Any]:  # type: ignore[override]
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        feature = feature_of(features, self.key)
        if isinstance(feature, SparseTensor):
            raise ValueError(f"The feature of a numeric column must be a Tensor, not sparse: {self.key}")
        if self.normalizer_fn is not None:
            feature = self.normalizer_fn(feature)
        return array_ops.reshape(cast(feature, dtypes.float32), [-1, self.width])


@dataclass(frozen=True)
class _Bucketized(DenseColumn):
    source: _Numeric
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.source.name}_bucketized"

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.source.width * (len(self.boundaries) + 1)

    @property
    def classes(self) -> int:  # type: ignore[override]
        return self.source.width

    @property
    def parse_example_spec(self) -> dict[str, Any]:  # type: ignore[override]
        return self.source.parse_example_spec

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        buckets = apply_op(
            "Bucketize", None, input=self.source.values(features, trainable), boundaries=list(self.boundaries)
        )
        return array_ops.reshape(array_ops.one_hot(buckets, len(self.boundaries) + 1), [-1, self.width])


@dataclass(frozen=True)
class _Indicator(DenseColumn):
    categorical: CategoricalColumn

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.categorical.name}_indicator"

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.categorical.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:  # type: ignore[override]
        return self.categorical.parse_example_spec

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        ids = self.categorical.ids(features)
        return combined(array_ops.one_hot(ids.values, self.width), ids, "sum", self.width)


@dataclass(frozen=True)
class _Embedding(DenseColumn):
    categorical: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    trainable: bool

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.categorical.name}_embedding"

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.dimension

    @property
    def parse_example_spec(self) -> dict[str, Any]:  # type: ignore[override]
        return self.categorical.parse_example_spec

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        table = get_variable(
            "embedding_weights",
            [self.categorical.num_buckets, self.dimension],
            dtypes.float32,
            self.initializer or truncated_normal_initializer(0.0, 1 / math.sqrt(self.dimension)),
            trainable=trainable and self.trainable,
        )
        ids = self.categorical.ids(features)
        return combined(embedding_lookup(table, ids.values), ids, self.combiner, self.dimension)


def check_combiner(combiner: str) -> None:
    """Raises ValueError unless it is one."""
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of mean, sqrtn, sum; it is {combiner!r}")


def combined(vectors: Tensor, ids: Entries, combiner: str, width: int) -> Tensor:
    """[batch, width]: the vectors [entries, width] of each example together; 0 for examples without any."""
    total = unsorted_segment_sum(vectors, ids.rows, ids.count)
    if combiner != "sum":
        ones = array_ops.ones_like(ids.rows, dtype=dtypes.float32)
        number = maximum(unsorted_segment_sum(ones, ids.rows, ids.count), 1.0)
        total = total / array_ops.expand_dims(number if combiner == "mean" else sqrt(number), -1)
    total.set_shape([None, width])
    return total


def _checked(column: Any) -> CategoricalColumn:
    if not isinstance(column, CategoricalColumn):
        raise ValueError(f"Unsupported input type. Input must be a CategoricalColumn. Given: {column!r}")
    return column
