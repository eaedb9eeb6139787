"""Serialized Examples and SequenceExamples as columns of arrays.

Owns what the parsing ops share: looking up one feature of all examples, and laying it out as a dense, sparse or ragged
column. Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/parse_example
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from dtf.run.kernels.arguments import invalid
from dtf.run.value_types import NumpyType, Scalar
from dtf.wire import dtypes, limits
from dtf.wire.dtypes import DType, runtime_name
from dtf.wire.pb import example_pb2
from dtf.wire.strings import filled

__all__ = ["Column", "Feature", "dense_column", "parse", "ragged_column", "sparse_column"]

_KIND_OF_TYPE = {dtypes.float32: "float_list", dtypes.int64: "int64_list", dtypes.string: "bytes_list"}
_TYPE_OF_KIND = {kind: dtype.name for dtype, kind in _KIND_OF_TYPE.items()}

Values: TypeAlias = Sequence[bytes | float | int]
"""The list in a Feature."""

Features: TypeAlias = Mapping[str, example_pb2.Feature]
"""The features of one example by their keys."""

Column: TypeAlias = list[Values | None]
"""The values of one feature in each example; None where it is absent."""

_Message = TypeVar("_Message", example_pb2.Example, example_pb2.SequenceExample)


@dataclass(frozen=True)
class Feature:
    """What is asked of one feature. names: what errors call each example."""

    key: str
    dtype: DType
    names: Sequence[str]

    def of(self, features: Sequence[Features]) -> Column:
        """Its values in each of these maps from keys to Features."""
        return [self.values(each, row) for row, each in enumerate(features)]

    def values(self, features: Features, row: int) -> Values | None:
        """Its values in one map; None when it is absent or empty of any kind."""
        if self.key not in features:
            return None
        return self.of_one(features[self.key], row)

    def of_one(self, feature: example_pb2.Feature, row: int) -> Values | None:
        """The values of one Feature; an InvalidArgumentError when it is of another kind."""
        kind = feature.WhichOneof("kind")
        if kind is None:
            return None
        if kind != _KIND_OF_TYPE[self.dtype]:
            raise invalid(
                f"{self.where(row)}.  Data types don't match. Data type: {_TYPE_OF_KIND[kind]} but expected type: "
                f"{self.dtype.name}"
            )
        return getattr(feature, kind).value

    def where(self, row: int) -> str:
        """How errors name it in one example."""
        name = self.names[row] if row < len(self.names) else ""
        return f"Name: {name or '<unknown>'}, Key: {self.key}, Index: {row}"

    def array(self, values: Sequence[Scalar]) -> np.ndarray:
        """Values as a vector of its dtype."""
        if self.dtype == dtypes.string:
            out = np.empty(len(values), object)
            out[:] = list(values)
            return out
        return np.array(values, self.dtype.as_numpy_dtype)


def parse(serialized: Sequence[bytes], kind: type[_Message]) -> list[_Message]:
    """The messages; an InvalidArgumentError for what is none."""
    parsed = []
    for data in serialized:
        try:
            parsed.append(kind.FromString(data))
        except Exception:  # protobuf's DecodeError has no public home that all its versions share
            text = data[:64].decode(errors="replace")
            raise invalid(f"Could not parse example input, value: '{text}'") from None
    return parsed


def dense_column(feature: Feature, column: Column, shape: Sequence[int | None], default: np.ndarray) -> np.ndarray:
    """[examples, *shape]. The default stands for what is absent; an empty one makes the feature required.

    A shape whose first dimension is unknown is as long as the longest example, shorter ones padded with the default.
    """
    for row, values in enumerate(column):
        if values is None and not default.size and None not in shape:
            raise invalid(
                f"{feature.where(row).rsplit(',', 1)[0].replace('Key', 'Feature')} (data type: "
                f"{runtime_name(feature.dtype)}) is required but could not be found."
            )
    if shape and shape[0] is None:
        return _padded(feature, column, [size or 0 for size in shape[1:]], default)
    sizes = [size or 0 for size in shape]
    count = int(np.prod(sizes, dtype=np.int64))
    filler = feature.array(default.ravel().tolist())
    flat: list[np.ndarray] = []
    for row, values in enumerate(column):
        array = filler if values is None else feature.array(values)
        if array.size != count:
            raise invalid(
                f"{feature.where(row)}.  Number of {feature.dtype.name} values != expected.  values size: "
                f"{array.size} but output shape: {sizes}"
            )
        flat.append(array)
    joined = np.concatenate(flat) if flat else feature.array([])
    return joined.reshape(len(column), *sizes)


def _padded(feature: Feature, column: Column, inner: list[int], default: np.ndarray) -> np.ndarray:
    step = int(np.prod(inner, dtype=np.int64))
    arrays = [feature.array([] if values is None else values) for values in column]
    for row, array in enumerate(arrays):
        if step and array.size % step:
            raise invalid(
                f"{feature.where(row)}.  Number of {feature.dtype.name} values is not a multiple of stride length. "
                f"Saw {array.size} values but output shape is: {[None, *inner]}"
            )
    longest = max((array.size for array in arrays), default=0)
    filler = default.ravel()[0] if default.size else b"" if feature.dtype == dtypes.string else 0
    limits.check_room((len(arrays), longest), 8, feature.dtype.name)
    out = filled((len(arrays), longest), filler, feature.dtype.as_numpy_dtype)
    for row, array in enumerate(arrays):
        out[row, : array.size] = array
    return out.reshape(len(arrays), longest // step if step else 0, *inner)


def sparse_column(feature: Feature, column: Column) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indices [n, 2], values [n], shape [2]) of a column, one row per example."""
    lengths = [0 if values is None else len(values) for values in column]
    positions = np.concatenate([np.arange(length) for length in lengths]) if lengths else np.zeros(0, np.int64)
    indices = np.stack([np.repeat(np.arange(len(lengths)), lengths), positions], 1).astype(np.int64)
    flat = [value for values in column if values is not None for value in values]
    return indices, feature.array(flat), np.array([len(lengths), max(lengths, default=0)], np.int64)


def ragged_column(feature: Feature, column: Column, splits_dtype: NumpyType) -> tuple[np.ndarray, np.ndarray]:
    """(values [n], row splits [examples + 1]) of a column."""
    lengths = [0 if values is None else len(values) for values in column]
    flat = [value for values in column if values is not None for value in values]
    return feature.array(flat), np.cumsum([0, *lengths]).astype(splits_dtype)
