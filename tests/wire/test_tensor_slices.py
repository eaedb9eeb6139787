"""A tensor put together from stored parts: whole, or refused; never with memory that nobody wrote."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.wire import dtypes, errors
from dtf.wire.tensor_slices import cut, put_together

WHOLE = np.arange(36, dtype=np.float32).reshape(6, 6)


def put(wanted, *stored):
    return put_together("v", dtypes.float32, WHOLE.shape, wanted, stored, lambda extents: cut(WHOLE, extents))


@pytest.mark.parametrize(
    "stored",
    [
        [[(0, -1), (0, -1)]],
        [[(0, 2), (0, -1)], [(2, 3), (0, -1)], [(5, 1), (0, -1)]],
        [[(0, -1), (4, 2)], [(0, -1), (0, 4)]],
        [[(0, 3), (0, 3)], [(0, 3), (3, 3)], [(3, 3), (0, 3)], [(3, 3), (3, 3)]],
    ],
)
def test_parts_that_fit_make_the_whole_and_any_part_of_it(stored):
    for wanted in ([(0, -1), (0, -1)], [(1, 4), (2, 3)], [(5, 1), (0, -1)]):
        np.testing.assert_array_equal(put(wanted, *stored), cut(WHOLE, wanted))


@pytest.mark.parametrize(
    "stored",
    [
        [[(0, 3), (0, -1)]] * 2,
        [[(0, 2), (0, -1)], [(0, 2), (0, -1)], [(4, 2), (0, -1)]],
        [[(0, 4), (0, -1)], [(2, 4), (0, -1)]],
        [[(0, 3), (0, 3)], [(0, 3), (0, 3)], [(3, 3), (0, 3)], [(3, 3), (3, 3)]],
        [[(0, -1), (0, -1)]] * 1000,
    ],
)
def test_parts_that_overlap_are_refused_also_where_they_hide_a_gap(stored):
    with pytest.raises(errors.DataLossError, match="overlap"):
        put([(0, -1), (0, -1)], *stored)


def test_parts_that_leave_something_out_are_not_found():
    with pytest.raises(errors.NotFoundError, match="do not cover"):
        put([(0, -1), (0, -1)], [(0, 2), (0, -1)], [(3, 3), (0, -1)])
