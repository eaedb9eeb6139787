"""Kernels that parse serialized Examples and SequenceExamples. How columns are laid out is `run/lib/examples`'."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.interfaces import Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, room, scalar, vector
from dtf.run.lib.examples import Column, Feature, Features, dense_column, parse, ragged_column, sparse_column
from dtf.run.value_types import Array, NumpyType
from dtf.wire.dtypes import DType
from dtf.wire.pb import example_pb2
from dtf.wire.tensor_shape import TensorShape

_Default = np.ndarray


def _texts(values: Array | Sequence[Array] | Sequence[bytes]) -> list[str]:
    each = values if isinstance(values, list) else np.ravel(values)
    return [as_text(value.item() if isinstance(value, np.ndarray) else value) for value in each]


def _shapes(node: KernelNode, name: str) -> list[list[int | None]]:
    return [list(TensorShape(shape).as_list()) for shape in node.attr(name)]


def _taker(values: Sequence[Array]) -> Callable[[int], list[Array]]:
    """take(n): the next n of the flat inputs."""
    rest = iter(values)
    return lambda count: [next(rest) for _ in range(count)]


def _flat(*groups: Sequence[Array]) -> Outputs:
    outputs = [each for group in groups for each in group]
    return outputs[0] if len(outputs) == 1 else outputs


def _columns(columns: Sequence[tuple[Array, ...]], width: int) -> list[list[Array]]:
    return [list(each) for each in zip(*columns, strict=True)] if columns else [[] for _ in range(width)]


# -- Examples


@kernel("ParseExample")
def _(node: KernelNode) -> Function:
    sparse_types, dense_types = list(node.attr("sparse_types")), list(node.attr("Tdense"))
    shapes = _shapes(node, "dense_shapes")

    def parse_example(serialized: np.ndarray, names: np.ndarray, *rest: np.ndarray) -> Outputs:
        vector(serialized, "Expected serialized")
        _check_names(serialized, names)
        take = _taker(rest)
        sparse_keys, dense_keys = _texts(take(len(sparse_types))), _texts(take(len(dense_types)))
        defaults = take(len(dense_types))
        features = [each.features.feature for each in parse(serialized.tolist(), example_pb2.Example)]
        labels = _texts(names)
        sparse = [
            sparse_column(feature, feature.of(features))
            for feature in (Feature(*pair, labels) for pair in zip(sparse_keys, sparse_types, strict=True))
        ]
        dense = _dense(features, dense_keys, dense_types, shapes, defaults, labels)
        return _flat(*_columns(sparse, 3), dense)

    return parse_example


def _check_names(serialized: np.ndarray, names: np.ndarray) -> None:
    """One example or a vector of them, and a name for each or none."""
    if np.ndim(serialized) > 1:
        raise invalid(f"Expected serialized to be a scalar or vector, got shape: {list(np.shape(serialized))}")
    if (np.ndim(names) > 1 and not np.ndim(serialized)) or (np.size(names) and np.shape(names) != np.shape(serialized)):
        raise invalid(f"Expected names to have the shape of serialized or to be empty, got {list(np.shape(names))}")


def _dense(
    features: Sequence[Features],
    keys: list[str],
    types: list[DType],
    shapes: list[list[int | None]],
    defaults: list[_Default],
    labels: list[str],
) -> list[np.ndarray]:
    made = []
    for key, dtype, shape, default in zip(keys, types, shapes, defaults, strict=True):
        feature = Feature(key, dtype, labels)
        if np.size(default) and None not in shape and list(np.shape(default)) != shape:
            raise invalid(f"The default of {key!r} has shape {list(np.shape(default))}, which does not fit {shape}")
        made.append(dense_column(feature, feature.of(features), shape, np.asarray(default)))
    return made


@kernel("ParseExampleV2")
def _(node: KernelNode) -> Function:
    sparse_types, dense_types = list(node.attr("sparse_types")), list(node.attr("Tdense"))
    ragged_types = list(node.attr("ragged_value_types"))
    split_types = [dtype.as_numpy_dtype for dtype in node.attr("ragged_split_types")]
    shapes = _shapes(node, "dense_shapes")

    def parse_example(
        serialized: np.ndarray,
        names: np.ndarray,
        sparse_keys: np.ndarray,
        dense_keys: np.ndarray,
        ragged_keys: np.ndarray,
        *defaults: np.ndarray,
    ) -> Outputs:
        _check_names(serialized, names)
        labels = _texts(names)
        single = not np.ndim(serialized)
        features = [each.features.feature for each in parse(np.ravel(serialized).tolist(), example_pb2.Example)]
        sparse = []
        for key, dtype in zip(_texts(sparse_keys), sparse_types, strict=True):
            feature = Feature(key, dtype, labels)
            column = sparse_column(feature, feature.of(features))
            sparse.append(_of_single(column) if single else column)
        dense = _dense(features, _texts(dense_keys), dense_types, shapes, list(defaults), labels)
        ragged = []
        for key, dtype, splits in zip(_texts(ragged_keys), ragged_types, split_types, strict=True):
            feature = Feature(key, dtype, labels)
            values, row_splits = ragged_column(feature, feature.of(features), splits)
            ragged.append((values, row_splits[:0] if single else row_splits))
        return _flat(*_columns(sparse, 3), [each[0, ...] for each in dense] if single else dense, *_columns(ragged, 2))

    return parse_example


def _of_single(column: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sparse column of one example without the dimension of examples."""
    indices, values, shape = column
    return indices[:, 1:], values, shape[1:]


