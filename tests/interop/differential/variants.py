"""From one row of the table of op cases, everything else that is worth comparing with TensorFlow.

Owns what is varied and how: every dtype that TensorFlow's CPU kernels take and the contract allows, shapes with zeros
and ones and of other ranks, broadcasting, the values at which arithmetic is odd, attributes, and inputs and attributes
that are wrong. What an input may be changed to follows from the contract: an input whose dtype may be a floating-point
one, an 8-bit integer or bool holds *values*, of which any will do; any other holds sizes, axes or indices, which stay as
they are unless the variant is meant to be wrong. `Case.vary` says where that is not so.

Numbers come from a generator that is seeded by the op's name: the same at each run.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.wire import dtypes, opdef
from dtf.wire.opdef import ArgDef, AttrDef, OpDef
from tests.runtime.op_cases import Case

Kernels = dict[str, list[dict[str, list[int]]]]

COMPARED_DTYPES = (
    "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "complex64", "complex128", "bool", "string",
)  # fmt: skip
SHAPES = [(), (0,), (1,), (7,), (2, 0, 3), (1, 1, 1, 1, 1), (5, 1, 3), (2, 3, 4, 5)]
BROADCASTS = [((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((0,), (1,)), ((1,), (0, 3)), ((5, 4), (4,)), ((2, 3, 4, 5), (1, 3, 1, 5)), ((1, 1), ())]  # fmt: skip
UNEQUAL = [((2, 3), (2, 4)), ((3,), (2,)), ((0,), (2,)), ((2, 3, 4), (3, 3, 4))]


@dataclass(frozen=True)
class Variant:
    """A row with other inputs or attributes.

    Attributes:
      label: what is different about it; with the case's name it names the variant.
      case: what to run.
      static: the graph's placeholders know the shapes of the inputs.
      gradient: gradients are compared too.
      raw_attrs: (name, type, value) of attributes that the contract does not allow.
    """

    label: str
    case: Case
    static: bool = True
    gradient: bool = False
    raw_attrs: tuple[tuple[str, str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.case} {self.label}"


def variants(case: Case, kernels: Kernels) -> list[Variant]:
    """The row itself, then all of its variants; `kernels` is what TensorFlow has."""
    found = [Variant("as it is", case, gradient=True)]
    for make in (_dtypes, _shapes, _odd_values, _attributes, _sizes_of_zero_and_one, _wrong_inputs, _wrong_attributes):
        found.extend(make(_Row(case, kernels)))
    return list({str(variant): variant for variant in found}.values())


class _Row:
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
                for array in _arrays(value):
                    return _dtype(array)
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
            [change(at, each) for each in _arrays(value)] if isinstance(value, list) else change(at, _arrays(value)[0])
            for at, value in enumerate(self.case.inputs)
        ]
        return replace(self.case, inputs=inputs)

    def with_input(self, at: int, change: Callable[[np.ndarray], np.ndarray]) -> Case:
        """The case with `change` applied to the (first) array of the argument `at`."""
        inputs = list(self.case.inputs)
        value = inputs[at]
        inputs[at] = [change(_arrays(value)[0]), *_arrays(value)[1:]] if isinstance(value, list) else change(
            _arrays(value)[0]
        )
        return replace(self.case, inputs=inputs)

    def pool(self, at: int, shape: tuple[int, ...]) -> np.ndarray:
        """An array of `shape` filled with elements of the row's own argument `at`, so that they are in its domain."""
        values = np.concatenate([array.ravel() for array in _arrays(self.case.inputs[at])])
        count = int(np.prod(shape))
        if not values.size:
            return np.zeros(shape, values.dtype)
        return values[self.random.randint(0, values.size, count)].reshape(shape)

    def output_shapes(self, shapes: list[tuple[int, ...]]) -> list[Any] | None:
        """The static shapes of the outputs for inputs of these shapes; None where dtf's shape rule refuses them."""
        with tf.Graph().as_default():
            try:
                holders = {
                    arg.name: tf.placeholder(_dtype(_arrays(value)[0]), shape)
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


# ---- dtypes


def _dtypes(row: _Row) -> Iterator[Variant]:
    """Every dtype of every type attribute, one attribute at a time."""
    for attr in row.contract.attrs:
        if attr.type != "type":
            continue
        for dtype in _compared(attr):
            if dtype == row.attr_dtype(attr.name):
                continue
            changed = _with_dtype(row, attr, dtype)
            if changed is not None:
                yield Variant(f"{attr.name}={dtype.name}", changed, gradient=True)


def _compared(attr: AttrDef) -> list[dtypes.DType]:
    every = [dtypes.as_dtype(name) for name in COMPARED_DTYPES]
    return every if attr.allowed is None else [dtype for dtype in every if dtype in attr.allowed]


def _with_dtype(row: _Row, attr: AttrDef, dtype: dtypes.DType) -> Case | None:
    """The row with another dtype; the other type attributes are as they were, or such that there is a kernel."""
    others = [each for each in row.contract.attrs if each.type == "type" and each.name != attr.name]
    choices = []
    for other in others:
        own = row.attr_dtype(other.name)
        choices.append([own, *(each for each in _compared(other) if each != own)] if own in _compared(other) else [own])
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
        for array in _arrays(value):
            changed = array if wanted is None or wanted == _dtype(array) else convert(array, wanted, holds_values)
            if changed is None:
                return None
            converted.append(changed)
        inputs.append(converted if isinstance(value, list) else converted[0])
    implied = {arg.type_attr for arg in row.contract.inputs}
    attrs = {**row.case.attrs, **{name: each for name, each in types.items() if name not in implied and each is not None}}
    return replace(row.case, inputs=inputs, attrs=attrs)


def _contradicts(types: dict[str, dtypes.DType | None]) -> bool:
    """complex64 goes with float32 and complex128 with float64 where an op has both."""
    real, pair = types.get("T"), types.get("Tout")
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


# ---- shapes


def _shapes(row: _Row) -> Iterator[Variant]:
    """Other shapes where any will do, and pairs of them where they are broadcast."""
    if not row.case.vary.shapes or not row.is_pointwise:
        return
    count = len(row.values)
    for shape in SHAPES:
        yield Variant(f"shape {_text(shape)}", row.with_inputs(lambda at, _: row.pool(at, shape)), gradient=True)
    if row.broadcasts:
        for pair in BROADCASTS:
            for shapes in (pair, pair[::-1]):
                made = row.with_inputs(lambda at, _, shapes=shapes: row.pool(at, shapes[at]))
                label = f"shapes {_text(shapes[0])} {_text(shapes[1])}"
                yield Variant(label, made, gradient=True)
                yield Variant(f"{label} at run time", made, static=False, gradient=True)
    if count > 1:
        for pair in UNEQUAL:
            made = row.with_inputs(lambda at, _, pair=pair: row.pool(at, pair[min(at, 1)]))
            yield Variant(f"unequal {_text(pair[0])} {_text(pair[1])}", made, static=False)


def _sizes_of_zero_and_one(row: _Row) -> Iterator[Variant]:
    """Each size that the values have, made 0 or 1 wherever it is found among them; and one more or one less dimension.

    What comes of it may be wrong; then both must say so.
    """
    if not row.case.vary.shapes or row.is_pointwise:
        return
    shapes = [
        array.shape
        for value, holds in zip(row.case.inputs, row.values, strict=True)
        if holds
        for array in _arrays(value)
    ]
    for size in sorted({size for shape in shapes for size in shape if size > 1}):
        for wanted in (0, 1):
            def cut(at: int, array: np.ndarray, size: int = size, wanted: int = wanted) -> np.ndarray:
                if not row.values[at]:
                    return array
                return array[tuple(slice(wanted if each == size else each) for each in array.shape)]

            yield Variant(f"size {size} to {wanted}", row.with_inputs(cut), static=False, gradient=True)
    yield Variant("a dimension more", row.with_inputs(lambda at, x: x[None] if row.values[at] else x), static=False)
    yield Variant(
        "a dimension less",
        row.with_inputs(lambda at, x: x[0] if row.values[at] and x.ndim and len(x) else x),
        static=False,
    )


# ---- values


def odd_values(dtype: dtypes.DType) -> np.ndarray:
    """Values at which arithmetic is odd: ends of the range, zeros of both signs, infinities, not a number."""
    wanted = dtype.as_numpy_dtype
    if dtype.is_floating:
        info = ml_dtypes.finfo(wanted)
        numbers = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, -40.0, 1e4, np.inf, -np.inf, np.nan]
        return np.array([*numbers, float(info.max), float(info.min), float(info.smallest_normal)]).astype(wanted)
    if dtype.is_integer:
        info = np.iinfo(wanted)
        return np.array([0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min + 1]
                        + ([] if dtype.is_unsigned else [-1, -2, -7, -100]), wanted)  # fmt: skip
    if dtype.is_complex:
        parts = [0.0, -0.0, 1.0, -2.5, 30.0]
        return np.array([complex(a, b) for a in parts for b in parts]).astype(wanted)
    return np.array([False, True])


