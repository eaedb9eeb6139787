"""tensorflow.python.ops.rnn: the module of cells, and the change between batches first and steps first."""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops.rearranging import transpose
from dtf.nn import rnn_cell as rnn_cell_impl

__all__ = ["_transpose_batch_time", "rnn_cell_impl"]


def _transpose_batch_time(x: Any) -> Any:
    """A tensor [a, b, ...] as [b, a, ...]; one of lower or unknown rank unchanged."""
    tensor = convert_to_tensor(x)
    rank = tensor.shape.ndims
    return tensor if rank is None or rank < 2 else transpose(tensor, [1, 0, *range(2, rank)])
