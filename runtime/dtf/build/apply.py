"""`apply_op`: adds an op to the graph from its contract alone.

Owns the work common to all public op functions: converting inputs, inferring type and length attributes, defaults,
checks, and the form of the result. The contracts are `opdef`'s.

    def matmul(a, b, transpose_a=False, name=None):
        return apply_op("MatMul", name, a=a, b=b, transpose_a=transpose_a)
"""

from __future__ import annotations

import contextlib
import functools
from collections import namedtuple
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dtf.build import signature
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, graph_of, name_scope
from dtf.build.graph import Operation, Tensor
from dtf.wire import codec, opdef
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.opdef import ArgDef, AttrDef, OpDef
from dtf.wire.pb import attr_value_pb2
from dtf.wire.tensor_shape import TensorShape


def apply_op(op_type: str, /, name: str | None = None, **inputs_and_attrs: Any) -> Any:
    """Adds an operation of `op_type` to the graph of its inputs (the default graph if it has none).

    Args:
      op_type: a name from the table of op contracts.
      name: a name, or a scope that ends in "/"; `op_type` if None.
      **inputs_and_attrs: the inputs and attributes under their names in the contract. Inputs may be anything that
        `convert_to_tensor` takes; Python values get the dtype of the tensors that share their type attribute.
        An attribute that is None or left out has its default; type and length attributes follow from the inputs.

    Returns:
      The Operation if the op has no outputs. Its output if it has one (a list if that output is a list). Otherwise a
      namedtuple of the outputs; its fields have the contract's names.

    Raises:
      KeyError: the op is unknown.
      TypeError: an input or attribute is missing, unknown, or of a type that the op does not take.
      ValueError: a value is not allowed, inputs are of several graphs, or static shapes do not fit.
    """
    op_def = opdef.get(op_type)
    call = _Call(op_def, inputs_and_attrs)
    graph = graph_of(call.graph_elements())
    with graph.as_default(), name_scope(name or op_type) as scope:
        inputs = call.convert_inputs()
        call.fill_attrs()
        with _beside(call.references):
            op = graph.create_op(
                op_type,
                inputs,
                signature.output_types(op_def, call.attrs.__getitem__),
                name=scope,
                attrs=call.attr_protos(),
                op_def=op_def,
            )
    return outputs_of(op, call.attrs.__getitem__)


def outputs_of(op: Operation, get_attr: signature.GetAttr | None = None) -> Any:
    """The outputs of `op` in the form that `apply_op` returns; `op` itself if it has no outputs, and for a
    stateful one whose list of outputs is empty, as in TensorFlow."""
    op_def = op._op_def
    assert op_def is not None
    is_empty_list = op_def.is_stateful and len(op_def.outputs) == 1 and not op.outputs
    if not op_def.outputs or is_empty_list:
        return op
    flat = iter(op.outputs)
    lengths = signature.argument_lengths(op_def.outputs, get_attr or op.get_attr)
    grouped = [next(flat) if length is None else [next(flat) for _ in range(length)] for length in lengths]
    return grouped[0] if len(grouped) == 1 else _output_tuple(op_def.name)(*grouped)


@functools.cache
def _output_tuple(op_type: str) -> Any:
    return namedtuple(op_type, [arg.name for arg in opdef.get(op_type).outputs], rename=True)


@contextlib.contextmanager
def _beside(references: list[Tensor]) -> Iterator[None]:
    """An op that takes a variable's buffer by reference has to be where the buffer is."""
    with contextlib.ExitStack() as stack:
        for tensor in references:
            stack.enter_context(colocate_with(tensor.op))
        yield