def _odd_values(row: _Row) -> Iterator[Variant]:
    """The odd values of several dtypes: in all pairs where there are two arguments of any shape."""
    if not row.case.vary.odd_values:
        return
    attr = next((arg.type_attr for arg, holds in zip(row.contract.inputs, row.values, strict=True) if holds), None)
    rows = [(_dtype_of_first_value(row), row)]
    if attr is not None:
        for dtype in _compared(row.contract.attr_by_name[attr]):
            if dtype.is_bool or dtype == dtypes.string:
                continue
            changed = _with_dtype(row, row.contract.attr_by_name[attr], dtype)
            if changed is not None:
                rows.append((dtype, _Row(changed, {row.case.op: row.kernels})))
    for dtype, each in {dtype: each for dtype, each in rows if dtype is not None}.items():
        if dtype == dtypes.string or dtype.is_bool:
            continue
        odd = odd_values(dtype)
        low, high = row.case.vary.domain
        if not dtype.is_complex:
            with np.errstate(invalid="ignore"):
                odd = odd[~((odd.astype(float) < low) | (odd.astype(float) > high))]
        if not odd.size:
            continue
        if each.broadcasts:
            made = each.with_inputs(lambda at, x: odd[:, None] if at == 0 else odd)
            yield Variant(f"odd {dtype.name}", made, gradient=False)
            if dtype.is_integer:
                for name, bad in (("zero", 0), ("minus one", -1)):
                    if bad == 0 or not dtype.is_unsigned:
                        yield Variant(f"odd {dtype.name} and {name}", each.with_inputs(
                            lambda at, x: odd if at == 0 else np.full((), bad, odd.dtype)))  # fmt: skip
                nonzero = odd[odd != 0]
                yield Variant(f"odd {dtype.name} and no zero", each.with_inputs(
                    lambda at, x: odd[:, None] if at == 0 else nonzero[nonzero != -1]))  # fmt: skip
        elif each.is_pointwise:
            made = each.with_inputs(lambda at, x: np.roll(odd, at * 3))
            yield Variant(f"odd {dtype.name}", made)
        else:
            filler = np.random.RandomState(zlib.crc32(str(each.case).encode()))

            def fill(at: int, array: np.ndarray) -> np.ndarray:
                if not each.values[at] or _dtype(array) != dtype:
                    return array
                return odd[filler.randint(0, odd.size, array.shape)]

            if dtype.is_floating:
                odd = odd[:-3]  # sums of the ends of the range overflow in one order and not in another
            yield Variant(f"odd {dtype.name}", each.with_inputs(fill))


