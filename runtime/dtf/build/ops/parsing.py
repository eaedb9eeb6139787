"""Parsing of serialized Examples and SequenceExamples: the requested features, and the static shapes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array as array_ops
from dtf.build.shape_rules import shape_rule, unchanged
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "SparseFeature", "VarLenFeature", "decode_json_example",
    "parse_example", "parse_sequence_example", "parse_single_example", "parse_single_sequence_example",
]  # fmt: skip


class VarLenFeature(NamedTuple):
    """A feature of any length; parsed into a SparseTensor."""

    dtype: Any


class FixedLenFeature(NamedTuple):
    """A feature of one shape; parsed into a Tensor. Required unless there is a default."""

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of entries of one shape; parsed into a Tensor, padded with the default."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """Two or more features that are the indices and values of a sparse tensor of a given size."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


def parse_example(
    serialized: TensorLike, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """A vector of serialized Examples as one tensor per feature.

    Args:
      serialized: strings [batch], or a single one (as of `parse_single_example`).
      features: keys -> FixedLenFeature (-> Tensor [batch, *shape]), VarLenFeature, SparseFeature (-> SparseTensor) or
        FixedLenSequenceFeature (-> Tensor [batch, longest, *shape]).
      example_names: names of the examples for error messages.

    Returns:
      A dict from key to Tensor or SparseTensor.

    Raises:
      ValueError: features are missing or of an unknown kind.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/parse_example
    """
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    wanted = _Wanted(features)
    with name_scope(name, "ParseExample", [serialized]):
        serialized = convert_to_tensor(serialized, dtypes.string, name="serialized")
        made = apply_op(
            "ParseExampleV2",
            "ParseExampleV2",
            serialized=serialized,
            names=[] if example_names is None else example_names,
            sparse_keys=_keys(wanted.sparse),
            dense_keys=_keys(wanted.dense),
            ragged_keys=_keys(()),
            dense_defaults=wanted.defaults(),
            num_sparse=len(wanted.sparse),
            sparse_types=list(wanted.sparse.values()),
            ragged_value_types=[],
            ragged_split_types=[],
            dense_shapes=wanted.shapes(),
        )
        sparse = [SparseTensor(*each) for each in zip(*made[:3], strict=True)]
        tensors = dict(zip(wanted.sparse, sparse, strict=True)) | dict(zip(wanted.dense, made[3], strict=True))
        return wanted.assembled(tensors)


def parse_single_example(
    serialized: TensorLike, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """As `parse_example`, of one string: tensors without the dimension of the batch.

    Args:
      serialized: a string scalar.
      features: keys -> FixedLenFeature, VarLenFeature, SparseFeature or FixedLenSequenceFeature.
      name: a name scope.
      example_names: name of the example for error messages.

    Returns:
      A dict from key to Tensor or SparseTensor, without the dimension of the batch.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/parse_single_example
    """
    with name_scope(name, "ParseSingleExample", [serialized]):
        serialized = convert_to_tensor(serialized, dtypes.string, name="serialized")
        serialized.shape.assert_is_compatible_with(TensorShape([]))
        serialized.set_shape([])
        names = "" if example_names is None else example_names
        return parse_example(serialized, features, "ParseSingleExample", names)


def parse_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A vector of serialized SequenceExamples: (context, feature lists, lengths of the dense feature lists)."""
    context, lists = _Wanted(context_features or {}), _Wanted(sequence_features or {}, of_lists=True)
    with name_scope(name, "ParseSequenceExample", [serialized]):
        made = apply_op(
            "ParseSequenceExampleV2",
            "ParseSequenceExample",
            serialized=convert_to_tensor(serialized, dtypes.string),
            debug_name=[] if example_names is None else example_names,
            context_sparse_keys=_keys(context.sparse),
            context_dense_keys=_keys(context.dense),
            context_ragged_keys=_keys(()),
            feature_list_sparse_keys=_keys(lists.sparse),
            feature_list_dense_keys=_keys(lists.dense),
            feature_list_ragged_keys=_keys(()),
            feature_list_dense_missing_assumed_empty=np.array(
                [feature.allow_missing for feature in lists.dense.values()], bool
            ),
            context_dense_defaults=context.defaults(),
            **_sequence_attrs(context, lists),
        )
        parsed = context.assembled(_of_outputs(context, made, "context"))
        return parsed, lists.assembled(_of_outputs(lists, made, "feature_list")), dict(
            zip(lists.dense, made.feature_list_dense_lengths, strict=True)
        )


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One serialized SequenceExample: (context, feature lists)."""
    context, lists = _Wanted(context_features or {}), _Wanted(sequence_features or {}, of_lists=True)
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        made = apply_op(
            "ParseSingleSequenceExample",
            "ParseSingleSequenceExample",
            serialized=convert_to_tensor(serialized, dtypes.string),
            feature_list_dense_missing_assumed_empty=_keys(
                [key for key, feature in lists.dense.items() if feature.allow_missing]
            ),
            context_sparse_keys=[_key(key) for key in context.sparse],
            context_dense_keys=[_key(key) for key in context.dense],
            feature_list_sparse_keys=[_key(key) for key in lists.sparse],
            feature_list_dense_keys=[_key(key) for key in lists.dense],
            context_dense_defaults=context.defaults(),
            debug_name="" if example_name is None else example_name,
            **_sequence_attrs(context, lists),
        )
        return (
            context.assembled(_of_outputs(context, made, "context")),
            lists.assembled(_of_outputs(lists, made, "feature_list")),
        )


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Examples in JSON as serialized Examples."""
    return apply_op("DecodeJSONExample", name, json_examples=json_examples)


def _sequence_attrs(context: _Wanted, lists: _Wanted) -> dict[str, Any]:
    return {
        "Ncontext_sparse": len(context.sparse),
        "context_sparse_types": list(context.sparse.values()),
        "context_dense_shapes": context.shapes(),
        "Nfeature_list_sparse": len(lists.sparse),
        "Nfeature_list_dense": len(lists.dense),
        "feature_list_sparse_types": list(lists.sparse.values()),
        "feature_list_dense_types": [dtypes.as_dtype(feature.dtype) for feature in lists.dense.values()],
        "feature_list_dense_shapes": [TensorShape(feature.shape) for feature in lists.dense.values()],
    }


def _of_outputs(wanted: _Wanted, made: Any, kind: str) -> dict[str, Any]:
    parts = (getattr(made, f"{kind}_sparse_{part}") for part in ("indices", "values", "shapes"))
    sparse = [SparseTensor(*each) for each in zip(*parts, strict=True)]
    dense = getattr(made, f"{kind}_dense_values")
    return dict(zip(wanted.sparse, sparse, strict=True)) | dict(zip(wanted.dense, dense, strict=True))


def _key(text: str) -> Tensor:
    return constant(text, dtypes.string)


def _keys(texts: Any) -> Tensor:
    return constant(np.array([text.encode() for text in texts], object), dtypes.string)


class _Wanted:
    """Features sorted by kind: the sparse ones with their dtypes, the dense ones as they were given."""

    def __init__(self, features: Mapping[str, Any], of_lists: bool = False) -> None:
        self._features = dict(sorted(features.items()))
        self.sparse: dict[str, Any] = {}
        self.dense: dict[str, Any] = {}
        dense_kinds = FixedLenSequenceFeature if of_lists else FixedLenFeature | FixedLenSequenceFeature
        for key, feature in self._features.items():
            if isinstance(feature, VarLenFeature):
                self._add_sparse(key, feature.dtype)
            elif isinstance(feature, SparseFeature) and not of_lists:
                for index_key in _index_keys(feature):
                    self._add_sparse(index_key, dtypes.int64)
                self._add_sparse(feature.value_key, feature.dtype)
            elif isinstance(feature, dense_kinds):
                if feature.dtype is None or feature.shape is None:
                    raise ValueError(f"Missing type or shape for feature {key}.")
                if isinstance(feature, FixedLenSequenceFeature) and not of_lists and not feature.allow_missing:
                    raise ValueError(
                        f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True. Feature: {key}."
                    )
                self.dense[key] = feature
            else:
                raise ValueError(f"Invalid feature {key}:{feature}.")
        self.sparse = dict(sorted(self.sparse.items()))

    def _add_sparse(self, key: str, dtype: Any) -> None:
        if not dtype:
            raise ValueError(f"Missing type for feature {key}.")
        if self.sparse.setdefault(key, dtypes.as_dtype(dtype)) != dtypes.as_dtype(dtype):
            raise ValueError(f"Conflicting type {self.sparse[key]} vs {dtypes.as_dtype(dtype)} for feature {key}.")

    def shapes(self) -> list[TensorShape]:
        """The static shape of each dense feature; of a sequence the first dimension is unknown."""
        return [self._shape(feature) for feature in self.dense.values()]

    @staticmethod
    def _shape(feature: Any) -> TensorShape:
        shape = TensorShape(feature.shape)
        return TensorShape([None]).concatenate(shape) if isinstance(feature, FixedLenSequenceFeature) else shape

    def defaults(self) -> list[Tensor]:
        """The default of each dense feature; an empty tensor for required features."""
        made = []
        for key, feature in self.dense.items():
            dtype, given = dtypes.as_dtype(feature.dtype), feature.default_value
            if isinstance(feature, FixedLenSequenceFeature):
                given = given if given is not None else "" if dtype == dtypes.string else 0
                made.append(constant(given, dtype, name=f"dense_default_{key}"))
            elif given is None:
                made.append(constant([], dtype, name=f"dense_default_{key}"))
            else:
                default = convert_to_tensor(given, dtype, name=f"default_{key}")
                made.append(array_ops.reshape(default, feature.shape))
        return made

    def assembled(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """The requested features, from the parsed parts."""
        return {
            key: _sparse_of_parts(feature, tensors) if isinstance(feature, SparseFeature) else tensors[key]
            for key, feature in self._features.items()
        }


def _index_keys(feature: SparseFeature) -> Sequence[str]:
    return [feature.index_key] if isinstance(feature.index_key, str) else list(feature.index_key)


def _sparse_of_parts(feature: SparseFeature, tensors: dict[str, Any]) -> SparseTensor:
    from dtf.build.ops import joining, sparse

    values = tensors[feature.value_key]
    sizes = [feature.size] if isinstance(feature.index_key, str) else list(feature.size)
    columns = [array_ops.expand_dims(tensors[key].values, 1) for key in _index_keys(feature)]
    indices = joining.concat([values.indices[:, :-1], *columns], 1)
    shape = joining.concat([values.dense_shape[:-1], constant(sizes, dtypes.int64)], 0)
    made = SparseTensor(indices, values.values, shape)
    return made if feature.already_sorted else sparse.sparse_reorder(made)


# -- shape rules

shape_rule("DecodeJSONExample")(unchanged)


@shape_rule("ParseExample", "ParseExampleV2", "ParseSingleExample")
def _(op: Operation) -> list[TensorShape]:
    count = len(op.get_attr("sparse_types"))
    batch = op.inputs[0].shape
    if op.type == "ParseSingleExample":
        batch = TensorShape([])
    elif op.type == "ParseExample":
        batch = batch.with_rank(1)
    rank = None if batch.ndims is None else batch.ndims + 1
    dense = [batch.concatenate(shape) for shape in map(TensorShape, op.get_attr("dense_shapes"))]
    shapes = [*_sparse_shapes(count, rank), *dense]
    return shapes + [TensorShape([None])] * (len(op.outputs) - len(shapes))


def _sparse_shapes(count: int, rank: int | None) -> list[TensorShape]:
    return [TensorShape([None, rank])] * count + [TensorShape([None])] * count + [TensorShape([rank])] * count


@shape_rule("ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample")
def _(op: Operation) -> list[TensorShape]:
    batch = TensorShape([]) if op.type == "ParseSingleSequenceExample" else op.inputs[0].shape
    rank = None if batch.ndims is None else batch.ndims + 1
    is_second = op.type == "ParseSequenceExampleV2"
    for count, types in (
        ("Ncontext_sparse", "context_sparse_types"),
        ("Ncontext_dense", "Tcontext_dense"),
        ("Nfeature_list_sparse", "feature_list_sparse_types"),
        ("Nfeature_list_dense", "feature_list_dense_types"),
    ):
        if op.type == "ParseSequenceExample" and op.get_attr(count) != len(op.get_attr(types)):
            raise ValueError(f"{count} is {op.get_attr(count)}, but {types} has {len(op.get_attr(types))} types")
    context = [batch.concatenate(shape) for shape in map(TensorShape, op.get_attr("context_dense_shapes"))]
    steps = batch.concatenate([None])
    lists = [steps.concatenate(shape) for shape in map(TensorShape, op.get_attr("feature_list_dense_shapes"))]
    vector = TensorShape([None])
    shapes = [*_sparse_shapes(len(op.get_attr("context_sparse_types")), rank), *context]
    if is_second:
        shapes += [vector] * 2 * len(op.get_attr("context_ragged_value_types"))
    below = None if rank is None else rank + 1
    shapes += [*_sparse_shapes(len(op.get_attr("feature_list_sparse_types")), below), *lists]
    if op.type != "ParseSingleSequenceExample":
        shapes += [batch] * len(lists)
    return shapes + [vector] * (len(op.outputs) - len(shapes))
