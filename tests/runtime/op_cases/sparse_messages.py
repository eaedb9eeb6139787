"""Cases of packed sparse tensors: as strings, and behind handles."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.wire import codec
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import longs
from tests.runtime.op_cases.sparse import INDICES, SHAPE, VALUES


def message(array):
    return codec.array_to_proto(array).SerializeToString()


def strings(*rows):
    out = np.empty(np.shape(rows), object)
    out[...] = rows
    return out


PACKED = strings(message(INDICES), message(VALUES), message(SHAPE))
ROWS = [(INDICES[:1, 1:], VALUES[:1]), (INDICES[:0, 1:], VALUES[:0]), (INDICES[1:, 1:], VALUES[1:])]
PACKED_ROWS = strings(*([message(indices), message(values), message(SHAPE[1:])] for indices, values in ROWS))
WORDS = strings(b"a", b"", b"bb")


def a_packed_string_is_tensorflows():
    with tf.Graph().as_default(), tf.Session() as session:
        packed = session.run(tf.serialize_sparse(tf.SparseTensor(INDICES, WORDS, SHAPE)))
        again = session.run(tf.deserialize_many_sparse(packed[None], tf.string, rank=3))
    assert packed[1] == b'\x08\x07\x12\x04\x12\x02\x08\x03"\x06\x01\x00\x02abb'
    assert again.values.tolist() == WORDS.tolist()
    np.testing.assert_array_equal(again.dense_shape, [1, 3, 4])


def a_handle_gives_its_tensor_once():
    with tf.Graph().as_default(), tf.Session() as session:
        parts = {"sparse_indices": INDICES, "sparse_values": VALUES, "sparse_shape": SHAPE}
        add_many = tf.raw_ops.AddManySparseToTensorsMap(**parts, shared_name="rows")
        add = tf.raw_ops.AddSparseToTensorsMap(**parts, shared_name="whole")
        handles = tf.placeholder(tf.int64, [None])
        take_rows = tf.raw_ops.TakeManySparseFromTensorsMap(
            sparse_handles=handles, dtype=tf.float64, shared_name="rows"
        )
        take_whole = tf.raw_ops.TakeManySparseFromTensorsMap(
            sparse_handles=handles, dtype=tf.float64, shared_name="whole"
        )
        made = session.run(add_many)
        assert made.shape == (3,)
        rows = session.run(take_rows, {handles: made})
        whole = session.run(take_whole, {handles: [session.run(add)]})
        try:
            session.run(take_rows, {handles: made[:1]})
        except tf.errors.InvalidArgumentError as error:
            assert "Unable to find SparseTensor" in error.message
        else:
            raise AssertionError("a tensor was taken twice")
    for found, wanted in zip(rows, (INDICES, VALUES, SHAPE), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(whole[2], [1, *SHAPE])


CASES = [
    Case("SerializeSparse", [INDICES, VALUES, SHAPE], expect=PACKED),
    Case("SerializeSparse", run=a_packed_string_is_tensorflows, name="of_strings"),
    Case("SerializeManySparse", [INDICES, VALUES, SHAPE], expect=PACKED_ROWS),
    Case("DeserializeSparse", [PACKED], {"dtype": np.float64}, [INDICES, VALUES, SHAPE]),
    Case("DeserializeSparse", [PACKED_ROWS], {"dtype": np.float64}, [INDICES, VALUES, SHAPE], name="of_rows"),
    Case("DeserializeManySparse", [PACKED_ROWS], {"dtype": np.float64}, [INDICES, VALUES, SHAPE]),
    Case("DeserializeManySparse", [strings(list(PACKED), list(PACKED))], {"dtype": np.float64}, [
        np.concatenate([np.insert(INDICES, 0, row, axis=1) for row in (0, 1)]), np.tile(VALUES, 2), longs([2, 3, 4]),
    ], name="of_matrices"),
    Case("AddSparseToTensorsMap", run=a_handle_gives_its_tensor_once),
    Case("AddManySparseToTensorsMap", run=a_handle_gives_its_tensor_once),
    Case("TakeManySparseFromTensorsMap", run=a_handle_gives_its_tensor_once),
]  # fmt: skip