def _dtype_of_first_value(row: _Row) -> dtypes.DType | None:
    for value, holds in zip(row.case.inputs, row.values, strict=True):
        if holds:
            for array in _arrays(value):
                return _dtype(array)
    return None


# ---- attributes


def _attributes(row: _Row) -> Iterator[Variant]:
    """The other values that the contract allows: flipped flags, each word of a list, the default."""
    for attr in row.contract.attrs:
        if attr.name in row.case.vary.fixed_attrs or attr.name.startswith("_"):
            continue
        now = row.case.attrs.get(attr.name, attr.default)
        others: list[Any] = []
        if attr.type == "bool":
            others = [True, False]
        elif attr.type == "string" and attr.allowed is not None:
            others = list(attr.allowed)
        if attr.has_default and attr.type in ("int", "float", "string", "list(int)") and attr.name in row.case.attrs:
            others.append(attr.default)
        for other in others:
            if other == (now.encode() if isinstance(now, str) else now):
                continue
            attrs = {**row.case.attrs, attr.name: other}
            text = other.decode() if isinstance(other, bytes) else other
            yield Variant(f"{attr.name}={text}", replace(row.case, attrs=attrs), static=False, gradient=True)


def _wrong_attributes(row: _Row) -> Iterator[Variant]:
    """What the contract does not allow."""
    implied = {name for arg in row.contract.inputs for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    for attr in row.contract.attrs:
        if attr.name in implied:
            continue
        if attr.type == "string" and attr.allowed is not None:
            yield _with_raw(row, attr, b"BOGUS")
        elif attr.type == "type" and attr.allowed is not None and dtypes.variant not in attr.allowed:
            yield _with_raw(row, attr, dtypes.variant)
        elif attr.type == "int" and attr.minimum is not None:
            yield _with_raw(row, attr, attr.minimum - 1)


def _with_raw(row: _Row, attr: AttrDef, value: Any) -> Variant:
    text = value.decode() if isinstance(value, bytes) else value
    return Variant(f"bad {attr.name}={text}", row.case, raw_attrs=((attr.name, attr.type, value),))


# ---- wrong inputs


def _wrong_inputs(row: _Row) -> Iterator[Variant]:
    """One input of a wrong rank, size or range at a time; both must refuse it with the same code."""
    pointwise = row.is_pointwise
    for at, (arg, value) in enumerate(zip(row.contract.inputs, row.case.inputs, strict=True)):
        arrays = _arrays(value)
        if not arrays or arg.is_ref or arg.type == dtypes.resource:
            continue
        first = arrays[0]
        if row.values[at]:
            if pointwise:
                continue
            if first.ndim and first.shape[-1] > 1:
                yield Variant(f"{arg.name} is shorter", row.with_input(at, lambda x: x[..., :-1]), static=False)
            if first.ndim:
                yield Variant(f"{arg.name} is a scalar", row.with_input(at, lambda x: row.pool(at, ())), static=False)
            else:
                yield Variant(f"{arg.name} is a vector", row.with_input(at, lambda x: np.stack([x, x])), static=False)
            continue
        yield Variant(f"{arg.name} has a dimension more", row.with_input(at, lambda x: x[None]), static=False)
        if first.ndim:
            yield Variant(f"{arg.name} is a scalar", row.with_input(at, lambda x: row.pool(at, ())), static=False)
            yield Variant(f"{arg.name} is empty", row.with_input(at, lambda x: x[:0]), static=False)
            yield Variant(f"{arg.name} is shorter", row.with_input(at, lambda x: x[:-1]), static=False)
        if first.dtype.kind in "iu" and first.size:
            for label, bad in (("too large", 1000), ("negative", -3), ("zero", 0)):
                changed = row.with_input(at, lambda x, bad=bad: _with_last(x, bad))
                yield Variant(f"{arg.name} is {label}", changed, static=False)


def _with_last(array: np.ndarray, value: int) -> np.ndarray:
    changed = np.array(array)
    if array.dtype.kind == "u" and value < 0:
        return changed
    changed[(-1,) * array.ndim] = min(value, np.iinfo(array.dtype).max)
    return changed


# ---- what the contract says


def _holds_values(arg: ArgDef, contract: OpDef) -> bool:
    if arg.type_list_attr is not None or arg.type == dtypes.resource:
        return True
    if arg.type is not None:
        return arg.type.is_floating or arg.type.is_complex or arg.type.is_bool
    allowed = contract.attr_by_name[str(arg.type_attr)].allowed
    return allowed is None or any(
        each.is_floating or each.is_bool or (each.is_integer and each.size == 1) for each in allowed
    )


def _arrays(value: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in value] if isinstance(value, list) else [np.asarray(value)]


def _dtype(array: np.ndarray) -> dtypes.DType:
    return dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)


def _is_inexact(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
