"""Tensors given by parts: `IndexedSlices` (rows of a dense tensor) and `SparseTensor` (coordinates and values).

Owns the two containers and their conversion to dense tensors where that is allowed. The ops on them are in `ops`.
"""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value_as_shape
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.default_graph import graph_of, name_scope
from dtf.build.tensor import Operation, Tensor, session_for
from dtf.wire.dtypes import DType, as_dtype, int64
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

IndexedSlicesValue = namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])
SparseTensorValue = namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])

# From this many elements on, making a gradient dense is worth a warning.
_LARGE_ELEMENTS = 100_000_000


class IndexedSlices:
    """Slices `values[i]` of a larger tensor, at `indices[i]` of its first dimension.

    The gradient of a gather: rows of values and their indices. An index that comes twice means the sum of its slices.

    Args:
      values: tensor of shape [N, D1, ...].
      indices: integer tensor of shape [N].
      dense_shape: integer tensor, the shape of the whole; may be None.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/IndexedSlices
    """

    __array_priority__ = 100

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        graph_of([each for each in (values, indices, dense_shape) if each is not None])
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        """The slices."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where the slices belong."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the whole tensor, if it is known."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole tensor."""
        return TensorShape(None) if self._dense_shape is None else constant_value_as_shape(self._dense_shape)

    def get_shape(self) -> TensorShape:
        """The static shape of the whole tensor."""
        return self.shape

    @property
    def name(self) -> str:
        """The name of the values."""
        return self._values.name

    @property
    def device(self) -> str:
        """The device of the values."""
        return self._values.device

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self._values.op

    @property
    def _control_input(self) -> Operation:
        """The operation to wait for where this is a control input."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The element type of the values."""
        return self._values.dtype

    @property
    def graph(self) -> Any:
        """The graph of the values."""
        return self._values.graph

    def consumers(self) -> list[Operation]:
        """The operations that take a part of this."""
        parts = [self._values, self._indices] + ([] if self._dense_shape is None else [self._dense_shape])
        return list(dict.fromkeys(op for part in parts for op in part.consumers()))

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __str__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    __repr__ = __str__


class SparseTensor:
    """A tensor that stores only some of its elements.

    Args:
      indices: int64 tensor [N, rank], the coordinates of the stored elements.
      values: tensor [N].
      dense_shape: int64 tensor [rank].

    Raises:
      ValueError: the static shapes do not fit together.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/SparseTensor
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        # The static shape that functions making sparse tensors know in addition to the values of `dense_shape`.
        self._partial_shape: TensorShape | None = None
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, int64, name="dense_shape")
        indices_shape = self._indices.shape.with_rank(2)
        values_shape = self._values.shape.with_rank(1)
        dense_shape_shape = self._dense_shape.shape.with_rank(1)
        indices_shape[0].assert_is_compatible_with(values_shape[0])
        indices_shape[1].assert_is_compatible_with(dense_shape_shape[0])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """From a SparseTensorValue, or a SparseTensor.

        Raises:
          TypeError: it is neither.
        """
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value}.")
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        """The coordinates, int64 [N, rank]."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The stored elements, [N]."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the whole, int64 [rank]."""
        return self._dense_shape

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def graph(self) -> Any:
        """The graph of the parts."""
        return self._indices.graph

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole."""
        known = constant_value_as_shape(self._dense_shape)
        return known if self._partial_shape is None else known.merge_with(self._partial_shape)

    def get_shape(self) -> TensorShape:
        """The static shape of the whole."""
        return self.shape

    def __mul__(self, other: Any) -> SparseTensor:
        return self._with_dense("SparseDenseCwiseMul", other)

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._with_dense("SparseDenseCwiseDiv", other)

    def _with_dense(self, op_type: str, dense: Any) -> SparseTensor:
        dense = convert_to_tensor(dense, None if isinstance(dense, Tensor) else self.dtype.base_dtype)
        values = apply_op(
            op_type, sp_indices=self._indices, sp_values=self._values, sp_shape=self._dense_shape, dense=dense
        )
        return SparseTensor(self._indices, values, self._dense_shape)

    def consumers(self) -> list[Operation]:
        """The operations that take the values."""
        return self._values.consumers()

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same indices and shape with other values."""
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def set_shape(self, shape: Any) -> None:
        """Adds what the caller knows to the static shape.

        Raises:
          ValueError: it contradicts what is known.
        """
        self._partial_shape = self.shape.merge_with(shape)

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """The parts' values as a SparseTensorValue, from `session` or the default session."""
        session = session_for(self.graph, session, "`eval()`", "evaluate tensor")
        return SparseTensorValue(*session.run([self._indices, self._values, self._dense_shape], feed_dict))

    def __str__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices}, values={self._values}, dense_shape={self._dense_shape})"
        )

    __repr__ = __str__


def convert_to_tensor_or_indexed_slices(
    value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Any:
    """`value` itself if it is IndexedSlices (of `dtype`), else `convert_to_tensor` of it.

    Raises:
      ValueError: IndexedSlices of another element type.
    """
    if isinstance(value, IndexedSlices):
        if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(f"Tensor conversion requested dtype {as_dtype(dtype).name} for {value!r}")
        return value
    return convert_to_tensor(value, dtype, name)


def convert_to_tensor_or_sparse_tensor(
    value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Any:
    """A SparseTensor unchanged, a SparseTensorValue as a SparseTensor, anything else by `convert_to_tensor`.

    Raises:
      RuntimeError: a SparseTensor of another element type.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        if dtype is not None and value.dtype != dtype:
            raise RuntimeError(f"Sparse dtype: requested = {dtype}, actual = {value.dtype.name}")
        return value
    return convert_to_tensor(value, dtype, name)


def _indexed_slices_to_tensor(
    value: IndexedSlices, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {value}")
    elements = value.shape.num_elements()
    if elements is not None and elements >= _LARGE_ELEMENTS:
        warnings.warn(
            f"Converting sparse IndexedSlices to a dense Tensor with {elements} elements. "
            "This may consume a large amount of memory.",
            stacklevel=2,
        )
    rows = apply_op(
        "StridedSlice", None, input=value.dense_shape, begin=[0], end=[1], strides=[1], shrink_axis_mask=1
    )
    if value.indices.dtype != rows.dtype:
        rows = apply_op("Cast", None, x=rows, DstT=value.indices.dtype)
    return apply_op(
        "UnsortedSegmentSum", name, data=value.values, segment_ids=value.indices, num_segments=rows
    )


register_tensor_conversion_function(IndexedSlices, _indexed_slices_to_tensor)
