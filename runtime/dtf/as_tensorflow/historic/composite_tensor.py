"""tensorflow.python.framework.composite_tensor: the base of a program's own kinds of values made of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build import nest
from dtf.build.composite import Composite
from dtf.build.composites import flatten
from dtf.build.sparse import IndexedSlices, SparseTensor

__all__ = ["CompositeTensor", "is_composite_or_composite_value", "replace_composites_with_components"]


class CompositeTensor(Composite):
    """A value that its `_type_spec` takes apart into tensors and makes again of them."""

    @property
    def _type_spec(self) -> Any:
        """The TypeSpec of the value."""
        raise NotImplementedError(f"{type(self).__name__}._type_spec()")

    def _shape_invariant_to_type_spec(self, shape: Any) -> Any:
        """The TypeSpec for a shape invariant of a loop."""
        raise NotImplementedError(f"{type(self).__name__}._shape_invariant_to_type_spec")

    def consumers(self) -> list[Any]:
        """The operations that take a part of the value, each once."""
        return list(dict.fromkeys(op for part in self._parts() for op in part.consumers()))

    def _parts(self) -> list[Any]:
        return flatten(self._type_spec._to_components(self))

    def _with_parts(self, parts: Sequence[Any]) -> Any:
        spec = self._type_spec
        return spec._from_components(nest.pack_sequence_as(spec._to_components(self), list(parts)))

    def _fetched(self, values: Sequence[Any]) -> Any:
        return self._with_parts(values)

    def _fed(self, value: Any) -> list[Any]:
        return nest.flatten(self._type_spec._to_components(value))


def is_composite_or_composite_value(tensor: Any) -> bool:
    """Whether a value is made of tensors."""
    return isinstance(tensor, Composite | SparseTensor | IndexedSlices)


def replace_composites_with_components(structure: Any) -> list[Any]:
    """The tensors of a structure, with the parts of values in the place of these."""
    return flatten(structure)
