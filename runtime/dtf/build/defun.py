"""`function.Defun`: Python functions as functions of the graph's library, as TensorFlow 1 spells it.

    @function.Defun(tf.float32, tf.float32, func_name="Add")
    def add(x, y):
        return x + y

    z = add(a, b)                       # a node that calls Add

Owns the declaration; `function_graph` traces the body. The gradient is the body's unless the declaration names another
one. Source: tensorflow/python/framework/function.py of TensorFlow 1.15 (its public behaviour).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.function_graph import TracedFunction, trace
from dtf.build.gradients import custom_gradients_of
from dtf.build.graph import Graph, Operation
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import unknown_shape

__all__ = ["Declare", "DefinedFunction", "Defun"]

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


class Defun:
    """A decorator: the function becomes one of the graph's library when it is first called there.

    Args:
      *input_types: the dtypes of the arguments; by default the dtypes of the first call.
      func_name: its name in the library; by default the function's, with a number.
      grad_func: a function of the arguments and of a gradient for each result, which returns a gradient for each
        argument; itself decorated or not.
      python_grad_func: the gradient in the form of `tf.RegisterGradient`: a function of the operation and the
          gradients.
      out_names: the names of the results in the library.
      shape_func: from the operation to the static shapes of its results.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._input_types = [as_dtype(each) for each in input_types]
        self._options = dict(kwargs)

    def __call__(self, func: Callable[..., Any]) -> DefinedFunction:
        if not callable(func):
            raise ValueError(f"function {func} must be callable")
        names = _argument_names(func, len(self._input_types))
        if self._input_types and names is not None and len(names) != len(self._input_types):
            raise ValueError(
                f"The function {getattr(func, '__name__', func)} takes {len(names)} arguments, but the number of "
                f"specified input types is {len(self._input_types)}."
            )
        return DefinedFunction(func, self._input_types or None, names, **self._options)


