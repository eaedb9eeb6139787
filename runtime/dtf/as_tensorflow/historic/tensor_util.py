"""tensorflow.python.framework.tensor_util: tensors and their constant values."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.sparse import IndexedSlices, SparseTensor, SparseTensorValue
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.wire.codec import make_ndarray, make_tensor_proto

__all__ = [
    "MakeNdarray", "ShapeEquals", "TensorShapeProtoToList", "constant_value", "constant_value_as_shape", "is_sparse",
    "is_tensor", "is_tf_type", "make_ndarray", "make_tensor_proto", "shape_tensor",
]  # fmt: skip

MakeNdarray = make_ndarray


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, sparse or not, or a variable."""
    return isinstance(x, Tensor | SparseTensor | IndexedSlices | Variable)


is_tf_type = is_tensor


def is_sparse(tensor: Any) -> bool:
    """Whether it is a SparseTensor or a SparseTensorValue."""
    return isinstance(tensor, SparseTensor | SparseTensorValue)


def TensorShapeProtoToList(shape: Any) -> list[int]:  # noqa: N802
    """The sizes of a TensorShapeProto."""
    return [dim.size for dim in shape.dim]


def ShapeEquals(tensor_proto: Any, shape: Any) -> bool:  # noqa: N802
    """Whether a TensorProto has this shape, a TensorShapeProto or a list of sizes.

    Raises:
      TypeError: one of them is something else.
    """
    from dtf.wire.pb import tensor_pb2, tensor_shape_pb2

    if not isinstance(tensor_proto, tensor_pb2.TensorProto):
        raise TypeError(f"`tensor_proto` must be a tensor_pb2.TensorProto object, not {type(tensor_proto)}.")
    if isinstance(shape, tensor_shape_pb2.TensorShapeProto):
        shape = TensorShapeProtoToList(shape)
    elif not isinstance(shape, list | tuple):
        raise TypeError(f"`shape` must be a list or tuple, not {type(shape)}.")
    return TensorShapeProtoToList(tensor_proto.tensor_shape) == list(shape)


def shape_tensor(shape: Any) -> Any:
    """A shape as an int32 tensor (int64 if a size needs it)."""
    from dtf.build.conversion import convert_to_tensor

    if isinstance(shape, Tensor):
        return shape
    sizes = np.asarray(shape)
    return convert_to_tensor(sizes.astype(np.int64 if sizes.size and sizes.max() > 2**31 - 1 else np.int32))
