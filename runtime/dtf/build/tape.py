"""`tf.GradientTape` in a graph: the graph keeps every operation, so the tape only chooses the moment.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/GradientTape
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.gradients import UnconnectedGradients, gradients
from dtf.build.ops.array import reshape, shape_of
from dtf.build.ops.check_ops import assert_equal
from dtf.build.ops.control_flow import while_loop
from dtf.build.ops.filling import zeros
from dtf.build.ops.joining import concat, stack
from dtf.build.ops.rearranging import transpose
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.tensor import Tensor
from dtf.build.variable_collections import trainable_variables

__all__ = ["GradientTape"]


class GradientTape:
    """Gives gradients of tensors of the graph, as `tf.gradients` does.

    Args:
      persistent: accepted; gradients may always be computed again.
      watch_accessed_variables: accepted; every source is watched.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watches_variables = watch_accessed_variables

    def __enter__(self) -> GradientTape:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def watch(self, tensor: Any) -> None:
        """Does nothing: every tensor is watched."""

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A block like any other: use tf.stop_gradient to cut gradients off."""
        yield

    def reset(self) -> None:
        """Does nothing: the graph keeps its operations."""

    def watched_variables(self) -> tuple[Any, ...]:
        """The trainable variables of the graph, unless variables are not watched."""
        return tuple(trainable_variables()) if self._watches_variables else ()

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradients of the sum of `target` for each of `sources`, in the structure of `sources`.

        Args:
          target: tensors, nested.
          sources: tensors or variables, nested.
          output_gradients: the gradient of each target; ones by default.
          unconnected_gradients: tf.UnconnectedGradients.NONE or ZERO.
        """
        grads = None if output_gradients is None else nest.flatten(output_gradients)
        targets = [convert_to_tensor(each) for each in nest.flatten(target)]
        found = gradients(targets, nest.flatten(sources), grad_ys=grads, unconnected_gradients=unconnected_gradients)
        return nest.pack_sequence_as(sources, found) if nest.is_nested(sources) else found[0]

    def jacobian(
        self, target: Any, sources: Any, unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None, experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """The derivatives of each element of `target`: [*target.shape, *source.shape] for each source.

        Args:
          target: a tensor of any size.
          sources: tensors or variables, nested.
          unconnected_gradients: tf.UnconnectedGradients.NONE or ZERO.
          parallel_iterations: as of `tf.while_loop`.
          experimental_use_pfor: accepted; there is one loop.
        """
        del experimental_use_pfor
        wanted = nest.flatten(sources)
        elements = reshape(target, [-1])
        found = _derivatives(elements, wanted, unconnected_gradients, parallel_iterations, lambda i: elements[i])
        result: list[Tensor | None] = []
        for source, stacked in zip(wanted, found, strict=True):
            if stacked is not None:
                of = convert_to_tensor(source)
                stacked = reshape(stacked, concat([shape_of(target), shape_of(of)], 0))
                stacked.set_shape(target.shape.concatenate(of.shape))
            result.append(stacked)
        return nest.pack_sequence_as(sources, result) if nest.is_nested(sources) else result[0]

    def batch_jacobian(
        self, target: Any, source: Any, unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None, experimental_use_pfor: bool = True,
    ) -> Tensor:  # fmt: skip
        """The derivatives of each row of `target` by the same row of `source`.

        Args:
          target: [batch, y1, ...]; row i depends on row i of the source alone.
          source: [batch, x1, ...].
          unconnected_gradients: tf.UnconnectedGradients.NONE or ZERO.
          parallel_iterations: as of `tf.while_loop`.
          experimental_use_pfor: accepted; there is one loop.

        Returns:
          [batch, y1, ..., x1, ...]; zeros if the target does not depend on the source.

        Raises:
          ValueError: the rank of one is not known, or the numbers of rows differ.
        """
        del experimental_use_pfor
        ranks = target.shape.ndims, source.shape.ndims
        if not all(ranks) or not target.shape[:1].is_compatible_with(source.shape[:1]):
            raise ValueError(
                f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to match."
            )
        rows = shape_of(source)[:1]
        check = assert_equal(rows, shape_of(target)[:1], message="the numbers of rows of target and source differ")
        with control_dependencies([check]):
            columns = transpose(reshape(target, concat([rows, [-1]], 0)), [1, 0])
        (stacked,) = _derivatives(columns, [source], unconnected_gradients, parallel_iterations, lambda i: columns[i])
        shape = concat([shape_of(target), shape_of(source)[1:]], 0)
        if stacked is None:
            result = zeros(shape, target.dtype)
        else:
            by_rows = transpose(reshape(stacked, concat([shape_of(columns), [-1]], 0)), [1, 0, 2])
            result = reshape(by_rows, shape)
        result.set_shape(target.shape.concatenate(source.shape[1:]))
        return result


def _derivatives(
    parts: Tensor, sources: list[Any], unconnected: Any, parallel_iterations: int | None,
    part: Callable[[Any], Tensor],
) -> list[Tensor | None]:  # fmt: skip
    """For each source the gradients of part(i), for each i up to the first size of `parts`, stacked; or None.

    A known number of parts is unrolled, since loops inside of loops have no gradients of their own.
    """
    count = parts.shape.as_list()[0]
    if count is not None:
        rows = [gradients(part(i), sources, unconnected_gradients=unconnected) for i in range(count)]
        if not rows:
            like = gradients(parts, sources, unconnected_gradients=unconnected)
            return [None if each is None else zeros([0], each.dtype) for each in like]
        columns = zip(*rows, strict=True)
        return [None if column[0] is None else stack(list(map(convert_to_tensor, column))) for column in columns]
    probe = gradients(parts, sources, unconnected_gradients=unconnected)
    used = [source for source, found in zip(sources, probe, strict=True) if found is not None]
    if not used:
        return [None] * len(sources)
    total = shape_of(parts)[0]
    arrays = [TensorArray(convert_to_tensor(each).dtype, total, infer_shape=False) for each in used]

    def body(i: Tensor, *written: Any) -> Any:
        found = gradients(part(i), used, unconnected_gradients=unconnected)
        return (i + 1, *[array.write(i, each) for array, each in zip(written, found, strict=True)])

    looped = while_loop(lambda i, *_: i < total, body, [0, *arrays], parallel_iterations=parallel_iterations or 10)
    stacked = iter(looped[1:])
    return [None if found is None else next(stacked).stack() for found in probe]
