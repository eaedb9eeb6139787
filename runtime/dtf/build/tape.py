"""`tf.GradientTape` in a graph: the graph keeps every operation, so the tape only chooses the moment.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/GradientTape
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.gradients import UnconnectedGradients, gradients
from dtf.build.ops.array import reshape, shape_of
from dtf.build.ops.joining import concat, stack
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
        self, target: Any, sources: Any, unconnected_gradients: Any = UnconnectedGradients.NONE, **_: Any
    ) -> Any:
        """The derivatives of each element of `target`: [*target.shape, *source.shape] for each source."""
        targets = reshape(target, [-1])
        wanted = nest.flatten(sources)
        rows = [
            gradients(targets[index], wanted, unconnected_gradients=unconnected_gradients)
            for index in range(_size(target))
        ]
        found: list[Tensor | None] = []
        for each in zip(*rows, strict=True):
            if each[0] is None:
                found.append(None)
                continue
            whole = stack(list(each))
            found.append(reshape(whole, concat([shape_of(target), shape_of(whole)[1:]], 0)))
        return nest.pack_sequence_as(sources, found) if nest.is_nested(sources) else found[0]


def _size(tensor: Tensor) -> int:
    count = tensor.shape.num_elements()
    if count is None:
        raise ValueError(f"The jacobian of a target of unknown size is not supported: {tensor}")
    return count
