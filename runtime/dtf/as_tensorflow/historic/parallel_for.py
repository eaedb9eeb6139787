"""tensorflow.python.ops.parallel_for: loops over the iterations of a function, and jacobians made of them.

TensorFlow's `pfor` makes one vectorized graph of the body. Here both loops are a `tf.while_loop`: the results are the
same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build import gradients as _gradients
from dtf.build import nest
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.graph import Operation
from dtf.build.ops.array import identity, placeholder_with_default, reshape, shape_of
from dtf.build.ops.control_flow import while_loop
from dtf.build.ops.gathering import gather
from dtf.build.ops.joining import concat
from dtf.build.ops.rearranging import transpose
from dtf.build.ops.reductions import reduce_prod
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.variable_collections import global_variables_initializer
from dtf.test.test_case import TestCase
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["PForTestCase", "batch_jacobian", "for_loop", "jacobian", "pfor", "vectorized_map"]


def for_loop(
    loop_fn: Callable[..., Any], loop_fn_dtypes: Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """The results of `loop_fn(i)` for i from 0, stacked.

    Args:
      loop_fn: takes the iteration, a scalar int32 tensor, and returns a structure of tensors.
      loop_fn_dtypes: the structure of their dtypes.
      iters: the number of iterations.
      parallel_iterations: as of `tf.while_loop`.

    Returns:
      The structure of tensors of shape [iters, ...]; None for an operation.
    """
    flat_dtypes = nest.flatten(loop_fn_dtypes)
    state: dict[str, Any] = {"none": [], "shapes": []}

    def body(i: Any, *arrays: Any) -> Any:
        results = loop_fn(i)
        flat = nest.flatten(results)
        state["structure"] = results
        if len(flat) != len(flat_dtypes):
            raise ValueError(f"loop_fn returned {len(flat)} values, but loop_fn_dtypes has {len(flat_dtypes)}")
        written = []
        state["shapes"], state["none"] = [], []
        for result, array in zip(flat, arrays, strict=True):
            if isinstance(result, Operation) or result is None:
                state["none"].append(True)
                state["shapes"].append(None)
                with control_dependencies([result] if result is not None else []):
                    written.append(array.write(i, identity(0 if array.dtype.is_integer else 0.0)))
                continue
            value = convert_to_tensor(result)
            state["none"].append(False)
            state["shapes"].append(value.shape)
            written.append(array.write(i, value))
        return (i + 1, *written)

    arrays = [TensorArray(_array_dtype(each), iters, infer_shape=False) for each in flat_dtypes]
    count = convert_to_tensor(iters, dtypes.int32)
    found = while_loop(
        lambda i, *_: i < count, body, [0, *arrays],
        parallel_iterations=parallel_iterations or 10,
    )  # fmt: skip
    outputs = []
    length = constant_value(count)
    for array, is_none, shape in zip(found[1:], state["none"], state["shapes"], strict=True):
        if is_none:
            outputs.append(array.flow.op)
            continue
        stacked = array.stack()
        if length != 0 or not shape.is_fully_defined():
            stacked.set_shape(TensorShape([None if length is None else int(length)]).concatenate(shape))
        outputs.append(stacked)
    structure = state["structure"]
    return nest.pack_sequence_as(structure, outputs) if nest.is_nested(structure) else outputs[0]


def _array_dtype(dtype: Any) -> Any:
    return dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)


def pfor(
    loop_fn: Callable[..., Any], iters: Any, parallel_iterations: int | None = None, **_: Any
) -> Any:
    """The results of `loop_fn(i)` for i from 0, stacked; the loop runs in one `tf.while_loop`.

    Args:
      loop_fn: takes the iteration, a scalar int32 tensor (and a `pfor_config`, if it has this argument).
      iters: the number of iterations.
      parallel_iterations: as of `tf.while_loop`.

    Raises:
      ValueError: `parallel_iterations` is less than 2.
    """
    if parallel_iterations is not None and parallel_iterations < 1:
        raise ValueError("Argument `parallel_iterations` must be None or a positive integer.")
    if parallel_iterations == 1:
        raise ValueError("Found `parallel_iterations == 1`. Use `for_loop` instead.")
    # The dtypes of the results are known once the body was built: it is built beside the loop first.
    probe = loop_fn(placeholder_with_default(convert_to_tensor(0), []))
    return for_loop(loop_fn, nest.map_structure(_result_dtype, probe), iters, parallel_iterations)


def _result_dtype(result: Any) -> Any:
    return None if isinstance(result, Operation) or result is None else convert_to_tensor(result).dtype


def vectorized_map(fn: Callable[..., Any], elems: Any, **_: Any) -> Any:
    """`fn` of each row of the elements, stacked."""
    flat = nest.flatten(elems)
    count = shape_of(flat[0])[0] if flat[0].shape.as_list()[0] is None else flat[0].shape.as_list()[0]
    return pfor(lambda i: fn(nest.map_structure(lambda each: gather(each, i), elems)), count)


def jacobian(output: Any, inputs: Any, use_pfor: bool = True, parallel_iterations: int | None = None) -> Any:
    """The derivatives of each element of `output` by each element of the inputs.

    Args:
      output: a tensor.
      inputs: a tensor, or a structure of tensors.

    Returns:
      The structure of tensors of shape output.shape + input.shape; None where the output does not depend on an input.
    """
    flat_inputs = nest.flatten(inputs)
    output_shape = output.shape
    flat_output = reshape(output, [-1])

    size = output_shape.num_elements() if output_shape.is_fully_defined() else shape_of(flat_output)[0]
    depends = [each is not None for each in _gradients.gradients(flat_output, flat_inputs)]
    if not any(depends):
        return nest.pack_sequence_as(inputs, [None] * len(flat_inputs)) if nest.is_nested(inputs) else None
    used = [each for each, needed in zip(flat_inputs, depends, strict=True) if needed]

    def used_only(i: Any) -> list[Any]:
        found = _gradients.gradients(gather(flat_output, i), used)
        return [convert_to_tensor(each) for each in found]

    stacked = iter(for_loop(used_only, [each.dtype for each in used], size, parallel_iterations))
    outputs: list[Any] = []
    for each, needed in zip(flat_inputs, depends, strict=True):
        if not needed:
            outputs.append(None)
            continue
        value = reshape(next(stacked), concat([shape_of(output), shape_of(each)], 0))
        value.set_shape(output_shape.concatenate(each.shape))
        outputs.append(value)
    return nest.pack_sequence_as(inputs, outputs) if nest.is_nested(inputs) else outputs[0]


def batch_jacobian(output: Any, inp: Any, use_pfor: bool = True, parallel_iterations: int | None = None) -> Any:
    """The derivatives of each row of `output` by the same row of `inp`.

    Args:
      output: [batch, y1, ...].
      inp: [batch, x1, ...].

    Returns:
      [batch, y1, ..., x1, ...]

    Raises:
      ValueError: the numbers of rows differ.
    """
    output_shape = output.shape
    if not output_shape[:1].is_compatible_with(inp.shape[:1]):
        raise ValueError(
            f"Need first dimension of output shape ({output.shape}) and inp shape ({inp.shape}) to match."
        )
    rows = shape_of(output)[0] if output_shape.as_list()[0] is None else output_shape.as_list()[0]
    if output_shape.is_fully_defined():
        width: Any = (output_shape.num_elements() or 0) // max(output_shape.as_list()[0], 1)
    else:
        width = reduce_prod(shape_of(output)[1:])
    flat = reshape(output, [rows, width])
    if _gradients.gradients(flat, [inp])[0] is None:
        return None

    def loop_fn(i: Any) -> Any:
        return convert_to_tensor(_gradients.gradients(gather(flat, i, axis=1), [inp])[0])

    stacked = for_loop(loop_fn, output.dtype, width, parallel_iterations)
    by_rows = transpose(reshape(stacked, [width, rows, -1]), [1, 0, 2])
    value = reshape(by_rows, concat([shape_of(output), shape_of(inp)[1:]], 0))
    value.set_shape(output_shape.concatenate(inp.shape[1:]))
    return value


class PForTestCase(TestCase):
    """Tests that compare `pfor` with `for_loop`."""

    def _run_targets(self, targets1: Any, targets2: Any = None, run_init: bool = True) -> list[Any]:
        first = nest.flatten(targets1)
        second = nest.flatten(targets2) if targets2 is not None else []
        if run_init:
            self.evaluate(global_variables_initializer())
        return self.evaluate(first + second)

    def run_and_assert_equal(self, targets1: Any, targets2: Any, rtol: float = 1e-4, atol: float = 1e-5) -> None:
        """Both have the same values."""
        outputs = self._run_targets(targets1, targets2)
        half = len(outputs) // 2
        for one, other in zip(outputs[:half], outputs[half:], strict=True):
            self.assertAllClose(one, other, rtol=rtol, atol=atol)

    def _test_loop_fn(
        self, loop_fn: Callable[..., Any], iters: Any, parallel_iterations: int | None = None,
        loop_fn_dtypes: Any = dtypes.float32, **_: Any,
    ) -> None:  # fmt: skip
        first = pfor(loop_fn, iters=iters, parallel_iterations=parallel_iterations)
        flat = nest.flatten(first)
        wanted = loop_fn_dtypes if nest.is_nested(loop_fn_dtypes) else [each.dtype for each in flat]
        second = for_loop(loop_fn, wanted, iters=iters, parallel_iterations=parallel_iterations)
        self.run_and_assert_equal(first, second)
