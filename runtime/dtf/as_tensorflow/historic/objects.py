"""tensorflow.python.util.object_identity and serialization: collections that compare by identity, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any

__all__ = ["ObjectIdentityDictionary", "ObjectIdentitySet", "get_json_type"]


class ObjectIdentityDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are compared by identity."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}
        self.update(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._entries[id(key)][1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries[id(key)] = key, value

    def __delitem__(self, key: Any) -> None:
        del self._entries[id(key)]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


class ObjectIdentitySet(MutableSet[Any]):
    """A set whose members are compared by identity."""

    def __init__(self, members: Iterable[Any] = ()) -> None:
        self._members = {id(each): each for each in members}

    def __contains__(self, member: object) -> bool:
        return id(member) in self._members

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def add(self, value: Any) -> None:
        """Adds a member."""
        self._members[id(value)] = value

    def discard(self, value: Any) -> None:
        """Removes a member, if it is one."""
        self._members.pop(id(value), None)


def get_json_type(obj: Any) -> Any:
    """The JSON form of an object.

    Raises:
      TypeError: nothing does.
    """
    from dtf.wire.dtypes import DType
    from dtf.wire.tensor_shape import TensorShape

    if hasattr(obj, "get_config"):
        return {"class_name": type(obj).__name__, "config": obj.get_config()}
    if hasattr(obj, "tolist"):
        return obj.tolist()
    if isinstance(obj, TensorShape):
        return obj.as_list()
    if isinstance(obj, DType):
        return obj.name
    if callable(obj):
        return obj.__name__
    raise TypeError(f"not JSON serializable: {obj!r}")
