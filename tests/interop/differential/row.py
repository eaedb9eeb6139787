"""One row of the table with what its contract says: which inputs hold values, which dtypes there are, conversion.

What is made of a row is `variants`' and `wrong`'s matter.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes  # noqa: F401  (names the dtypes that numpy lacks)
import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.wire import dtypes, opdef
from dtf.wire.deprecations import DEPRECATED
from dtf.wire.opdef import ArgDef, AttrDef, OpDef
from tests.runtime.op_cases import Case

Kernels = dict[str, list[dict[str, list[int]]]]

COMPARED_DTYPES = (
    "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "complex64", "complex128", "bool", "string",
)  # fmt: skip


class Row:
    """A case with what its contract says about it."""

    def __init__(self, case: Case, kernels: Kernels) -> None:
        self.case = case
        self.contract = opdef.get(case.op)
        self.kernels = kernels.get(case.op, [])
        self.random = np.random.RandomState(zlib.crc32(str(case).encode()))
        self.values = [
            arg.name in case.vary.values if case.vary.values is not None else _holds_values(arg, self.contract)
            for arg in self.contract.inputs
        ]

    def attr_dtype(self, name: str) -> dtypes.DType | None:
        """The dtype that the row gives the attribute `name`, or None where nothing but its default says."""
        for arg, value in zip(self.contract.inputs, self.case.inputs, strict=True):
            if arg.type_attr == name or (arg.type == dtypes.resource and name in ("T", "dtype")):
                for array in arrays_of(value):
                    return dtype_of(array)
        given = self.case.attrs.get(name, self.contract.attr_by_name[name].default)
        return None if given is None else dtypes.as_dtype(given)

    def has_kernel(self, types: dict[str, dtypes.DType | None]) -> bool:
        """Whether TensorFlow has a CPU kernel for these dtypes of the attributes."""
        return any(
            all(not allowed or types.get(name) is None or types[name].as_datatype_enum in allowed
                for name, allowed in kernel.items())
            for kernel in self.kernels
        )  # fmt: skip

    def with_inputs(self, change: Callable[[int, np.ndarray], np.ndarray]) -> Case:
        """The case with `change(position of the argument, array)` for each array."""
        inputs = [
            [change(at, each) for each in arrays_of(value)]
            if isinstance(value, list)
            else change(at, arrays_of(value)[0])
            for at, value in enumerate(self.case.inputs)
        ]
        return replace(self.case, inputs=inputs)

    def with_input(self, at: int, change: Callable[[np.ndarray], np.ndarray]) -> Case:
        """The case with `change` applied to the (first) array of the argument `at`."""
        inputs = list(self.case.inputs)
        value = inputs[at]
        inputs[at] = (
            [change(arrays_of(value)[0]), *arrays_of(value)[1:]]
            if isinstance(value, list)
            else change(arrays_of(value)[0])
        )
        return replace(self.case, inputs=inputs)

    def pool(self, at: int, shape: tuple[int, ...]) -> np.ndarray:
        """An array of `shape` filled with elements of the row's own argument `at`, so that they are in its domain."""
        values = np.concatenate([array.ravel() for array in arrays_of(self.case.inputs[at])])
        count = int(np.prod(shape))
        if not values.size:
            return np.full(shape, b"" if values.dtype == object else 0, values.dtype)
        return values[self.random.randint(0, values.size, count)].reshape(shape)

    def output_shapes(self, shapes: list[tuple[int, ...]]) -> list[Any] | None:
        """The static shapes of the outputs for inputs of these shapes; None where dtf's shape rule refuses them."""
        with tf.Graph().as_default() as graph:
            if self.case.op in DEPRECATED:
                graph._producer = 1  # a graph of the time when it had such ops
            try:
                holders = {
                    arg.name: tf.placeholder(dtype_of(arrays_of(value)[0]), shape)
                    for arg, value, shape in zip(self.contract.inputs, self.case.inputs, shapes, strict=True)
                }
                attrs = {key: value for key, value in self.case.attrs.items()}
                result = apply_op(self.case.op, self.case.op.lstrip("_"), **holders, **attrs)
            except Exception:
                return None
        tensors = [result] if isinstance(result, tf.Tensor) else list(result)
        if not all(isinstance(tensor, tf.Tensor) and tensor.shape.is_fully_defined() for tensor in tensors):
            return None
        return [tuple(tensor.shape.as_list()) for tensor in tensors]

    @property
    def is_pointwise(self) -> bool:
        """Whether any shape will do as long as all inputs have it."""
        if not self.contract.inputs or not all(self.values) or any(arg.is_list for arg in self.contract.inputs):
            return False
        shapes: list[tuple[int, ...]] = [(), (0,), (2, 0, 3), (2, 3)]
        return all(self.output_shapes([shape] * len(self.values)) == [shape] for shape in shapes)

    @property
    def broadcasts(self) -> bool:
        """Whether it is an op of two arguments that are broadcast to each other."""
        return self.is_pointwise and len(self.values) == 2 and self.output_shapes([(2, 1), (1, 3)]) == [(2, 3)]


