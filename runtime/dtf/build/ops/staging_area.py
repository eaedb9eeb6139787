"""Staging areas as TensorFlow 1.x's classes: values that one step puts and a later one takes, such as batches ahead.

Owns the classes that make the nodes; their static shapes are in `staging`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/staging/StagingArea
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, get_default_graph, name_scope
from dtf.build.ops.data_flow import Components
from dtf.build.tensor import Operation, Tensor
from dtf.wire.dtypes import as_dtype
from dtf.wire.tensor_shape import TensorShape, as_shape

__all__ = ["MapStagingArea", "StagingArea"]


class _BaseStagingArea(Components):
    """Base of both kinds of areas: components with dtypes, shapes and optional names."""

    def __init__(
        self, dtypes: Sequence[Any], shapes: Sequence[Any] | None, names: Sequence[str] | None,
        shared_name: str | None, capacity: int, memory_limit: int,
    ) -> None:  # fmt: skip
        if shared_name is not None and not isinstance(shared_name, str):
            raise ValueError("shared_name must be a string")
        if capacity < 0 or memory_limit < 0:
            raise ValueError("capacity and memory_limit must not be negative")
        self._dtypes = [as_dtype(dtype) for dtype in dtypes]
        self._shapes = [as_shape(each) for each in shapes] if shapes is not None else [TensorShape(None)] * len(dtypes)
        if len(self._shapes) != len(self._dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        self._names = list(names) if names is not None else None
        self._capacity, self._memory_limit = capacity, memory_limit
        graph = get_default_graph()
        self._name = shared_name or graph.unique_name(type(self).__name__)
        with name_scope(f"{self._name}_root"):
            self._coloc_op = apply_op("NoOp")

    @property
    def name(self) -> str:
        """The name that areas of other graphs share it by."""
        return self._name

    @property
    def capacity(self) -> int:
        """How many entries it has at most; 0: no limit."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """How many bytes it has at most; 0: no limit."""
        return self._memory_limit

    def _attrs(self, **more: Any) -> dict[str, Any]:
        return {
            "capacity": self._capacity, "memory_limit": self._memory_limit, "shared_name": self._name,
            "dtypes": self._dtypes, **more,
        }  # fmt: skip

    def _checked(self, values: Any, indices: Sequence[int] | None = None) -> tuple[list[Tensor], list[int]]:
        """The values as tensors, and which components they are."""
        if isinstance(values, Mapping):
            if self._names is None:
                raise ValueError("values must be a list: the area has no names")
            unknown = sorted(set(values) - set(self._names))
            if unknown:
                raise ValueError(f"the area has no component named {unknown[0]!r}")
            indices = [self._names.index(name) for name in values]
            values = list(values.values())
        else:
            if self._names is not None and indices is None:
                raise ValueError("values must be a dictionary: the area has names")
            values = list(values) if isinstance(values, list | tuple) else [values]
            indices = list(range(len(values))) if indices is None else list(indices)
        if len(indices) != len(values):
            raise ValueError(f"{len(values)} values for {len(indices)} indices")
        tensors = []
        for value, index in sorted(zip(values, indices, strict=True), key=lambda pair: pair[1]):
            if not 0 <= index < len(self._dtypes):
                raise ValueError(f"there is no component {index}, only {len(self._dtypes)} of them")
            tensor = convert_to_tensor(value, self._dtypes[index], name=f"component_{index}")
            if not tensor.get_shape().is_compatible_with(self._shapes[index]):
                raise ValueError(f"component {index} has the shape {tensor.get_shape()}, not {self._shapes[index]}")
            tensors.append(tensor)
        return tensors, sorted(indices)

    def _result(self, values: Any, indices: Sequence[int]) -> Any:
        tensors = list(values) if isinstance(values, list | tuple) else [values]
        for tensor, index in zip(tensors, indices, strict=True):
            tensor.set_shape(self._shapes[index])
        if self._names is not None:
            return {self._names[index]: tensor for tensor, index in zip(tensors, indices, strict=True)}
        return tensors


class StagingArea(_BaseStagingArea):
    """Entries in insertion order.

    Args:
      dtypes: the dtypes of an entry's components.
      shapes: their static shapes.
      names: their names; entries are dictionaries then.
      shared_name: areas of the same shared name are the same area.
      capacity: entries at most; 0: no limit.
      memory_limit: bytes at most; 0: no limit.

    Raises:
      ValueError: the lists have different lengths, or a bound is negative.
    """

    def __init__(
        self, dtypes: Sequence[Any], shapes: Sequence[Any] | None = None, names: Sequence[str] | None = None,
        shared_name: str | None = None, capacity: int = 0, memory_limit: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)

    def put(self, values: Any, name: str | None = None) -> Operation:
        """An op that puts an entry; it waits while the area is full.

        Args:
          values: the components; a dictionary if they have names.

        Raises:
          ValueError: they do not fit.
        """
        with name_scope(name, f"{self._name}_put") as scope:
            tensors, indices = self._checked(values)
            if len(indices) != len(self._dtypes):
                raise ValueError(f"an entry has {len(self._dtypes)} components, not {len(indices)}")
            with colocate_with(self._coloc_op):
                return apply_op("Stage", scope, values=tensors, **self._attrs())

    def get(self, name: str | None = None) -> Any:
        """Takes the oldest entry out, as a list, or by names as a dictionary; it waits while the area is empty."""
        return self._take("Unstage", name or f"{self._name}_get")

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The entry number `index`, without removing it."""
        return self._take("StagePeek", name or f"{self._name}_peek", index=index)

    def size(self, name: str | None = None) -> Tensor:
        """How many entries there are, an int32."""
        with colocate_with(self._coloc_op):
            return apply_op("StageSize", name or f"{self._name}_size", **self._attrs())

    def clear(self, name: str | None = None) -> Operation:
        """An op that empties the area."""
        with colocate_with(self._coloc_op):
            return apply_op("StageClear", name or f"{self._name}_clear", **self._attrs())

    def _take(self, op_type: str, name: str, **inputs: Any) -> Any:
        with colocate_with(self._coloc_op):
            values = apply_op(op_type, name, **inputs, **self._attrs())
        return self._result(values, range(len(self._dtypes)))


