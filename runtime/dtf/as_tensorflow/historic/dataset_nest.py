"""tensorflow.python.data.util.nest: structures whose lists are values, as in elements of datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dtf.as_tensorflow.historic.shallow_structure import Rule, assert_shallow, parts_up_to
from dtf.build.ops import data_structure as _structure

__all__ = [
    "assert_same_structure", "assert_shallow_structure", "flatten", "flatten_up_to", "is_nested", "is_sequence",
    "map_structure", "map_structure_up_to", "pack_sequence_as",
]  # fmt: skip

is_sequence = is_nested = _structure.is_nested
flatten = _structure.flatten

_RULE = Rule(is_nested, lambda kind: f"'{kind.__name__}'", mappings_are_alike=False)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Two structures have the same form.

    Raises:
      ValueError: they nest differently, or a dictionary has other keys.
      TypeError: their tuples or dictionaries differ in type, if `check_types`.
    """
    if len(flatten(nest1)) != len(flatten(nest2)):
        raise ValueError(
            f"The two structures don't have the same number of elements.\n\n"
            f"First structure: {nest1}\n\nSecond structure: {nest2}"
        )
    _assert_same(nest1, nest2, check_types)


def _assert_same(first: Any, second: Any, check_types: bool) -> None:
    if is_nested(first) != is_nested(second):
        raise ValueError(
            f"The two structures don't have the same nested structure. First structure: {first}, second structure: "
            f"{second}."
        )
    if not is_nested(first):
        return
    if check_types and type(first) is not type(second):
        raise TypeError(
            f"The two structures don't have the same sequence type. First structure has type {type(first)}, while "
            f"second structure has type {type(second)}."
        )
    if isinstance(first, Mapping):
        if set(first) != set(second):
            raise ValueError(
                f"The two dictionaries don't have the same set of keys. First structure has keys {list(first)}, "
                f"while second structure has keys {list(second)}."
            )
        pairs = [(first[key], second[key]) for key in sorted(first)]
    else:
        pairs = list(zip(first, second, strict=False))
    for one, other in pairs:
        _assert_same(one, other, check_types)


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """The values in the form of the structure.

    Raises:
      TypeError: `flat_sequence` is a value alone.
      ValueError: it has another length than the structure.
    """
    if not (is_nested(flat_sequence) or isinstance(flat_sequence, list)):
        raise TypeError("flat_sequence must be a sequence")
    expected = len(flatten(structure))
    if not is_nested(structure) and len(flat_sequence) != 1:
        raise ValueError(f"Structure is a scalar but len(flat_sequence) == {len(flat_sequence)} > 1")
    if expected != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {expected} elements, but flat_sequence had "
            f"{len(flat_sequence)} elements.  Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return _structure.pack(structure, list(flat_sequence))


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: Any) -> Any:
    """`func` of the leaves of structures of one form, in that form.

    Raises:
      TypeError: `func` cannot be called.
      ValueError: no structure is given, or they differ.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    unknown = set(check_types_dict) - {"check_types"}
    if unknown:
        raise ValueError(f"Only valid keyword argument is check_types, not {sorted(unknown)}")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types_dict.get("check_types", True))
    columns = zip(*(flatten(each) for each in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in columns])


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """The shallow structure is the upper part of the other one.

    Raises:
      TypeError: a leaf stands where the shallow tree has a sequence, or the sequences differ in type.
      ValueError: the sequences differ in length, or the dictionaries in their keys.
    """
    assert_shallow(shallow_tree, input_tree, check_types, _RULE)


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """The parts of the tree that stand at the leaves of the shallow one."""
    assert_shallow_structure(shallow_tree, input_tree)
    return list(parts_up_to(shallow_tree, input_tree, _RULE))


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """`func` of the parts that stand at the leaves of the shallow tree, in its form.

    Raises:
      ValueError: there are no inputs.
    """
    if not inputs:
        raise ValueError("Argument `inputs` is empty. Cannot map over no sequences.")
    columns = [flatten_up_to(shallow_tree, each) for each in inputs]
    return pack_sequence_as(shallow_tree, [func(*parts) for parts in zip(*columns, strict=True)])