@kernel("ParseSingleExample")
def _(node: KernelNode) -> Function:
    sparse_types, dense_types = list(node.attr("sparse_types")), list(node.attr("Tdense"))
    sparse_keys, dense_keys = _texts(list(node.attr("sparse_keys"))), _texts(list(node.attr("dense_keys")))
    shapes = _shapes(node, "dense_shapes")

    def parse_single_example(serialized: np.ndarray, *defaults: np.ndarray) -> Outputs:
        scalar(serialized, "Expected serialized")
        features = [each.features.feature for each in parse([serialized.item()], example_pb2.Example)]
        sparse = []
        for key, dtype in zip(sparse_keys, sparse_types, strict=True):
            feature = Feature(key, dtype, ())
            sparse.append(_of_single(sparse_column(feature, feature.of(features))))
        dense = _dense(features, dense_keys, dense_types, shapes, list(defaults), [])
        return _flat(*_columns(sparse, 3), [each[0, ...] for each in dense])

    return parse_single_example


@kernel("DecodeJSONExample")
def _(node: KernelNode) -> Function:
    from google.protobuf import json_format

    from dtf.wire.pb import example_pb2

    def one(text: bytes) -> bytes:
        try:
            return json_format.Parse(text.decode(), example_pb2.Example()).SerializeToString()
        except (json_format.ParseError, UnicodeDecodeError):
            raise invalid(f"Error while parsing JSON: {text.decode(errors='replace')}") from None

    def decode(values: np.ndarray) -> np.ndarray:
        out = np.empty(np.shape(values), object)
        out.reshape(-1)[:] = [one(value) for value in np.ravel(values)]
        return out

    return decode


# -- SequenceExamples


