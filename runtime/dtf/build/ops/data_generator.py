"""Datasets of Python generators, which run in this process: `Dataset.from_generator`.

Each pass calls the generator again. The nodes carry a number for the pass. The running generators are kept here,
behind three Python functions that begin a pass, get the next element, and end the pass.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.function_graph import TracedFunction, trace
from dtf.build.ops import data_structure as structure
from dtf.build.tensor import Tensor
from dtf.build.tensor_spec import TensorSpec
from dtf.wire import codec, dtypes, errors, forks, py_functions
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape


def generator_spec(generator: Callable[..., Any], output_types: Any, output_shapes: Any, signature: Any) -> Any:
    """The spec of a generator's elements; raises as `Dataset.from_generator` does."""
    if not callable(generator):
        raise TypeError("`generator` must be callable.")
    if signature is None and output_types is None:
        raise TypeError("To create a `Dataset` from a generator, give `output_types` or `output_signature`.")
    if signature is not None and (output_types is not None or output_shapes is not None):
        raise TypeError("`output_types` and `output_shapes` must not be given beside `output_signature`.")
    spec = structure.spec_of_legacy(output_types, output_shapes) if signature is None else signature
    if any(not isinstance(leaf, TensorSpec) for leaf in structure.flatten(spec)):
        raise TypeError("The elements of a generator's dataset are tensors, no SparseTensors or datasets.")
    return spec


def generator_functions(
    generator: Callable[..., Any], spec: Any, args: Sequence[Any] | None
) -> Callable[[Tensor], dict[str, Any]]:
    """A function from the number of a pass to the function arguments of a GeneratorDataset."""
    passes = _Passes(generator, spec)
    arguments = [convert_to_tensor(each) for each in args or ()]
    scalar = [(dtypes.int64, TensorShape([]))]

    def begin(number: Tensor) -> Tensor:
        made = _py_func(passes.begin, [number, *arguments], [dtypes.int64])[0]
        made.set_shape([])
        return made

    def following(number: Tensor) -> list[Tensor]:
        return _py_func(passes.next, [number], structure.flat_types(spec))

    def end(number: Tensor) -> Tensor:
        made = _py_func(passes.end, [number], [dtypes.int64])[0]
        made.set_shape([])
        return made

    def functions_of(number: Tensor) -> dict[str, Any]:
        functions = {
            "init": trace(lambda: begin(number), [], "Dataset_from_generator_begin"),
            "next": trace(following, scalar, "Dataset_from_generator_next"),
            "finalize": trace(end, scalar, "Dataset_from_generator_end"),
        }
        return _functions(functions)

    return functions_of


def _functions(functions: dict[str, TracedFunction]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, function in functions.items():
        given[f"{name}_func"] = function.reference
        given[f"{name}_func_other_args"] = list(function.captured)
    return given


def _py_func(function: Callable[..., Any], inputs: Sequence[Tensor], types: Sequence[DType]) -> list[Tensor]:
    token = py_functions.register(function, get_default_graph().outermost)
    return list(apply_op("PyFunc", None, input=list(inputs), token=token, Tout=list(types)))


class _Passes:
    """The generators that run, by the numbers of their passes. `_lock` guards the table."""

    def __init__(self, generator: Callable[..., Any], spec: Any) -> None:
        self._generator, self._spec = generator, spec
        self._lock = threading.Lock()
        forks.renew_in_child(self, "_lock")
        self._numbers = itertools.count()
        self._running: dict[int, Iterator[Any]] = {}

    def begin(self, _: Any, *arguments: Any) -> Any:
        """Calls the generator; returns the number of its pass."""
        running = iter(self._generator(*arguments))
        with self._lock:
            number = next(self._numbers)
            self._running[number] = running
        return np.int64(number)

    def next(self, number: Any) -> list[Any]:
        """The flat components of the next element. OutOfRangeError at the end."""
        try:
            value = next(self._running[int(number)])
        except StopIteration:
            raise errors.OutOfRangeError.of("The generator has ended") from None
        if isinstance(value, list):
            value = tuple(value) if structure.is_nested(self._spec) else value
        try:
            leaves = structure.flatten_like(self._spec, value, "the generator's element")
        except TypeError:
            raise TypeError(
                "`generator` yielded an element that did not match the expected structure. The expected structure was "
                f"{structure.legacy(self._spec)[0]}, but the yielded element was {value}."
            ) from None
        return [_array(leaf, spec) for leaf, spec in zip(leaves, structure.flatten(self._spec), strict=True)]

    def end(self, number: Any) -> Any:
        """Ends a pass; closes a generator that has not finished."""
        with self._lock:
            running = self._running.pop(int(number), None)
        close = getattr(running, "close", None)
        if close is not None:
            close()
        return np.int64(0)


def _array(value: Any, spec: TensorSpec) -> Any:
    try:
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "SUO":
            array = np.asarray(value, spec.dtype.as_numpy_dtype)
        else:
            array = codec.values_to_array(value, spec.dtype)[0]
    except (TypeError, ValueError):
        raise TypeError(
            "`generator` yielded an element that could not be converted to the expected type. The expected type was "
            f"{spec.dtype.name}, but the yielded element was {value}."
        ) from None
    if not spec.shape.is_compatible_with(array.shape):
        raise TypeError(
            f"`generator` yielded an element of shape {array.shape} where an element of shape {spec.shape} was "
            "expected."
        )
    return array
