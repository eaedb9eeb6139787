"""Assertions about arrays, and structures of arrays, for `tf.test.TestCase`.

The functions that do the work are no methods: a test may have methods of any name of its own.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtf.build import nest
from dtf.build.sparse import IndexedSlices, IndexedSlicesValue, SparseTensor, SparseTensorValue
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.wire.dtypes import as_dtype
from dtf.wire.tensor_shape import TensorShape

__all__ = ["ArrayAssertions"]

_SHOWN = 10
_EVALUATED = (Tensor, Variable, SparseTensor, IndexedSlices)
_PLAIN_TUPLES = (SparseTensorValue, IndexedSlicesValue)


class ArrayAssertions(unittest.TestCase):
    """Comparisons of arrays, tensors and structures of them."""

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors."""
        raise NotImplementedError

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """|a - b| <= atol + rtol * |b|, everywhere; NaNs are equal."""

        def compare(one: np.ndarray, other: np.ndarray, where: str) -> None:
            if _is_text(one) or _is_text(other):
                _check(self, np.asarray(one == other), one, other, where, msg)
                return
            with np.errstate(invalid="ignore"):
                close = np.isclose(_exact(one), _exact(other), rtol=rtol, atol=atol, equal_nan=True)
            _check(self, close, one, other, where, msg, f"Not equal to tolerance rtol={rtol}, atol={atol}")

        _compared(self, a, b, compare, msg)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """`assertAllClose` with the tolerances of the less exact of both dtypes."""
        bounds = {
            "float32": (float_rtol, float_atol),
            "complex64": (float_rtol, float_atol),
            "float16": (half_rtol, half_atol),
            "bfloat16": (bfloat16_rtol, bfloat16_atol),
        }

        def compare(one: np.ndarray, other: np.ndarray, where: str) -> None:
            chosen = [(rtol, atol), *(bounds[each.dtype.name] for each in (one, other) if each.dtype.name in bounds)]
            wide_rtol, wide_atol = (max(column) for column in zip(*chosen, strict=True))
            self.assertAllClose(one, other, wide_rtol, wide_atol, f"{msg or ''} {where}".strip())

        _compared(self, a, b, compare, msg)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Equal everywhere; NaNs are equal."""

        def compare(one: np.ndarray, other: np.ndarray, where: str) -> None:
            same = np.asarray(one == other)
            if one.dtype.kind in "fc" and other.dtype.kind in "fc":
                same |= np.isnan(one) & np.isnan(other)
            _check(self, same, one, other, where, msg)

        _compared(self, a, b, compare, msg)

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """The contrary of `assertAllClose`."""
        _refused(self, lambda: self.assertAllClose(a, b, rtol, atol), "The two values are close at all elements.", msg)

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """The contrary of `assertAllEqual`."""
        _refused(self, lambda: self.assertAllEqual(a, b), "The two values are equal at all elements.", msg)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater."""
        _all(self, a, lambda values: values > comparison_target, f"> {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater or equal."""
        _all(self, a, lambda values: values >= comparison_target, f">= {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """All elements are less."""
        _all(self, a, lambda values: values < comparison_target, f"< {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are less or equal."""
        _all(self, a, lambda values: values <= comparison_target, f"<= {comparison_target}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """All elements are between the bounds, which belong to the range unless they are open."""
        (self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else self.assertAllLessEqual)(target, upper_bound)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """All elements are among these."""
        expected = list(expected_set)
        _all(self, target, lambda values: np.isin(values, expected), f"in {expected}")

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """|f1 - f2| <= err, for two numbers."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1!r} != {f2!r} +/- {err!r}{f' ({msg})' if msg else ''}")

    def assertArrayNear(
        self, farray1: Sequence[Any], farray2: Sequence[Any], err: float, msg: str | None = None
    ) -> None:
        """`assertNear` for each of two sequences of numbers."""
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """The norm of the difference is less than `err`."""
        distance = np.linalg.norm(_array(self, ndarray1) - _array(self, ndarray2))
        self.assertTrue(distance < err, f"The arrays differ by {distance}, more than {err}. {msg or ''}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """The static shapes of tensors, or the shapes of arrays, are equal."""
        first, second = (
            each.shape.as_list() if isinstance(each, Tensor) else list(np.shape(each)) for each in (input_a, input_b)
        )
        self.assertEqual(first, second, msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """The dtype of an array, a tensor or all of a list of them."""
        for each in target if isinstance(target, list) else [target]:
            self.assertEqual(as_dtype(_array(self, each).dtype), as_dtype(expected_dtype))


def _compared(
    case: ArrayAssertions, a: Any, b: Any, compare: Callable[..., None], msg: str | None, where: str = ""
) -> None:
    a, b = _plain(case, a), _plain(case, b)
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
            raise ValueError(f"Can't compare dict to non-dict, {a!r} vs {b!r}{where}. {msg or ''}")
        if set(a) != set(b):
            case.fail(f"mismatched keys{where}: {a!r} and {b!r}. {msg or ''}")
        for key in a:
            _compared(case, a[key], b[key], compare, msg, f"{where}[{key!r}]")
        return
    one, other = _as_array(a), _as_array(b)
    if one is None or other is None:
        _by_parts(case, a, b, compare, msg, where)
        return
    if one.shape != other.shape:
        case.fail(f"Shape mismatch{where}: expected {other.shape}, got {one.shape}.\n{a!r}\n{b!r}\n{msg or ''}")
    compare(one, other, where)


def _by_parts(case: ArrayAssertions, a: Any, b: Any, compare: Callable[..., None], msg: str | None, where: str) -> None:
    if not isinstance(a, list | tuple) or not isinstance(b, list | tuple) or len(a) != len(b):
        case.fail(f"mismatched structures{where}: {a!r} and {b!r}. {msg or ''}")
    for index, (one, other) in enumerate(zip(a, b, strict=True)):
        _compared(case, one, other, compare, msg, f"{where}[{index}]")


def _plain(case: ArrayAssertions, value: Any) -> Any:
    """With arrays in the place of tensors."""
    leaves = nest.flatten(value)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, _EVALUATED)]
    if places:
        for place, found in zip(places, case.evaluate([leaves[place] for place in places]), strict=True):
            leaves[place] = tuple(found) if isinstance(found, _PLAIN_TUPLES) else found
        return nest.pack_sequence_as(value, leaves)
    return tuple(value) if isinstance(value, _PLAIN_TUPLES) else value


def _array(case: ArrayAssertions, value: Any) -> np.ndarray:
    return np.asarray(_plain(case, value))


def _check(
    case: ArrayAssertions,
    same: np.ndarray,
    one: np.ndarray,
    other: np.ndarray,
    where: str,
    msg: str | None,
    words: str = "Arrays are not equal",
) -> None:
    if same.all():
        return
    lines = [f"{words}{where}: {(~same).sum()} of {same.size} elements differ. {msg or ''}"]
    for index in list(zip(*np.nonzero(~same), strict=True))[:_SHOWN] if same.ndim else [()]:
        at = ", ".join(str(each) for each in index)
        lines.append(f"  [{at}]: {one[index]!r} != {other[index]!r}")
    case.fail("\n".join(lines))


def _all(case: ArrayAssertions, target: Any, test: Callable[[np.ndarray], Any], words: str) -> None:
    values = _array(case, target)
    good = np.asarray(test(values))
    if not good.all():
        case.fail(f"{(~good).sum()} of {good.size} elements are not {words}: {values[~good].ravel()[:_SHOWN]}")


def _refused(case: ArrayAssertions, check: Callable[[], None], complaint: str, msg: str | None) -> None:
    try:
        check()
    except AssertionError:
        return
    case.fail(f"{complaint} {msg or ''}")


def _as_array(value: Any) -> np.ndarray | None:
    """The array of a value; None for a structure that is none."""
    if isinstance(value, TensorShape):
        value = value.as_list() if value.ndims is not None else None
    if value is None or isinstance(value, str | bytes | set | frozenset):
        return np.asarray(value.encode() if isinstance(value, str) else value, object)
    if isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in nest.flatten(value)):
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # parts of different shapes
        return None
    if array.dtype == object and array.size and not isinstance(array.ravel()[0], bytes | str | int | None):
        return None
    return np.char.encode(array) if array.dtype.kind == "U" else array


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "SO"


def _exact(array: np.ndarray) -> np.ndarray:
    """In a dtype that numpy can compare."""
    return array.astype(np.float64) if array.dtype.kind not in "fciub" or array.dtype.itemsize < 4 else array
