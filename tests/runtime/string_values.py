"""What a kernel may hand on as a string: an array of objects, 0-d ones too, whose elements are bytes.

    with checked_strings() as seen:
        run_graph_def(...)
    assert "Substr" in seen            # the ops of which strings were looked at
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dtf.run import kernels
from dtf.run.kernels import DEAD
from dtf.wire import dtypes


def check_strings(what: str, value: Any) -> None:
    """Raises AssertionError where `value` is no array of bytes objects. numpy's own byte strings lose trailing NULs."""
    assert type(value) is np.ndarray and value.dtype == object, f"{what} gave {type(value)}: {value!r}"
    for element in value.ravel().tolist():
        assert type(element) is bytes, f"{what} gave {type(element)} in an array: {element!r}"


@contextlib.contextmanager
def checked_strings() -> Iterator[set[str]]:
    """While it lasts, the strings that each kernel gives are checked. Yields the ops that gave some."""
    seen: set[str] = set()
    plain = kernels.bind

    def bind(node: kernels.KernelNode, *device: Any) -> tuple[kernels.Kernel, Any]:
        row, function = plain(node, *device)
        return row, _checked(row, node, function, seen)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "bind", bind)
        yield seen


def _checked(row: kernels.Kernel, node: kernels.KernelNode, function: Any, seen: set[str]) -> Any:
    strings = _string_outputs(node)
    if not strings or not callable(function):
        return function
    is_single = not any(argument.is_list for argument in node.op_def.outputs) and node.num_outputs == 1

    def check(result: Any) -> Any:
        values = [result] if is_single else result if isinstance(result, (list, tuple)) else [result]
        for number in strings:
            if values[number] is not DEAD:
                seen.add(node.op)
                check_strings(f"{node.op}:{number}", values[number])
        return result

    if row.asynchronous:

        def waits(step: Any, done: Any, *inputs: Any) -> Any:
            def checked_done(*result: Any, **error: Any) -> Any:
                if result:
                    try:
                        check(result[0])
                    except AssertionError as wrong:
                        from dtf.wire import errors

                        return done(error=errors.InternalError.of(str(wrong)))
                return done(*result, **error)

            return function(step, checked_done, *inputs)

        return waits
    return lambda *inputs: check(function(*inputs))


def _string_outputs(node: kernels.KernelNode) -> list[int]:
    """The numbers of the outputs that are strings and no references."""
    types: list[Any] = []
    for argument in node.op_def.outputs:
        if argument.type_list_attr is not None:
            types.extend(node.attrs[argument.type_list_attr])
            continue
        one = argument.type if argument.type is not None else node.attrs[argument.type_attr]
        count = node.attrs[argument.number_attr] if argument.number_attr is not None else 1
        types.extend([None if argument.is_ref else one] * count)
    return [number for number, dtype in enumerate(types) if dtype == dtypes.string]
