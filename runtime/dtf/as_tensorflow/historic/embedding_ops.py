"""tensorflow.python.ops.embedding_ops: lookups whose rows pass through a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, embedding, gathering, joining, searching
from dtf.build.tensor import Tensor

__all__ = ["_embedding_lookup_and_transform"]


def _embedding_lookup_and_transform(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    max_norm: float | None = None,
    transform_fn: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """`embedding_lookup`, with `transform_fn` of the rows [rows, ...] of all ids at once."""
    if transform_fn is None:
        return embedding.embedding_lookup(params, ids, partition_strategy, name, max_norm=max_norm)
    with name_scope(name, "embedding_lookup"):
        ids = convert_to_tensor(ids, name="ids")
        distinct, places = searching.unique(array.reshape(ids, [-1]))
        rows = transform_fn(embedding.embedding_lookup(params, distinct, partition_strategy, max_norm=max_norm))
        found = gathering.gather(rows, places)
        result = array.reshape(found, joining.concat([array.shape(ids), array.shape(found)[1:]], 0))
        result.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return result
