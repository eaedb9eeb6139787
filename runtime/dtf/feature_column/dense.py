"""Dense columns: so many numbers for each example.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.initializers import truncated_normal_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops.embedding import embedding_lookup
from dtf.build.ops.math import cast, greater, maximum, sqrt
from dtf.build.ops.parsing import FixedLenFeature
from dtf.build.ops.searching import where
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

    @property
    def scope(self) -> str:
        """The name of the scope of its variables."""
        return self.name

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        """float32 [batch, width]. Variables are made in the caller's scope."""
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
      TypeError: `normalizer_fn` is not a function.

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
    """1 for the range that contains a number, 0 for the others: (..., b0), [b0, b1), ..., [bn, ...).

    Raises:
      ValueError: the source is not a numeric column, or the boundaries do not ascend.
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
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> DenseColumn:
    """A vector for each class; an example gets the mean of its classes' vectors, or 0 without a class.

    Args:
      categorical_column: the classes.
      dimension: the width of the vectors.
      combiner: "mean", "sum", or "sqrtn", the sum divided by the root of how many there are.
      initializer: of the vectors; truncated normal values with a deviation of 1 / sqrt(dimension) by default.
      ckpt_to_load_from: a checkpoint, or its folder, that the vectors are read from.
      tensor_name_in_ckpt: the name of the vectors there.
      max_norm: the length that longer vectors are cut to.
      trainable: whether the vectors are trainable.
      use_safe_embedding_lookup: has no effect: examples without a class are always allowed.

    Returns:
      A dense column.

    Raises:
      ValueError: the dimension is not positive, the combiner or initializer is none, or only one of
        `ckpt_to_load_from` and `tensor_name_in_ckpt` is given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column/embedding_column
    """
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    check_combiner(combiner)
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. Given: {initializer!r}")
    source = _checkpoint(ckpt_to_load_from, tensor_name_in_ckpt)
    return _Embedding(_checked(categorical_column), dimension, combiner, initializer, trainable, source, max_norm)


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> list[DenseColumn]:
    """Embedding columns of one table of vectors, one for each categorical column.

    Args:
      shared_embedding_collection_name: of the scope of the table; by default derived from the columns' names.
      dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable,
        use_safe_embedding_lookup: as for `embedding_column`.

    Raises:
      ValueError: the columns have different numbers of classes.
    """
    sizes = {_checked(column).num_buckets for column in categorical_columns}
    if len(sizes) > 1:
        raise ValueError(
            "To use shared_embedding_column, all categorical_columns must have the same number of buckets. "
            f"Given: {sorted(sizes)}"
        )
    name = shared_embedding_collection_name
    if name is None:
        name = "_".join(sorted(column.name for column in categorical_columns)) + "_shared_embedding"
    embedding_column(categorical_columns[0], dimension, combiner, initializer)
    source = _checkpoint(ckpt_to_load_from, tensor_name_in_ckpt)
    return [
        _Shared(column, dimension, combiner, initializer, trainable, source, max_norm, name)
        for column in categorical_columns
    ]


def _checkpoint(path: str | None, name: str | None) -> tuple[str, str] | None:
    if (path is None) != (name is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    return None if path is None or name is None else (path, name)


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
        one_hot = filling_ops.one_hot(self._buckets(features), len(self.boundaries) + 1)
        return array_ops.reshape(one_hot, [-1, self.width])

    def classes_of(self, features: Mapping[str, Any]) -> Tensor:
        """int64 [batch, numbers of the source]: the range of each number; each number has its own ranges."""
        size = len(self.boundaries) + 1
        offsets = convert_to_tensor([place * size for place in range(self.source.width)], dtypes.int64)
        return cast(self._buckets(features), dtypes.int64) + offsets

    def _buckets(self, features: Mapping[str, Any]) -> Tensor:
        return apply_op("Bucketize", None, input=self.source.values(features, True), boundaries=list(self.boundaries))


class CategoryColumn(DenseColumn):
    """A dense column of the classes of a categorical column: an indicator or an embedding."""

    categorical: CategoricalColumn

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        return self.vectors_of(self.categorical.ids(features), trainable)

    def vectors_of(self, ids: Entries, trainable: bool, collections: Iterable[str] | None = None) -> Tensor:
        """float32 [ids.count, width]; variables also go to `collections`."""
        raise NotImplementedError("a CategoryColumn must have the method vectors_of")


@dataclass(frozen=True)
class _Indicator(CategoryColumn):
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

    def vectors_of(self, ids: Entries, trainable: bool, collections: Iterable[str] | None = None) -> Tensor:
        return combined(filling_ops.one_hot(ids.values, self.width), ids, "sum", self.width)


@dataclass(frozen=True)
class _Embedding(CategoryColumn):
    categorical: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    trainable: bool
    checkpoint: tuple[str, str] | None
    max_norm: float | None

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.categorical.name}_embedding"

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.dimension

    @property
    def parse_example_spec(self) -> dict[str, Any]:  # type: ignore[override]
        return self.categorical.parse_example_spec

    def vectors_of(self, ids: Entries, trainable: bool, collections: Iterable[str] | None = None) -> Tensor:
        table = self._table(trainable)
        for each in collections or ():
            get_default_graph().add_to_collection(each, table)
        vectors = embedding_lookup(table, ids.values, max_norm=self.max_norm)
        return combined(vectors, ids, self.combiner, self.dimension)

    def _table(self, trainable: bool) -> Any:
        table = self._made_table(trainable)
        if self.checkpoint is not None:
            from dtf.train.checkpoint_utils import init_from_checkpoint

            path, name = self.checkpoint
            init_from_checkpoint(path, {name: table})
        return table

    def _made_table(self, trainable: bool) -> Any:
        return get_variable(
            "embedding_weights",
            [self.categorical.num_buckets, self.dimension],
            dtypes.float32,
            self.initializer or truncated_normal_initializer(0.0, 1 / math.sqrt(self.dimension)),
            trainable=trainable and self.trainable,
        )


@dataclass(frozen=True)
class _Shared(_Embedding):
    collection: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.categorical.name}_shared_embedding"

    @property
    def scope(self) -> str:
        return self.collection

    def _table(self, trainable: bool) -> Any:
        """The table of the graph; the first column makes it."""
        tables = get_default_graph().get_collection_ref(f"__shared_embedding/{self.collection}")
        if not tables:
            tables.append(super()._table(trainable))
        return tables[0]


def check_combiner(combiner: str) -> None:
    """Raises ValueError unless it is one."""
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of mean, sqrtn, sum; it is {combiner!r}")


def combined(vectors: Tensor, ids: Entries, combiner: str, width: int) -> Tensor:
    """[batch, width]: the vectors [entries, width] of each example together; 0 for examples without any."""
    weights = ids.weights
    if weights is not None:
        vectors = vectors * array_ops.expand_dims(weights, -1)
    total = unsorted_segment_sum(vectors, ids.rows, ids.count)
    if combiner != "sum":
        if weights is None:
            shares = filling_ops.ones_like(ids.rows, dtype=dtypes.float32)
        else:
            shares = weights if combiner == "mean" else weights * weights
        number = unsorted_segment_sum(shares, ids.rows, ids.count)
        number = (
            maximum(number, 1.0)
            if weights is None
            else where(greater(number, 0.0), number, filling_ops.ones_like(number))
        )
        total = total / array_ops.expand_dims(number if combiner == "mean" else sqrt(number), -1)
    total.set_shape([None, width])
    return total


def _checked(column: Any) -> CategoricalColumn:
    if not isinstance(column, CategoricalColumn):
        raise ValueError(f"Unsupported input type. Input must be a CategoricalColumn. Given: {column!r}")
    return column
