"""`tf.TensorArray`: a list of tensors that lives for one step, for loops to write to and read from.

Owns the class that makes the nodes and their static shapes. `run/state/tensor_arrays.py` implements the arrays.

Each operation takes the flow of the previous one, a float scalar without meaning, so that operations run in order.
`write` and similar methods return a new TensorArray with the new flow.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/TensorArray
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, name_scope
from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unknown
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["TensorArray"]


@dataclass
class _Known:
    """The known shape of an array's elements, shared by all objects for the array: a loop's result knows its
    writes."""

    element_shape: TensorShape


class TensorArray:
    """A list of tensors of one dtype, each written once."""

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """Makes an array of `size` places, or an object for the array of `handle`.

        Args:
          dynamic_size: writes past the end make it longer.
          clear_after_read: a place is forgotten once it is read (the default).
          infer_shape: all elements have one shape.
          element_shape: the known part of the elements' shape.
        """
        del colocate_with_first_write_call
        if handle is not None and size is not None:
            raise ValueError("Cannot provide both a handle and size at the same time")
        if handle is None and size is None:
            raise ValueError("Size must be provided if handle is not provided")
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._infer_shape = infer_shape
        self._known = _Known(TensorShape(None) if element_shape is None else as_shape(element_shape))
        self._dynamic_size = bool(dynamic_size)
        self._size = size
        if handle is None:
            with name_scope(name, "TensorArray", [size] if isinstance(size, Tensor) else []) as scope:
                handle, flow = apply_op(
                    "TensorArrayV3",
                    scope,
                    size=size,
                    dtype=self._dtype,
                    element_shape=self._element_shape,
                    dynamic_size=self._dynamic_size,
                    clear_after_read=True if clear_after_read is None else clear_after_read,
                    identical_element_shapes=infer_shape,
                    tensor_array_name=tensor_array_name or "",
                )
        elif flow is None:
            with colocate_with(handle):
                flow = convert_to_tensor(0.0, dtypes.float32, name="flow")
        self._handle = handle
        self._flow = flow

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    @property
    def handle(self) -> Tensor:
        """The handle of the array."""
        return self._handle

    @property
    def flow(self) -> Tensor:
        """The flow, which orders the operations."""
        assert self._flow is not None
        return self._flow

    @property
    def element_shape(self) -> TensorShape:
        """The static shape of an element."""
        return self._element_shape

    @property
    def dynamic_size(self) -> bool:
        """Whether it may grow."""
        return self._dynamic_size

    def identity(self) -> TensorArray:
        """The same array with an identity of its flow, for control dependencies."""
        return build_ta_with_new_flow(self, apply_op("Identity", input=self.flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The gradient array for the gradients computation named `source`."""
        flow = self.flow if flow is None else flow
        with name_scope(name, "TensorArrayGrad", [self._handle]), colocate_with(self._handle):
            handle, _ = apply_op("TensorArrayGradV3", handle=self._handle, source=source, flow_in=flow)
            # The flow of the forward array makes sure that all its writes have sized it before.
            with control_dependencies([handle]):
                flow = apply_op("Identity", "gradient_flow", input=flow)
            return TensorArray(
                self._dtype, handle=handle, flow=flow, infer_shape=self._infer_shape, element_shape=self._element_shape
            )

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`."""
        value = apply_op(
            "TensorArrayReadV3", name, handle=self._handle, index=index, flow_in=self.flow, dtype=self._dtype
        )
        value.set_shape(self._element_shape)
        return value

    def write(self, index: Any, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with `value` at `index`."""
        value = convert_to_tensor(value, self._dtype, name="value")
        self._learn_shape(value.shape)
        flow = apply_op("TensorArrayWriteV3", name, handle=self._handle, index=index, value=value, flow_in=self.flow)
        return build_ta_with_new_flow(self, flow)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first dimension."""
        with name_scope(name, "TensorArrayStack", [self._handle]):
            indices = apply_op("Range", start=0, limit=self.size(), delta=1)
            stacked = self.gather(indices)
            if not self._dynamic_size and self._size is not None:
                count = constant_value(convert_to_tensor(self._size))
                if count is not None:
                    stacked.set_shape(TensorShape([int(count)]).concatenate(self._element_shape))
            return stacked

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements at `indices` along a new first dimension."""
        values = apply_op(
            "TensorArrayGatherV3",
            name,
            handle=self._handle,
            indices=indices,
            flow_in=self.flow,
            dtype=self._dtype,
            element_shape=self._element_shape,
        )
        count = values.op.inputs[1].shape[:1] if values.op.inputs[1].shape.ndims == 1 else TensorShape([None])
        values.set_shape(count.concatenate(self._element_shape))
        return values

    def concat(self, name: str | None = None) -> Tensor:
        """All elements joined along their first dimension."""
        rest = self._element_shape[1:] if self._element_shape.ndims is not None else TensorShape(None)
        value, _ = apply_op(
            "TensorArrayConcatV3",
            name,
            handle=self._handle,
            flow_in=self.flow,
            dtype=self._dtype,
            element_shape_except0=rest,
        )
        value.set_shape(TensorShape([self._length_of_all()]).concatenate(rest))
        return value

    def _length_of_all(self) -> int | None:
        """The first dimension of the elements joined; None where it is not known before a step."""
        if self._dynamic_size or self._size is None or not self._infer_shape or not self._element_shape.ndims:
            return None
        count, length = constant_value(convert_to_tensor(self._size)), self._element_shape.as_list()[0]
        return None if count is None or length is None else int(count) * length

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the slices of `value` along its first dimension as elements 0, 1, ..."""
        with name_scope(name, "TensorArrayUnstack", [self._handle]):
            value = convert_to_tensor(value, self._dtype)
            count = apply_op(
                "StridedSlice", input=_shape_of(value), begin=[0], end=[1], strides=[1], shrink_axis_mask=1
            )
            return self.scatter(apply_op("Range", start=0, limit=count, delta=1), value)

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the slices of `value` at `indices`."""
        value = convert_to_tensor(value, self._dtype, name="value")
        if value.shape.ndims is not None:
            self._learn_shape(value.shape[1:])
        flow = apply_op(
            "TensorArrayScatterV3", name, handle=self._handle, indices=indices, value=value, flow_in=self.flow
        )
        return build_ta_with_new_flow(self, flow)

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """The array with consecutive pieces of `value`, of these lengths, as elements."""
        value = convert_to_tensor(value, self._dtype, name="value")
        lengths = convert_to_tensor(lengths)
        if lengths.dtype.base_dtype != dtypes.int64:
            lengths = apply_op("Cast", x=lengths, DstT=dtypes.int64)
        known = constant_value(lengths)
        if value.shape.ndims and known is not None and known.ndim == 1 and known.size and (known == known[0]).all():
            self._learn_shape(TensorShape([int(known[0])]).concatenate(value.shape[1:]))
        flow = apply_op(
            "TensorArraySplitV3", name, handle=self._handle, value=value, lengths=lengths, flow_in=self.flow
        )
        return build_ta_with_new_flow(self, flow)

    def size(self, name: str | None = None) -> Tensor:
        """The number of places, an int32 scalar."""
        return apply_op("TensorArraySizeV3", name, handle=self._handle, flow_in=self.flow)

    def close(self, name: str | None = None) -> Operation:
        """The operation that forgets the elements."""
        return apply_op("TensorArrayCloseV3", name, handle=self._handle)

    @property
    def _element_shape(self) -> TensorShape:
        return self._known.element_shape

    def _learn_shape(self, shape: TensorShape) -> None:
        if self._infer_shape:
            if not self._element_shape.is_compatible_with(shape):
                raise ValueError(
                    f"Inconsistent shapes: saw {shape} but expected {self._element_shape} (and infer_shape=True)"
                )
            self._known.element_shape = self._element_shape.merge_with(shape)


def build_ta_with_new_flow(array: TensorArray, flow: Tensor) -> TensorArray:
    """The same array after the operation that returned `flow`."""
    other = TensorArray(
        array._dtype,
        handle=array._handle,
        flow=flow,
        infer_shape=array._infer_shape,
    )
    other._known = array._known
    other._dynamic_size = array._dynamic_size
    other._size = array._size
    return other


def _shape_of(tensor: Tensor) -> Tensor:
    return apply_op("Shape", input=tensor)


# -- shape rules


def _versions(*names: str) -> list[str]:
    """The ops of all three versions of the tensor arrays."""
    return [f"TensorArray{name}{version}" for name in names for version in ("V3", "V2", "")]


shape_rule(*_versions("Size", "Write", "Scatter"), "TensorArrayUnpack")(scalar)
shape_rule("TensorArrayV3", "TensorArrayGradV3", "TensorArrayGradWithShape")(scalar)
# TensorFlow gives the handle of a stack the shape [2]; here it is a scalar. Graphs of both are imported.
shape_rule("StackV2", "Stack", "TensorArray", "TensorArrayGrad")(unknown)
shape_rule("StackPopV2", "StackPop", *_versions("Read", "Gather"), "TensorArrayPack")(unknown)
shape_rule("StackCloseV2", "StackClose", *_versions("Close"))(no_outputs)


@shape_rule("TensorArrayV2", "TensorArrayGradV2")
def _(op):
    return [TensorShape([2])]


@shape_rule("StackPushV2", "StackPush")
def _(op):
    return [op.inputs[1].shape]


@shape_rule(*_versions("Split"))
def _(op):
    op.inputs[2].shape.assert_has_rank(1)
    return scalar(op)


@shape_rule(*_versions("Concat"))
def _(op):
    return [TensorShape(None), TensorShape([None])]
