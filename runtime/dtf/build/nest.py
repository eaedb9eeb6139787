"""Nested structures of lists, tuples, namedtuples and dicts: flatten them, and pack a flat list again.

Dicts count in the order of their sorted keys, as in TensorFlow's nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


def is_nested(structure: Any) -> bool:
    """Whether `structure` is a list, tuple or dict rather than a leaf."""
    return isinstance(structure, list | tuple | Mapping)


def flatten(structure: Any) -> list[Any]:
    """The leaves, in order; a leaf alone gives a list of it."""
    if not is_nested(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The leaves of `flat_sequence` in the shape of `structure`.

    Raises:
      ValueError: there are more or fewer leaves than `structure` has.
    """
    expected = len(flatten(structure))
    if expected != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {expected} elements, but flat_sequence had "
            f"{len(flat_sequence)} elements. Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return _packed(structure, iter(flat_sequence))


def map_structure(function: Callable[..., Any], *structures: Any) -> Any:
    """`function` of the leaves of structures of one shape, in that shape.

    Raises:
      ValueError: the structures differ.
    """
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    columns = zip(*(flatten(structure) for structure in structures), strict=True)
    return pack_sequence_as(structures[0], [function(*leaves) for leaves in columns])


def assert_same_structure(first: Any, second: Any) -> None:
    """Raises ValueError unless both have the same nesting, and TypeError if their containers differ in type."""
    if is_nested(first) != is_nested(second):
        raise ValueError(f"The two structures don't have the same nested structure: {first} and {second}.")
    if not is_nested(first):
        return
    if isinstance(first, Mapping) != isinstance(second, Mapping) or (
        isinstance(first, tuple) != isinstance(second, tuple)
    ):
        raise TypeError(
            f"The two structures don't have the same sequence type: {type(first).__name__} and {type(second).__name__}."
        )
    if isinstance(first, Mapping) and set(first) != set(second):
        raise ValueError(f"The two dictionaries don't have the same set of keys: {sorted(first)}, {sorted(second)}.")
    children = list(_children(first)), list(_children(second))
    if len(children[0]) != len(children[1]):
        raise ValueError(
            f"The two structures don't have the same number of elements: {first} and {second}."
        )
    for one, other in zip(*children, strict=True):
        assert_same_structure(one, other)


def _children(structure: Any) -> Iterator[Any]:
    if isinstance(structure, Mapping):
        return (structure[key] for key in sorted(structure))
    return iter(structure)


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    if isinstance(structure, Mapping):
        packed = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        return type(structure)((key, packed[key]) for key in structure)  # type: ignore[call-arg]
    children = [_packed(child, leaves) for child in structure]
    return type(structure)(*children) if hasattr(structure, "_fields") else type(structure)(children)