def compared_dtypes(attr: AttrDef) -> list[dtypes.DType]:
    every = [dtypes.as_dtype(name) for name in COMPARED_DTYPES]
    return every if attr.allowed is None else [dtype for dtype in every if dtype in attr.allowed]


def with_dtype(row: Row, attr: AttrDef, dtype: dtypes.DType) -> Case | None:
    """The row with another dtype; the other type attributes are as they were, or such that there is a kernel."""
    others = [each for each in row.contract.attrs if each.type == "type" and each.name != attr.name]
    choices = []
    for other in others:
        own = row.attr_dtype(other.name)
        choices.append(
            [own, *(each for each in compared_dtypes(other) if each != own)] if own in compared_dtypes(other) else [own]
        )
    types: dict[str, dtypes.DType | None] | None = None
    for chosen in itertools.islice(itertools.product(*choices), 400):
        candidate = {attr.name: dtype, **{other.name: each for other, each in zip(others, chosen, strict=True)}}
        if row.has_kernel(candidate) and not _contradicts(candidate):
            types = candidate
            break
    if types is None:
        return None
    inputs = []
    for arg, value, holds_values in zip(row.contract.inputs, row.case.inputs, row.values, strict=True):
        held = "dtype" if "dtype" in row.contract.attr_by_name else "T"
        wanted = types.get(held if arg.type == dtypes.resource else arg.type_attr or "")
        converted = []
        for array in arrays_of(value):
            changed = array if wanted is None or wanted == dtype_of(array) else convert(array, wanted, holds_values)
            if changed is None:
                return None
            converted.append(changed)
        inputs.append(converted if isinstance(value, list) else converted[0])
    implied = {arg.type_attr for arg in row.contract.inputs}
    attrs = {
        **row.case.attrs,
        **{name: each for name, each in types.items() if name not in implied and each is not None},
    }
    return replace(row.case, inputs=inputs, attrs=attrs)


def _contradicts(types: dict[str, dtypes.DType | None]) -> bool:
    """complex64 goes with float32 and complex128 with float64 where an op has both."""
    real, pair = (types.get("Treal", types.get("T")), types.get("Tcomplex", types.get("Tout")))
    whole = types.get("T")
    if whole is not None and types.get("Treal") not in (None, whole.real_dtype):
        return True
    if real is None or pair is None:
        return False
    if real.is_complex and pair.is_floating:
        return real.real_dtype != pair
    if pair.is_complex and real.is_floating:
        return pair.real_dtype != real
    return False


def convert(array: np.ndarray, dtype: dtypes.DType, values: bool) -> np.ndarray | None:
    """The array in another dtype. Of values whose exact size does not matter, none becomes 0 that was not.

    None where there is no such array: numbers of strings.
    """
    if array.dtype == object:
        return None
    if dtype == dtypes.string:
        flat = [b"%.1f" % float(np.real(each)) for each in array.ravel()]
        strings = np.empty(len(flat), object)
        strings[:] = flat
        return strings.reshape(array.shape)
    wanted = np.dtype(dtype.as_numpy_dtype)
    if array.dtype.kind in "c" and not dtype.is_complex:
        array = array.real
    if dtype.is_bool:
        return array > 0
    if dtype.is_integer and values and _is_inexact(array):
        numbers = array.astype(np.float64)
        whole = np.copysign(np.ceil(np.abs(numbers * 3)), numbers)
        whole = np.clip(np.nan_to_num(whole), -100, 100)
        return (np.abs(whole) if dtype.is_unsigned else whole).astype(wanted)
    if dtype.is_complex and values and array.dtype.kind == "f" and array.size:
        if not np.isfinite(array).all():
            return None  # which part of a complex number is infinite is left open by every library
        paired = np.empty(array.shape, np.complex128)
        paired.real, paired.imag = array, np.roll(array.ravel(), 1).reshape(array.shape)
        return paired.astype(wanted)
    return array.astype(wanted)


def _holds_values(arg: ArgDef, contract: OpDef) -> bool:
    if arg.type_list_attr is not None or arg.type == dtypes.resource:
        return True
    if arg.type is not None:
        return arg.type.is_floating or arg.type.is_complex or arg.type.is_bool
    allowed = contract.attr_by_name[str(arg.type_attr)].allowed
    return allowed is None or any(
        each.is_floating or each.is_bool or (each.is_integer and each.size == 1) for each in allowed
    )


def arrays_of(value: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in value] if isinstance(value, list) else [np.asarray(value)]


def dtype_of(array: np.ndarray) -> dtypes.DType:
    return dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)


def _is_inexact(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"
