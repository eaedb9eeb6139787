"""Functions applied along the first dimension of tensors: `tf.map_fn`, `tf.scan`, `tf.foldl`, `tf.foldr`.

Each is a `while_loop` over TensorArrays of the elements.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/map_fn and the pages of the others
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dtf.build import nest
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.array import shape as shape_of
from dtf.build.ops.control_flow import while_loop
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.tensor import Tensor
from dtf.wire.dtypes import as_dtype
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["foldl", "foldr", "map_fn", "scan"]


def map_fn(
    fn: Callable[..., Any],
    elems: TensorLike,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Stacks `fn(element)` for the elements along the first dimension of `elems`.

    Args:
      fn: from an element, in the structure of `elems`, to a result in the structure of `dtype`.
      elems: a tensor or a structure of tensors, all of one first dimension.
      dtype: the dtypes of the results, in their structure; by default the dtypes of `elems`.
      parallel_iterations: how many elements may be under way at once.
      back_prop: whether gradients are wanted.
      swap_memory: accepted; dtf does not swap memory.
      infer_shape: whether all results have one static shape.
      name: a name scope.
      fn_output_signature: the newer form of `dtype`; TensorSpecs stand for their dtypes.

    Returns:
      Results with a first dimension of the number of elements, in the structure of `dtype`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/map_fn
    """
    if fn_output_signature is not None:
        dtype = nest.map_structure(lambda each: getattr(each, "dtype", each), fn_output_signature)
    with name_scope(name, "map", nest.flatten(elems)):
        elements = _Elements(elems, ValueError)
        dtype = elements.dtypes if dtype is None else dtype
        results = [
            TensorArray(as_dtype(each), elements.count, infer_shape=infer_shape) for each in nest.flatten(dtype)
        ]

        def body(i: Tensor, arrays: list[TensorArray]) -> Any:
            result = fn(elements.read(i))
            nest.assert_same_structure(dtype, result)
            return i + 1, _written(arrays, i, result)

        _, results = while_loop(
            lambda i, _: i < elements.count,
            body,
            (constant(0), results),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        return elements.stacked(results, dtype)


def scan(
    fn: Callable[..., Any],
    elems: TensorLike,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Stacks all accumulators of a fold: `fn(fn(initializer, elems[0]), elems[1])` and so on.

    Args:
      fn: from the accumulator and an element to the next accumulator.
      elems: a tensor or a structure of tensors, all of one first dimension.
      initializer: the first accumulator; by default the first element, which then is the first result too.
      reverse: begins at the last element; results keep their elements' places.

    Returns:
      The accumulators, with a first dimension of the number of elements, in the structure of `initializer`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/scan
    """
    with name_scope(name, "scan", nest.flatten(elems)):
        elements = _Elements(elems)
        start, accumulator = elements.start(initializer, reverse)
        results = [
            TensorArray(each.dtype, elements.count, infer_shape=infer_shape) for each in nest.flatten(accumulator)
        ]
        if initializer is None:
            results = _written(results, start, accumulator)
            start = start - 1 if reverse else start + 1

        def body(i: Tensor, value: Any, arrays: list[TensorArray]) -> Any:
            result = fn(value, elements.read(i))
            nest.assert_same_structure(value, result)
            return (i - 1 if reverse else i + 1), result, _written(arrays, i, result)

        _, _, results = while_loop(
            lambda i, *_: i >= 0 if reverse else i < elements.count,
            body,
            (start, accumulator, results),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        return elements.stacked(results, accumulator)


def foldl(
    fn: Callable[..., Any],
    elems: TensorLike,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last accumulator of `fn(accumulator, element)`, from the first element to the last."""
    with name_scope(name, "foldl", nest.flatten(elems)):
        return _folded(fn, elems, initializer, False, parallel_iterations, back_prop, swap_memory)


def foldr(
    fn: Callable[..., Any],
    elems: TensorLike,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last accumulator of `fn(accumulator, element)`, from the last element to the first."""
    with name_scope(name, "foldr", nest.flatten(elems)):
        return _folded(fn, elems, initializer, True, parallel_iterations, back_prop, swap_memory)


class _Elements:
    """The elements of a structure of tensors, one by one."""

    def __init__(self, elems: Any, scalar_error: type[Exception] = IndexError) -> None:
        tensors = [convert_to_tensor(each) for each in nest.flatten(elems)]
        if not tensors:
            raise ValueError("elems must be a Tensor or (possibly nested) sequence of Tensors. Got no values.")
        length = TensorShape([None])
        for tensor in tensors:
            if tensor.shape.ndims == 0:
                raise scalar_error("elements in elems must be 1+ dimensional Tensors, not scalars")
            length = length.merge_with(tensor.shape[:1])
        self._static_count = length.as_list()[0]
        self._structure = elems if nest.is_nested(elems) else tensors[0]
        static = self._static_count
        self.count = shape_of(tensors[0])[0] if static is None else constant(static, name="n")
        self.dtypes = nest.pack_sequence_as(self._structure, [tensor.dtype for tensor in tensors])
        self._arrays = [TensorArray(tensor.dtype, self.count).unstack(tensor) for tensor in tensors]

    def read(self, index: Tensor) -> Any:
        return nest.pack_sequence_as(self._structure, [array.read(index) for array in self._arrays])

    def start(self, initializer: Any, reverse: bool) -> tuple[Any, Any]:
        """The start index of a fold, and its first accumulator."""
        first = self.count - 1 if reverse else constant(0)
        if initializer is not None:
            return first, nest.map_structure(convert_to_tensor, initializer)
        # An element may be read once, and the loop begins behind this one.
        return first, self.read(first)

    def stacked(self, arrays: list[TensorArray], structure: Any) -> Any:
        tensors = [array.stack() for array in arrays]
        for tensor in tensors:
            tensor.set_shape(TensorShape([self._static_count]).concatenate(tensor.shape[1:]))
        return nest.pack_sequence_as(structure, tensors)


def _written(arrays: list[TensorArray], index: Any, result: Any) -> list[TensorArray]:
    return [array.write(index, value) for array, value in zip(arrays, nest.flatten(result), strict=True)]


def _folded(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any,
    reverse: bool,
    parallel_iterations: int,
    back_prop: bool,
    swap_memory: bool,
) -> Any:
    elements = _Elements(elems)
    start, accumulator = elements.start(initializer, reverse)
    if initializer is None:
        start = start - 1 if reverse else start + 1
    _, result = while_loop(
        lambda i, _: i >= 0 if reverse else i < elements.count,
        lambda i, value: ((i - 1 if reverse else i + 1), fn(value, elements.read(i))),
        (start, accumulator),
        parallel_iterations=parallel_iterations,
        back_prop=back_prop,
        swap_memory=swap_memory,
    )
    return result
