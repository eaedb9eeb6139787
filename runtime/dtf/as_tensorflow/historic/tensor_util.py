"""tensorflow.python.framework.tensor_util: tensors and their constant values."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.wire.codec import make_ndarray, make_tensor_proto

__all__ = [
    "MakeNdarray", "constant_value", "constant_value_as_shape", "is_tensor", "make_ndarray", "make_tensor_proto",
    "shape_tensor",
]  # fmt: skip

MakeNdarray = make_ndarray


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, sparse or not, or a variable."""
    return isinstance(x, Tensor | SparseTensor | IndexedSlices | Variable)


def shape_tensor(shape: Any) -> Any:
    """A shape as an int32 tensor (int64 if a size needs it)."""
    from dtf.build.conversion import convert_to_tensor

    if isinstance(shape, Tensor):
        return shape
    sizes = np.asarray(shape)
    return convert_to_tensor(sizes.astype(np.int64 if sizes.size and sizes.max() > 2**31 - 1 else np.int32))
