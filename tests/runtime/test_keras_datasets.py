"""Files of data sets that lie in Keras' folder are read as data; nothing in them is executed."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

import dtf as tf

datasets = tf.keras.datasets


class Hostile:
    """As a pickle it makes a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets").mkdir()
    return tmp_path / "datasets"


def texts(*rows):
    array = np.empty(len(rows), object)
    array[:] = [list(row) for row in rows]
    return array


def test_texts_must_be_read_with_keras_numbers_of_words(folder):
    x, y = texts([1, 2], [3]), np.array([0, 1])
    np.savez(folder / "imdb.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    (folder / "imdb_word_index.json").write_text(json.dumps({"good": 1}))
    (train, labels), _ = datasets.imdb.load_data(num_words=6)
    assert sorted(train.tolist()) == [[1, 2], [1, 4, 5]]
    assert labels.tolist() == [0 if len(row) == 3 else 1 for row in train]
    assert datasets.imdb.get_word_index() == {"good": 1}


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_images_must_be_read_from_pickles_of_any_protocol(folder, protocol):
    (folder / "cifar-10-batches-py").mkdir()
    data = {b"data": np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8), b"labels": [3, 4]}
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        written = pickle.dumps(data, protocol)
        if protocol == 2:  # as by numpy 1
            written = written.replace(b"numpy._core.", b"numpy.core.")
        (folder / "cifar-10-batches-py" / name).write_bytes(written)
    (train, train_labels), (test, _) = datasets.cifar10.load_data()
    assert train.shape == (10, 32, 32, 3) and test.shape == (2, 32, 32, 3)
    assert train_labels[:2].tolist() == [[3], [4]]
    np.testing.assert_array_equal(test[0, :, :, 1].ravel(), data[b"data"][0][1024:2048])


def test_clothes_must_be_read_from_the_format_of_mnist(folder):
    (folder / "fashion-mnist").mkdir()
    for part, count in (("train", 3), ("t10k", 2)):
        for name, head, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            with gzip.open(folder / "fashion-mnist" / f"{part}-{name}-ubyte.gz", "wb") as file:
                file.write(bytes(head) + bytes([7]) * (count * size))
    (images, labels), (others, _) = datasets.fashion_mnist.load_data()
    assert images.shape == (3, 28, 28) and others.shape == (2, 28, 28) and labels.tolist() == [7] * 3


def test_a_pickle_that_names_a_function_must_be_refused_and_not_run(folder, tmp_path):
    made = tmp_path / "made"
    array = np.empty(1, object)
    array[0] = Hostile(made)
    np.savez(folder / "imdb.npz", x_train=array, y_train=array, x_test=array, y_test=array)
    with pytest.raises(ValueError, match=r"imdb.npz is not a file of this data set: it names posix.mkdir"):
        datasets.imdb.load_data()
    (folder / "cifar-100-python").mkdir()
    (folder / "cifar-100-python" / "train").write_bytes(pickle.dumps(Hostile(made)))
    with pytest.raises(ValueError, match="which is not part of an array"):
        datasets.cifar100.load_data()
    assert not made.exists()


def test_files_of_another_kind_must_be_refused_by_name(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"mnist.npz does not exist; put the file there"):
        datasets.mnist.load_data()
    (folder / "mnist.npz").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"mnist.npz is not an npz archive"):
        datasets.mnist.load_data()
    with zipfile.ZipFile(folder / "mnist.npz", "w") as archive:
        archive.writestr("x_train.npy", b"text")
    with pytest.raises(ValueError):
        datasets.mnist.load_data()
    for header in (b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}", b"{'descr': '|u1', ("):
        array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)
        with zipfile.ZipFile(folder / "mnist.npz", "w") as archive:
            archive.writestr("x_train.npy", array)
        with pytest.raises(ValueError, match="mnist.npz"):
            datasets.mnist.load_data()
    np.savez_compressed(folder / "mnist.npz", x_train=np.zeros(10000))
    monkeypatch.setenv("DTF_MAX_DECOMPRESSED_BYTES", "1K")
    with pytest.raises(tf.errors.ResourceExhaustedError, match="mnist.npz"):
        datasets.mnist.load_data()
