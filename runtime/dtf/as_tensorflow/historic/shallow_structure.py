"""The walk that compares the upper part of two structures. `nest` and `dataset_nest` are rules of this one walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Rule", "assert_shallow", "entries", "parts_up_to"]


@dataclass(frozen=True)
class Rule:
    """How structures nest.

    Attributes:
      is_nested: whether a value is a structure, and no leaf.
      shown: a type, as messages have it.
      mappings_are_alike: whether mappings of any two types fit each other. They must have the same keys then, also
        where types are not checked.
    """

    is_nested: Callable[[Any], bool]
    shown: Callable[[type], str]
    mappings_are_alike: bool


def entries(structure: Any) -> list[tuple[Any, Any]]:
    """(key, child) of a structure, in nest's order."""
    if isinstance(structure, Mapping):
        return [(key, structure[key]) for key in sorted(structure)]
    if hasattr(structure, "_fields"):
        return [(name, getattr(structure, name)) for name in structure._fields]
    return list(enumerate(structure))


def assert_shallow(shallow_tree: Any, input_tree: Any, check_types: bool, rule: Rule) -> None:
    """The shallow structure is the upper part of the other one.

    Raises:
      TypeError: a leaf stands where the shallow tree has a sequence, or the sequences differ in type.
      ValueError: the sequences differ in length, or the dictionaries in their keys.
    """
    if not rule.is_nested(shallow_tree):
        return
    given, wanted = rule.shown(type(input_tree)), rule.shown(type(shallow_tree))
    if not rule.is_nested(input_tree):
        raise TypeError(f"If shallow structure is a sequence, input must also be a sequence. Input has type: {given}.")
    are_mappings = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    has_any_type = are_mappings and rule.mappings_are_alike
    if check_types and not has_any_type and not isinstance(input_tree, type(shallow_tree)):
        raise TypeError(
            "The two structures don't have the same sequence type. "
            f"Input structure has type {given}, while shallow structure has type {wanted}."
        )
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. "
            f"Input structure has length {len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if (has_any_type or are_mappings and check_types) and set(shallow_tree) != set(input_tree):
        raise ValueError(
            "The two structures don't have the same keys. "
            f"Input structure has keys {list(input_tree)}, while shallow structure has keys {list(shallow_tree)}."
        )
    for (_, shallow), (_, child) in zip(entries(shallow_tree), entries(input_tree), strict=True):
        assert_shallow(shallow, child, check_types, rule)


def parts_up_to(shallow_tree: Any, tree: Any, rule: Rule) -> Iterator[Any]:
    """The parts of a tree that stand at the leaves of the shallow one, which `assert_shallow` has accepted."""
    if not rule.is_nested(shallow_tree):
        yield tree
        return
    for (_, shallow), (_, child) in zip(entries(shallow_tree), entries(tree), strict=True):
        yield from parts_up_to(shallow, child, rule)
