"""Cases of datasets and iterators: each op makes a dataset whose elements are compared, or takes elements from one."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.build.function_graph import trace
from tests.runtime.op_cases import Case

Dataset = tf.data.Dataset
SCALAR = [(tf.int64, tf.TensorShape([]))]
INT = {"output_types": [tf.int64], "output_shapes": [[]]}
INTS = {"output_types": [tf.int64], "output_shapes": [[None]]}


def numbers(count: int) -> tf.Tensor:
    return Dataset.range(count)._variant_tensor


def elements(variant: tf.Tensor, spec: Any = None, limit: int | None = None) -> list[Any]:
    """All elements, or the first `limit` of them, as lists."""
    element = Dataset(variant, spec or tf.TensorSpec(None, tf.int64)).make_initializable_iterator()
    following = element.get_next()
    taken = []
    with tf.Session() as session:
        session.run(element.initializer)
        for _ in itertools.count() if limit is None else range(limit):
            try:
                value = session.run(following)
            except tf.errors.OutOfRangeError:
                break
            taken.append([plain(each) for each in value] if isinstance(value, tuple) else plain(value))
    return taken


def plain(value: Any) -> Any:
    return value if isinstance(value, bytes) else np.asarray(value).tolist()


def dataset(
    op: str, expected: Any, *, name: str = "", spec: Any = None, limit: int | None = None, **arguments: Any
) -> Case:
    """The dataset of one op. Arguments that are functions are called in the graph."""

    def run() -> None:
        with tf.Graph().as_default():
            made = {key: value() if callable(value) else value for key, value in arguments.items()}
            assert elements(apply_op(op, **made), spec, limit) == expected

    return Case(op, run=run, name=name)


def function(body: Callable[..., Any], arguments: Any = None) -> Callable[[], Any]:
    arguments = SCALAR if arguments is None else arguments
    return lambda: trace(body, arguments, "body").reference


def mapping(op: str, expected: Any, body: Any, *, attr: str = "f", attrs: Any = None, **arguments: Any) -> Case:
    given = {attr: function(body), "input_dataset": lambda: numbers(5), "other_arguments": [], **(attrs or INT)}
    return dataset(op, expected, **given, **arguments)


def files(op: str, contents: bytes, expected: list[bytes], **arguments: Any) -> Case:
    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            path = Path(folder) / "file"
            path.write_bytes(contents)
            variant = apply_op(op, filenames=str(path), buffer_size=100, **arguments)
            assert elements(variant, tf.TensorSpec([], tf.string)) == expected

    return Case(op, run=run)


def records() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "file")
        with tf.python_io.TFRecordWriter(path) as writer:
            writer.write(b"one")
            writer.write(b"two")
        return Path(path).read_bytes()


def generated() -> None:
    with tf.Graph().as_default():
        assert elements(Dataset.from_generator(lambda: iter([3, 4]), tf.int64)._variant_tensor) == [3, 4]


def windows() -> None:
    with tf.Graph().as_default():
        joined = Dataset.range(5).window(2).flat_map(lambda each: each.batch(2))
        assert elements(joined._variant_tensor) == [[0, 1], [2, 3], [4]]


def reduced() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        add = trace(lambda a, b: a + b, SCALAR * 2, "add").reference
        total = apply_op(
            "ReduceDataset", input_dataset=numbers(5), initial_state=[np.int64(1)], other_arguments=[], f=add, **INT
        )
        assert session.run(total) == [11]


def taken(next_op: str, maker: str = "IteratorV2") -> Callable[[], None]:
    def run() -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            if maker == "OneShotIterator":
                factory = trace(lambda: numbers(1), [], "factory").reference
                iterator = apply_op(maker, dataset_factory=factory, **INT)
            else:
                iterator = apply_op(maker, shared_name="", container="", **INT)
                session.run(apply_op("MakeIterator", dataset=numbers(1), iterator=iterator))
            following = apply_op(next_op, iterator=iterator, **INT)
            if next_op == "IteratorGetNextAsOptional":
                has_value = apply_op("OptionalHasValue", optional=following)
                assert [session.run(has_value), session.run(has_value)] == [True, False]
            else:
                assert session.run(following) == [0]

    return run


def by_string(op: str) -> Callable[[], None]:
    def run() -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            iterator = apply_op("IteratorV2", shared_name="", container="", **INT)
            session.run(apply_op("MakeIterator", dataset=numbers(2), iterator=iterator))
            text = session.run(apply_op("IteratorToStringHandle", resource_handle=iterator))
            same = apply_op(op, string_handle=text, **INT)
            assert session.run(apply_op("IteratorGetNext", iterator=same, **INT)) == [0]

    return run


def position() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = Dataset.range(5).make_initializable_iterator()
        following, resource = iterator.get_next(), iterator._iterator_resource
        state = apply_op("SerializeIterator", resource_handle=resource)
        session.run(iterator.initializer)
        session.run(following)
        kept = session.run(state)
        session.run([following])
        given = tf.placeholder(tf.variant, [])
        session.run(apply_op("DeserializeIterator", resource_handle=resource, serialized=given), {given: kept})
        assert session.run(following) == 1


def counted() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        counts = [numbers(5), Dataset.range(2).repeat()._variant_tensor, Dataset.range(2).filter(
            lambda x: x > 0)._variant_tensor]  # fmt: skip
        assert session.run([apply_op("DatasetCardinality", None, input_dataset=each) for each in counts]) == [5, -1, -2]


def alone() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one, none, two = (apply_op("DatasetToSingleElement", None, dataset=numbers(n), **INT) for n in (1, 0, 2))
        assert session.run(one) == [0]
        for each, words in ((none, "Dataset was empty"), (two, "more than one element")):
            try:
                session.run(each)
            except tf.errors.InvalidArgumentError as error:
                assert words in error.message
            else:
                raise AssertionError("it must be refused")


def rows_of_a_database() -> None:
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        path = str(Path(folder) / "file.db")
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("create table rows (a integer, b real, c text)")
            rows = [(300, 1, "x"), (0, 1e20, None), (-1, 0.5, "7.5")]
            database.executemany("insert into rows values (?, ?, ?)", rows)
        kinds = [tf.int8, tf.bool, tf.string, tf.int64, tf.double, tf.string]
        attrs = {"output_types": kinds, "output_shapes": [[]] * 6}
        made = apply_op("SqlDataset", driver_name="sqlite", data_source_name=path, **attrs,
                        query="select a, a, b, b, c, c from rows")  # fmt: skip
        assert elements(made, tuple(tf.TensorSpec([], kind) for kind in kinds)) == [
            [44, True, b"1.0", 1, 0.0, b"x"], [0, False, b"1.0e+20", 2**63 - 1, 0.0, b""],
            [-1, True, b"0.5", 0, 7.5, b"7.5"],
        ]  # fmt: skip


def written() -> None:
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), tf.Session() as session:
        path = str(Path(folder) / "file")
        given = Dataset.from_tensor_slices(["one", "two"])._variant_tensor
        session.run(apply_op("DatasetToTFRecord", input_dataset=given, filename=path, compression_type="GZIP"))
        found = apply_op("TFRecordDataset", filenames=path, compression_type="GZIP", buffer_size=100)
        assert elements(found, tf.TensorSpec([], tf.string)) == [b"one", b"two"]


def expected_count() -> None:
    with tf.Graph().as_default():
        assert elements(apply_op("AssertCardinalityDataset", input_dataset=numbers(2), cardinality=2, **INT)) == [0, 1]
        for count in (1, 3):
            try:
                elements(apply_op("AssertCardinalityDataset", input_dataset=numbers(2), cardinality=count, **INT))
            except tf.errors.FailedPreconditionError as error:
                assert f"expected to contain {count} elements" in error.message
            else:
                raise AssertionError("it must be refused")


SPARSE = (tf.TensorSpec([None, 1], tf.int64), tf.TensorSpec([None], tf.int32), tf.TensorSpec([1], tf.int64))
REPEATED = {"body": lambda x: Dataset.from_tensors(x).repeat(2)._variant_tensor}
ROWS = {"output_types": [tf.int64], "output_shapes": [[None]]}
FIVE: Any = lambda: numbers(5)  # noqa: E731 - a table's entry
CYCLE = {"cycle_length": 2, "block_length": 1}
INTERLEAVED = [0, 1, 0, 1, 2, 3, 2, 3, 4, 4]
PADDED = {
    "input_dataset": lambda: Dataset.range(3).map(lambda x: tf.fill([x], x))._variant_tensor,
    "batch_size": 2,
    "padded_shapes": [np.array([-1], np.int64)],
    "padding_values": [np.int64(9)],
    "Toutput_types": [tf.int64],
    "output_shapes": [[None, None]],
}

CASES = [
    dataset("TensorDataset", [[[1, 2], 3]], spec=(tf.TensorSpec([2], tf.int32), tf.TensorSpec([], tf.int32)),
            components=[[1, 2], 3], output_shapes=[[2], []]),
    dataset("TensorSliceDataset", [[1, 5], [2, 6]], spec=(tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)),
            components=[[1, 2], [5, 6]], output_shapes=[[], []]),
    dataset("RangeDataset", [5, 3, 1], start=5, stop=0, step=-2, **INT),
    Case("GeneratorDataset", run=generated),
    files("TFRecordDataset", records(), [b"one", b"two"], compression_type=""),
    files("TextLineDataset", b"one\r\ntwo", [b"one", b"two"], compression_type=""),
    files("FixedLengthRecordDataset", b"HaabbF", [b"aa", b"bb"], header_bytes=1, record_bytes=2, footer_bytes=1),
    files("FixedLengthRecordDatasetV2", b"HaabbF", [b"aa", b"bb"], header_bytes=1, record_bytes=2, footer_bytes=1,
          compression_type=""),
    dataset("BatchDataset", [[0, 1, 2], [3, 4]], input_dataset=FIVE, batch_size=3, **INTS),
    dataset("BatchDatasetV2", [[0, 1, 2]], input_dataset=FIVE, batch_size=3, drop_remainder=True, **INTS),
    dataset("PaddedBatchDataset", [[[9], [1]], [[2, 2]]], **PADDED),
    dataset("PaddedBatchDatasetV2", [[[9], [1]]], drop_remainder=True, **PADDED),
    dataset("RepeatDataset", [0, 1, 0, 1], input_dataset=lambda: numbers(2), count=2, **INT),
    dataset("ShardDataset", [1, 4], input_dataset=FIVE, num_shards=3, index=1, **INT),
    dataset("TakeDataset", [0, 1], input_dataset=FIVE, count=2, **INT),
    dataset("SkipDataset", [3, 4], input_dataset=FIVE, count=3, **INT),
    dataset("CacheDataset", [0, 1, 2, 3, 4], input_dataset=FIVE, filename="", **INT),
    dataset("PrefetchDataset", [0, 1, 2, 3, 4], input_dataset=FIVE, buffer_size=2, **INT),
    dataset("ShuffleDataset", [0, 3, 2, 4, 5, 7, 6, 9, 1, 8], input_dataset=lambda: numbers(10), buffer_size=3,
            seed=87654321, seed2=1, reshuffle_each_iteration=False, **INT),
    dataset("ShuffleAndRepeatDataset", [2, 3, 4, 0, 1, 0, 2, 1, 4, 3, 2, 1, 4, 0, 3], input_dataset=FIVE, buffer_size=3,
            seed=87654321, seed2=2, count=3, **INT),
    dataset("ConcatenateDataset", [0, 1, 0], input_dataset=lambda: numbers(2),
            another_dataset=lambda: numbers(1), **INT),
    dataset("ZipDataset", [[0, 0], [1, 1]], spec=(tf.TensorSpec([], tf.int64),) * 2,
            input_datasets=lambda: [numbers(2), numbers(3)], output_types=[tf.int64] * 2, output_shapes=[[], []]),
    dataset("UnbatchDataset", [0, 1, 2, 3, 4], input_dataset=lambda: Dataset.range(5).batch(2)._variant_tensor, **INT),
    dataset("OptionsDataset", [0, 1], input_dataset=lambda: numbers(2), serialized_options="", **INT),
    dataset("ModelDataset", [0, 1], input_dataset=lambda: numbers(2), **INT),
    dataset("OptimizeDataset", [0, 1], input_dataset=lambda: numbers(2), optimizations=["map_fusion"], **INT),
    dataset("RewriteDataset", [0, 1], input_dataset=lambda: numbers(2), rewrite_name="none", **INT),
    dataset("FinalizeDataset", [0, 1], input_dataset=lambda: numbers(2), **INT),
    dataset("IgnoreErrorsDataset", [0, 1, 3, 4], **INT, input_dataset=lambda: Dataset.range(5).map(
        lambda x: 12 // (x - 2) * 0 + x)._variant_tensor),
    mapping("MapDataset", [0, 1, 4, 9, 16], lambda x: x * x),
    mapping("ParallelMapDataset", [0, 1, 4, 9, 16], lambda x: x * x, num_parallel_calls=2),
    mapping("ParallelMapDatasetV2", [0, 1, 4, 9, 16], lambda x: x * x, num_parallel_calls=2),
    mapping("MapAndBatchDataset", [[0, 1, 4], [9, 16]], lambda x: x * x, attrs=ROWS, batch_size=3, num_parallel_calls=2,
            drop_remainder=False),
    mapping("FilterDataset", [0, 1], lambda x: x < 2, attr="predicate"),
    mapping("TakeWhileDataset", [0, 1], lambda x: tf.not_equal(x, 2), attr="predicate"),
    mapping("FlatMapDataset", [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], **REPEATED),
    mapping("InterleaveDataset", INTERLEAVED, **REPEATED, **CYCLE),
    mapping("ParallelInterleaveDataset", INTERLEAVED, **REPEATED, **CYCLE, sloppy=False,
            buffer_output_elements=1, prefetch_input_elements=1),
    mapping("ParallelInterleaveDatasetV2", INTERLEAVED, **REPEATED, **CYCLE, num_parallel_calls=2),
    mapping("ParallelInterleaveDatasetV3", INTERLEAVED, **REPEATED, **CYCLE, num_parallel_calls=2),
    mapping("ParallelInterleaveDatasetV4", INTERLEAVED, **REPEATED, **CYCLE, num_parallel_calls=2,
            buffer_output_elements=1, prefetch_input_elements=1),
    mapping("LegacyParallelInterleaveDatasetV2", INTERLEAVED, **REPEATED, **CYCLE,
            buffer_output_elements=1, prefetch_input_elements=1),
    Case("WindowDataset", run=windows),
    dataset("ScanDataset", [0, 1, 3, 6, 10], input_dataset=FIVE, initial_state=[np.int64(0)], other_arguments=[], **INT,
            f=function(lambda state, x: [state + x, state + x], SCALAR * 2)),
    Case("ReduceDataset", run=reduced),
    dataset("GroupByWindowDataset", [[0, 2], [1, 3], [4]], input_dataset=FIVE, key_func=function(lambda x: x % 2),
            window_size_func=function(lambda x: tf.constant(2, tf.int64)), **ROWS, reduce_func=function(
            lambda key, window: Dataset(window, tf.TensorSpec([], tf.int64)).batch(2)._variant_tensor,
            [*SCALAR, (tf.variant, tf.TensorShape([]))]), key_func_other_arguments=[],
            reduce_func_other_arguments=[], window_size_func_other_arguments=[]),
    dataset("DirectedInterleaveDataset", [0, 0, 1, 1, 2], selector_input_dataset=lambda: Dataset.from_tensor_slices(
            np.array([0, 1, 1, 0, 0, 1], np.int64))._variant_tensor, **INT,
            data_input_datasets=lambda: [numbers(5), numbers(2)]),
    dataset("UniqueDataset", [0, 1], **INT,
            input_dataset=lambda: Dataset.range(5).map(lambda x: x % 2)._variant_tensor),
    dataset("RandomDataset", [3534849767, 279844183, 888998500], **INT, seed=87654321, seed2=3, limit=3),
    dataset("SparseTensorSliceDataset", [[[[1], [2]], [7, 8], [3]], [[], [], [3]], [[[0]], [9], [3]]], spec=SPARSE,
            indices=np.array([[0, 1], [0, 2], [2, 0]], np.int64), values=np.array([7, 8, 9], np.int32),
            dense_shape=np.array([3, 3], np.int64)),
    Case("SqlDataset", run=rows_of_a_database),
    Case("DatasetToTFRecord", run=written),
    Case("AssertCardinalityDataset", run=expected_count),
    Case("DatasetCardinality", run=counted),
    Case("DatasetToSingleElement", run=alone),
    *[Case(op, run=taken(op)) for op in ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional")],
    *[Case(op, run=taken("IteratorGetNext", op)) for op in ("Iterator", "IteratorV2", "OneShotIterator")],
    Case("MakeIterator", run=taken("IteratorGetNext")),
    *[Case(op, run=by_string(op)) for op in ("IteratorFromStringHandle", "IteratorFromStringHandleV2")],
    Case("IteratorToStringHandle", run=by_string("IteratorFromStringHandleV2")),
    Case("SerializeIterator", run=position),
    Case("DeserializeIterator", run=position),
]  # fmt: skip
