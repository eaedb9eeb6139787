# ruff: noqa: B023  (each lambda is called before its loop goes on)
"""From one row of the table of op cases, everything else that is worth comparing with TensorFlow.

Owns what is varied and how: every dtype that TensorFlow's CPU kernels take and the contract allows, shapes with zeros
and ones and of other ranks, broadcasting, the values at which arithmetic is odd, attributes, and inputs and attributes
that are wrong. What an input may be changed to follows from the contract: an input whose dtype may be a floating-point
one, an 8-bit integer or bool holds *values*, of which any will do; any other holds sizes, axes or indices, which stay
as they are unless the variant is meant to be wrong. `Case.vary` says where that is not so.

Numbers come from a generator that is seeded by the op's name: the same at each run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from dtf.wire import dtypes
from tests.interop.differential.row import Kernels, Row, arrays_of, compared_dtypes, dtype_of, with_dtype
from tests.interop.differential.variant import Variant
from tests.interop.differential.wrong import wrong_attributes, wrong_inputs
from tests.runtime.op_cases import Case

SHAPES = [(), (0,), (1,), (7,), (2, 0, 3), (1, 1, 1, 1, 1), (5, 1, 3), (2, 3, 4, 5)]
BROADCASTS = [
    ((3, 1), (1, 4)),
    ((), (2, 3)),
    ((2, 1, 3), (4, 1)),
    ((0,), (1,)),
    ((1,), (0, 3)),
    ((5, 4), (4,)),
    ((2, 3, 4, 5), (1, 3, 1, 5)),
    ((1, 1), ()),
]
UNEQUAL = [((2, 3), (2, 4)), ((3,), (2,)), ((0,), (2,)), ((2, 3, 4), (3, 3, 4))]


def variants(case: Case, kernels: Kernels) -> list[Variant]:
    """The row itself, then all of its variants; `kernels` is what TensorFlow has."""
    found = [Variant("as it is", case, gradient=True)]
    for make in (_dtypes, _shapes, _odd_values, _attributes, _sizes_of_zero_and_one, wrong_inputs, wrong_attributes):
        found.extend(make(Row(case, kernels)))
    return list({str(variant): variant for variant in found}.values())


# ---- dtypes


def _dtypes(row: Row) -> Iterator[Variant]:
    """Every dtype of every type attribute, one attribute at a time."""
    for attr in row.contract.attrs:
        if attr.type != "type":
            continue
        for dtype in compared_dtypes(attr):
            if dtype == row.attr_dtype(attr.name):
                continue
            changed = with_dtype(row, attr, dtype)
            if changed is not None:
                yield Variant(f"{attr.name}={dtype.name}", changed, gradient=True)


# ---- shapes


def _shapes(row: Row) -> Iterator[Variant]:
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


def _sizes_of_zero_and_one(row: Row) -> Iterator[Variant]:
    """Each size that the values have, made 0 or 1 wherever it is found among them; and one more or one less dimension.

    What comes of it may be wrong; then both must say so.
    """
    if not row.case.vary.shapes or row.is_pointwise:
        return
    shapes = [
        array.shape
        for value, holds in zip(row.case.inputs, row.values, strict=True)
        if holds
        for array in arrays_of(value)
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


def _odd_values(row: Row) -> Iterator[Variant]:
    """The odd values of several dtypes: in all pairs where there are two arguments of any shape."""
    if not row.case.vary.odd_values:
        return
    attr = next((arg.type_attr for arg, holds in zip(row.contract.inputs, row.values, strict=True) if holds), None)
    rows = [(_dtype_of_first_value(row), row)]
    if attr is not None:
        for dtype in compared_dtypes(row.contract.attr_by_name[attr]):
            if dtype.is_bool or dtype == dtypes.string:
                continue
            changed = with_dtype(row, row.contract.attr_by_name[attr], dtype)
            if changed is not None:
                rows.append((dtype, Row(changed, {row.case.op: row.kernels})))
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
                if not each.values[at] or dtype_of(array) != dtype:
                    return array
                return odd[filler.randint(0, odd.size, array.shape)]

            if dtype.is_floating:
                odd = odd[:-3]  # sums of the ends of the range overflow in one order and not in another
            yield Variant(f"odd {dtype.name}", each.with_inputs(fill))


def _dtype_of_first_value(row: Row) -> dtypes.DType | None:
    for value, holds in zip(row.case.inputs, row.values, strict=True):
        if holds:
            for array in arrays_of(value):
                return dtype_of(array)
    return None


# ---- attributes


def _attributes(row: Row) -> Iterator[Variant]:
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


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
