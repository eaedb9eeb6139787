"""Names of tensorflow.python.client.session that take fetches apart: `_FetchMapper` and `_FetchHandler`.

Owns the spelling; the walk over nested fetches is `dtf.fetches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtf.build.graph import Graph
from dtf.build.tensor import Operation, Tensor
from dtf.fetches import conversion_parts, plan_fetches

__all__ = [
    "_AttrsFetchMapper", "_DictFetchMapper", "_ElementFetchMapper", "_FetchHandler", "_FetchMapper",
    "_ListFetchMapper", "_uniquify_fetches",
]  # fmt: skip


class _FetchMapper:
    """A structure of fetches: its graph elements, each once, and the way back from their values."""

    def unique_fetches(self) -> list[Any]:
        """The elements to fetch."""
        raise NotImplementedError("Must be implemented by subclasses")

    def build_results(self, values: Sequence[Any]) -> Any:
        """The values of `unique_fetches` in the structure."""
        raise NotImplementedError("Must be implemented by subclasses")

    @staticmethod
    def for_fetch(fetch: Any) -> _FetchMapper:
        """The mapper of a structure.

        Raises:
          TypeError: it cannot be fetched.
        """
        if fetch is None:
            raise TypeError(f"Fetch argument {fetch!r} has invalid type {type(fetch)!r}")
        if isinstance(fetch, list | tuple):
            return _ListFetchMapper(fetch)
        if isinstance(fetch, Mapping):
            return _DictFetchMapper(fetch)
        if hasattr(type(fetch), "__attrs_attrs__"):
            return _AttrsFetchMapper(fetch)
        parts, contract = conversion_parts(fetch)
        if isinstance(fetch, str | bytes | Tensor | Operation) or parts != [fetch] or hasattr(
            fetch, "_as_graph_element"
        ):
            return _ElementFetchMapper(parts, contract)
        raise TypeError(f"Fetch argument {fetch!r} has invalid type {type(fetch)!r}")


class _ElementFetchMapper(_FetchMapper):
    """One fetch, such as a tensor, or the parts of a SparseTensor."""

    def __init__(self, fetches: Sequence[Any], contraction_fn: Callable[[list[Any]], Any]) -> None:
        self._unique_fetches = list(fetches)
        self._contraction_fn = contraction_fn

    def unique_fetches(self) -> list[Any]:
        return self._unique_fetches

    def build_results(self, values: Sequence[Any]) -> Any:
        return self._contraction_fn(list(values)) if values else None


class _ListFetchMapper(_FetchMapper):
    """A list, a tuple or a namedtuple."""

    def __init__(self, fetches: Any) -> None:
        self._fetch_type = type(fetches)
        self._mappers = [_FetchMapper.for_fetch(fetch) for fetch in fetches]
        self._unique_fetches, self._value_indices = _uniquify_fetches(self._mappers)

    def unique_fetches(self) -> list[Any]:
        return self._unique_fetches

    def _parts(self, values: Sequence[Any]) -> list[Any]:
        return [
            mapper.build_results([values[index] for index in indices])
            for mapper, indices in zip(self._mappers, self._value_indices, strict=True)
        ]

    def build_results(self, values: Sequence[Any]) -> Any:
        results = self._parts(values)
        if issubclass(self._fetch_type, list):
            return results
        return self._fetch_type(*results) if hasattr(self._fetch_type, "_fields") else self._fetch_type(results)


class _DictFetchMapper(_ListFetchMapper):
    """A dictionary."""

    def __init__(self, fetches: Mapping[Any, Any]) -> None:
        super().__init__(list(fetches.values()))
        self._fetch_type = type(fetches)
        self._keys = list(fetches)

    def build_results(self, values: Sequence[Any]) -> Any:
        results: Any = self._fetch_type()
        for key, value in zip(self._keys, self._parts(values), strict=True):
            results[key] = value
        return results


class _AttrsFetchMapper(_ListFetchMapper):
    """An object of an attrs class."""

    def __init__(self, fetches: Any) -> None:
        super().__init__([getattr(fetches, field.name) for field in type(fetches).__attrs_attrs__])
        self._fetch_type = type(fetches)

    def build_results(self, values: Sequence[Any]) -> Any:
        return self._fetch_type(*self._parts(values))


def _uniquify_fetches(fetch_mappers: Sequence[_FetchMapper]) -> tuple[list[Any], list[list[int]]]:
    """The elements of several mappers, each once, and for each mapper the positions of its own."""
    unique: list[Any] = []
    positions: dict[Any, int] = {}
    indices = []
    for mapper in fetch_mappers:
        mine = []
        for fetch in mapper.unique_fetches():
            key = fetch if isinstance(fetch, str | bytes) else id(fetch)
            if key not in positions:
                positions[key] = len(unique)
                unique.append(fetch)
            mine.append(positions[key])
        indices.append(mine)
    return unique, indices


class _FetchHandler:
    """The fetches of one `Session.run`, checked: which tensors to fetch and which operations to run.

    Args:
      graph: the graph of the session.
      fetches: the structure.
      feeds: tensors -> values that are fed.
      feed_handles: accepted for TensorFlow's sake.
    """

    def __init__(self, graph: Graph, fetches: Any, feeds: Mapping[Any, Any], feed_handles: Any = None) -> None:
        with graph.as_default():
            self._fetch_mapper = _FetchMapper.for_fetch(fetches)
        self._plan = plan_fetches(graph, fetches)
        self._feeds = {graph.as_graph_element(key): value for key, value in (feeds or {}).items()}

    def fetches(self) -> list[Tensor]:
        """The tensors to fetch: those that are not fed."""
        return [tensor for tensor in self._plan.tensors if tensor not in self._feeds]

    def targets(self) -> list[Operation]:
        """The operations to run."""
        return list(self._plan.operations)

    def build_results(self, session: Any, tensor_values: Sequence[Any]) -> Any:
        """The values of `fetches()` in the structure of the fetches."""
        given = iter(tensor_values)
        return self._plan.build([self._feeds[tensor] if tensor in self._feeds else next(given)
                                 for tensor in self._plan.tensors])  # fmt: skip
