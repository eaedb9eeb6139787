"""Embeddings: rows of one table or of a table in pieces, and sums of them per example.

Each piece is gathered on its own device, so only the requested rows are sent.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/embedding_lookup
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops import array as array_ops
from dtf.build.ops import clip as clip_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import gathering, joining, reductions, searching, segment
from dtf.build.ops import math as math_ops
from dtf.build.ops import sparse as sparse_ops
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["embedding_lookup", "embedding_lookup_sparse", "safe_embedding_lookup_sparse"]


@dispatched
def embedding_lookup(
    params: TensorLike,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """The rows that `ids` name.

    Args:
      params: a table [rows, ...] (a variable or tensor), a list of its pieces, or a partitioned variable.
      ids: int32 or int64, of any shape.
      partition_strategy: "mod": row i is row i // n of piece i % n. "div": the pieces are consecutive ranges of rows,
        the first ones longer by one where they cannot be equal.
      validate_indices: not looked at; an id out of range is an error.
      max_norm: rows of a larger L2 norm are scaled down to it.

    Returns:
      A tensor of shape ids.shape + params.shape[1:].

    Raises:
      ValueError: no params, or an unknown strategy.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/embedding_lookup
    """
    pieces = _pieces(params)
    if not pieces:
        raise ValueError("Need at least one param")
    with name_scope(name, "embedding_lookup", [*pieces, ids]) as scope:
        ids = convert_to_tensor(ids, name="ids")
        if len(pieces) == 1:
            with colocate_with(_op(pieces[0])):
                rows = _clipped(gathering.gather(pieces[0], ids, name=scope), ids, max_norm)
                return array_ops.identity(rows)
        return _lookup_in_pieces(pieces, ids, partition_strategy, scope, max_norm)


def _lookup_in_pieces(
    pieces: list[Any], ids: Tensor, partition_strategy: str, scope: str, max_norm: float | None
) -> Tensor:
    pieces = [convert_to_tensor(each) if isinstance(each, (np.ndarray, list, tuple)) else each for each in pieces]
    count = len(pieces)
    flat = array_ops.reshape(ids, [-1])
    positions = math_ops.range(array_ops.size(flat))
    if partition_strategy == "mod":
        assignments, new_ids = flat % count, flat // count
    elif partition_strategy == "div":
        assignments, new_ids = _consecutive(pieces, flat)
    else:
        raise ValueError(f"Unrecognized partition strategy: {partition_strategy}")
    assignments = math_ops.cast(assignments, dtypes.int32)
    ids_by_piece = gathering.dynamic_partition(new_ids, assignments, count)
    positions_by_piece = gathering.dynamic_partition(positions, assignments, count)
    rows_by_piece = []
    for piece, piece_ids in zip(pieces, ids_by_piece, strict=True):
        with colocate_with(_op(piece)):
            rows_by_piece.append(_clipped(gathering.gather(piece, piece_ids), piece_ids, max_norm))
    rows = gathering.dynamic_stitch(positions_by_piece, rows_by_piece, name=scope)
    row_shape = pieces[0].get_shape()[1:]
    for piece in pieces[1:]:
        row_shape = row_shape.merge_with(piece.get_shape()[1:])
    if row_shape.is_fully_defined():
        sizes: Any = row_shape.as_list()
    else:
        with colocate_with(_op(pieces[0])):
            sizes = array_ops.shape(pieces[0])[1:]
    result = array_ops.reshape(rows, joining.concat([array_ops.shape(ids), sizes], 0))
    result.set_shape(ids.shape.concatenate(row_shape))
    return result


def _consecutive(pieces: list[Any], flat: Tensor) -> tuple[Tensor, Tensor]:
    """(piece, row in the piece) of each id where the pieces are consecutive ranges of rows."""
    count = len(pieces)
    lengths = [piece.get_shape()[0].value for piece in pieces]
    total: Any
    if None not in lengths:
        total = sum(lengths)
    else:
        known = []
        for piece in pieces:
            with colocate_with(_op(piece)):
                known.append(array_ops.shape(piece)[0])
        total = math_ops.cast(math_ops.add_n(known), flat.dtype)
    per_piece, extras = total // count, total % count
    longer = extras * (per_piece + 1)  # rows in the pieces that have one more
    assignments = math_ops.maximum(flat // (per_piece + 1), (flat - extras) // per_piece)
    in_shorter = (flat - extras) % per_piece
    return assignments, searching.where(flat < longer, flat % (per_piece + 1), in_shorter)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: SparseTensor,
    sp_weights: SparseTensor | None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """The weighted rows of each example combined.

    Args:
      params, partition_strategy, max_norm: as of `embedding_lookup`.
      sp_ids: int [examples, any]: the ids of each example.
      sp_weights: of the same indices, or None for weights of 1.
      combiner: "sum", "mean" (the default: divided by the sum of weights), or "sqrtn" (by the root of the sum of
        their squares).

    Returns:
      A tensor [examples, ...]. Every example except trailing ones must have at least one id.

    Raises:
      TypeError: `sp_ids` or `sp_weights` is not sparse.
      ValueError: an unknown combiner, or no params.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/embedding_lookup_sparse
    """
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    pieces = _pieces(params)
    if not pieces:
        raise ValueError(f"Missing params: {params}.")
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError("sp_ids must be SparseTensor")
    if sp_weights is not None:
        if not isinstance(sp_weights, SparseTensor):
            raise TypeError("sp_weights must be either None or SparseTensor")
        sp_ids.values.shape.assert_is_compatible_with(sp_weights.values.shape)
    with name_scope(name, "embedding_lookup_sparse", [*pieces, sp_ids.values]) as scope:
        segments = math_ops.cast(sp_ids.indices[:, 0], dtypes.int32)
        ids, positions = searching.unique(sp_ids.values)
        rows = embedding_lookup(pieces, ids, partition_strategy, max_norm=max_norm)
        if sp_weights is None:
            combine = {
                "sum": segment.sparse_segment_sum,
                "mean": segment.sparse_segment_mean,
                "sqrtn": segment.sparse_segment_sqrt_n,
            }[combiner]
            return combine(rows, positions, segments, name=scope)
        rows = gathering.gather(rows, positions)
        weights = math_ops.cast(sp_weights.values, rows.dtype)
        column = array_ops.reshape(
            weights,
            joining.concat([array_ops.shape(weights), filling_ops.ones([array_ops.rank(rows) - 1], dtypes.int32)], 0),
        )
        column.set_shape([weights.shape[0], *[1] * (rows.shape.ndims - 1)] if rows.shape.ndims is not None else None)
        total = segment.segment_sum(rows * column, segments, name=scope if combiner == "sum" else None)
        if combiner == "sum":
            return total
        if combiner == "mean":
            return math_ops.divide(total, segment.segment_sum(column, segments), name=scope)
        squares = segment.segment_sum(math_ops.square(column), segments)
        return math_ops.divide(total, math_ops.sqrt(squares), name=scope)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: SparseTensor,
    sparse_weights: SparseTensor | None = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """As `embedding_lookup_sparse`, but examples may have no ids. Negative ids are ignored; except for the combiner
    "sum", ids of non-positive weight are ignored too.

    Args:
      embedding_weights: a table [rows, ...], a list of its pieces, or a partitioned variable.
      sparse_ids: int [..., any]: the ids of each example. sparse_weights: of the same indices, or None.
      default_id: the row that an example without ids has; zeros by default.

    Returns:
      A tensor of shape sparse_ids.shape[:-1] + the rows' shape.

    Raises:
      ValueError: weights are missing, or `embedding_lookup_sparse` rejects an argument.
    """
    pieces = _pieces(embedding_weights)
    if not pieces:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    ids, weights = sparse_ids, sparse_weights
    with name_scope(name, "embedding_lookup", [*pieces, ids.values]) as scope:
        rank = ids.get_shape().ndims
        shape = ids.dense_shape
        leading: Any = array_ops.size(shape) - 1 if rank is None else rank - 1
        flat = joining.stack([reductions.reduce_prod(shape[:leading]), shape[leading]])
        ids = sparse_ops.sparse_reshape(ids, flat)
        if weights is not None:
            weights = SparseTensor(ids.indices, weights.values, ids.dense_shape)
        counts = math_ops.greater_equal(ids.values, 0)
        if weights is not None and combiner != "sum":
            counts = math_ops.logical_and(counts, math_ops.greater(weights.values, 0))
        ids = sparse_ops.sparse_retain(ids, counts)
        if weights is not None:
            weights = sparse_ops.sparse_retain(weights, counts)
        ids, is_empty = sparse_ops.sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_ops.sparse_fill_empty_rows(weights, 1.0)
        rows = embedding_lookup_sparse(
            pieces, ids, weights, partition_strategy, None if default_id is None else scope, combiner, max_norm
        )
        if default_id is None:
            columns = filling_ops.ones([array_ops.rank(rows) - 1], dtypes.int32)
            empty = array_ops.reshape(is_empty, joining.concat([[-1], columns], 0))
            rows = searching.where_v2(empty, filling_ops.zeros_like(rows), rows, name=scope)
        result = array_ops.reshape(
            rows, joining.concat([math_ops.cast(shape[:leading], dtypes.int32), array_ops.shape(rows)[1:]], 0)
        )
        if rank is not None:
            result.set_shape(sparse_ids.get_shape()[:-1].concatenate(rows.shape[1:]))
        return result


def _pieces(params: Any) -> list[Any]:
    """A partitioned variable is the list of its pieces."""
    if params is None:
        return []
    if hasattr(params, "_get_variable_list"):
        return list(params._get_variable_list())
    return list(params) if isinstance(params, list | tuple) else [params]


def _op(piece: Any) -> Any:
    return convert_to_tensor(piece).op if not hasattr(piece, "op") else piece.op


def _clipped(rows: Tensor, ids: Tensor, max_norm: float | None) -> Tensor:
    if max_norm is None:
        return rows
    rank = ids.shape.ndims
    if rank is None or rows.shape.ndims is None:
        axes: Any = math_ops.range(array_ops.rank(ids), array_ops.rank(rows))
    else:
        axes = list(range(rank, rows.shape.ndims))
    return clip_ops.clip_by_norm(rows, max_norm, axes=axes)
