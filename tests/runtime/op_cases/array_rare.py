"""Cases of the rarer array ops, and of what TensorFlow's optimizer makes of tf.parallel_stack."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.wire import errors
from tests.runtime.op_cases import Case, Vary
from tests.runtime.op_cases.array import doubles, evaluate, fails_with, ints, longs, strings

HYPOTHESIS = [longs([[0, 0], [0, 1], [0, 2], [2, 0]]), strings([b"a", b"b", b"c", b"d"]), longs([3, 3])]
TRUTH = [longs([[0, 0], [0, 1], [1, 0]]), strings([b"a", b"c", b"x"]), longs([3, 2])]


def optimized_parallel_stacks_fill_one_buffer():
    with tf.Graph().as_default() as graph:
        whole = apply_op("_ParallelConcatStart", "start", shape=[2, 3], dtype=tf.float64)
        parts = [doubles(1, 3), doubles(1, 3) + 1]
        rows = [
            apply_op("_ParallelConcatUpdate", f"row{loc}", value=whole, update=part, loc=loc)
            for loc, part in enumerate(parts)
        ]
        with graph.control_dependencies([row.op for row in rows]):
            result = tf.identity(whole)
        np.testing.assert_array_equal(evaluate(result)[0], np.concatenate(parts))


CASES = [
    Case("UnravelIndex", [ints([22, 41, 37]), ints([7, 6])], expect=ints([[3, 6, 6], [4, 5, 1]])),
    Case("UnravelIndex", [np.int64(5), longs([7, 6])], expect=longs([0, 5]), name="of_one"),
    Case("UnravelIndex", run=lambda: fails_with(
        errors.InvalidArgumentError, "index is out of bound as with dims",
        lambda x: tf.unravel_index(x, [7, 6]), ints([42])), name="outside"),
    Case("InplaceUpdate", [doubles(3, 2), ints([0, 2]), doubles(2, 2)],
         expect=lambda x, i, v: np.stack([v[0], x[1], v[1]])),
    Case("InplaceAdd", [doubles(3, 2), ints([0, 0]), doubles(2, 2)],
         expect=lambda x, i, v: np.stack([x[0] + v[0] + v[1], x[1], x[2]])),
    Case("InplaceSub", [doubles(3, 2), ints([-1, 4]), doubles(2, 2)],
         expect=lambda x, i, v: np.stack([x[0], x[1] - v[1], x[2] - v[0]])),
    Case("DataFormatDimMap", [ints([0, 1, -1, 3])], expect=ints([0, 2, 1, 1])),
    Case("DataFormatVecPermute", [ints([5, 6, 7, 8])], expect=ints([5, 8, 6, 7])),
    Case("DataFormatVecPermute", [ints([[0, 1], [2, 3]])], {"src_format": "NCHW", "dst_format": "NHWC"},
         ints([[0, 1], [2, 3]]), name="spatial"),
    Case("EditDistance", [*HYPOTHESIS, *TRUTH], {"normalize": False}, np.array([1, 1, 1], np.float32),
         vary=Vary(values=())),
    Case("EditDistance", [*HYPOTHESIS, *TRUTH], expect=np.array([0.5, 1, np.inf], np.float32), name="normalized",
         vary=Vary(values=())),
    Case("_ParallelConcatStart", run=optimized_parallel_stacks_fill_one_buffer),
    Case("_ParallelConcatUpdate", run=optimized_parallel_stacks_fill_one_buffer),
    Case("_HostCast", [doubles(2, 3)], {"DstT": np.float32}, lambda x: x),
    Case("_UnaryOpsComposition", [doubles(2, 3)], {"op_names": ["Abs", "Sqrt", "Neg"]}, lambda x: -np.sqrt(np.abs(x))),
]  # fmt: skip
