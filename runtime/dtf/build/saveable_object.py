"""Objects that a Saver saves besides variables: they name their tensors and make the op that restores them.

Owns the two base classes. An object with state of its own (a lookup table, an iterator) subclasses one and joins the
collection SAVEABLE_OBJECTS. Reading a Saver's list is train.saveable's.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Saver
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.tensor import Tensor
from dtf.wire.dtypes import DType

__all__ = ["SaveSpec", "SaveableObject"]


class SaveSpec:
    """One tensor of a checkpoint.

    Args:
      tensor: the tensor to save, or a function that makes it.
      slice_spec: which part of the whole it is, in the text form of the op SaveV2; "" for a whole.
      name: its name in the checkpoint.
      dtype, device: needed when `tensor` is a function.
    """

    def __init__(
        self, tensor: Any, slice_spec: str, name: str, dtype: DType | None = None, device: str | None = None
    ) -> None:
        if callable(tensor) and (dtype is None or device is None):
            raise AssertionError(
                "When passing a callable `tensor` to a SaveSpec, an explicit dtype and device must be provided."
            )
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = (tensor.dtype if dtype is None else dtype).base_dtype
        self.device: str = tensor.device if device is None else device

    @property
    def tensor(self) -> Tensor:
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """Something with state that a Saver can save; a subclass says in `restore` how the state is set.

    Args:
      op: the object that has the state.
      specs: its SaveSpecs, all on one device.
      name: a name for messages.
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = list(specs)
        self.name = name

    @property
    def device(self) -> str:
        return self.specs[0].device

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Tensor] | None) -> Any:
        """Makes the op that sets the state from tensors in the order of `specs`.

        Args:
          restored_shapes: shapes to give the tensors first, when the Saver is one that reshapes.
        """
        raise ValueError("Calling an abstract method.")
