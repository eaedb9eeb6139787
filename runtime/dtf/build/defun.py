"""`function.Defun`: Python functions as functions of the graph's library, as TensorFlow 1 spells it.

    @function.Defun(tf.float32, tf.float32, func_name="Add")
    def add(x, y):
        return x + y

    z = add(a, b)                       # a node that calls Add

Owns the declaration; `function_graph` traces the body. The gradient is the body's unless the declaration names another
one. Source: tensorflow/python/framework/function.py of TensorFlow 1.15 (its public behaviour).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.function_graph import FunctionGraph, TracedFunction, call_by_name, trace
from dtf.build.gradients import custom_gradients_of
from dtf.build.graph import Graph, Operation
from dtf.build.variable_scope import get_variable, get_variable_scope, variable_scope
from dtf.wire import errors, opdef
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import attr_value_pb2, function_pb2
from dtf.wire.tensor_shape import unknown_shape

__all__ = ["Declare", "DefinedFunction", "Defun"]


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
        kind = DefinedFunction if self._input_types or names == [] else OverloadedFunction
        return kind(func, self._input_types or None, names, **self._options)


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
        capture_by_value: bool = False,
        **attributes: Any,
    ) -> None:
        if grad_func is not None and python_grad_func is not None:
            raise ValueError("Gradient defined twice: by grad_func and by python_grad_func")
        attributes.pop("allowlisted_stateful_ops", None)
        attributes.pop("whitelisted_stateful_ops", None)
        self._func = func
        self._func_name = func_name
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func
        self._shape_func = shape_func
        self._argument_names = argument_names
        self._by_value = capture_by_value
        self._attributes = attributes
        self._traced: dict[tuple[int, tuple[DType, ...]], tuple[Graph, TracedFunction]] = {}
        self.declared_input_types = input_types if input_types is not None else []
        self.out_names = out_names

    @property
    def name(self) -> str:
        """Its name in the library of the default graph."""
        return self._in_graph(list(self.declared_input_types)).name

    @property
    def grad_func_name(self) -> str | None:
        """The name of the function that gives its gradient; None if the declaration gives no such function."""
        if not isinstance(self._grad_func, DefinedFunction) or isinstance(self._grad_func, OverloadedFunction):
            return None
        return self._grad_func.name

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
    def signature(self) -> Any:
        """The signature of its definition, an OpDef."""
        return self.definition.signature

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """(name, op type) of the body's nodes that have state."""
        return [
            (node.name, node.op)
            for node in self.definition.node_def
            if opdef.exists(node.op) and opdef.get(node.op).is_stateful
        ]

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
        attributes = call_attributes(self._func_name or "", **kwargs)
        expected = len(declared) or (None if self._argument_names is None else len(self._argument_names))
        if expected is not None and len(args) != expected:
            raise ValueError(f"Expected number of arguments: {expected}, received: {len(args)}")
        wanted: Sequence[DType | None] = declared or [None] * len(args)
        arguments = [convert_to_tensor(each, dtype) for each, dtype in zip(args, wanted, strict=True)]
        traced = self._in_graph([each.dtype.base_dtype for each in arguments])
        graph = get_default_graph()
        has_gradient = self._grad_func is not None or self._python_grad_func is not None
        overrides = {traced.name: self._gradient_key(graph)} if has_gradient else {}
        with graph.gradient_override_map(overrides):
            results = traced.call(arguments, name or traced.name, own_op=True)
        call = results[0].op if results else graph.get_operations()[-1]
        for key, value in attributes.items():
            call._set_attr(key, value)
        if self._shape_func is not None and results:
            for result, shape in zip(results, self._shape_func(results[0].op), strict=True):
                result.set_shape(shape)
        return results[0] if len(results) == 1 else results or call

    def _in_graph(self, dtypes: list[DType]) -> TracedFunction:
        graph = get_default_graph()
        key = (id(graph._library), tuple(dtypes))
        if key not in self._traced:
            arguments = [(dtype, unknown_shape()) for dtype in dtypes]
            traced = trace(
                self._with_variables_outside, arguments, "function", self._results, by_value=self._by_value,
                argument_names=self._argument_names, result_names=self.out_names,
                name_of=lambda definition: self._name_of(definition, dtypes),
            )  # fmt: skip
            self._traced[key] = graph, traced
            self._add_gradient(graph, traced.name)
        return self._traced[key][1]

    def _add_gradient(self, graph: Graph, name: str) -> None:
        """Puts the function that gives the gradient into the library, with the relation of both."""
        gradient = self.grad_func_name
        known = {each.function_name for each in graph._library.gradient}
        if gradient is not None and name not in known:
            graph._library.gradient.add(function_name=name, gradient_func=gradient)

    def _with_variables_outside(self, *arguments: Any) -> Any:
        """The body; variables that it makes belong to the surrounding graph."""
        graph = get_default_graph()
        assert isinstance(graph, FunctionGraph)

        def outside(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
            reuse = kwargs.pop("reuse", None)
            given = {key: value for key, value in kwargs.items() if value is not None}
            with graph.outer.as_default(), contextlib.ExitStack() as scopes:
                if reuse:
                    scopes.enter_context(variable_scope(get_variable_scope(), reuse=reuse, auxiliary_name_scope=False))
                made = get_variable(name, *args, **given)
            graph.outer_variables.append(made)
            return made

        with variable_scope("", custom_getter=outside):
            return self._func(*arguments)

    def _name_of(self, definition: function_pb2.FunctionDef, dtypes: Sequence[DType]) -> str:
        """The declared name, or the Python function's with a hash of the definition. The docstring is added to it."""
        definition.signature.description = self._func.__doc__ or ""
        if self._attributes:
            for key, value in call_attributes(self._func_name or "", **self._attributes).items():
                definition.attr[key].CopyFrom(value)
        if self._func_name is not None:
            return self._func_name
        return f"{_plain_name(self._func)}_{_hash_of(definition)}"

    def _results(self, structure: Any) -> Sequence[Any]:
        results = _results(structure)
        if any(each is None for each in results):
            raise ValueError(f"Function {getattr(self._func, '__name__', '')!r} can not return None.")
        if self.out_names is not None and len(self.out_names) != len(results):
            raise errors.InvalidArgumentError.of(
                "output names must be either empty or equal in size to outputs. output names size = "
                f"{len(self.out_names)} outputs size = {len(results)}"
            )
        return results

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


class OverloadedFunction(DefinedFunction):
    """A function whose argument types are those of each call: one function of the library for each list of types."""

    def instantiate(self, input_types: Sequence[Any]) -> DefinedFunction:
        """The function for these dtypes of the arguments.

        Raises:
          ValueError: a type is a reference.
        """
        types = [as_dtype(each) for each in input_types]
        for each in types:
            if each._is_ref_dtype:
                raise ValueError(f"Expected non-reference types, got {each}")
        made = DefinedFunction.__new__(DefinedFunction)
        made.__dict__.update(self.__dict__)
        made.declared_input_types = types
        if self._func_name is not None:
            made._func_name = f"{self._func_name}_{type_list_text(types)}"
        made._traced = {}
        return made

    def _name_of(self, definition: function_pb2.FunctionDef, dtypes: Sequence[DType]) -> str:
        name = super()._name_of(definition, dtypes)
        return name if self._func_name is None else f"{name}_{type_list_text(dtypes)}"


class ImportedFunction(DefinedFunction):
    """A function made from its definition.

    Args:
      definition: the FunctionDef.
      grad_func: the function that gives its gradient.
    """

    def __init__(self, definition: function_pb2.FunctionDef, grad_func: DefinedFunction | None = None) -> None:
        signature = definition.signature
        super().__init__(
            lambda: None,
            [as_dtype(each.type) for each in signature.input_arg],
            [each.name for each in signature.input_arg],
            func_name=signature.name,
            grad_func=grad_func,
            out_names=[each.name for each in signature.output_arg],
        )
        self._definition = definition

    @property
    def name(self) -> str:
        """Its name in libraries."""
        return str(self._definition.signature.name)

    @property
    def definition(self) -> Any:
        """The FunctionDef."""
        return self._definition

    def _in_graph(self, dtypes: list[DType]) -> TracedFunction:
        library = get_default_graph()._library
        if all(each.signature.name != self.name for each in library.function):
            library.function.append(self._definition)
        results = [as_dtype(each.type) for each in self._definition.signature.output_arg]
        body = Graph()
        with body.as_default():
            stand_ins = [body.create_op("Placeholder", [], attrs={"dtype": each}).outputs[0] for each in results]
        names = tuple(each.name for each in self._definition.signature.output_arg)
        return TracedFunction(self.name, (), tuple(stand_ins), None, self._definition.signature.is_stateful, names)


def functions_from_library(library: function_pb2.FunctionDefLibrary) -> list[DefinedFunction]:
    """The functions of a library, each with the gradient that the library declares; gradients come first.

    Raises:
      ValueError: the library lacks a function that a gradient names, or gradients depend on each other in a circle.
    """
    definitions = {each.signature.name: each for each in library.function}
    gradients = {each.function_name: each.gradient_func for each in library.gradient}
    for name in (*gradients, *gradients.values()):
        if name not in definitions:
            raise ValueError(f"FunctionDefLibrary missing '{name}' FunctionDef\n{library}")
    made: dict[str, DefinedFunction] = {}
    while len(made) < len(definitions):
        ready = [name for name in definitions if name not in made and gradients.get(name, name) in (name, *made)]
        ready = [name for name in ready if gradients.get(name) != name]
        if not ready:
            left = sorted(set(definitions) - set(made))
            raise ValueError(f"There is a cyclic dependency between functions. Could not initialize {left}.")
        for name in ready:
            made[name] = ImportedFunction(definitions[name], made.get(gradients.get(name, "")))
    return list(made.values())


def call_attributes(func_name: str, **kwargs: Any) -> dict[str, attr_value_pb2.AttrValue]:
    """The attributes of a call's node from the keyword arguments of the call or the declaration.

    Raises:
      ValueError: an argument is unknown, or its value has another type.
    """
    made = {}
    noinline = kwargs.pop("noinline", None)
    if noinline is not None:
        made["_noinline"] = attr_value_pb2.AttrValue(b=bool(noinline))
    made["_disable_call_shape_inference"] = attr_value_pb2.AttrValue(b=True)
    compiled, separate = kwargs.pop("compiled", None), kwargs.pop("separate_compiled_gradients", None)
    if compiled is not None:
        made["_XlaCompile"] = attr_value_pb2.AttrValue(b=bool(compiled))
        made["_XlaSeparateCompiledGradients"] = attr_value_pb2.AttrValue(b=bool(separate))
        made["_XlaScope"] = attr_value_pb2.AttrValue(s=f"function_{func_name}".encode())
    for key in list(kwargs):
        if key.startswith("experimental_"):
            made[key] = _number_attribute(key, kwargs.pop(key))
        elif key in ("_implements", "_reference"):
            value = kwargs.pop(key)
            if not isinstance(value, str | bytes):
                raise ValueError(f"Attribute {key} must be str. Got {type(value)}.")
            made[key] = attr_value_pb2.AttrValue(s=value.encode() if isinstance(value, str) else value)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {kwargs.keys()}")
    return made


def _number_attribute(key: str, value: Any) -> attr_value_pb2.AttrValue:
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    if isinstance(value, float):
        return attr_value_pb2.AttrValue(f=value)
    if isinstance(value, str | bytes):
        return attr_value_pb2.AttrValue(s=value.encode() if isinstance(value, str) else value)
    raise ValueError(f"Attribute {key} must be bool, int, float, or str. Got {type(value)}.")


def type_list_text(types: Sequence[Any]) -> str:
    """Dtypes as the names of overloaded functions have them: "f32i64".

    Raises:
      ValueError: a dtype has no such text.
    """
    unsupported = [each for each in types if as_dtype(each).name not in _TYPE_TEXTS]
    if unsupported:
        raise ValueError(f"Unsupported dtypes {unsupported} in `types`. Supported dtypes are {sorted(_TYPE_TEXTS)}.")
    return "".join(_TYPE_TEXTS[as_dtype(each).name] for each in types)


_TYPE_TEXTS = {
    "float16": "f16", "float32": "f32", "float64": "f64", "int32": "i32", "uint8": "i8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "int16": "i16", "int8": "i8", "string": "s", "complex64": "c64",
    "complex128": "c128", "int64": "i64", "bool": "b", "qint8": "qi8", "quint8": "qu8", "qint16": "qi16",
    "quint16": "qu16", "qint32": "qi32", "bfloat16": "b16",
}  # fmt: skip


def _hash_of(definition: function_pb2.FunctionDef) -> str:
    """Eleven letters and digits that depend on the arguments, the results and the nodes."""
    found = hashlib.sha1(usedforsecurity=False)
    arguments = (*definition.signature.input_arg, *definition.signature.output_arg)
    nodes = sorted(definition.node_def, key=lambda node: node.name)
    for message in (*arguments, *nodes):
        text = message.SerializeToString(deterministic=True)
        found.update(len(text).to_bytes(8, "little"))
        found.update(text)
    for name in sorted(definition.ret):
        found.update(f"{name}={definition.ret[name]};".encode())
    return base64.b64encode(found.digest(), b"ab").decode()[:11]


def captured_inputs() -> list[Any]:
    """The tensors of the surrounding graph that the function under construction has used so far."""
    graph = get_default_graph()
    return list(graph.captured) if isinstance(graph, FunctionGraph) else []


def captured_arguments() -> list[Any]:
    """The arguments of the function under construction that stand for `captured_inputs()`."""
    graph = get_default_graph()
    return [graph._stand_ins[each] for each in graph.captured] if isinstance(graph, FunctionGraph) else []


def captured_variables() -> list[Any]:
    """The variables of the surrounding graph that the function under construction has asked for by name."""
    graph = get_default_graph()
    return list(graph.outer_variables) if isinstance(graph, FunctionGraph) else []


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
        self._output_names = [name for name, _ in outputs]

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if len(inputs) != len(self._inputs):
            raise ValueError(f"Expected number of arguments: {len(self._inputs)}, received: {len(inputs)}")
        args = [convert_to_tensor(each, dtype) for each, dtype in zip(inputs, self._inputs, strict=True)]
        call = call_by_name(self.name, args, self._outputs, kwargs.get("name", self.name), self._output_names)
        return call.outputs[0] if len(call.outputs) == 1 else call.outputs or call


def _results(structure: Any) -> Sequence[Any]:
    if structure is None or isinstance(structure, Operation):
        return []
    return list(structure) if isinstance(structure, list | tuple) else [structure]


def _plain_name(func: Any) -> str:
    return str(getattr(func, "__name__", "function")).strip("<>")


def _argument_names(func: Callable[..., Any], declared: int) -> list[str] | None:
    """The names of a function's arguments; None if it takes any number."""
    parameters = inspect.signature(func).parameters.values()
    if any(each.kind in (each.VAR_KEYWORD, each.KEYWORD_ONLY) for each in parameters):
        raise ValueError("Functions with argument defaults or keyword arguments are not supported.")
    if any(each.default is not each.empty for each in parameters):
        raise ValueError("Functions with argument defaults or keyword arguments are not supported.")
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        plain = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
        return [*plain, *(f"arg{index}" for index in range(len(plain), declared))] if declared else None
    return [each.name for each in parameters]