class _Lists:
    """One feature list of all examples: for each the columns of its steps, None where it is absent."""

    def __init__(self, feature: Feature, examples: Sequence[example_pb2.SequenceExample]) -> None:
        self.feature = feature
        self.steps: list[Column | None] = []
        for row, example in enumerate(examples):
            lists = example.feature_lists.feature_list
            if feature.key not in lists:
                self.steps.append(None)
            else:
                self.steps.append([feature.of_one(each, row) for each in lists[feature.key].feature])

    def dense(self, shape: list[int | None], may_be_missing: bool, single: bool) -> tuple[np.ndarray, np.ndarray]:
        """([examples, longest, *shape] padded with zeros, lengths [examples])."""
        sizes = [size or 0 for size in shape]
        count = int(np.prod(sizes, dtype=np.int64))
        arrays = []
        for row, steps in enumerate(self.steps):
            if steps is None and not may_be_missing:
                label = self.feature.names[row] if row < len(self.feature.names) else ""
                raise invalid(
                    f"Name: {label or '<unknown>'}, Feature list '{self.feature.key}' is required but could not be "
                    "found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                    "feature_list_dense_defaults?"
                )
            for step in steps or []:
                found = 0 if step is None else len(step)
                if found != count:
                    raise invalid(
                        f"{self.feature.where(row)}.  Number of {self.feature.dtype.name} values != expected.  values "
                        f"size: {found} but output shape: {sizes}"
                    )
            flat = [value for step in steps or [] for value in step or []]
            arrays.append(self.feature.array(flat).reshape(len(steps or []), *sizes))
        lengths = np.array([len(array) for array in arrays], np.int64)
        if single:
            return arrays[0], lengths[0]
        empty: bytes | int = b"" if self.feature.array([]).dtype == object else 0
        longest = int(lengths.max(initial=0))
        dtype = self.feature.dtype.as_numpy_dtype
        out = np.full(room((len(arrays), longest, *sizes), dtype), empty, dtype)
        for row, array in enumerate(arrays):
            out[row, : len(array)] = array
        return out, lengths

    def sparse(self, single: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(indices [n, 3], values [n], shape [3]): example, step, position; without the first for a single one."""
        indices, flat, longest, widest = [], [], 0, 0
        for row, steps in enumerate(self.steps):
            longest = max(longest, len(steps or []))
            for at, step in enumerate(steps or []):
                values = step or []
                widest = max(widest, len(values))
                indices += [(row, at, position) for position in range(len(values))]
                flat += list(values)
        places = np.array(indices, np.int64).reshape(-1, 3)
        shape = np.array([len(self.steps), longest, widest], np.int64)
        if single:
            places, shape = places[:, 1:], shape[1:]
        return places, self.feature.array(flat), shape

    def ragged(self, splits_dtype: NumpyType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(values [n], outer splits by example, inner splits by step)."""
        columns = [step for steps in self.steps for step in steps or []]
        values, inner = ragged_column(self.feature, columns, splits_dtype)
        outer = np.cumsum([0, *(len(steps or []) for steps in self.steps)]).astype(splits_dtype)
        return values, outer, inner


@kernel("ParseSingleSequenceExample")
def _(node: KernelNode) -> Function:
    counts = [node.attr(f"N{kind}") for kind in
              ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")]  # fmt: skip
    parts = _SequenceParts(node)

    def parse_single(serialized: np.ndarray, missing: np.ndarray, *rest: np.ndarray) -> Outputs:
        scalar(serialized, "Expected serialized")
        vector(missing, "Expected feature_list_dense_missing_assumed_empty")
        for key in rest[: sum(counts)]:
            scalar(key, "Expected a key")
        scalar(rest[-1], "Expected debug_name")
        take = _taker(rest)
        keys = [_texts(take(count)) for count in counts]
        defaults = take(counts[1])
        label = as_text(take(1)[0].item())
        examples = parse([serialized.item()], example_pb2.SequenceExample)
        context = parts.context(examples, keys[0], keys[1], defaults, [label], True)
        sparse, dense = parts.lists(examples, keys[2], keys[3], set(_texts(missing)), [label], True)
        return _flat(*context, *_columns(sparse, 3), [each for each, _ in dense])

    return parse_single


@kernel("ParseSequenceExample")
def _(node: KernelNode) -> Function:
    parts = _SequenceParts(node)
    keys = {
        kind: _texts(list(node.attr(f"{kind}_keys")))
        for kind in ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")
    }
    missing = set(_texts(list(node.attr("feature_list_dense_missing_assumed_empty"))))

    def parse_sequence(serialized: np.ndarray, labels: np.ndarray, *defaults: np.ndarray) -> Outputs:
        _check_names(serialized, labels)
        single = not np.ndim(serialized)
        examples, names = parse(np.ravel(serialized).tolist(), example_pb2.SequenceExample), _texts(labels)
        context = parts.context(
            examples, keys["context_sparse"], keys["context_dense"], list(defaults), names, single
        )
        sparse, dense = parts.lists(
            examples, keys["feature_list_sparse"], keys["feature_list_dense"], missing, names, single
        )
        return _flat(*context, *_columns(sparse, 3), *_columns(dense, 2))

    return parse_sequence


@kernel("ParseSequenceExampleV2")
def _(node: KernelNode) -> Function:
    parts = _SequenceParts(node)
    ragged = {
        kind: (
            list(node.attr(f"{kind}_ragged_value_types")),
            [dtype.as_numpy_dtype for dtype in node.attr(f"{kind}_ragged_split_types")],
        )
        for kind in ("context", "feature_list")
    }

    def parse_sequence(
        serialized: np.ndarray,
        labels: np.ndarray,
        context_sparse: np.ndarray,
        context_dense: np.ndarray,
        context_ragged: np.ndarray,
        list_sparse: np.ndarray,
        list_dense: np.ndarray,
        list_ragged: np.ndarray,
        missing: np.ndarray,
        *defaults: np.ndarray,
    ) -> Outputs:
        single = not np.ndim(serialized)
        _check_names(serialized, labels)
        examples, names = parse(np.ravel(serialized).tolist(), example_pb2.SequenceExample), _texts(labels)
        maps = [each.context.feature for each in examples]
        context = parts.context(
            examples, _texts(context_sparse), _texts(context_dense), list(defaults), names, single
        )
        of_context = []
        for key, dtype, splits in zip(_texts(context_ragged), *ragged["context"], strict=True):
            feature = Feature(key, dtype, names)
            of_context.append(ragged_column(feature, feature.of(maps), splits))
        dense_keys = _texts(list_dense)
        assumed_empty = {key for key, flag in zip(dense_keys, np.ravel(missing).tolist(), strict=False) if flag}
        sparse, dense = parts.lists(examples, _texts(list_sparse), dense_keys, assumed_empty, names, single)
        of_lists = []
        for key, dtype, splits in zip(_texts(list_ragged), *ragged["feature_list"], strict=True):
            of_lists.append(_Lists(Feature(key, dtype, names), examples).ragged(splits))
        return _flat(
            *context, *_columns(of_context, 2), *_columns(sparse, 3), *_columns(dense, 2), *_columns(of_lists, 3)
        )

    return parse_sequence


class _SequenceParts:
    """What the three ops of SequenceExamples have in common: the types and shapes of their node."""

    def __init__(self, node: KernelNode) -> None:
        self._context_sparse, self._context_dense = list(node.attr("context_sparse_types")), list(
            node.attr("Tcontext_dense")
        )
        self._context_shapes = _shapes(node, "context_dense_shapes")
        self._list_sparse, self._list_dense = list(node.attr("feature_list_sparse_types")), list(
            node.attr("feature_list_dense_types")
        )
        self._list_shapes = _shapes(node, "feature_list_dense_shapes")

    def context(
        self,
        examples: Sequence[example_pb2.SequenceExample],
        sparse_keys: list[str],
        dense_keys: list[str],
        defaults: list[_Default],
        names: list[str],
        single: bool,
    ) -> list[list[Array]]:
        """Sparse indices, values and shapes, then dense values, of the contexts."""
        maps = [each.context.feature for each in examples]
        sparse = []
        for key, dtype in zip(sparse_keys, self._context_sparse, strict=True):
            feature = Feature(key, dtype, names)
            column = sparse_column(feature, feature.of(maps))
            sparse.append(_of_single(column) if single else column)
        dense = _dense(maps, dense_keys, self._context_dense, self._context_shapes, defaults, names)
        return [*_columns(sparse, 3), [each[0, ...] for each in dense] if single else dense]

    def lists(
        self,
        examples: Sequence[example_pb2.SequenceExample],
        sparse_keys: list[str],
        dense_keys: list[str],
        assumed_empty: set[str],
        names: list[str],
        single: bool,
    ) -> tuple[list[tuple[Array, Array, Array]], list[tuple[Array, Array]]]:
        """(sparse columns, dense columns with their lengths) of the feature lists."""
        sparse = [
            _Lists(Feature(key, dtype, names), examples).sparse(single)
            for key, dtype in zip(sparse_keys, self._list_sparse, strict=True)
        ]
        dense = [
            _Lists(Feature(key, dtype, names), examples).dense(shape, key in assumed_empty, single)
            for key, dtype, shape in zip(dense_keys, self._list_dense, self._list_shapes, strict=True)
        ]
        return sparse, dense
