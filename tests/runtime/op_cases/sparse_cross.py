"""Cases of feature crosses. The hashes are those that TensorFlow 2.21 gave."""

from __future__ import annotations

import numpy as np

from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import longs, strings
from tests.runtime.op_cases.sparse import INDICES, SHAPE
from tests.runtime.op_cases.sparse_arithmetic import OTHER

WORDS = [strings([b"a", b"b", b"c"]), strings([b"x", b"y", b"z"])]
NUMBERS = [longs([4, 5, 6]), longs([1, 2, 3])]
COLUMNS = [[INDICES, OTHER], WORDS, [SHAPE, SHAPE]]
OF_NUMBERS = [[INDICES, OTHER], NUMBERS, [SHAPE, SHAPE], []]
PLACES = [longs([[0, 0], [2, 0], [2, 1]]), longs([3, 2])]
KEY = {"num_buckets": 0, "hash_key": 956888297470}


def crossed(values):
    return [PLACES[0], values, PLACES[1]]


CASES = [
    Case("SparseCross", [*COLUMNS, []], {
        **KEY, "hashed_output": False, "out_type": np.object_, "internal_type": np.object_,
    }, crossed(strings([b"a_X_x", b"b_X_z", b"c_X_z"]))),
    Case("SparseCross", OF_NUMBERS, {**KEY, "hashed_output": True, "out_type": np.int64, "internal_type": np.int64},
         crossed(longs([7156424991338533084, 1338262295730251342, 4165740298037158512])), name="hashed"),
    Case("SparseCrossV2", [*COLUMNS, [longs([[1, 2], [3, 4], [5, 6]])], strings(b"_")], expect=[
        longs([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [2, 3]]),
        strings([b"a_x_1", b"a_x_2", b"b_z_5", b"b_z_6", b"c_z_5", b"c_z_6"]), longs([3, 4])]),
]  # fmt: skip
