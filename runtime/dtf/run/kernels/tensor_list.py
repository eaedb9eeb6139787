"""Kernels of tensor lists, which loops made of functions carry.

Own what each operation makes of a list; the list itself, a value that nobody changes, is `wire.tensor_list.TensorList`.

Source: https://www.tensorflow.org/api_docs/python/tf/raw_ops (TensorListReserve and its neighbours)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard, cast

import numpy as np

from dtf.run.interfaces import Value
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room, zero_of
from dtf.run.value_types import Array
from dtf.wire.dtypes import DType
from dtf.wire.strings import filled
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.variants import Optional, TensorList


@kernel("EmptyTensorList")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")
    return lambda shape, limit: TensorList(dtype, _shape(shape), (), int(limit))


@kernel("TensorListReserve")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def reserve(shape: Array, count: Array) -> TensorList:
        if int(count) < 0:
            raise invalid(f"The num_elements to reserve must be a non negative number, but got {int(count)}")
        room((int(count),), object)
        return TensorList(dtype, _shape(shape), (None,) * int(count))

    return reserve


@kernel("TensorListFromTensor")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def from_tensor(tensor: Array, shape: Array) -> TensorList:
        tensor = np.asarray(tensor)
        if not tensor.ndim:
            raise invalid("Tensor must be at least a vector, but saw shape: []")
        declared = _shape(shape)
        if not declared.is_compatible_with(TensorShape(tensor.shape[1:])):
            raise invalid(
                f"Specified a list with shape {declared} from a tensor with shape {TensorShape(tensor.shape[1:])}"
            )
        return TensorList(dtype, declared, tuple(_rows(tensor)))

    return from_tensor


@kernel("TensorListLength")
def _(node: KernelNode) -> Function:
    return lambda items: np.int32(len(_list(items).values))


@kernel("TensorListElementShape")
def _(node: KernelNode) -> Function:
    dtype = node.attr("shape_type").as_numpy_dtype

    def element_shape(handle: Value) -> Array:
        shape = _list(handle).element_shape
        if shape.ndims is None:
            return dtype(-1)
        return np.array([-1 if size is None else size for size in shape.as_list()], dtype)

    return element_shape


@kernel("TensorListResize")
def _(node: KernelNode) -> Function:
    def resize(handle: Value, size: Array) -> TensorList:
        if int(size) < 0:
            raise invalid(f"TensorListSlice expects size to be non-negative. Got: {int(size)}")
        items = _list(handle)
        values = items.values[: int(size)]
        return items.with_values(values + (None,) * (int(size) - len(values)))

    return resize


@kernel("TensorListPushBack")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def push_back(handle: Value, value: Array) -> TensorList:
        items = _list(handle, dtype)
        _check_room(items)
        _check_shape(items, value, "Tried to append a tensor with incompatible shape to a list. Op element shape")
        return items.with_values((*items.values, value))

    return push_back


@kernel("TensorListPopBack")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def pop_back(handle: Value, shape: Array) -> tuple[TensorList, Array]:
        items = _list(handle, dtype)
        if not items.values:
            raise invalid("Trying to pop from an empty list.")
        value = items.values[-1]
        if value is None:
            value = _zeros(items, _shape(shape), "Trying to read an uninitialized element but ")
        return items.with_values(items.values[:-1]), value

    return pop_back


@kernel("TensorListGetItem")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def get_item(handle: Value, index: Array, shape: Array) -> Array:
        items, at = _list(handle, dtype), int(index)
        if not 0 <= at < len(items.values):
            raise invalid(f"Trying to access element {at} in a list with {len(items.values)} elements.")
        value = items.values[at]
        if value is None:
            return _zeros(items, _shape(shape), "Trying to read an uninitialized element but ")
        return value

    return get_item


@kernel("TensorListSetItem")
def _(node: KernelNode) -> Function:
    dtype, grows = node.attr("element_dtype"), node.attr("resize_if_index_out_of_bounds")

    def set_item(handle: Value, index: Array, value: Array) -> TensorList:
        items, at = _list(handle, dtype), int(index)
        values = list(items.values)
        if grows and at >= len(values):
            values += [None] * (at + 1 - len(values))
        if not 0 <= at < len(values):
            raise invalid(f"Trying to modify element {at} in a list with {len(values)} elements.")
        _check_shape(
            items, value, "Tried to set a tensor with incompatible shape at a list index. Item element shape"
        )
        values[at] = value
        return items.with_values(values)

    return set_item


@kernel("TensorListStack")
def _(node: KernelNode) -> Function:
    dtype, count = node.attr("element_dtype"), node.attr("num_elements")

    def stack(handle: Value, shape: Array) -> Array:
        items = _list(handle, dtype)
        if count not in (-1, len(items.values)):
            raise invalid(f"Operation expected a list with {count} elements but got a list with {len(items.values)}.")
        return _stacked(items, items.values, _shape(shape), "stack")

    return stack


@kernel("TensorListGather")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def gather(handle: Value, indices: Array, shape: Array) -> Array:
        items = _list(handle, dtype)
        values = []
        for index in np.asarray(indices).tolist():
            if not 0 <= index < len(items.values):
                raise invalid(f"Trying to gather element {index} in a list with {len(items.values)} elements.")
            values.append(items.values[index])
        return _stacked(items, values, _shape(shape), "gather")

    return gather


@kernel("TensorListScatter", "TensorListScatterV2")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def scatter(tensor: Array, indices: Array, shape: Array, count: Array | int = -1) -> TensorList:
        if int(count) < -1:
            raise invalid(f"TensorListScatter expects num_elements >= -1, found: {int(count)}")
        empty = TensorList(dtype, _shape(shape), (None,) * max(0, int(count)))
        return _scattered(empty, tensor, indices, grows=int(count) == -1)

    return scatter


@kernel("TensorListScatterIntoExistingList")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")
    return lambda items, tensor, indices: _scattered(_list(items, dtype), tensor, indices, grows=True)


@kernel("TensorListConcat", "TensorListConcatV2")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")
    known: TensorShape = node.attr("element_shape") if node.op == "TensorListConcat" else TensorShape(None)

    def concat(handle: Value, shape: Array | None = None, leading_dims: Array | tuple[()] = ()) -> tuple[Array, Array]:
        items = _list(handle, dtype)
        return _concatenated(items, known if shape is None else _shape(shape), np.asarray(leading_dims).tolist())

    return concat


@kernel("TensorListSplit")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def split(tensor: Array, shape: Array, lengths: Array) -> TensorList:
        tensor, lengths = np.asarray(tensor), np.asarray(lengths).tolist()
        if not tensor.ndim:
            raise invalid("Tensor must be at least a vector, but saw shape: []")
        if any(length < 0 for length in lengths):
            raise invalid(f"Invalid value in lengths: {min(lengths)}")
        if sum(lengths) != tensor.shape[0]:
            raise invalid(
                "Unused values in tensor. Length of tensor: "
                f"{tensor.shape[0]} Values used: {sum(lengths)}"
            )
        items = TensorList(dtype, _shape(shape))
        ends = np.cumsum(lengths).tolist()
        values = [tensor[end - length : end] for end, length in zip(ends, lengths, strict=True)]
        for value in values:
            _check_shape(items, value, "TensorListSplit requires element_shape to be compatible with its pieces. Piece")
        return items.with_values(values)

    return split


@kernel("TensorListConcatLists")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def concat_lists(first: Array, second: Array) -> TensorList | Array:
        if not isinstance(first, np.ndarray):
            return _joined(first, second, dtype)
        joined = [_joined(a, b, dtype) for a, b in zip(first.flat, second.flat, strict=True)]
        return _objects(joined).reshape(first.shape)

    return concat_lists


@kernel("TensorListPushBackBatch")
def _(node: KernelNode) -> Function:
    dtype = node.attr("element_dtype")

    def push_back_batch(lists: Array, tensor: Array) -> Array:
        rows = list(_rows(np.asarray(tensor)))
        if len(rows) != np.size(lists):
            raise invalid(f"Batch size of tensor ({len(rows)}) must match the number of lists ({np.size(lists)})")
        pushed = []
        for each, row in zip(np.ravel(lists), rows, strict=True):
            items = _list(each, dtype)
            _check_shape(items, row, "Tried to append a tensor with incompatible shape to a list. Op element shape")
            pushed.append(items.with_values((*items.values, row)))
        return _objects(pushed)

    return push_back_batch


@kernel("OptionalNone")
def _(node: KernelNode) -> Function:
    return Optional


@kernel("OptionalFromValue")
def _(node: KernelNode) -> Function:
    return lambda *values: Optional(values)


@kernel("OptionalHasValue")
def _(node: KernelNode) -> Function:
    return lambda optional: np.bool_(_optional(optional).values is not None)


@kernel("OptionalGetValue")
def _(node: KernelNode) -> Function:
    count = node.num_outputs

    def get_value(optional: Value) -> tuple[Value, ...]:
        values = _optional(optional).values
        if values is None:
            raise invalid("The given optional does not have a value.")
        if len(values) != count:
            raise invalid(f"The given optional has {len(values)} components, expected {count}.")
        return values

    return get_value


def add_variants(values: Sequence[Value]) -> TensorList | Optional:
    """The sum of lists, or of optionals: of two of them, both must have values or neither."""
    if not isinstance(values[0], Optional):
        return add_lists([_list(value) for value in values])
    given = [_optional(value).values for value in values]
    if all(each is None for each in given):
        return values[0]
    if any(each is None for each in given):
        raise invalid("Cannot add optionals because one has a value and the other doesn't.")
    sums = []
    for parts in zip(*given, strict=True):
        sums.append(add_variants(parts) if _is_variant(parts[0]) else sum(parts[1:], parts[0]))
    return Optional(tuple(sums))


def zeros_like_variant(value: Value) -> TensorList | Optional:
    """The list, or the optional, with zeros in it."""
    if not isinstance(value, Optional):
        return zeros_like_list(_list(value))
    if value.values is None:
        return value
    return Optional(tuple(zeros_like_variant(v) if _is_variant(v) else _zeros_like(v) for v in value.values))


def add_lists(lists: Sequence[TensorList]) -> TensorList:
    """The list of the sums of the elements at each place; what nobody set counts as zeros."""
    first = lists[0]
    if any(len(items.values) != len(first.values) for items in lists):
        lengths = ", ".join(str(len(items.values)) for items in lists)
        raise invalid(f"Trying to add two lists of tensors with different lengths. Lengths: {lengths}")
    sums: list[Value] = []
    for values in zip(*(items.values for items in lists), strict=True):
        given = [value for value in values if value is not None]
        if given and _is_variant(given[0]):
            sums.append(add_variants(given))
        else:
            sums.append(sum(given[1:], given[0]) if given else None)
    shape = first.element_shape
    for items in lists[1:]:
        shape = shape.merge_with(items.element_shape)
    return TensorList(first.dtype, shape, tuple(sums), first.max_num_elements)


def zeros_like_list(items: TensorList) -> TensorList:
    """The list with zeros for its elements."""

    def zeros(value: Value) -> Value:
        if value is None:
            return None
        return zeros_like_variant(value) if _is_variant(value) else _zeros_like(cast(Array, value))

    return items.with_values(map(zeros, items.values))


def _list(value: Value, dtype: DType | None = None) -> TensorList:
    if not isinstance(value, TensorList):
        raise invalid(f"Input handle is not a list. Saw: '{type(value).__name__}'")
    if dtype is not None and value.dtype != dtype:
        raise invalid(f"Invalid data types; op elements {dtype.name} but list elements {value.dtype.name}")
    return value


def _optional(value: Value) -> Optional:
    if not isinstance(value, Optional):
        raise invalid(f"Input is not an optional. Saw: '{type(value).__name__}'")
    return value


def _is_variant(value: Value) -> TypeGuard[TensorList | Optional]:
    return isinstance(value, TensorList | Optional)


def _shape(tensor: Array) -> TensorShape:
    """The shape that a tensor of sizes stands for: -1 is unknown, alone or as one size."""
    sizes = np.asarray(tensor)
    if sizes.ndim == 0:
        if int(sizes) != -1:
            raise invalid(f"The only valid scalar shape tensor is the fully unknown shape specified as -1: {sizes}")
        return TensorShape(None)
    return TensorShape([None if size == -1 else size for size in sizes.tolist()])


def _check_shape(items: TensorList, value: Value, words: str) -> None:
    shape = TensorShape(np.shape(cast(Array, value)))
    if not items.element_shape.is_compatible_with(shape):
        raise invalid(f"{words}: {shape} list shape: {items.element_shape}")


def _check_room(items: TensorList) -> None:
    if items.max_num_elements >= 0 and len(items.values) >= items.max_num_elements:
        raise invalid(
            "Tried to push item into a full list"
            f" list size: {len(items.values)} max_num_elements: {items.max_num_elements}"
        )


def _merged_shape(items: TensorList, wanted: TensorShape) -> TensorShape:
    try:
        return items.element_shape.merge_with(wanted)
    except ValueError:
        raise invalid(
            f"Incompatible shapes during merge: {items.element_shape} vs. {wanted}"
        ) from None


def _zeros(items: TensorList, wanted: TensorShape, words: str) -> Array:
    shape = _merged_shape(items, wanted)
    if not shape.is_fully_defined():
        raise invalid(f"{words}element_shape is not fully defined: {shape}")
    return _filled(items.dtype, _sizes(shape))


def _sizes(shape: TensorShape) -> list[int]:
    """The sizes of a shape that is fully defined."""
    return cast("list[int]", shape.as_list())


def _filled(dtype: DType, sizes: Sequence[int]) -> Array:
    return np.full(room(sizes, dtype.as_numpy_dtype), zero_of(dtype.as_numpy_dtype), dtype.as_numpy_dtype)


def _stacked(items: TensorList, values: Sequence[Array], wanted: TensorShape, what: str) -> Array:
    shape = _merged_shape(items, wanted)
    for value in values:
        if value is not None:
            try:
                shape = shape.merge_with(TensorShape(np.shape(value)))
            except ValueError:
                raise invalid(
                    f"Tried to {what} list which only contains uninitialized tensors or tensors of several shapes: "
                    f"{shape} and {TensorShape(np.shape(value))}"
                ) from None
    if not shape.is_fully_defined():
        reason = "elements of an empty list" if not values else "list which only contains uninitialized tensors"
        raise invalid(f"Tried to {what} {reason} with non-fully-defined element_shape: {shape}")
    sizes = _sizes(shape)
    if not values:
        return np.zeros((0, *sizes), items.dtype.as_numpy_dtype)
    if any(_is_variant(value) for value in values):
        return _objects(list(values))
    return np.stack([_filled(items.dtype, sizes) if value is None else value for value in values])


def _scattered(items: TensorList, tensor: Array, indices: Array, grows: bool) -> TensorList:
    rows, places = list(_rows(np.asarray(tensor))), np.asarray(indices).tolist()
    if len(rows) < len(places):
        raise invalid(f"Specified {len(places)} indices but only {len(rows)} rows")
    values = list(items.values)
    if places and min(places) < 0:
        raise invalid("Indices in TensorListScatter must all be non-negative.")
    if places and max(places) >= len(values):
        if not grows:
            raise invalid(
                f"TensorListScatter: Trying to scatter at index {max(places)} in list with size {len(values)}"
            )
        values += [None] * (max(places) + 1 - len(values))
    for place, row in zip(places, rows, strict=False):
        _check_shape(items, row, "TensorListScatter requires element_shape to be compatible with its rows. Row")
        values[place] = row
    return items.with_values(values)


def _concatenated(items: TensorList, wanted: TensorShape, leading_dims: Sequence[int]) -> tuple[Array, Array]:
    shape = _merged_shape(items, wanted)
    rest = shape[1:] if shape.ndims is not None else TensorShape(None)
    for value in items.values:
        if value is not None:
            if np.ndim(value) < 1:
                raise invalid("Concat saw a scalar shape at index 0 but requires at least vectors.")
            try:
                rest = rest.merge_with(TensorShape(np.shape(value)[1:]))
            except ValueError:
                raise invalid(
                    f"Tried to concat tensors with unequal shapes: {rest} vs {np.shape(value)[1:]}"
                ) from None
    if not rest.is_fully_defined() and (not items.values or None in items.values):
        raise invalid(
            "All except the first dimension must be fully defined when concating an empty tensor list. element_shape: "
            f"{shape}"
        )
    first = shape.as_list()[0] if shape.ndims else None
    pieces = []
    for index, value in enumerate(items.values):
        if value is None:
            size = leading_dims[index] if index < len(leading_dims) else first
            if size is None:
                raise invalid(
                    f"Concating lists with uninitialized tensors is not supported in this version of TensorListConcat: "
                    f"the length of element {index} is not known"
                )
            value = _filled(items.dtype, [size, *_sizes(rest)])
        pieces.append(value)
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    if not pieces:
        return np.zeros((0, *_sizes(rest)), items.dtype.as_numpy_dtype), lengths
    return np.concatenate(pieces), lengths


def _zeros_like(value: Array) -> np.ndarray:
    return filled(np.shape(value), zero_of(value.dtype), value.dtype)


def _joined(first_handle: Value, second_handle: Value, dtype: DType) -> TensorList:
    first, second = _list(first_handle, dtype), _list(second_handle, dtype)
    shape = _merged_shape(first, second.element_shape)
    return TensorList(dtype, shape, first.values + second.values, first.max_num_elements)


def _rows(tensor: np.ndarray) -> list[Value]:
    """The slices along the first dimension; those of a vector of objects as the runtime has such scalars."""
    if tensor.dtype == object and tensor.ndim == 1:
        return [each if _is_variant(each) else np.array(each, object) for each in tensor]
    return list(tensor)


def _objects(values: Sequence[Value]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array
