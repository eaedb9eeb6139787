"""Loops and branches must read a variable when they use it, whichever kind it is of."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from tests.interop import variable_programs


@pytest.fixture(scope="module")
def found():
    return variable_programs.outcomes(tf)


def test_both_kinds_of_variables_give_the_same(found):
    for name, value in found.items():
        np.testing.assert_array_equal(value, found[name.replace("/resource/", "/reference/")], err_msg=name)


@pytest.mark.parametrize(
    ("name", "value"),
    {
        "squared/reference/0": [256.0, 6561.0],
        "condition/reference/0": 8,
        "branch/reference/0": [5.0, 5.0],
        "branch/reference/1": [9.0, 11.0],
        "read_after_assign/reference/0": [25.0, 15.0],
        "size_of_a_queue/reference/0": 10,
        "size_of_a_table/reference/0": 10,
        "random_numbers_differ/reference/0": 5,
    }.items(),
)
def test_a_program_gives_what_its_order_says(found, name, value):
    np.testing.assert_array_equal(found[name], value)