class MapStagingArea(_BaseStagingArea):
    """Entries by an int64 key, whose components may come one by one.

    Args:
      ordered: whether `get` without a key takes the smallest key.

    The other arguments are as in StagingArea.
    """

    def __init__(
        self, dtypes: Sequence[Any], shapes: Sequence[Any] | None = None, names: Sequence[str] | None = None,
        shared_name: str | None = None, ordered: bool = False, capacity: int = 0, memory_limit: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._prefix = "OrderedMap" if ordered else "Map"

    def put(self, key: Any, vals: Any, indices: Sequence[int] | None = None, name: str | None = None) -> Operation:
        """An op that puts components of the entry `key`.

        Args:
          indices: which components `vals` are; all of them by default.

        Raises:
          ValueError: they do not fit.
        """
        with name_scope(name, f"{self._name}_put") as scope:
            tensors, found = self._checked(vals, indices)
            with colocate_with(self._coloc_op):
                return apply_op(
                    f"{self._prefix}Stage", scope, key=_key(key), indices=found, values=tensors, **self._attrs()
                )

    def get(self, key: Any = None, indices: Sequence[int] | None = None, name: str | None = None) -> Any:
        """The entry of a key, which leaves the area: (key, components). Without a key: any, or the smallest."""
        which = self._indices(indices)
        attrs = self._attrs(dtypes=[self._dtypes[index] for index in which])
        with colocate_with(self._coloc_op):
            if key is None:
                op_type = f"{self._prefix}UnstageNoKey"
                result = apply_op(op_type, name or f"{self._name}_get", indices=which, **attrs)
                return result[0], self._result(result[1], which)
            key = _key(key)
            values = apply_op(
                f"{self._prefix}Unstage", name or f"{self._name}_get", key=key, indices=which, **attrs
            )
        return key, self._result(values, which)

    def peek(self, key: Any, indices: Sequence[int] | None = None, name: str | None = None) -> Any:
        """Components of the entry of a key, without removing it."""
        which = self._indices(indices)
        attrs = self._attrs(dtypes=[self._dtypes[index] for index in which])
        with colocate_with(self._coloc_op):
            values = apply_op(
                f"{self._prefix}Peek", name or f"{self._name}_pop", key=_key(key), indices=which, **attrs
            )
        return self._result(values, which)

    def size(self, name: str | None = None) -> Tensor:
        """How many complete entries there are, an int32."""
        return self._count("Size", name)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many entries lack components, an int32."""
        return self._count("IncompleteSize", name)

    def clear(self, name: str | None = None) -> Operation:
        """An op that empties the area."""
        with colocate_with(self._coloc_op):
            return apply_op(f"{self._prefix}Clear", name or f"{self._name}_clear", **self._attrs())

    def _count(self, kind: str, name: str | None) -> Tensor:
        with colocate_with(self._coloc_op):
            return apply_op(f"{self._prefix}{kind}", name or f"{self._name}_size", **self._attrs())

    def _indices(self, indices: Sequence[int] | None) -> list[int]:
        return list(range(len(self._dtypes))) if indices is None else sorted(indices)


def _key(key: Any) -> Tensor:
    return convert_to_tensor(key, as_dtype("int64"), name="key")
