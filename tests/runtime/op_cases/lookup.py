"""Cases of lookup tables."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.build.ops.lookup import (
    DenseHashTable,
    HashTable,
    KeyValueTensorInitializer,
    MutableHashTable,
    StaticVocabularyTable,
    TextFileIndex,
    TextFileInitializer,
)
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import evaluate
from tests.runtime.op_cases.data_flow import in_order
from tests.runtime.op_cases.io import raises


def a_table_is_filled_once_and_found_in():
    with tf.Graph().as_default():
        table = HashTable(KeyValueTensorInitializer(["a", "b"], np.array([1, 2])), -1)
        with raises(errors.FailedPreconditionError, "Table not initialized."):
            evaluate(table.size())
        with tf.control_dependencies([tf.tables_initializer()]):
            found, size = table.lookup(tf.constant([["b", "x"]])), table.size()
        assert [value.tolist() for value in evaluate(found, size)] == [[[2, -1]], 2]
        again = in_order(
            lambda: tf.identity(size),
            lambda: KeyValueTensorInitializer(["c"], np.array([3])).initialize(table),
            lambda: table.size(),
        )
        with raises(errors.FailedPreconditionError, "Table already initialized."):
            evaluate(again)


def a_table_is_filled_from_the_lines_of_a_file():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        path = os.path.join(folder, "words")
        with open(path, "w") as file:
            file.write("zero\none\ntwo\n")
        source = TextFileInitializer(path, tf.string, TextFileIndex.WHOLE_LINE, tf.int64, TextFileIndex.LINE_NUMBER)
        table = HashTable(source, -1)
        with tf.control_dependencies([table.init]):
            found = table.lookup(tf.constant(["two", "three"]))
        assert evaluate(found)[0].tolist() == [2, -1]


def a_mutable_table_is_changed_by_steps():
    with tf.Graph().as_default():
        table = MutableHashTable(tf.int64, tf.float32, 0.5)
        keys, values = in_order(
            lambda: table.insert(np.array([1, 2, 3]), [10.0, 20.0, 30.0]),
            lambda: table.remove(np.array([2, 9])),
            lambda: table.insert(np.array([1]), [11.0]),
            lambda: table.export(),
        )
        replaced = in_order(
            lambda: tf.identity(keys),
            lambda: apply_op(
                "LookupTableImportV2", table_handle=table.resource_handle, keys=np.array([7]), values=[70.0]
            ),
            lambda: table.lookup(tf.constant([7, 1], tf.int64)),
        )
        assert [value.tolist() for value in evaluate(keys, values, replaced)] == [[1, 3], [11, 30], [70, 0.5]]


def the_older_ops_pass_the_table_by_reference():
    with tf.Graph().as_default():
        types = {"key_dtype": tf.string, "value_dtype": tf.int64}
        fixed, mutable = apply_op("HashTable", **types), apply_op("MutableHashTable", **types)
        one, two = np.array([1]), np.array([2])

        def on(table, op, **inputs):
            return apply_op(op, table_handle=table, **inputs)

        found = in_order(
            lambda: on(fixed, "InitializeTable", keys=["a"], values=one),
            lambda: on(fixed, "LookupTableFind", keys=["a", "b"], default_value=np.int64(0)),
        )
        size = in_order(
            lambda: on(mutable, "LookupTableInsert", keys=["a"], values=one),
            lambda: on(mutable, "LookupTableImport", keys=["b"], values=two),
            lambda: on(mutable, "LookupTableSize"),
        )
        with tf.control_dependencies([size]):
            keys, values = on(mutable, "LookupTableExport", Tkeys=tf.string, Tvalues=tf.int64)
        assert [value.tolist() for value in evaluate(found, size, keys, values)] == [[1, 0], 1, [b"b"], [2]]


def a_table_by_reference_is_filled_from_a_file():
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        path = Path(folder) / "words"
        path.write_bytes(b"a\nb\n")
        table = apply_op("HashTable", key_dtype=tf.string, value_dtype=tf.int64)
        found = in_order(
            lambda: apply_op(
                "InitializeTableFromTextFile", table_handle=table, filename=str(path), key_index=-2, value_index=-1
            ),
            lambda: apply_op(
                "LookupTableFind", table_handle=table, keys=["b", "c", "a"], default_value=np.int64(-1)
            ),
        )
        assert evaluate(found)[0].tolist() == [1, -1, 0]


def values_may_be_tensors():
    with tf.Graph().as_default():
        table = MutableHashTable(tf.string, tf.int64, np.array([7, 8, 9]))
        found = in_order(
            lambda: table.insert(["a", "b"], np.array([[1, 2, 3], [4, 5, 6]])), lambda: table.lookup([["b", "x"]])
        )
        assert found.shape.as_list() == [1, 2, 3]
        with tf.control_dependencies([found]):
            size, (keys, values) = table.size(), table.export()
        assert [each.tolist() for each in evaluate(found, size, keys, values)] == [
            [[[4, 5, 6], [7, 8, 9]]], 2, [b"a", b"b"], [[1, 2, 3], [4, 5, 6]],
        ]  # fmt: skip
        with raises(errors.InvalidArgumentError, "Expected shape [2,3] for value, got [2,2]"):
            evaluate(in_order(lambda: table.insert(["a", "b"], np.array([[1, 2], [4, 5]])), lambda: table.size()))


def a_dense_table_keeps_two_keys_out():
    with tf.Graph().as_default():
        table = DenseHashTable(tf.int64, tf.float32, 9.0, empty_key=0, deleted_key=-1, initial_num_buckets=8)
        keys, values = in_order(
            lambda: table.insert(np.array([5, 7, 12]), [1.0, 2.0, 3.0]),
            lambda: table.remove(np.array([7, 99])),
            lambda: table.export(),
        )
        imported = in_order(
            lambda: tf.identity(keys),
            lambda: apply_op(
                "LookupTableImportV2", table_handle=table.resource_handle, keys=np.array([0, 3]), values=[0.0, 8.0]
            ),
            lambda: table.lookup(np.array([3, 5])),
        )
        # Buckets as TensorFlow lays them out: 12 is looked for at 12 modulo 8.
        assert [each.tolist() for each in evaluate(tf.reshape(keys, [-1]), values[4:6], imported)] == [
            [0, 0, 0, 0, 12, 5, 0, 0], [[3], [1]], [8, 9]
        ]  # fmt: skip
        with raises(errors.InvalidArgumentError, "Using the empty_key as a table key is not allowed"):
            evaluate(table.lookup(np.array([0])))
        with raises(errors.InvalidArgumentError, "Using the deleted_key as a table key is not allowed"):
            evaluate(table.lookup(np.array([-1])))
        for buckets, deleted, words in ((8, 0, "deleted keys cannot be equal"), (7, 1, "a power of 2, got: 7")):
            with raises(errors.InvalidArgumentError, words):
                evaluate(DenseHashTable(tf.int64, tf.float32, 9.0, 0, deleted, buckets).size())


def tables_by_reference(op, *keys, value, **attrs):
    def check():
        with tf.Graph().as_default():
            table = apply_op(
                op, key_dtype=tf.int64, value_dtype=tf.float32, **dict(zip(("empty_key",), keys, strict=False)), **attrs
            )
            given, key = np.float32(value), np.int64(5)
            found = in_order(
                lambda: apply_op("LookupTableInsert", table_handle=table, keys=[key], values=given[None]),
                lambda: apply_op("LookupTableFind", table_handle=table, keys=[key], default_value=np.zeros_like(given)),
            )
            assert evaluate(found)[0].tolist() == [value]

    return check


def unknown_words_go_to_buckets_behind_the_vocabulary():
    with tf.Graph().as_default():
        words = KeyValueTensorInitializer(["a", "b"], np.array([0, 1]))
        table = StaticVocabularyTable(words, 5)
        with tf.control_dependencies([tf.tables_initializer()]):
            ids, size = table.lookup(tf.constant(["b", "x", "a"])), table.size()
        bucket = apply_op("StringToHashBucketFast", input=["x"], num_buckets=5)
        found, count, hashed = evaluate(ids, size, bucket)
        assert found.tolist() == [1, 2 + hashed[0], 0] and count == 7


_RUNS = {
    "MutableHashTableOfTensorsV2": values_may_be_tensors,
    "MutableDenseHashTableV2": a_dense_table_keeps_two_keys_out,
    "MutableHashTableOfTensors": tables_by_reference("MutableHashTableOfTensors", value=[1.0, 2.0], value_shape=[2]),
    "MutableDenseHashTable": tables_by_reference("MutableDenseHashTable", np.int64(0), value=3.0),
    "InitializeTableFromTextFile": a_table_by_reference_is_filled_from_a_file,
    **dict.fromkeys(
        ("HashTableV2", "InitializeTableV2", "LookupTableFindV2", "LookupTableSizeV2"),
        a_table_is_filled_once_and_found_in,
    ),
    "InitializeTableFromTextFileV2": a_table_is_filled_from_the_lines_of_a_file,
    **dict.fromkeys(
        (
            "MutableHashTableV2",
            "LookupTableInsertV2",
            "LookupTableRemoveV2",
            "LookupTableExportV2",
            "LookupTableImportV2",
        ),
        a_mutable_table_is_changed_by_steps,
    ),
    **dict.fromkeys(
        (
            "HashTable",
            "MutableHashTable",
            "InitializeTable",
            "LookupTableFind",
            "LookupTableInsert",
            "LookupTableImport",
            "LookupTableSize",
            "LookupTableExport",
        ),
        the_older_ops_pass_the_table_by_reference,
    ),
}

CASES = [
    *(Case(op, run=run) for op, run in _RUNS.items()),
    Case("HashTableV2", run=unknown_words_go_to_buckets_behind_the_vocabulary, name="vocabulary"),
]
