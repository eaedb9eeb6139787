"""Tensor bundles: what is written must be read, and damage must be named."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest

from dtf.wire import checkpoint, errors, tensor_slices
from dtf.wire.checkpoint import BundleReader, BundleWriter

ARRAYS = {
    "float": np.arange(6, dtype=np.float32).reshape(2, 3),
    "half": np.array([1.5, -2], np.float16),
    "bfloat16": np.array([1.5, -2], ml_dtypes.bfloat16),
    "scalar": np.array(7, np.int64),
    "empty": np.zeros((0, 3)),
    "complex": np.array([1 + 2j], np.complex64),
    "bool": np.array([True, False]),
    "strings": np.array([[b"a", b""], [b"\0\xff", b"x" * 300]], object),
}


@pytest.fixture
def prefix(tmp_path):
    with BundleWriter(str(tmp_path / "model.ckpt-1")) as writer:
        for name, array in ARRAYS.items():
            writer.add(name, array)
    return writer.prefix


@pytest.mark.parametrize("name", ARRAYS)
def test_a_tensor_comes_back_as_it_was(prefix, name):
    reader = BundleReader(prefix)
    value = reader.read(name)
    assert value.dtype == ARRAYS[name].dtype and reader.shape(name).as_list() == list(ARRAYS[name].shape)
    assert value.tolist() == ARRAYS[name].tolist()


def test_keys_are_sorted_and_a_missing_one_is_named(prefix):
    reader = BundleReader(prefix)
    assert reader.keys() == sorted(ARRAYS)
    with pytest.raises(errors.NotFoundError, match="Key nowhere not found in checkpoint"):
        reader.read("nowhere")


def test_parts_of_a_variable_are_put_together(tmp_path):
    whole = np.arange(30, dtype=np.float64).reshape(10, 3)
    with BundleWriter(str(tmp_path / "p")) as writer:
        writer.add_slice("w", [10, 3], [(0, 4), (0, -1)], whole[:4])
        writer.add_slice("w", [10, 3], [(4, 6), (0, 3)], whole[4:])
    reader = BundleReader(writer.prefix)
    assert reader.keys() == ["w"] and reader.shape("w").as_list() == [10, 3]
    assert (reader.read("w") == whole).all()
    assert (reader.read_slice("w", [(3, 3), (1, 2)]) == whole[3:6, 1:]).all()


def test_a_part_that_was_not_saved_is_missed(tmp_path):
    with BundleWriter(str(tmp_path / "p")) as writer:
        writer.add_slice("w", [10], [(0, 4)], np.zeros(4))
    with pytest.raises(errors.NotFoundError, match="do not cover"):
        BundleReader(writer.prefix).read("w")


def test_merging_joins_shards_and_leaves_no_temporary_file(tmp_path):
    parts = []
    for shard in range(2):
        folder = tmp_path / "model_temp"
        folder.mkdir(exist_ok=True)
        with BundleWriter(str(folder / f"part-{shard}")) as writer:
            writer.add(f"v{shard}", np.full(3, shard))
            writer.add_slice("w", [4], [(2 * shard, 2)], np.full(2, shard))
        parts.append(writer.prefix)
    checkpoint.merge_bundles(parts, str(tmp_path / "model"))
    reader = BundleReader(str(tmp_path / "model"))
    assert reader.read("w").tolist() == [0, 0, 1, 1] and reader.read("v1").tolist() == [1, 1, 1]
    assert sorted(os.listdir(tmp_path)) == [
        "model.data-00000-of-00002",
        "model.data-00001-of-00002",
        "model.index",
    ]


def test_the_same_tensor_in_two_shards_is_refused(tmp_path):
    for shard in "ab":
        with BundleWriter(str(tmp_path / shard)) as writer:
            writer.add("v", np.zeros(1))
    with pytest.raises(errors.InvalidArgumentError, match="Duplicate tensor v"):
        checkpoint.merge_bundles([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "m"))


def test_an_index_cut_anywhere_is_data_loss_and_never_a_crash(prefix):
    path = checkpoint.index_file(prefix)
    with open(path, "rb") as file:
        whole = file.read()
    for size in range(0, len(whole), 7):
        with open(path, "wb") as file:
            file.write(whole[:size])
        with pytest.raises(errors.DataLossError, match="model.ckpt-1.index"):
            BundleReader(prefix)


def test_a_flipped_byte_is_data_loss(prefix):
    path = checkpoint.index_file(prefix)
    with open(path, "rb") as file:
        whole = bytearray(file.read())
    whole[10] ^= 1
    with open(path, "wb") as file:
        file.write(whole)
    with pytest.raises(errors.DataLossError, match="checksum"):
        BundleReader(prefix)


def test_a_data_file_cut_short_names_the_tensor(prefix):
    path = checkpoint.data_file(prefix, 0, 1)
    os.truncate(path, os.path.getsize(path) - 1)
    with pytest.raises(errors.DataLossError, match="tensor strings needs"):
        BundleReader(prefix).read("strings")


def test_a_missing_checkpoint_has_tensorflows_words(tmp_path):
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files for"):
        BundleReader(str(tmp_path / "none"))


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyError), BundleWriter(str(tmp_path / "m")) as writer:
        writer.add("v", np.zeros(1))
        raise KeyError
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_a_full_disk_is_named_and_nothing_is_left(tmp_path, size):
    """A few bytes fail when the file is finished, many when they are added."""
    writer = BundleWriter(str(tmp_path / "model"))
    writer._data.close()
    writer._data = open("/dev/full", "wb")  # noqa: SIM115  (closed by the writer)
    with pytest.raises(errors.ResourceExhaustedError, match="model; No space left on device"), writer:
        writer.add("x", np.zeros(size, np.uint8))
    assert os.listdir(tmp_path) == []


def test_the_slice_specification_is_parsed():
    assert tensor_slices.parse_slice_spec("4 3 0,2:-") == ([4, 3], [(0, 2), (0, -1)])
    for bad in ("", "4 3 0,2", "4 x", "4 0-2"):
        with pytest.raises(errors.InvalidArgumentError, match="slice specification"):
            tensor_slices.parse_slice_spec(bad)
