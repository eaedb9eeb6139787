"""tf.data: options, the classes of file datasets, further sources, and methods of later releases."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dtf as tf

Dataset, experimental = tf.data.Dataset, tf.data.experimental


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def lists(dataset: Dataset, count: int | None = None) -> list[Any]:
    dataset = dataset if count is None else dataset.take(count)
    following = dataset.make_one_shot_iterator().get_next()
    taken = []
    with tf.Session() as session:
        while True:
            try:
                value = session.run(following)
            except tf.errors.OutOfRangeError:
                return taken
            taken.append(tuple(map(plain, value)) if isinstance(value, tuple) else plain(value))


def plain(value: Any) -> Any:
    return value if isinstance(value, bytes) else np.asarray(value).tolist()


def test_options_are_equal_when_all_are_and_take_only_known_names_and_types() -> None:
    options = tf.data.Options()
    assert options == tf.data.Options() and options.experimental_optimization == experimental.OptimizationOptions()
    options.experimental_threading.private_threadpool_size = 3
    assert options != tf.data.Options() and options.threading.private_threadpool_size == 3
    options.experimental_distribute.auto_shard_policy = experimental.AutoShardPolicy.DATA
    with pytest.raises(AttributeError, match="Cannot set the property speed on Options"):
        options.speed = 1
    with pytest.raises(AttributeError, match="Cannot set the property merge"):
        options.merge = 1
    with pytest.raises(TypeError, match='"deterministic" must be of type'):
        options.experimental_deterministic = 1
    with pytest.raises(TypeError, match='"threading" must be of type'):
        options.experimental_threading = experimental.OptimizationOptions()


def test_options_of_datasets_are_merged_the_later_ones_first() -> None:
    first, second = tf.data.Options(), tf.data.Options()
    first.experimental_optimization.autotune, first.experimental_deterministic = True, True
    second.experimental_optimization.map_fusion, second.experimental_deterministic = True, False
    one, other = Dataset.range(2).with_options(first), Dataset.range(2).with_options(second)
    joined = (one.with_options(second), Dataset.zip((one, other)), one.concatenate(other), Dataset.zip(one, other))
    for dataset in joined:
        options = dataset.options()
        assert options.experimental_optimization.autotune and options.experimental_optimization.map_fusion
        assert options.experimental_deterministic is False
    assert first.experimental_optimization.map_fusion is None


def test_datasets_of_files_are_classes(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"1,a\n2,b\n")
    lines = tf.data.TextLineDataset(str(path))
    assert isinstance(lines, tf.data.TextLineDataset) and isinstance(lines, Dataset)
    assert lists(lines) == [b"1,a", b"2,b"]
    assert lists(tf.data.FixedLengthRecordDataset([str(path)], 2, header_bytes=tf.constant(4, tf.int64))) == [
        b"2,", b"b\n",
    ]  # fmt: skip
    assert lists(experimental.CsvDataset(str(path), [tf.int32], exclude_cols=[1])) == [(1,), (2,)]
    with pytest.raises(ValueError, match="not both"):
        experimental.CsvDataset(str(path), [tf.int32], select_cols=[0], exclude_cols=[1])


def test_random_numbers_of_one_seed_are_those_of_tensorflow_in_every_pass() -> None:
    numbers = [3534849767, 279844183, 888998500]
    assert lists(experimental.RandomDataset(seed=3).take(3).repeat(2)) == numbers * 2
    assert lists(Dataset.random(seed=3), 3) == numbers
    assert lists(Dataset.random(rerandomize_each_iteration=True), 2) != lists(Dataset.random(), 2)
    with pytest.raises(ValueError, match="leave out the seed"):
        Dataset.random(seed=1, rerandomize_each_iteration=True)


def test_a_query_gives_rows_and_changes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "file.db")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("create table t (a integer, b text)")
        database.executemany("insert into t values (?, ?)", [(1, "x"), (2, None)])

    def rows(query: str, types: Any, driver: str = "sqlite", name: str = path) -> list[Any]:
        return lists(experimental.SqlDataset(driver, name, query, types))

    assert rows("select a, b from t order by a desc", (tf.int32, tf.string)) == [(2, b""), (1, b"x")]
    for query in ("insert into t values (3, 'y')", "delete from t", "attach database 'other' as o"):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"columns in query \(0\)"):
            rows(query, (tf.int32,))
    assert len(rows("select a from t", (tf.int32,))) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"columns in query \(2\) must match .* \(1\)"):
        rows("select a, b from t", (tf.int32,))
    with pytest.raises(tf.errors.UnknownError, match="syntax error"):
        rows("selec a", (tf.int32,))
    with pytest.raises(tf.errors.InvalidArgumentError, match="mysql, is not supported"):
        rows("select a from t", (tf.int32,), "mysql")
    with pytest.raises(tf.errors.UnknownError, match="unable to open"):
        rows("select a from t", (tf.int32,), name=str(tmp_path / "none.db"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file.db"]


def test_a_dataset_of_strings_is_written_as_records(tmp_path: Path) -> None:
    path = str(tmp_path / "records")
    written = experimental.TFRecordWriter(path, "ZLIB").write(Dataset.from_tensor_slices(["a", "b"]))
    with tf.Session() as session:
        session.run(written)
    assert lists(tf.data.TFRecordDataset(path, "ZLIB")) == [b"a", b"b"]
    with pytest.raises(TypeError, match="must be strings"):
        experimental.TFRecordWriter(path).write(Dataset.range(2))
    with pytest.raises(TypeError, match="more than one component"):
        experimental.TFRecordWriter(path).write(Dataset.from_tensors(("a", "b")))


def test_a_snapshot_is_read_again_and_a_variant_is_the_dataset(tmp_path: Path) -> None:
    folder = str(tmp_path / "kept")
    assert lists(Dataset.range(3).apply(experimental.snapshot(folder, compression=None))) == [0, 1, 2]
    assert lists(Dataset.range(9).map(lambda n: n * 0).snapshot(folder)) == [0, 1, 2]
    spec = tf.TensorSpec([], tf.int64)
    assert lists(experimental.from_variant(experimental.to_variant(Dataset.range(2)), spec)) == [0, 1]


def test_another_number_of_elements_than_asserted_is_an_error() -> None:
    assert lists(Dataset.range(2).apply(experimental.assert_cardinality(2))) == [0, 1]
    for count, words in ((1, "contained at least 2"), (3, "contained only 2"), (-1, "infinite number of")):
        with pytest.raises(tf.errors.FailedPreconditionError, match=words):
            lists(Dataset.range(2).apply(experimental.assert_cardinality(count)))


def test_methods_of_later_releases_are_the_transformations() -> None:
    numbers = Dataset.range(6)
    assert lists(numbers.group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3)) == [
        [0, 2, 4], [1, 3, 5],
    ]  # fmt: skip
    assert lists(numbers.scan(np.int64(0), lambda state, x: (state + x, state + x))) == [0, 1, 3, 6, 10, 15]
    assert lists(numbers.map(lambda x: x % 2).unique(name="once")) == [0, 1]
    assert lists(Dataset.choose_from_datasets([numbers, numbers], Dataset.range(2))) == [0, 0]
    assert lists(Dataset.counter(5, 2), 2) == [5, 7]
    assert lists(numbers.map_with_legacy_function(lambda x: x * 2).filter_with_legacy_function(lambda x: x > 6)) == [
        8, 10,
    ]  # fmt: skip
    assert lists(numbers.map(lambda x: tf.check_numerics(1 / (x - 1), "")).ignore_errors().map(tf.size)) == [1] * 5
    assert lists(experimental.from_list([(1, "a"), (2, "b")])) == [(1, b"a"), (2, b"b")]
    with tf.Session() as session:
        assert session.run([numbers.cardinality(), numbers.take(1).get_single_element()]) == [6, 0]
    assert numbers.take(2, name="few")._variant_tensor.op.name == "few"
    assert numbers.batch(2, num_parallel_calls=2, deterministic=True, name="b")._variant_tensor.op.name == "b"


def test_specs_have_their_first_names() -> None:
    assert experimental.TensorStructure(tf.int32, [3]) == tf.TensorSpec([3], tf.int32)
    assert experimental.SparseTensorStructure(tf.int32, [3]) == tf.SparseTensorSpec([3], tf.int32)
    assert experimental.RaggedTensorStructure(tf.int32, [3, None], 1) == tf.RaggedTensorSpec([3, None], tf.int32, 1)
    assert experimental.TensorArrayStructure(tf.int32, [3], True, False).dynamic_size
    assert experimental.DatasetStructure is tf.data.DatasetSpec and experimental.Structure is tf.TypeSpec
    assert lists(Dataset.range(1).apply(experimental.latency_stats("tag"))) == [0]
