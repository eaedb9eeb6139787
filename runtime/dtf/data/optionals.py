"""Optionals: an element that an iterator may have, without an error at its end.

    element = tf.data.experimental.get_next_as_optional(iterator)
    value = tf.cond(element.has_value(), lambda: element.get_value(), lambda: tf.constant(-1))

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental/Optional
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.ops import data_structure as structure
from dtf.build.tensor import Tensor

__all__ = ["Optional", "get_next_as_optional"]


class Optional:
    """A value of a structure, or none.

    Args:
      variant_tensor: a scalar of dtype variant.
      element_spec: the structure of the value.
    """

    def __init__(self, variant_tensor: Tensor, element_spec: Any) -> None:
        self._variant_tensor, self._element_spec = variant_tensor, element_spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional that has `value`, a tensor or a structure of tensors."""
        value = structure.converted(value)
        tensors = structure.flat_tensors(value)
        return Optional(apply_op("OptionalFromValue", None, components=tensors), structure.spec_of(value))

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """An optional without a value, of the structure that others of this kind have."""
        return Optional(apply_op("OptionalNone", None), value_structure)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value, of this structure."""
        return Optional.none_from_structure(element_spec)

    def has_value(self, name: str | None = None) -> Tensor:
        """A scalar bool."""
        return apply_op("OptionalHasValue", name, optional=self._variant_tensor)

    def get_value(self, name: str | None = None) -> Any:
        """The value in its structure; InvalidArgumentError when it runs without one."""
        tensors = apply_op(
            "OptionalGetValue",
            name,
            optional=self._variant_tensor,
            output_types=structure.flat_types(self._element_spec),
            output_shapes=structure.flat_shapes(self._element_spec),
        )
        return structure.packed(self._element_spec, tensors)

    @property
    def value_structure(self) -> Any:
        """The structure of the value."""
        return self._element_spec

    element_spec = value_structure


def get_next_as_optional(iterator: Any) -> Optional:
    """The next element of an iterator, or none at its end."""
    spec = iterator.element_spec
    made = apply_op(
        "IteratorGetNextAsOptional",
        None,
        iterator=iterator._iterator_resource,
        output_types=structure.flat_types(spec),
        output_shapes=structure.flat_shapes(spec),
    )
    return Optional(made, spec)
