"""Cases of ragged tensors."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, ints, longs

SPLITS = longs([0, 2, 2, 3])
VALUES = np.array([1.5, 2.5, 3.5])
NESTED = [longs([0, 1, 2]), longs([0, 2, 3])]
ROW_SPLITS = {"row_partition_types": ["ROW_SPLITS"]}



def through_variants() -> None:
    """Ragged tensors, their rows, and rows in two dimensions, into variants and back."""
    with tf.Graph().as_default(), tf.Session() as session:
        put = {"rt_nested_splits": NESTED, "rt_dense_values": VALUES}
        whole, rows = (apply_op("RaggedTensorToVariant", **put, batched_input=each) for each in (False, True))
        take = {"output_ragged_rank": 2, "Tvalues": tf.float64, "Tsplits": tf.int64}
        for variant, inner in ((whole, 2), (whole, -1), (rows, 1)):
            splits, values = apply_op(
                "RaggedTensorFromVariant", encoded_ragged=variant, input_ragged_rank=inner, **take
            )
            found = session.run([*splits, values])
            assert [each.tolist() for each in found] == [each.tolist() for each in [*NESTED, VALUES]]
        split, values = apply_op("RaggedTensorFromVariant", encoded_ragged=rows[1], input_ragged_rank=1, **{
            **take, "output_ragged_rank": 1})  # fmt: skip
        assert [each.tolist() for each in session.run([split[0], values])] == [[0, 1], [3.5]]
        deep = apply_op("RaggedTensorFromVariant", encoded_ragged=tf.reshape(rows, [1, 2]), input_ragged_rank=1, **{
            **take, "output_ragged_rank": 3})  # fmt: skip
        assert [each.tolist() for each in session.run(list(deep[0]))] == [[0, 2], [0, 1, 2], [0, 2, 3]]
        for wrong in ({"input_ragged_rank": 2}, {"input_ragged_rank": 1, "Tvalues": tf.float32}):
            try:
                session.run(apply_op("RaggedTensorFromVariant", encoded_ragged=rows, **{**take, **wrong})[1])
            except tf.errors.InvalidArgumentError as error:
                assert "ragged_rank" in error.message or "dtype" in error.message
            else:
                raise AssertionError("it must be refused")



CASES = [
    Case("RaggedRange", [ints([1, 5, 7]), ints([4, 5, 1]), ints([1, 1, -2])],
         expect=[longs([0, 3, 3, 6]), ints([1, 2, 3, 7, 5, 3])]),
    Case("RaggedRange", [np.int32(0), ints([2, 3]), np.int32(1)],
         expect=[longs([0, 2, 5]), ints([0, 1, 0, 1, 2])], name="broadcast"),
    Case("RaggedGather", [[SPLITS], VALUES, ints([2, 0, 2])], {"OUTPUT_RAGGED_RANK": 1},
         [longs([0, 1, 3, 4]), np.array([3.5, 1.5, 2.5, 3.5])], grad=[1]),
    Case("RaggedGather", [[SPLITS], doubles(3, 2), ints([[1], [0]])], {"OUTPUT_RAGGED_RANK": 2},
         lambda s, v, i: [longs([0, 1, 2]), longs([0, 0, 2]), v[:2]], grad=[1], name="of_a_matrix"),
    Case("RaggedTensorToVariant", run=through_variants),
    Case("RaggedTensorFromVariant", run=through_variants),
    Case("RaggedTensorToSparse", [[SPLITS], VALUES], grad=[1],
         expect=[longs([[0, 0], [0, 1], [2, 0]]), VALUES, longs([3, 2])]),
    Case("RaggedTensorToSparse", [NESTED, VALUES[:, None]], grad=[2], name="nested", expect=[
        longs([[0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]), VALUES, longs([2, 1, 2, 1])]),
    Case("RaggedTensorToTensor", [longs([-1, -1]), VALUES, np.float64(9), [SPLITS]], ROW_SPLITS,
         np.array([[1.5, 2.5], [9, 9], [3.5, 9]]), grad=[1, 2]),
    Case("RaggedTensorToTensor", [longs([2, 3]), VALUES, np.float64(9), [SPLITS]], ROW_SPLITS,
         np.array([[1.5, 2.5, 9], [9, 9, 9]]), grad=[1, 2], name="cut_and_filled"),
    Case("RaggedTensorToTensor", [longs([2, 2, 2]), doubles(3, 2), doubles(2), [longs([0, 2, 3])]], ROW_SPLITS,
         lambda s, v, d, p: np.array([[v[0], v[1]], [v[2], d]]), grad=[1, 2], name="of_rows"),
    Case("RaggedTensorToTensor", [longs([-1, -1]), VALUES, np.float64(0), [np.int64(4), longs([0, 0, 2])]],
         {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]},
         np.array([[1.5, 2.5], [0, 0], [3.5, 0], [0, 0]]), grad=[1, 2], name="by_row_ids"),
    Case("RaggedFillEmptyRows", [longs([0, 0, 2]), VALUES, np.int64(4), np.float64(9)], grad=[1, 3], expect=[
        longs([0, 0, 1, 2, 3]), np.array([1.5, 2.5, 9, 3.5, 9]), np.array([False, True, False, True]),
        longs([0, 1, 3])]),
    Case("RaggedFillEmptyRowsGrad", [longs([0, 1, 3]), np.arange(5.0)], expect=[np.array([0.0, 1, 3]), np.float64(6)]),
]  # fmt: skip
