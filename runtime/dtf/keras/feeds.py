"""The arrays of a step of a model: inputs, targets and weights of examples, for the placeholders of its program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dtf.build.tensor import Tensor
from dtf.keras.batches import Batch, in_arrays
from dtf.keras.compiling import Compiles, Program, by_output

__all__ = ["Feeds"]


class Feeds(Compiles):
    """The methods of models that take arrays."""

    def _sized(self, x: Any, batch_size: int | None) -> int | None:
        """The size of batches: that of the inputs' static shape, if it has one.

        Raises:
          ValueError: the arrays cannot be divided into such batches.
        """
        fixed = next((each.shape[0].value for each in self.inputs if each.shape.ndims), None)
        if fixed is None:
            return batch_size
        arrays = in_arrays(x, raw=True)
        if not arrays or not all(isinstance(each, np.ndarray) for each in arrays):
            return batch_size
        if batch_size not in (None, fixed) or len(arrays[0]) % fixed:
            raise ValueError(
                f"Model {self.name} takes batches of {fixed} examples, a multiple in all, "
                f"not {len(arrays[0])} in batches of {batch_size or fixed}"
            )
        return fixed

    def _input_feeds(self, x: Any) -> dict[Any, Any]:
        given = by_output(x, self.input_names, "inputs")
        feeds = {}
        for each, tensor in zip(given, self.inputs, strict=True):
            array = np.asarray(each, tensor.dtype.base_dtype.as_numpy_dtype)
            if not tensor.shape.is_compatible_with(array.shape) and tensor.shape.ndims == array.ndim + 1:
                array = array[..., None]
            if not tensor.shape.is_compatible_with(array.shape):
                raise ValueError(
                    f"Input {tensor.op.name} takes examples of shape {tuple(tensor.shape.as_list()[1:])}, "
                    f"not {array.shape[1:]}"
                )
            feeds[tensor] = array
        return feeds

    def _target_feeds(self, batch: Batch, program: Program, class_weight: Any) -> dict[Any, Any]:
        every_output = zip(self.output_names, program.targets, program.weights, strict=True)
        wanted = [(name, tensor, weight) for name, tensor, weight in every_output if tensor is not None]
        if not wanted:
            return {}
        if batch.y is None:
            raise ValueError(f"The model has a loss for {[name for name, *_ in wanted]}, but no targets are given")
        names = [name for name, *_ in wanted]
        feeds: dict[Any, Any] = {}
        every = in_arrays(batch.y)
        given = by_output(batch.y, names if isinstance(batch.y, Mapping) or len(every) == len(names) or len(names) == 1
                          else self.output_names, "targets")  # fmt: skip
        weights = by_output(batch.weights, names, "weights", spread=True) if batch.weights is not None else None
        for index, (name, tensor, weight) in enumerate(wanted):
            array = _fitting(np.asarray(given[index], tensor.dtype.as_numpy_dtype), tensor)
            feeds[tensor] = array
            if weights is not None and weights[index] is not None:
                feeds[weight] = np.asarray(weights[index], np.float32)
            if class_weight is not None:
                of_classes = class_weight.get(name, class_weight) if isinstance(class_weight, Mapping) else class_weight
                is_wide = array.ndim > 1 and array.shape[-1] > 1
                classes = array.argmax(-1) if is_wide else array.reshape(len(array), -1)[:, 0]
                own = np.array([of_classes[int(each)] for each in classes], np.float32)
                feeds[weight] = own * feeds[weight] if weight in feeds else own
        return feeds


def _fitting(array: np.ndarray, tensor: Tensor) -> np.ndarray:
    """The targets in the shape of a placeholder."""
    if tensor.shape.ndims is None or tensor.shape.is_compatible_with(array.shape):
        return array
    shape = [len(array) if array.ndim else 1, *[-1 if size is None else size for size in tensor.shape.as_list()[1:]]]
    if array.ndim == tensor.shape.ndims - 1 and shape[-1] in (-1, 1):
        return array[..., None]
    if shape.count(-1) <= 1:
        try:
            return array.reshape(shape)
        except ValueError:
            pass
    message = f"Targets of shape {array.shape[1:]} differ from the model's output shape: {tuple(shape[1:])}"
    raise ValueError(message)
