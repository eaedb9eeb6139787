"""Fetches and feeds: between the structures that a caller of `Session.run` uses and the tensors of a graph.

Owns the walk over nested fetches, the checks of feeds, and the registered conversions. Runs nothing.

    plan = plan_fetches(graph, {"loss": loss, "train": [train_op]})
    plan.tensors                      # what to fetch, each once
    plan.operations                   # what to run for its effect
    plan.build([0.5])                 # {"loss": 0.5, "train": [None]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build import nest
from dtf.build.composite import Composite
from dtf.build.graph import Graph
from dtf.build.sparse import IndexedSlices, IndexedSlicesValue, SparseTensor, SparseTensorValue
from dtf.build.tensor import Operation, Tensor
from dtf.session_handles import TensorHandle
from dtf.wire import codec, dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

_Build = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class FetchPlan:
    """The tensors and operations of a structure of fetches, and how to build its results.

    `build` takes the values of `tensors` in order; operations become None.
    """

    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    build: _Build


def plan_fetches(graph: Graph, fetches: Any) -> FetchPlan:
    """Plans a single fetch, or nested lists, tuples, namedtuples, dictionaries and attrs classes of them.

    Raises:
      TypeError: something in `fetches` is of a type that cannot be fetched.
      ValueError: it is not in `graph`, or may not be fetched.
    """
    planner = _Planner(graph)
    build = planner.visit(fetches)
    return FetchPlan(tuple(planner.tensors), tuple(planner.operations), build)


class FeedSlot:
    """One tensor that may be fed: checks and converts the values given for it."""

    __slots__ = ("_numpy_dtype", "_shape", "_sizes", "dtype", "name", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.name = tensor.name
        self.dtype = tensor.dtype.base_dtype
        self._numpy_dtype = self.dtype.as_numpy_dtype
        self._shape: Any = None
        self._sizes: tuple[int | None, ...] | None = None

    def convert(self, value: TensorLike) -> Any:
        """The array to send for `value`.

        Raises:
          TypeError: `value` is a tensor, or a number that the element type cannot hold.
          ValueError: its shape does not fit the tensor, or it cannot be converted to an array.
        """
        if type(value) is np.ndarray and value.dtype == self._numpy_dtype and self._numpy_dtype is not np.object_:
            array = value
        else:
            array = self._to_array(value)
        shape = self.tensor.shape
        if shape is not self._shape:
            self._shape = shape
            self._sizes = None if shape.ndims is None else tuple(shape.as_list())
        if self._sizes is not None and array.shape != self._sizes and not self._accepts(np.shape(array)):
            raise ValueError(
                f"Cannot feed value of shape {np.shape(array)!r} for Tensor {self.name!r}, "
                f"which has shape {str(shape)!r}"
            )
        return array

    def _accepts(self, sizes: tuple[int, ...]) -> bool:
        assert self._sizes is not None
        if len(sizes) != len(self._sizes):
            return False
        for wanted, given in zip(self._sizes, sizes):  # noqa: B905, SIM110 (hot)
            if wanted != given and wanted is not None:
                return False
        return True

    def _to_array(self, value: Any) -> Any:
        if isinstance(value, TensorHandle):
            is_name = self.dtype == dtypes.string and value.dtype != dtypes.string
            value = value.handle if is_name else value.eval()
        if isinstance(value, (Tensor, Operation)):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, "
                f"strings, lists, numpy ndarrays, or TensorHandles. For reference, the tensor object was {value} "
                f"which was passed to the feed with key {self.tensor}."
            )
        if self.dtype in (dtypes.resource, dtypes.variant):
            return value
        if self.dtype == dtypes.string:
            if isinstance(value, int | float):
                raise TypeError(
                    f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type string. "
                    "Feed a str or bytes."
                )
            return codec.values_to_array(value, self.dtype)[0]
        if isinstance(value, int) and not isinstance(value, bool) and not self._holds(value):
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
                f"{self._numpy_dtype}. Try explicitly setting the type of the feed tensor to a larger type "
                "(e.g. int64)."
            )
        return np.asarray(value, dtype=self._numpy_dtype)

    def _holds(self, value: int) -> bool:
        try:
            return bool(np.asarray(value, dtype=self._numpy_dtype) == value)
        except OverflowError:
            return False


def feed_items(graph: Graph, feed_dict: Mapping[Any, Any]) -> Iterator[tuple[Tensor, Any]]:
    """The tensors and values of a feed dictionary; tuples of keys, sparse and registered types are taken apart.

    Raises:
      TypeError: it is not a dictionary, or a key is not a tensor of `graph`.
      ValueError: a tensor may not be fed, or a tuple of keys and its value have different numbers of leaves.
    """
    if not isinstance(feed_dict, Mapping):
        raise TypeError(f"feed_dict must be a dictionary, but got {type(feed_dict)}")
    for keys, values in feed_dict.items():
        for key, value in _feed_leaves(keys, values):
            for part, part_value in _feed_parts(key, value):
                yield feedable(graph, part), part_value


def feedable(graph: Graph, key: Any) -> Tensor:
    """The tensor of `graph` that a feed key names. Errors as `feed_items`."""
    try:
        tensor = graph.as_graph_element(key, allow_tensor=True, allow_operation=False)
    except (KeyError, ValueError, TypeError) as error:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {_words(error)}") from None
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor} may not be fed.")
    return tensor


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]],
    feed_function: Callable[[Any, Any], list[tuple[Any, Any]]] | None = None,
    feed_function_for_partial_run: Callable[[Any], list[Any]] | None = None,
) -> None:
    """Teaches `Session.run` to fetch and feed objects of a type.

    Args:
      fetch_function: object -> (what to fetch for it, function from the list of values to the result).
      feed_function: (object, value) -> [(what to feed, its value)].
      feed_function_for_partial_run: object -> [what to feed].

    Raises:
      ValueError: the type has been registered.
    """
    if any(issubclass(tensor_type, known.tensor_type) for known in _conversions):
        raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _conversions.insert(
        0, _Conversion(tensor_type, fetch_function, feed_function, feed_function_for_partial_run)
    )


def conversion_parts(fetch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """What to fetch for one fetch that is no structure, and the function from the values to its result."""
    conversion = _conversion_of(fetch)
    return ([fetch], lambda values: values[0]) if conversion is None else conversion.fetch(fetch)


def feed_keys_for_partial_run(key: Any) -> list[Any]:
    """The keys for the parts of `key`, without values."""
    conversion = _conversion_of(key)
    if conversion is None or conversion.feed_keys is None:
        return [key]
    return list(conversion.feed_keys(key))


class _Planner:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.tensors: dict[Tensor, int] = {}
        self.operations: dict[Operation, None] = {}

    def visit(self, fetch: Any) -> _Build:
        if fetch is None:
            raise TypeError(f"Fetch argument {fetch!r} has invalid type {type(fetch)!r}")
        if isinstance(fetch, (list, tuple)):
            return self._sequence(fetch)
        if isinstance(fetch, Mapping):
            return self._mapping(fetch)
        if hasattr(type(fetch), "__attrs_attrs__"):
            return self._attrs(fetch)
        conversion = _conversion_of(fetch)
        if conversion is not None:
            parts, contract = conversion.fetch(fetch)
            builds = [self._element(part, fetch) for part in parts]
            return lambda values: contract([build(values) for build in builds])
        return self._element(fetch, fetch)

    def _sequence(self, fetch: Any) -> _Build:
        builds = [self.visit(part) for part in fetch]
        kind = type(fetch)
        if kind is list:
            return lambda values: [build(values) for build in builds]
        if hasattr(fetch, "_fields"):
            return lambda values: kind(*[build(values) for build in builds])
        return lambda values: kind([build(values) for build in builds])

    def _mapping(self, fetch: Any) -> _Build:
        builds = {key: self.visit(part) for key, part in fetch.items()}
        kind = type(fetch)

        def build_mapping(values: Sequence[Any]) -> Any:
            try:
                result = kind()
            except TypeError:
                return {key: build(values) for key, build in builds.items()}
            for key, build in builds.items():
                result[key] = build(values)
            return result

        return build_mapping

    def _attrs(self, fetch: Any) -> _Build:
        kind = type(fetch)
        builds = [self.visit(getattr(fetch, field.name)) for field in kind.__attrs_attrs__]
        return lambda values: kind(*[build(values) for build in builds])

    def _element(self, part: Any, fetch: Any) -> _Build:
        try:
            element = self._graph.as_graph_element(part, allow_tensor=True, allow_operation=True)
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch)!r}, must be a string or Tensor. "
                f"({_words(error)})"
            ) from None
        except (ValueError, KeyError) as error:
            raise ValueError(
                f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({_words(error)})"
            ) from None
        if not self._graph.is_fetchable(element):
            raise ValueError(f"Operation {element.name!r} has been marked as not fetchable.")
        if isinstance(element, Operation):
            self.operations[element] = None
            return _nothing
        index = self.tensors.setdefault(element, len(self.tensors))
        return lambda values: values[index]


@dataclass(frozen=True)
class _Conversion:
    tensor_type: type
    fetch: Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]]
    feed: Callable[[Any, Any], list[tuple[Any, Any]]] | None
    feed_keys: Callable[[Any], list[Any]] | None


def _nothing(_: Sequence[Any]) -> None:
    return None


def _conversion_of(value: Any) -> _Conversion | None:
    return next((known for known in _conversions if isinstance(value, known.tensor_type)), None)


def _feed_leaves(key: Any, value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(key, tuple) or _conversion_of(key) is not None:
        return [(key, value)]
    keys, values = nest.flatten(key), nest.flatten(value)
    if len(keys) != len(values):
        raise ValueError(
            f"Could not flatten dictionary. Key had {len(keys)} elements, but value had {len(values)} elements. "
            f"Key: {key}, value: {value}."
        )
    return list(zip(keys, values, strict=True))


def _feed_parts(key: Any, value: Any) -> list[tuple[Any, Any]]:
    conversion = _conversion_of(key)
    if conversion is None:
        return [(key, value)]
    if conversion.feed is None:
        raise TypeError(f"Feed argument {key!r} has invalid type {type(key)!r}")
    return list(conversion.feed(key, value))


def _words(error: BaseException) -> str:
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)


def _sparse_fetch(fetch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    return [fetch.indices, fetch.values, fetch.dense_shape], lambda values: SparseTensorValue(*values)


def _sparse_keys(feed: Any) -> list[Any]:
    return [feed.indices, feed.values, feed.dense_shape]


def _slices_fetch(fetch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    if fetch.dense_shape is None:
        return [fetch.values, fetch.indices], lambda values: IndexedSlicesValue(values[0], values[1], None)
    return [fetch.values, fetch.indices, fetch.dense_shape], lambda values: IndexedSlicesValue(*values)


def _slices_keys(feed: Any) -> list[Any]:
    return [feed.values, feed.indices] + ([] if feed.dense_shape is None else [feed.dense_shape])


_conversions = [
    _Conversion(
        SparseTensor,
        _sparse_fetch,
        lambda feed, value: list(zip(_sparse_keys(feed), value, strict=False)),
        _sparse_keys,
    ),
    _Conversion(
        IndexedSlices,
        _slices_fetch,
        lambda feed, value: list(zip(_slices_keys(feed), value, strict=False)),
        _slices_keys,
    ),
    _Conversion(
        Composite,
        lambda fetch: (fetch._parts(), fetch._fetched),
        lambda feed, value: list(zip(feed._parts(), feed._fed(value), strict=True)),
        lambda feed: feed._parts(),
    ),
]
