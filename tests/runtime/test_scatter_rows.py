"""Updates of rows: what numpy does in bulk is what one update after the other would give."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.run.kernels import gathering
from dtf.run.kernels.gathering import put_rows, scatter_rows

ROWS = {
    "all different": lambda random: random.permutation(50)[:30],
    "some twice": lambda random: np.concatenate([random.permutation(50)[:30], random.permutation(50)[:10]]),
    "one very often": lambda random: np.array([7, 3, *[7] * 20, 4, 3]),
    "few rows": lambda random: random.randint(0, 3, 40),
}


@pytest.mark.parametrize("limit", [0, 1 << 20])
@pytest.mark.parametrize("width", [(1,), (5,), (16, 20)])
@pytest.mark.parametrize("function", [np.add, np.subtract, np.multiply, np.maximum])
@pytest.mark.parametrize("rows", ROWS)
def test_a_row_takes_every_update(rows, function, width, limit, monkeypatch):
    monkeypatch.setattr(gathering, "_LOOKED_UP_MAX", limit)
    random = np.random.RandomState(0)
    numbers = ROWS[rows](random)
    out = random.rand(50, *width)
    updates = random.rand(len(numbers), *width) + 0.5
    expected = out.copy()
    for number, update in zip(numbers, updates, strict=True):
        expected[number] = function(expected[number], update)
    scatter_rows(function, out, numbers, updates)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_rows_that_are_not_contiguous_take_them_too():
    out = np.zeros((4, 6), np.float32).T
    scatter_rows(np.add, out, np.array([1, 5, 1]), np.ones((3, 4), np.float32))
    assert out.sum(axis=1).tolist() == [0, 8, 0, 0, 0, 4]


def test_one_number_updates_whole_rows():
    out = np.zeros((4, 6), np.float32)
    scatter_rows(np.subtract, out, np.array([1, 3]), np.broadcast_to(np.float32(2), (2, 6)))
    assert out[:, 0].tolist() == [0, -2, 0, -2]


@pytest.mark.parametrize("dtype", [np.int8, np.float64, np.complex64, object])
def test_rows_are_put_whatever_they_are_made_of(dtype):
    out = np.zeros((5, 2, 3), dtype)
    put_rows(out, np.array([4, 0]), np.arange(12).reshape(2, 2, 3).astype(dtype))
    assert out[4].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert out[0].tolist() == [[6, 7, 8], [9, 10, 11]]
    assert not out[1:4].any()