class DefinedFunction:
    """A function that calls one of the graph's library."""

    def __init__(
        self,
        func: Callable[..., Any],
        input_types: Sequence[DType] | None,
        argument_names: Sequence[str] | None,
        func_name: str | None = None,
        grad_func: Any = None,
        python_grad_func: Callable[..., Any] | None = None,
        out_names: Sequence[str] | None = None,
        shape_func: Callable[[Operation], Any] | None = None,
        **_: Any,
    ) -> None:
        self._func = func
        self._func_name = func_name
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func
        self._shape_func = shape_func
        self._argument_names = argument_names
        self._traced: dict[tuple[int, tuple[DType, ...]], tuple[Graph, TracedFunction]] = {}
        self.declared_input_types = input_types if input_types is not None else []
        self.grad_func_name = getattr(grad_func, "name", None)
        self.out_names = out_names

    @property
    def name(self) -> str:
        """Its name in the library of the default graph."""
        return self._in_graph(list(self.declared_input_types)).name

    @property
    def python_grad_func(self) -> Callable[..., Any] | None:
        """The gradient that the declaration gives."""
        return self._python_grad_func

    @property
    def definition(self) -> Any:
        """Its FunctionDef in the library of the default graph."""
        name = self.name
        library = get_default_graph()._library.function
        return next(each for each in library if each.signature.name == name)

    @property
    def captured_inputs(self) -> list[Any]:
        """The tensors of the graph that the body uses in addition to its arguments."""
        return list(self._in_graph(list(self.declared_input_types)).captured)

    def add_to_graph(self, g: Graph) -> None:
        """Puts the function into the library of a graph."""
        with g.as_default():
            self._in_graph(list(self.declared_input_types))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call in the default graph.

        Returns:
          The result, a list of several results, or the operation if it has no results.

        Raises:
          ValueError: there are too few or too many arguments.
        """
        name = kwargs.pop("name", None)
        declared = self.declared_input_types
        if kwargs:
            raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}.")
        expected = len(declared) or (None if self._argument_names is None else len(self._argument_names))
        if expected is not None and len(args) != expected:
            raise ValueError(f"Expected number of arguments: {expected}, received: {len(args)}")
        wanted: Sequence[DType | None] = declared or [None] * len(args)
        arguments = [convert_to_tensor(each, dtype) for each, dtype in zip(args, wanted, strict=True)]
        traced = self._in_graph([each.dtype.base_dtype for each in arguments])
        graph = get_default_graph()
        with graph.gradient_override_map({each: self._gradient_key(graph) for each in self._overridden()}):
            results = traced.call(arguments, name or traced.name)
        if self._shape_func is not None and results:
            for result, shape in zip(results, self._shape_func(results[0].op), strict=True):
                result.set_shape(shape)
        return results[0] if len(results) == 1 else results or graph.get_operations()[-1]

    def _in_graph(self, dtypes: list[DType]) -> TracedFunction:
        graph = get_default_graph()
        key = (id(graph._library), tuple(dtypes))
        if key not in self._traced:
            name = self._func_name or getattr(self._func, "__name__", "function").strip("<>")
            arguments = [(dtype, unknown_shape()) for dtype in dtypes]
            known = {each.signature.name for each in graph._library.function}
            exact = self._func_name is not None and name not in known
            traced = trace(
                self._func, arguments, name, self._results, argument_names=self._argument_names, exact_name=exact,
                result_names=self.out_names,
            )  # fmt: skip
            self._traced[key] = graph, traced
        return self._traced[key][1]

    def _results(self, structure: Any) -> Sequence[Any]:
        results = _results(structure)
        if any(each is None for each in results):
            raise ValueError(f"Function {getattr(self._func, '__name__', '')!r} can not return None.")
        if self.out_names is not None and len(self.out_names) != len(results):
            raise ValueError(
                f"The number of output names, {len(self.out_names)}, must match the number of results, {len(results)}."
            )
        return results

    def _overridden(self) -> Sequence[str]:
        return _CALLS if self._grad_func is not None or self._python_grad_func is not None else ()

    def _gradient_key(self, graph: Graph) -> str:
        functions = custom_gradients_of(graph.outermost)
        key = f"Defun-{len(functions)}"
        grad_func, python_grad_func = self._grad_func, self._python_grad_func

        def gradient(op: Operation, *grads: Any) -> Any:
            if python_grad_func is not None:
                return python_grad_func(op, *grads)
            found = grad_func(*op.inputs, *grads)
            return list(found) if isinstance(found, list | tuple) else [found]

        functions[key] = gradient
        return key


class Declare:
    """A function that is called before it is defined.

    Args:
      func_name: its name in the library.
      inputs: (name, dtype) of each argument.
      outputs: (name, dtype) of each result.
    """

    def __init__(self, func_name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.name = func_name
        self._inputs = [as_dtype(dtype) for _, dtype in inputs]
        self._outputs = [as_dtype(dtype) for _, dtype in outputs]

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        from dtf.build.apply import apply_op
        from dtf.wire.pb import attr_value_pb2

        if len(inputs) != len(self._inputs):
            raise ValueError(f"Expected number of arguments: {len(self._inputs)}, received: {len(inputs)}")
        args = [convert_to_tensor(each, dtype) for each, dtype in zip(inputs, self._inputs, strict=True)]
        reference = attr_value_pb2.NameAttrList(name=self.name)
        found = apply_op("PartitionedCall", kwargs.get("name", self.name), args=args, Tout=self._outputs, f=reference)
        return found[0] if isinstance(found, list) and len(found) == 1 else found


def _results(structure: Any) -> Sequence[Any]:
    if structure is None or isinstance(structure, Operation):
        return []
    return list(structure) if isinstance(structure, list | tuple) else [structure]


def _argument_names(func: Callable[..., Any], declared: int) -> list[str] | None:
    """The names of a function's arguments; None if it takes any number."""
    parameters = inspect.signature(func).parameters.values()
    if any(each.kind in (each.VAR_KEYWORD, each.KEYWORD_ONLY) for each in parameters):
        raise ValueError("Functions with keyword arguments are not supported.")
    if any(each.default is not each.empty for each in parameters):
        raise ValueError("Functions with argument defaults or keyword arguments are not supported.")
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        plain = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
        return [*plain, *(f"arg{index}" for index in range(len(plain), declared))] if declared else None
    return [each.name for each in parameters]
