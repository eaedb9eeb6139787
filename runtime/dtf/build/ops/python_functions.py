"""Python functions where TensorFlow 2 traces or runs them eagerly: `tf.function`, `tf.py_function`, `tf.print`.

Graphs are all that there is, so a function builds its operations wherever it is called.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtf.build import nest
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.custom_gradient import custom_gradient
from dtf.build.default_graph import name_scope
from dtf.build.gradients import gradients
from dtf.build.ops.array import identity
from dtf.build.ops.io import py_func
from dtf.build.tensor import Operation, Tensor

__all__ = ["function", "grad_pass_through", "print", "py_function", "recompute_grad", "vectorized_map"]


class _ArrayOfStep(np.ndarray):
    """An array with the `numpy` method that values have in TensorFlow 2."""

    def numpy(self) -> Any:
        """The plain array, or the element of a scalar."""
        plain = self.view(np.ndarray)
        return plain if plain.ndim else plain[()]


def function(func: Callable[..., Any] | None = None, input_signature: Any = None, **options: Any) -> Any:
    """A function that builds its operations where it is called; numbers and arrays come to it as tensors.

    Python's `if` and `while` are not converted: use tf.cond and tf.while_loop.

    Args:
      func: the function; without it a decorator is returned.
      input_signature: tf.TensorSpec of each argument, which gives Python values their dtype.
      **options: TensorFlow's other options, which change nothing here.

    Returns:
      A function like `func`, or a decorator.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/function
    """
    if func is None:
        return functools.partial(function, input_signature=input_signature, **options)
    wrapped: Callable[..., Any] = func
    types = [each.dtype for each in nest.flatten(input_signature)] if input_signature is not None else []

    @functools.wraps(wrapped)
    def call(*args: Any, **kwargs: Any) -> Any:
        # Methods come with their object first, which the signature leaves out.
        skipped = len(args) - len(types) if types else 0
        given = [
            _as_tensor(value, types[index - skipped] if types and index >= skipped else None)
            for index, value in enumerate(args)
        ]
        return wrapped(*given, **kwargs)

    call.python_function = wrapped  # type: ignore[attr-defined]
    return call


def _as_tensor(value: Any, dtype: Any) -> Any:
    if dtype is not None and not nest.is_nested(value):
        return convert_to_tensor(value, dtype)
    return convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def py_function(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: str | None = None) -> Any:
    """`tf.py_func` whose function may call `.numpy()` on its arguments and return tensors' values.

    Gradients do not go through it.

    Args:
      func: takes one value for each of `inp`; returns arrays of the dtypes `Tout`.
      inp: a list of tensors.
      Tout: a dtype, a list of dtypes, or an empty list for a function without results.
      name: the name of the operation.

    Returns:
      A Tensor, a list of them if `Tout` is a list, or an Operation if `Tout` is empty.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/py_function
    """

    @functools.wraps(func)
    def call(*values: Any) -> Any:
        return func(*(np.asarray(value).view(_ArrayOfStep) for value in values))

    return py_func(call, inp, Tout, True, name or "EagerPyFunc")


def print(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that writes its inputs in words; run it, or make others depend on it.

    Args:
      *inputs: tensors, nested lists of them, and Python values.
      output_stream: sys.stderr (the default), sys.stdout, tf.logging.info and its neighbours, or "file:///path".
      summarize: how many entries to show at both ends of each dimension; 3 by default, -1 for all.
      sep, end: as in Python's print.
      name: the name of the operation.

    Returns:
      An Operation.

    Raises:
      ValueError: an unknown keyword or stream.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/print
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    name, summarize = kwargs.pop("name", None), kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    tensors: list[Any] = []
    words = []
    for value in inputs:
        words.append(_template(value, tensors))
    from dtf.build.ops.string import string_format

    text = string_format(sep.join(words), tensors, placeholder=_PLACEHOLDER, summarize=summarize, name=name)
    return apply_op("PrintV2", name, input=text, output_stream=_stream(stream), end="\n" if end is None else end)


_PLACEHOLDER = "{}"


def _template(value: Any, tensors: list[Any]) -> str:
    """`value` in words, with a placeholder where a tensor stands; the tensors are appended to the list."""
    if isinstance(value, Tensor) or hasattr(value, "initializer"):
        tensors.append(value)
        return _PLACEHOLDER
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_template(each, tensors)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_template(each, tensors) for each in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return str(value)


def _stream(stream: Any) -> str:
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    for name, known in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is known or stream is getattr(sys, f"__{name}__"):
            return name
    name = getattr(stream, "__name__", "")
    levels = {"debug": "log(info)", "info": "log(info)", "warning": "log(warning)", "warn": "log(warning)"}
    levels.update(error="log(error)", fatal="log(error)")
    if name in levels:
        return levels[name]
    raise ValueError(f"Unsupported output stream, logging level, or file: {stream}")


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `f` whose gradient is the identity's gradient.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/grad_pass_through
    """

    @custom_gradient
    def call(*args: Any, **kwargs: Any) -> Any:
        def gradient(*grads: Any, **given: Any) -> Any:
            if given.get("variables") is not None:
                return grads, [None] * len(given["variables"])
            return grads

        return f(*args, **kwargs), gradient

    @functools.wraps(f)
    def passed(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return passed


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `f` that is computed again for its gradient, so its intermediate values are not kept.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/recompute_grad
    """

    @custom_gradient
    def call(*args: Any, **kwargs: Any) -> Any:
        def gradient(*grads: Any, variables: Any = None) -> Any:
            from dtf.build.default_graph import control_dependencies

            with control_dependencies([grad for grad in grads if grad is not None]):
                again = [identity(convert_to_tensor(each)) for each in args]
            results = nest.flatten(f(*again, **kwargs))
            wanted = [*again, *(variables or [])]
            found = gradients(results, wanted, grad_ys=list(grads))
            ours, theirs = found[: len(again)], found[len(again) :]
            return (ours, theirs) if variables is not None else ours

        return f(*args, **kwargs), gradient

    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return recomputed


def vectorized_map(
    fn: Callable[..., Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """`tf.map_fn` whose results may have other dtypes than `elems`.

    Args:
      fn: from one element to its result, in any structure.
      elems: tensors in any structure that share their first dimension.
      fallback_to_while_loop: accepted; the map is always a loop.
      warn: accepted.

    Returns:
      The results, stacked along a new first dimension.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/vectorized_map
    """
    from dtf.build.graph import Graph
    from dtf.build.ops.functional import map_fn

    with name_scope("pfor"):
        flat = [convert_to_tensor(each) for each in nest.flatten(elems)]
        with Graph().as_default():
            from dtf.build.ops.array import placeholder

            one = [placeholder(each.dtype.base_dtype, each.shape[1:]) for each in flat]
            try:
                results = fn(nest.pack_sequence_as(elems, one))
                types = nest.map_structure(lambda each: convert_to_tensor(each).dtype.base_dtype, results)
            except ValueError:  # The function uses tensors of its own graph.
                types = None
        packed = nest.pack_sequence_as(elems, flat)
        return map_fn(fn, packed, dtype=types)
