# ruff: noqa: B023  (each lambda is called before its loop goes on)
"""Variants that are wrong: both runtimes must refuse them with the same code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dtf.wire import dtypes
from dtf.wire.opdef import AttrDef
from tests.interop.differential.row import Row, arrays_of
from tests.interop.differential.variant import Variant


def wrong_inputs(row: Row) -> Iterator[Variant]:
    """One input of a wrong rank, size or range at a time; both must refuse it with the same code."""
    pointwise = row.is_pointwise
    for at, (arg, value) in enumerate(zip(row.contract.inputs, row.case.inputs, strict=True)):
        arrays = arrays_of(value)
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


def wrong_attributes(row: Row) -> Iterator[Variant]:
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


def _with_raw(row: Row, attr: AttrDef, value: Any) -> Variant:
    text = value.decode() if isinstance(value, bytes) else value
    return Variant(f"bad {attr.name}={text}", row.case, raw_attrs=((attr.name, attr.type, value),))
