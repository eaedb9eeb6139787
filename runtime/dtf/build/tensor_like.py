"""Argument types of public functions, for annotations only: no code imports this module at run time.

Owns the aliases for values that convert to a tensor, a dtype or a shape. The conversions themselves are
`conversion.convert_to_tensor`, `wire.dtypes.as_dtype` and `wire.tensor_shape.as_shape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike

from dtf.build.partitioned import PartitionedVariable
from dtf.build.sparse import IndexedSlices, SparseTensor
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape

__all__ = ["DTypeLike", "TensorLike"]

#: A tensor, a variable, an array, a number, text, or nested sequences of these. A None in a sequence, as in the list
#: of a shape that is known in part, is refused when the value is converted.
TensorLike: TypeAlias = (
    Tensor
    | Variable
    | PartitionedVariable
    | SparseTensor
    | IndexedSlices
    | TensorShape
    | ArrayLike
    | Sequence["TensorLike | None"]
)
#: tf.float32, np.float32, float, "float32", or the number of a type on the wire.
DTypeLike: TypeAlias = Union[DType, "np.dtype[np.generic]", type, str, int]
