"""Loops in machine code compute what numpy computes, for all extents and with nothing written beyond the end."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.run.lib import onednn
from dtf.run.lib.vector_code import loops
from dtf.run.lib.vector_code.assembler import Executable
from dtf.run.lib.vector_code.loops import COLUMN_SUM, MATRIX, ROW, SINGLE, Builder

pytestmark = pytest.mark.skipif(not loops._can_run(), reason="this processor or system runs no such code")
RANDOM = np.random.RandomState(0)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e30, 3.0, -3.0, 1e-42], np.float32)
GUARD = 16


@pytest.fixture(autouse=True)
def by_default(monkeypatch):
    monkeypatch.delenv(onednn.SWITCH, raising=False)


def place(array, pitch=None):
    return array.__array_interface__["data"][0], array.shape[-1] * 4 if pitch is None else pitch


def guarded(rows, columns):
    """An array of zeros inside a larger one, to see whether anything is written around it."""
    whole = np.zeros(GUARD + rows * columns + GUARD, np.float32)
    return whole, whole[GUARD:-GUARD].reshape(rows, columns)


def of_pairs(op, left, right):
    b = Builder()
    b.store(b.node(op, b.array(MATRIX), b.array(MATRIX)), MATRIX)
    result = np.empty_like(left)
    loops.compiled(b.loop())(1, left.size, [place(left), place(right), place(result)])
    return result


def of_one(op, values):
    b = Builder()
    b.store(b.node(op, b.array(MATRIX)), MATRIX)
    result = np.empty_like(values)
    loops.compiled(b.loop())(1, values.size, [place(values), place(result)])
    return result


@pytest.mark.parametrize(
    ("op", "function"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
     ("larger", np.maximum), ("lesser", np.minimum)],
)  # fmt: skip
def test_operations_of_two_arrays_are_numpys_for_all_special_values(op, function):
    left, right = (each.ravel().copy() for each in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(of_pairs(op, left, right), function(left, right))


@pytest.mark.parametrize(
    ("op", "function"),
    [("square root", np.sqrt), ("negative", np.negative), ("absolute", np.abs), ("round down", np.floor),
     ("one above zero", lambda x: (x > 0).astype("f"))],
)  # fmt: skip
def test_operations_of_one_array_are_numpys_for_all_special_values(op, function):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(of_one(op, SPECIAL), function(SPECIAL))


@pytest.mark.parametrize(("op", "function", "units"), [("exp", np.exp, 2), ("tanh", np.tanh, 3)])
def test_functions_are_within_units_of_the_last_place(op, function, units):
    values = np.concatenate([np.linspace(-110, 95, 40_001), np.linspace(-1, 1, 20_001), SPECIAL]).astype("f")
    with np.errstate(all="ignore"):
        exact = function(values.astype("d"))
        rounded = exact.astype("f")
        result = of_one(op, values)
        np.testing.assert_array_equal(np.isfinite(result), np.isfinite(rounded))
        np.testing.assert_array_equal(np.signbit(result), np.signbit(rounded))
        finite = np.isfinite(rounded)
        distance = np.abs(result[finite].astype("d") - exact[finite])
        assert np.all(distance <= units * np.spacing(np.abs(rounded[finite])))


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 100])
def test_a_normalisation_of_rows_is_numpys_and_writes_nothing_else(rows, columns):
    b = Builder()
    x, scale, factor, shift = b.array(MATRIX), b.array(MATRIX), b.array(ROW), b.array(SINGLE)
    difference = b.node("subtract", x, b.node("divide", b.node("row sum", x), b.number(float(columns))))
    size = b.node("square root", b.node("row sum", b.node("multiply", difference, difference)))
    result = b.node("divide", difference, b.node("add", size, shift))
    result = b.node("multiply", b.node("multiply", result, scale), factor)
    for node, kind in ((result, MATRIX), (size, ROW), (result, COLUMN_SUM)):
        b.store(node, kind)
    values, scales = RANDOM.randn(rows, columns).astype("f"), RANDOM.randn(columns).astype("f")
    factors, shifts = RANDOM.randn(rows, 1).astype("f"), np.array([0.5], "f")
    around, made = guarded(rows, columns)
    around_sizes, sizes = guarded(rows, 1)
    around_sums, sums = guarded(1, columns)
    loops.compiled(b.loop())(
        rows, columns,
        [place(values), place(scales, 0), place(factors), place(shifts, 0), place(made), place(sizes), place(sums, 0)],
    )  # fmt: skip
    centred = values - values.mean(1, keepdims=True)
    norm = np.sqrt((centred * centred).sum(1, keepdims=True))
    expected = centred / (norm + 0.5) * scales * factors
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sizes, norm, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sums[0], expected.sum(0), rtol=1e-4, atol=1e-5)
    for whole in (around, around_sizes, around_sums):
        assert not whole[:GUARD].any() and not whole[-GUARD:].any()


def test_many_arrays_and_rows_with_a_pitch():
    b = Builder()
    total = b.array(MATRIX)
    for _ in range(11):
        total = b.node("add", total, b.array(MATRIX))
    b.store(total, MATRIX)
    arrays = [RANDOM.randint(0, 9, (3, 30)).astype("f")[:, 5:26] for _ in range(12)]
    result = np.empty((3, 21), np.float32)
    loops.compiled(b.loop())(3, 21, [*(place(array, 120) for array in arrays), place(result)])
    np.testing.assert_array_equal(result, sum(arrays))


def test_a_program_with_more_values_than_registers_has_no_code():
    b = Builder()
    loaded = [b.array(MATRIX) for _ in range(20)]
    roots = [b.node("square root", each) for each in loaded]
    for one in roots:
        total = one
        for other in roots:
            total = b.node("multiply", total, other)
        b.store(total, MATRIX)
    assert loops.compiled(b.loop()) is None


def test_memory_that_may_not_be_executed_is_an_error_and_numpy_computes(monkeypatch, caplog):
    def refuse(code):
        raise OSError(13, "memory cannot be made executable")

    monkeypatch.setattr(loops, "Executable", refuse)
    with caplog.at_level("INFO", "dtf"):
        assert loops._can_run.__wrapped__() is False
    assert "numpy computes" in caplog.text


def test_the_switch_is_obeyed(monkeypatch):
    monkeypatch.setenv(onednn.SWITCH, "numpy")
    assert not loops.is_there()


def test_code_is_called_with_its_arguments():
    Executable(b"\xc3")(0, 1, 1)
