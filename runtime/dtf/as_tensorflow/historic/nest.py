"""tensorflow.python.util.nest: functions that flatten only the upper part of structures, and paths to their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dtf.as_tensorflow.historic.shallow_structure import Rule, assert_shallow, entries, parts_up_to
from dtf.build.nest import is_nested, pack_sequence_as

__all__ = [
    "assert_shallow_structure", "flatten_dict_items", "flatten_up_to", "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths", "get_traverse_shallow_structure", "is_nested_or_composite", "is_sequence",
    "list_to_tuple", "map_structure_up_to", "map_structure_with_paths", "map_structure_with_tuple_paths",
    "yield_flat_paths",
]  # fmt: skip

is_sequence = is_nested_or_composite = is_nested

_RULE = Rule(is_nested, str, mappings_are_alike=True)


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """The shallow structure is the upper part of the other one.

    Raises:
      TypeError: a leaf stands where the shallow tree has a sequence, or the sequences differ in type.
      ValueError: the sequences differ in length, or the dictionaries in their keys.
    """
    assert_shallow(shallow_tree, input_tree, check_types, _RULE)


def flatten_up_to(shallow_tree: Any, input_tree: Any, check_types: bool = True, **_: Any) -> list[Any]:
    """The parts of the tree that stand at the leaves of the shallow one."""
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    return list(parts_up_to(shallow_tree, input_tree, _RULE))


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """`func` of the parts that stand at the leaves of the shallow tree, in its shape.

    Raises:
      ValueError: there are no inputs.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = kwargs.get("check_types", True)
    columns = [flatten_up_to(shallow_tree, each, check_types) for each in inputs]
    return pack_sequence_as(shallow_tree, [func(*parts) for parts in zip(*columns, strict=True)])


def _with_paths(structure: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not is_nested(structure):
        yield path, structure
        return
    for key, child in entries(structure):
        yield from _with_paths(child, (*path, key))


def yield_flat_paths(nest: Any, **_: Any) -> Iterator[tuple[Any, ...]]:
    """The paths to the leaves: tuples of keys and positions."""
    return (path for path, _ in _with_paths(nest))


def flatten_with_tuple_paths(structure: Any, **_: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """(path, leaf) of each leaf."""
    return list(_with_paths(structure))


def flatten_with_joined_string_paths(structure: Any, separator: str = "/", **_: Any) -> list[tuple[str, Any]]:
    """(path as text, leaf) of each leaf."""
    return [(separator.join(str(each) for each in path), leaf) for path, leaf in _with_paths(structure)]


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """`func(path, *leaves)` in the structures' shape."""
    from dtf.build.nest import assert_same_structure

    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    columns = [flatten_with_tuple_paths(each) for each in structure]
    found = [func(row[0][0], *(leaf for _, leaf in row)) for row in zip(*columns, strict=True)]
    return pack_sequence_as(structure[0], found)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """`func(path as text, *leaves)` in the structures' shape."""
    return map_structure_with_tuple_paths(
        lambda path, *leaves: func("/".join(str(each) for each in path), *leaves), *structure
    )


def get_traverse_shallow_structure(traverse_fn: Callable[[Any], Any], structure: Any, **_: Any) -> Any:
    """A structure of booleans: how far `traverse_fn` says to go down.

    Raises:
      TypeError: `traverse_fn` answers neither a boolean nor a structure of booleans.
      ValueError: it answers a structure for a leaf.
    """
    wanted = traverse_fn(structure)
    if not is_nested(structure):
        if not isinstance(wanted, bool):
            raise ValueError(f"traverse_fn returned a non boolean scalar: {wanted} for a leaf")
        return wanted
    if isinstance(wanted, bool):
        if not wanted:
            return False
        wanted = pack_sequence_as(_flat(structure), [True] * len(structure))
    assert_shallow_structure(wanted, structure)
    found = []
    for (_, go_on), (_, child) in zip(entries(wanted), entries(structure), strict=True):
        if not isinstance(go_on, bool):
            raise TypeError(f"traverse_fn didn't return a depth=1 structure of only bools.  It returned: {wanted}")
        found.append(get_traverse_shallow_structure(traverse_fn, child) if go_on else False)
    parts = dict(zip((key for key, _ in entries(structure)), found, strict=True))
    if isinstance(structure, Mapping):
        return type(structure)(parts)  # type: ignore[call-arg]
    return type(structure)(*found) if hasattr(structure, "_fields") else type(structure)(found)


def _flat(structure: Any) -> Any:
    """The structure with a leaf in each place of its first level."""
    if isinstance(structure, Mapping):
        return {key: None for key in structure}
    return type(structure)(*[None] * len(structure)) if hasattr(structure, "_fields") else [None] * len(structure)


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dictionary whose keys are structures, with their leaves as keys.

    Raises:
      TypeError: the argument is not a dictionary.
      ValueError: a key and its value nest differently, or a key comes twice.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    flat: dict[Any, Any] = {}
    for key, value in dictionary.items():
        pairs = list(zip(_leaves(key), _leaves(value), strict=False)) if is_nested(key) else [(key, value)]
        if is_nested(key) and len(_leaves(value)) != len(_leaves(key)):
            raise ValueError(f"Could not flatten dictionary. Key had {len(_leaves(key))} elements, "
                             f"but value had {len(_leaves(value))} elements. Key: {key}, value: {value}.")  # fmt: skip
        for one, other in pairs:
            if one in flat:
                raise ValueError(f"Could not flatten dictionary: key {one} is not unique.")
            flat[one] = other
    return flat


def _leaves(structure: Any) -> Sequence[Any]:
    return [leaf for _, leaf in _with_paths(structure)]


def list_to_tuple(structure: Any) -> Any:
    """The structure with tuples in the place of lists."""
    if isinstance(structure, list):
        return tuple(list_to_tuple(each) for each in structure)
    if isinstance(structure, Mapping):
        return {key: list_to_tuple(value) for key, value in structure.items()}
    if hasattr(structure, "_fields"):
        return type(structure)(*(list_to_tuple(each) for each in structure))
    return tuple(list_to_tuple(each) for each in structure) if isinstance(structure, tuple) else structure