class _Call:
    """One call of apply_op: `attrs` begins with the given attributes, then gets those that the inputs imply, then
    defaults."""

    def __init__(self, op_def: OpDef, given: dict[str, Any]) -> None:
        self.op_def = op_def
        self.attrs: dict[str, Any] = {}
        self.references: list[Tensor] = []
        self._given = {}
        names = {arg.name for arg in op_def.inputs}
        for key, value in given.items():
            if key in names:
                self._given[key] = value
            elif key in op_def.attr_by_name:
                attr = op_def.attr_by_name[key]
                if value is not None:
                    self.attrs[key] = self._attr_value(attr, value)
                elif attr.type == "shape" and not attr.has_default:
                    self.attrs[key] = TensorShape(None)
            else:
                raise TypeError(f"{op_def.name} got an unexpected keyword argument '{key}'.")
        missing = [arg.name for arg in op_def.inputs if arg.name not in self._given]
        if missing:
            raise TypeError(f"No argument for input {missing[0]} of {op_def.name}.")
        # Type attributes that no input has fixed yet, as the dtypes of the tensors in the call suggest.
        self._hints = self._find_hints()

    def graph_elements(self) -> Iterable[Any]:
        """The inputs that may determine the graph of the op, lists flattened."""
        for value in self._given.values():
            if isinstance(value, list | tuple):
                yield from value
            else:
                yield value

    def convert_inputs(self) -> list[Tensor]:
        """The input tensors in order; fills the type and length attributes."""
        inputs: list[Tensor] = []
        for arg in self.op_def.inputs:
            value = self._given[arg.name]
            inputs.extend(self._convert_list(arg, value) if arg.is_list else [self._convert(arg, value, arg.name)])
        return inputs

    def fill_attrs(self) -> None:
        """Adds defaults for missing attributes, and checks all attributes."""
        for attr in self.op_def.attrs:
            if attr.name not in self.attrs:
                if not attr.has_default:
                    raise TypeError(f"No argument found for attr {attr.name} for {self.op_def.name}")
                self.attrs[attr.name] = attr.default
            else:
                self._check(attr, self.attrs[attr.name])

    def attr_protos(self) -> dict[str, attr_value_pb2.AttrValue]:
        """The attributes as messages."""
        types = self.op_def.attr_by_name
        return {name: _attr_proto(value, types[name].type) for name, value in self.attrs.items()}

    # Inputs

    def _find_hints(self) -> dict[str, DType]:
        hints: dict[str, DType] = {}
        for arg in self.op_def.inputs:
            if arg.type_attr is None or arg.type_attr in hints:
                continue
            value = self._given[arg.name]
            for each in value if arg.is_list and isinstance(value, list | tuple) else [value]:
                dtype = getattr(each, "dtype", None)
                if isinstance(dtype, DType):
                    hints[arg.type_attr] = dtype.base_dtype
                    break
        return hints

    def _wanted_dtype(self, arg: ArgDef) -> DType | None:
        if arg.type is not None:
            return arg.type
        name = str(arg.type_attr)
        return self.attrs.get(name) or self._hints.get(name)

    def _convert(self, arg: ArgDef, value: Any, name: str) -> Tensor:
        if value is None:
            raise ValueError(f"Tried to convert '{arg.name}' of '{self.op_def.name}' Op to a tensor and failed. "
                             "Error: None values not supported.")  # fmt: skip
        wanted = self._wanted_dtype(arg)
        preferred = None
        if wanted is None and arg.type_attr is not None:
            preferred = self.op_def.attr_by_name[arg.type_attr].default
        if not isinstance(value, Tensor):
            value = self._converted(arg, value, name, wanted, preferred)
        if arg.is_ref and not value.dtype._is_ref_dtype:
            raise TypeError(
                f"'{self.op_def.name}' Op requires that input '{arg.name}' be a mutable tensor (e.g.: a tf.Variable)"
            )
        if arg.is_ref:
            self.references.append(value)
        dtype = value.dtype.base_dtype
        if wanted is not None and dtype != wanted:
            raise self._mismatch(arg, dtype, wanted)
        if arg.type_attr is not None:
            self.attrs[arg.type_attr] = dtype
            self._check_type(self.op_def.attr_by_name[arg.type_attr], dtype, arg.name)
        return value

    def _converted(self, arg: ArgDef, value: Any, name: str, wanted: DType | None, preferred: Any) -> Tensor:
        try:
            return convert_to_tensor(value, wanted, name=name, preferred_dtype=preferred, as_ref=arg.is_ref)
        except (TypeError, ValueError) as error:
            if wanted is None:
                raise
            if isinstance(error, TypeError):
                raise TypeError(
                    f"Expected {wanted.name} passed to parameter '{arg.name}' of op '{self.op_def.name}', got "
                    f"{value!r} of type '{type(value).__name__}' instead. Error: {error}"
                ) from error
            try:
                found = convert_to_tensor(value, as_ref=arg.is_ref).dtype.base_dtype
            except (TypeError, ValueError):
                raise error from None
            if found == wanted:
                raise
            raise self._mismatch(arg, found, wanted) from error

    def _mismatch(self, arg: ArgDef, found: DType, wanted: DType) -> TypeError:
        prefix = f"Input '{arg.name}' of '{self.op_def.name}' Op has type {found.name} that does not match"
        if arg.type is not None:
            return TypeError(f"{prefix} expected type of {wanted.name}.")
        others = [other.name for other in self.op_def.inputs if other.type_attr == arg.type_attr and other is not arg]
        of_argument = f" of argument '{others[0]}'" if others else f" of attribute '{arg.type_attr}'"
        return TypeError(f"{prefix} type {wanted.name}{of_argument}.")

    def _convert_list(self, arg: ArgDef, value: Any) -> list[Tensor]:
        if not isinstance(value, list | tuple):
            if isinstance(value, Tensor) or not hasattr(value, "__iter__"):
                raise TypeError(
                    f"Expected list for '{arg.name}' argument to '{self.op_def.name}' Op, not {value!r}."
                )
            value = list(value)
        if arg.number_attr is not None:
            return self._convert_repeated(arg, value)
        return self._convert_typed(arg, value)

    def _convert_repeated(self, arg: ArgDef, values: list[Any] | tuple[Any, ...]) -> list[Tensor]:
        attr = self.op_def.attr_by_name[str(arg.number_attr)]
        known = self.attrs.get(attr.name)
        if known is not None and known != len(values):
            raise ValueError(
                f"List argument '{arg.name}' to '{self.op_def.name}' Op with length {len(values)} must match "
                f"length {known} of argument '{attr.name}'."
            )
        if attr.minimum is not None and len(values) < attr.minimum:
            raise ValueError(
                f"List argument '{arg.name}' to '{self.op_def.name}' Op with length {len(values)} shorter than "
                f"minimum length {attr.minimum}."
            )
        self.attrs[attr.name] = len(values)
        self._check_alike(arg, values)
        tensors = [self._convert(arg, each, f"{arg.name}_{index}") for index, each in enumerate(values)]
        if not tensors and arg.type_attr is not None and arg.type_attr not in self.attrs:
            hint = self._hints.get(arg.type_attr, self.op_def.attr_by_name[arg.type_attr].default)
            if hint is not None:
                self.attrs[arg.type_attr] = hint
        return tensors

    def _check_alike(self, arg: ArgDef, values: list[Any] | tuple[Any, ...]) -> None:
        """Refuses a list whose tensors have other dtypes than each other, or than the op takes."""
        found = [each.dtype.base_dtype for each in values if isinstance(each, Tensor)]
        wanted = self._wanted_dtype(arg)
        if wanted is None or all(dtype == wanted for dtype in found) or len(values) < 2:
            return
        types = ", ".join(dtype.name for dtype in found)
        prefix = f"Tensors in list passed to '{arg.name}' of '{self.op_def.name}' Op have types [{types}] that"
        if arg.type is not None:
            raise TypeError(f"{prefix} do not match expected type {wanted.name}.")
        if arg.type_attr in self.attrs:
            raise TypeError(f"{prefix} do not match type {wanted.name} inferred from earlier arguments.")
        raise TypeError(f"{prefix} don't all match.")

    def _convert_typed(self, arg: ArgDef, values: list[Any] | tuple[Any, ...]) -> list[Tensor]:
        attr = self.op_def.attr_by_name[str(arg.type_list_attr)]
        wanted = self.attrs.get(attr.name) or [None] * len(values)
        if len(wanted) != len(values):
            raise ValueError(
                f"List argument '{arg.name}' to '{self.op_def.name}' Op with length {len(values)} must match "
                f"length {len(wanted)} of attribute '{attr.name}'."
            )
        try:
            tensors = [
                convert_to_tensor(each, dtype, name=f"{arg.name}_{index}", as_ref=arg.is_ref)
                for index, (each, dtype) in enumerate(zip(values, wanted, strict=True))
            ]
        except (TypeError, ValueError):
            self._check_same_types(arg, values, wanted)
            raise
        self.attrs[attr.name] = [tensor.dtype.base_dtype for tensor in tensors]
        for dtype in self.attrs[attr.name]:
            self._check_type(attr, dtype, arg.name)
        return tensors

    def _check_same_types(self, arg: ArgDef, values: list[Any] | tuple[Any, ...], wanted: list[Any]) -> None:
        """Raises TypeError for a list whose dtypes are not those of an earlier list."""
        others = [each.name for each in self.op_def.inputs if each.type_list_attr == arg.type_list_attr]
        if None in wanted or others[0] == arg.name:
            return
        found = [convert_to_tensor(each).dtype.base_dtype.name for each in values]
        raise TypeError(
            f"Input '{arg.name}' of '{self.op_def.name}' Op has type list of {', '.join(found)} that does not match "
            f"type list {', '.join(dtype.name for dtype in wanted)} of argument '{others[0]}'."
        )

    # Attributes

    def _attr_value(self, attr: AttrDef, value: Any) -> Any:
        """The value in the form that codec.attr_to_python gives."""
        if isinstance(value, attr_value_pb2.AttrValue):
            return codec.attr_to_python(value)
        if attr.type.startswith("list("):
            if not isinstance(value, list | tuple):
                raise TypeError(
                    f"Expected list for attr {attr.name} of '{self.op_def.name}' Op, not {value!r}."
                )
            return [self._single_value(attr, attr.type[5:-1], each) for each in value]
        return self._single_value(attr, attr.type, value)

    def _single_value(self, attr: AttrDef, kind: str, value: Any) -> Any:
        if kind == "type":
            return as_dtype(value).base_dtype
        if kind == "int":
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"Expected int for argument '{attr.name}' not {value!r}.")
            return int(value)
        if kind == "float":
            try:
                return float(value)
            except (TypeError, ValueError):
                raise TypeError(f"Expected float for argument '{attr.name}' not {value!r}.") from None
        if kind == "bool":
            if not isinstance(value, bool | np.bool_):
                raise TypeError(f"Expected bool for argument '{attr.name}' not {value!r}.")
            return bool(value)
        if kind == "string":
            if not isinstance(value, str | bytes):
                raise TypeError(f"Expected string for argument '{attr.name}' not {value!r}.")
            return value.encode() if isinstance(value, str) else value
        if kind == "func" and isinstance(value, bool | int | float):
            raise TypeError(f"Don't know how to convert {value!r} to a func for argument {attr.name}")
        # Shapes, tensors and functions: python_to_attr takes what its reverse gives, and more.
        return codec.attr_to_python(codec.python_to_attr(value, kind))

    def _check(self, attr: AttrDef, value: Any) -> None:
        inner = attr.type.removeprefix("list(").removesuffix(")")
        if attr.allowed is not None and inner == "string":
            for each in value if attr.type.startswith("list(") else [value]:
                if each not in attr.allowed:
                    names = ", ".join(f'"{name.decode()}"' for name in attr.allowed)
                    raise ValueError(
                        f"Attr '{attr.name}' of '{self.op_def.name}' Op passed string '{each.decode()}' "
                        f"not in: {names}."
                    )
        if attr.allowed is not None and attr.type == "type":
            self._check_type(attr, value, attr.name)
        if attr.minimum is not None:
            if attr.type == "int" and value < attr.minimum:
                raise ValueError(
                    f"Attr '{attr.name}' of '{self.op_def.name}' Op passed {value} less than minimum {attr.minimum}."
                )
            if attr.type.startswith("list(") and len(value) < attr.minimum:
                raise ValueError(
                    f"Attr '{attr.name}' of '{self.op_def.name}' Op passed list of length {len(value)} less than "
                    f"minimum {attr.minimum}."
                )

    def _check_type(self, attr: AttrDef, dtype: DType, argument: str) -> None:
        if attr.allowed is not None and dtype not in attr.allowed:
            names = ", ".join(allowed.name for allowed in attr.allowed)
            raise TypeError(
                f"Value passed to parameter '{argument}' has DataType {dtype.name} not in list of allowed values: "
                f"{names}"
            )


def _attr_proto(value: Any, kind: str) -> attr_value_pb2.AttrValue:
    # A shortcut for the common kinds: they are most of the cost of building a graph.
    if kind == "type":
        return attr_value_pb2.AttrValue(type=value.as_datatype_enum)
    if kind == "bool":
        return attr_value_pb2.AttrValue(b=value)
    if kind == "int":
        return attr_value_pb2.AttrValue(i=value)
    return codec.python_to_attr(value, kind)


