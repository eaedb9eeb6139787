"""tf.data.experimental: windows, buckets, choices and files must give what TensorFlow's give."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

Dataset, experimental = tf.data.Dataset, tf.data.experimental


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def all_of(dataset):
    following = dataset.make_one_shot_iterator().get_next()
    taken = []
    with tf.Session() as session:
        while True:
            try:
                taken.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return taken


def lists(dataset):
    return [np.asarray(each).tolist() for each in all_of(dataset)]


def lengths():
    return Dataset.range(1, 8).map(lambda n: tf.range(n % 5 + 1))


def test_windows_come_when_full_and_the_others_by_their_keys():
    grouped = experimental.group_by_window(lambda x: -(x % 3), lambda key, window: window.batch(4), window_size=2)
    assert lists(Dataset.range(10).apply(grouped)) == [[0, 3], [1, 4], [2, 5], [6, 9], [8], [7]]


def test_the_size_of_a_window_may_depend_on_its_key():
    grouped = experimental.group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(9), window_size_func=lambda key: key + 1
    )
    assert lists(Dataset.range(5).apply(grouped)) == [[0], [2], [1, 3], [4]]


@pytest.mark.parametrize("sizes", [{}, {"window_size": 1, "window_size_func": lambda key: key}])
def test_a_window_has_exactly_one_size(sizes):
    with pytest.raises(ValueError, match="either window_size or window_size_func"):
        experimental.group_by_window(lambda x: x, lambda key, window: window, **sizes)


def test_a_window_of_no_elements_and_a_reducer_without_a_dataset_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be greater than zero, but got 0"):
        all_of(Dataset.range(2).apply(experimental.group_by_window(lambda x: x, lambda key, window: window, 0)))
    with pytest.raises(TypeError, match="`reduce_func` must return a `Dataset`"):
        Dataset.range(2).apply(experimental.group_by_window(lambda x: x, lambda key, window: key, 1))
    with pytest.raises(ValueError, match="`key_func` must return a single `tf.int64` scalar"):
        Dataset.range(2).apply(experimental.group_by_window(lambda x: [x], lambda key, window: window, 1))


def test_buckets_hold_elements_of_about_one_length():
    bucket = experimental.bucket_by_sequence_length(tf.size, [3, 5], [2, 2, 1])
    assert lists(lengths().apply(bucket)) == [
        [[0, 1, 2, 0], [0, 1, 2, 3]], [[0, 1, 2, 3, 4]], [[0, 1], [0, 0]], [[0, 1]], [[0, 1, 2]],
    ]  # fmt: skip


def test_buckets_can_be_padded_to_their_boundaries():
    bucket = experimental.bucket_by_sequence_length(
        tf.size, [3, 6], [2, 2, 1], pad_to_bucket_boundary=True, padding_values=np.int64(-1)
    )
    assert [np.shape(each)[1] for each in lists(lengths().apply(bucket))] == [5, 2, 5, 2]
    short = experimental.bucket_by_sequence_length(tf.size, [2], [2, 2], pad_to_bucket_boundary=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="elements must have length < max"):
        all_of(lengths().apply(short))


def test_drawn_elements_follow_the_weights_and_the_seed():
    datasets = [Dataset.from_tensors(number).repeat() for number in range(3)]
    drawn = [lists(experimental.sample_from_datasets(datasets, [0.0, 0.25, 0.75], 3).take(400)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert drawn[0].count(0) == 0
    assert 60 < drawn[0].count(1) < 140
    with pytest.raises(ValueError, match="shape of `weights`"):
        experimental.sample_from_datasets(datasets, [1.0])


def test_a_choice_ends_when_all_have_ended_or_with_the_first():
    choice = Dataset.range(2).repeat(4)
    both = [Dataset.range(1), Dataset.range(10, 13)]
    assert lists(experimental.choose_from_datasets(both, choice)) == [0, 10, 11, 12]
    assert lists(experimental.choose_from_datasets(both, choice, stop_on_empty_dataset=True)) == [0, 10]
    with pytest.raises(TypeError, match="scalar `tf.int64`"):
        experimental.choose_from_datasets(both, Dataset.from_tensors(1.0))


def test_rows_of_files_come_in_columns_of_their_types(tmp_path):
    (tmp_path / "a.csv").write_text('a,b,c\n1,2.5,x\n3,,"y,z"\n5,1e3,w\n')
    rows = experimental.make_csv_dataset(
        str(tmp_path / "*.csv"), 2, label_name="c", num_epochs=1, shuffle=False, select_columns=["a", "b", "c"]
    )
    (first, label), (second, _) = all_of(rows)
    assert {key: (value.dtype.name, value.tolist()) for key, value in first.items()} == {
        "a": ("int32", [1, 3]), "b": ("float32", [2.5, 0.0]),
    }  # fmt: skip
    assert label.tolist() == [b"x", b"y,z"]
    assert second["b"].tolist() == [1000.0]
    records = experimental.CsvDataset([str(tmp_path / "a.csv")], [tf.int32, tf.string], header=True, select_cols=[0, 2])
    assert all_of(records) == [(1, b"x"), (3, b"y,z"), (5, b"w")]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"file_pattern": "none-*.csv"}, "No files match"),
        ({"label_name": "d"}, "`label_name` provided must be one of the columns"),
        ({"column_defaults": [tf.int32]}, "column_defaults must have one value for each of 2 columns"),
        ({"select_columns": ["z"]}, "select_columns must name columns"),
        ({"column_names": ["a", "a"]}, "duplicate column names"),
    ],
)
def test_wrong_descriptions_of_rows_are_refused(tmp_path, wrong, words):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    given = {"file_pattern": str(tmp_path / "a.csv"), **wrong}
    with pytest.raises(ValueError, match=words):
        experimental.make_csv_dataset(batch_size=1, **given)


def test_examples_of_files_come_as_features_and_labels(tmp_path):
    with tf.python_io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for number in range(5):
            feature = {"x": tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))}
            feature["y"] = tf.train.Feature(float_list=tf.train.FloatList(value=[number / 2]))
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    features = {"x": tf.FixedLenFeature([], tf.int64), "y": tf.FixedLenFeature([], tf.float32)}
    batches = experimental.make_batched_features_dataset(
        str(tmp_path / "records"), 2, features, label_key="y", num_epochs=1, shuffle=False
    )
    found = all_of(batches)
    assert [each[0]["x"].tolist() for each in found] == [[0, 1], [2, 3], [4]]
    assert found[1][1].tolist() == [1.0, 1.5]


def test_scans_and_counters_keep_their_state():
    running = experimental.scan(np.int64(0), lambda total, x: (total + x, total * 10))
    assert lists(Dataset.range(5).apply(running)) == [0, 0, 10, 30, 60]
    assert lists(experimental.Counter(2, 3).take(3)) == [2, 5, 8]
    with pytest.raises(TypeError, match="new state must match the initial state"):
        Dataset.range(5).apply(experimental.scan(0.0, lambda total, x: (x, x)))


def test_first_names_in_contrib_are_the_same():
    from dtf.contrib import data

    assert data.group_by_window is experimental.group_by_window
    assert data.bucket_by_sequence_length is experimental.bucket_by_sequence_length
    assert "group_by_window" in dir(data)
