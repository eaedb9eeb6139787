"""tf.data.experimental's names of the specs of elements, with the order of arguments of TensorFlow 1.15.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental/Structure
"""

from __future__ import annotations

from typing import Any

from dtf.build.ops.data_structure import DatasetSpec as DatasetStructure
from dtf.build.tensor_spec import (
    OptionalSpec as OptionalStructure,
)
from dtf.build.tensor_spec import (
    RaggedTensorSpec,
    SparseTensorSpec,
    TensorArraySpec,
    TensorSpec,
)
from dtf.build.tensor_spec import (
    TypeSpec as Structure,
)

__all__ = [
    "DatasetStructure", "OptionalStructure", "RaggedTensorStructure", "SparseTensorStructure", "Structure",
    "TensorArrayStructure", "TensorStructure",
]  # fmt: skip


def TensorStructure(dtype: Any, shape: Any) -> TensorSpec:  # noqa: N802
    """`tf.TensorSpec(shape, dtype)`."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: Any, shape: Any) -> SparseTensorSpec:  # noqa: N802
    """`tf.SparseTensorSpec(shape, dtype)`."""
    return SparseTensorSpec(shape, dtype)


def TensorArrayStructure(  # noqa: N802
    dtype: Any, element_shape: Any, dynamic_size: bool, infer_shape: bool
) -> TensorArraySpec:
    """`tf.TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)`."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)


def RaggedTensorStructure(dtype: Any, shape: Any, ragged_rank: int) -> RaggedTensorSpec:  # noqa: N802
    """`tf.RaggedTensorSpec(shape, dtype, ragged_rank)`."""
    return RaggedTensorSpec(shape, dtype, ragged_rank)
