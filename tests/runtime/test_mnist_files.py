"""The readers of the MNIST tutorials' files."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

import dtf as tf
from dtf.contrib.learn import datasets, mnist

TRAIN, TEST = 30, 10


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">{1 + array.ndim}I", 0x800 | array.ndim, *array.shape) + array.tobytes()


def images_of(count: int) -> np.ndarray:
    return (np.arange(count * 784) % 251).astype(np.uint8).reshape(count, 28, 28)


def labels_of(count: int) -> np.ndarray:
    return (np.arange(count) % 10).astype(np.uint8)


@pytest.fixture(params=[True, False], ids=["packed", "plain"])
def folder(tmp_path, request):
    for prefix, count in (("train", TRAIN), ("t10k", TEST)):
        for kind, array in (("images-idx3", images_of(count)), ("labels-idx1", labels_of(count))):
            path, data = tmp_path / f"{prefix}-{kind}-ubyte", idx(array)
            if request.param:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(data))
            else:
                path.write_bytes(data)
    return tmp_path


def test_files_become_three_sets(folder):
    sets = mnist.read_data_sets(str(folder), validation_size=4)
    assert [each.num_examples for each in sets] == [TRAIN - 4, 4, TEST]
    assert sets.train.images.shape == (TRAIN - 4, 784)
    assert sets.train.images.dtype == np.float32
    np.testing.assert_array_equal(sets.test.images, images_of(TEST).reshape(-1, 784) * np.float32(1 / 255))
    np.testing.assert_array_equal(sets.validation.labels, [0, 1, 2, 3])


def test_labels_images_and_dtypes_are_as_asked(folder):
    sets = mnist.read_data_sets(str(folder), one_hot=True, dtype=tf.uint8, reshape=False, validation_size=0)
    assert sets.test.images.shape == (TEST, 28, 28, 1)
    assert sets.test.images.dtype == np.uint8
    np.testing.assert_array_equal(sets.test.labels, np.eye(10)[labels_of(TEST)])


def test_batches_go_over_the_epochs_end(folder):
    train = mnist.read_data_sets(str(folder), validation_size=0).train
    taken = np.concatenate([train.next_batch(20, shuffle=False)[1] for _ in range(3)])
    np.testing.assert_array_equal(taken, np.concatenate([labels_of(TRAIN)] * 2))
    assert train.epochs_completed == 1


def test_each_epoch_has_every_example_once_in_the_order_of_the_seed(folder):
    orders = []
    for _ in range(2):
        train = mnist.read_data_sets(str(folder), validation_size=0, seed=7).train
        first = [train.next_batch(10) for _ in range(3)]
        found = np.concatenate([images for images, _ in first])
        assert sorted(map(bytes, found)) == sorted(map(bytes, train.images))
        orders.append(np.concatenate([labels for _, labels in first]))
    np.testing.assert_array_equal(*orders)
    assert list(orders[0]) != list(labels_of(TRAIN))


def test_fake_data_needs_no_files():
    train = mnist.read_data_sets("nowhere", fake_data=True, one_hot=True).train
    images, labels = train.next_batch(2, fake_data=True)
    assert (len(images), len(images[0]), labels[0]) == (2, 784, [1] + [0] * 9)


def test_missing_files_are_named_with_their_folder(folder):
    for path in folder.glob("t10k-labels*"):
        path.unlink()
    with pytest.raises(tf.errors.NotFoundError, match=f"{folder} has no t10k-labels-idx1-ubyte.gz: .* downloaded"):
        mnist.read_data_sets(str(folder))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"PNG\0\0\0\0\0\0\0\0\0\0\0\0\0", "not an idx file of images: it begins with 0x504e4700"),
        (idx(labels_of(4)), "begins with 0x801, not 0x803"),
        (idx(images_of(4))[:-1], "3136 bytes of images expected, 3135 found"),
        (b"\x1f\x8b" + b"nonsense" * 3, "train-images"),
    ],
)
def test_a_file_of_the_wrong_kind_is_refused(folder, content, message):
    for path in folder.glob("train-images*"):
        path.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError, match=message):
        mnist.read_data_sets(str(folder))


def test_labels_beyond_the_classes_are_refused(tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(idx(np.array([3, 11], np.uint8)))
    with pytest.raises(tf.errors.DataLossError, match="the label 11 is not below 10"):
        mnist.extract_labels(str(path), one_hot=True)


def test_tables_of_numbers_are_read(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("2,3,a,b\n1,2,3,0\n4,5,6,1\n")
    found = datasets.load_csv_with_header(str(path), np.int32, np.float32)
    np.testing.assert_array_equal(found.data, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(found.target, [0, 1])
    with pytest.raises(tf.errors.DataLossError, match="not a table of numbers"):
        datasets.load_csv_without_header(str(path), np.int32, np.float32)
    with pytest.raises(tf.errors.NotFoundError):
        datasets.load_csv_without_header(str(tmp_path / "none"), np.int32, np.float32)
    with pytest.raises(ValueError, match="'iris' is not part of dtf"):
        datasets.load_dataset("iris")


def test_helpers_of_old_programs_read_files_that_are_there(tmp_path):
    assert mnist.dense_to_one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    table = tmp_path / "iris.csv"
    table.write_text("2,2,a,b\n1.5,2.5,0\n3.5,4.5,1\n")
    assert datasets.maybe_download("iris.csv", str(tmp_path), mnist.SOURCE_URL) == str(table)
    data, target = datasets.load_iris(str(table))
    assert data.tolist() == [[1.5, 2.5], [3.5, 4.5]] and target.tolist() == [0, 1]
    datasets.shrink_csv(str(table), 2)
    assert (tmp_path / "small_iris.csv").read_text() == "2,2,a,b\n3.5,4.5,1\n"
    with pytest.raises(tf.errors.NotFoundError, match="absent.csv: put it there"):
        datasets.maybe_download("absent.csv", str(tmp_path), "http://example.org/absent.csv")
    with pytest.raises(ValueError, match="data_path"):
        datasets.load_boston()
