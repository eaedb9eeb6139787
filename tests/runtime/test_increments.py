"""Saves that hold only the rows that have changed, and `python -m dtf.checkpoints`."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

import dtf as tf
from dtf.checkpoints.__main__ import main
from dtf.checkpoints.folder import found_in, prune
from dtf.run.kernels import saving
from dtf.train.checkpoint_management import latest_checkpoint
from dtf.wire import errors, increments
from dtf.wire.checkpoint import BundleReader, BundleWriter
from dtf.wire.checkpoint_v1 import open_checkpoint
from dtf.wire.increments import IncrementReader, about, compact, names_of, opened

ROWS, WIDTH = 4_000, 16


class Training:
    """A session with a table, a table in two parts, and a step that touches rows of both."""

    def __init__(self, folder, increments=3, **options) -> None:
        initializer = tf.random_uniform_initializer(seed=1)
        self.table = tf.get_variable("table", [ROWS, WIDTH], initializer=initializer, use_resource=True)
        self.parts = tf.get_variable(
            "parts", [ROWS, WIDTH], initializer=initializer, partitioner=tf.fixed_size_partitioner(2)
        )
        self.small = tf.get_variable("small", [3], initializer=tf.zeros_initializer())
        self.rows = tf.placeholder(tf.int32, [None])
        ones = tf.ones([tf.size(self.rows), WIDTH])
        first = list(self.parts)[0]
        self.step = tf.group(
            self.table.scatter_add(tf.IndexedSlices(ones, self.rows)),
            tf.scatter_add(first, self.rows, ones),
            tf.assign_add(self.small, [1.0, 2.0, 3.0]),
        )
        self.dense = self.table.assign_add(tf.ones([ROWS, WIDTH]))
        self.saver = tf.train.Saver(increments=increments, **options)
        self.folder, self.number = folder, 0
        self.session = tf.Session()
        self.session.run(tf.global_variables_initializer())

    def touch(self, *rows: int) -> None:
        self.session.run(self.step, {self.rows: rows})

    def save(self) -> str:
        self.number += 1
        return self.saver.save(self.session, str(self.folder / "model"), self.number, write_meta_graph=False)

    def values(self) -> dict[str, np.ndarray]:
        parts = np.concatenate(self.session.run(list(self.parts)))
        return {"table": self.session.run(self.table), "parts": parts, "small": self.session.run(self.small)}

    def check(self, prefix: str, values: dict[str, np.ndarray]) -> None:
        reader = open_checkpoint(prefix)
        assert reader.keys() == sorted(values)
        for name, value in values.items():
            assert np.array_equal(reader.read(name), value), name


@pytest.fixture
def training(tmp_path):
    with tf.Graph().as_default():
        made = Training(tmp_path)
        with made.session:
            yield made


def size_of(prefix: str) -> int:
    return sum(os.path.getsize(path) for path in BundleReader(prefix).data_files())


@pytest.mark.parametrize("sharded", [False, True])
def test_an_increment_has_the_rows_of_the_steps_since_and_is_read_as_a_whole(tmp_path, sharded):
    with tf.Graph().as_default():
        training = Training(tmp_path, sharded=sharded)
        with training.session:
            saved = {training.save(): training.values()}
            for rows in ((3, 5, 3), (), (0, ROWS // 2 - 1)):
                training.touch(*rows)
                saved[training.save()] = training.values()
            first, *increments = saved
            for prefix, values in saved.items():
                training.check(prefix, values)
            assert [opened(prefix).bases()[::-1] for prefix in increments] == [
                list(saved)[: number + 1] for number in range(3)
            ]
            assert max(map(size_of, increments)) < size_of(first) / 10
            training.touch(1)
            assert not opened(training.save()).bases()  # after three increments a whole one
            training.session.run(tf.global_variables_initializer())
            training.saver.restore(training.session, increments[-1])
            for name, value in training.values().items():
                assert np.array_equal(value, saved[increments[-1]][name])


def test_a_change_of_the_whole_table_is_saved_whole_and_the_next_increment_builds_on_it(training):
    training.save()
    training.session.run(training.dense)
    prefix, values = training.save(), training.values()
    training.check(prefix, values)
    assert BundleReader(prefix).has("table")
    training.touch(7)
    prefix = training.save()
    assert not BundleReader(prefix).has("table")
    training.check(prefix, training.values())


def test_a_save_that_failed_loses_no_rows(training, monkeypatch):
    training.save()
    training.touch(3)

    def full(*_):
        raise errors.ResourceExhaustedError.of("model; No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(saving.PieceWriter, "write", full)
        with pytest.raises(errors.ResourceExhaustedError):
            training.save()
    training.touch(9)
    prefix = training.save()
    assert len(opened(prefix).bases()) == 1
    training.check(prefix, training.values())


def test_a_restored_or_restarted_task_saves_whole(training):
    first = training.save()
    training.touch(3)
    training.saver.restore(training.session, first)
    prefix = training.save()
    training.check(prefix, training.values())
    assert BundleReader(prefix).has("table")


def test_a_base_is_kept_as_long_as_an_increment_needs_it(tmp_path):
    with tf.Graph().as_default():
        training = Training(tmp_path, max_to_keep=1)
        with training.session:
            for _ in range(3):
                training.touch(1)
                last = training.save()
            training.check(last, training.values())
            assert len(found_in(str(tmp_path))) == 3
            for _ in range(2):
                training.touch(2)
                last = training.save()
            assert [each.prefix for each in found_in(str(tmp_path))] == [last]


@pytest.mark.parametrize("sharded", [False, True])
def test_a_compacted_increment_needs_no_other(tmp_path, sharded):
    with tf.Graph().as_default():
        training = Training(tmp_path, sharded=sharded)
        with training.session:
            first = training.save()
            training.touch(3)
            prefix, values = training.save(), training.values()
            assert compact(prefix) and not compact(prefix) and not compact(first)
            for path in (*BundleReader(first).data_files(), f"{first}.index"):
                os.remove(path)
            training.check(prefix, values)
            files = [f"{prefix}.index", *BundleReader(prefix).data_files()]
            assert sorted(os.listdir(tmp_path)) == sorted(["checkpoint", *map(os.path.basename, files)])


def test_an_increment_without_its_base_is_not_taken_for_the_latest(training):
    first = training.save()
    training.touch(3)
    second = training.save()
    os.remove(f"{first}.index")
    with pytest.raises(errors.NotFoundError, match="is an increment, and its base .*model-1 is missing"):
        open_checkpoint(second).read("table")
    assert latest_checkpoint(str(training.folder)) is None


def increment_of(folder, base="base", shape=(4, 2), spec="", rows=(1,), values=((5.0, 5.0),)) -> str:
    with BundleWriter(str(folder / "base")) as writer:
        writer.add("t", np.zeros((4, 2)))
    names = names_of("t", 0)
    with BundleWriter(str(folder / "inc")) as writer:
        writer.add(names.about, about(base, shape, spec))
        writer.add(names.rows, np.array(rows, np.int64))
        writer.add(names.values, np.array(values))
    return str(folder / "inc")


def test_an_increment_made_by_hand_is_read(tmp_path):
    assert open_checkpoint(increment_of(tmp_path)).read("t").tolist() == [[0, 0], [5, 5], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": "inc"},
        {"base": ""},
        {"base": ".."},
        {"shape": (5, 2)},
        {"shape": ()},
        {"rows": (4,)},
        {"rows": (-1,)},
        {"rows": (1, 2)},
        {"values": ((5, 5),)},
        {"spec": "4 2 0,9:-"},
        {"spec": "words"},
    ],
    ids=str,
)
def test_a_damaged_increment_says_so(tmp_path, wrong):
    prefix = increment_of(tmp_path, **wrong)
    with pytest.raises((errors.DataLossError, errors.InvalidArgumentError)):
        open_checkpoint(prefix).read("t")


def test_too_many_increments_in_a_row_are_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(increments, "INCREMENTS_MAX", 2)
    with BundleWriter(str(tmp_path / "m-0")) as writer:
        writer.add("t", np.zeros((4, 2), np.float32))
    for number in range(1, 4):
        names = names_of("t", 0)
        with BundleWriter(str(tmp_path / f"m-{number}")) as writer:
            writer.add(names.about, about(f"m-{number - 1}", (4, 2), ""))
            writer.add(names.rows, np.array([1], np.int64))
            writer.add(names.values, np.full((1, 2), number, np.float32))
    assert open_checkpoint(str(tmp_path / "m-2")).read("t").max() == 2
    with pytest.raises(errors.DataLossError, match="more than 2 increments in a row"):
        open_checkpoint(str(tmp_path / "m-3")).read("t")


@pytest.mark.parametrize("count", [-1, 201])
def test_a_saver_makes_no_more_increments_in_a_row_than_a_reader_takes(count):
    with tf.Graph().as_default():
        tf.get_variable("v", [2])
        with pytest.raises(ValueError, match="increments must be from 0 to 200"):
            tf.train.Saver(increments=count)


def test_increments_need_the_second_version(tmp_path):
    with tf.Graph().as_default():
        tf.get_variable("v", [2])
        with pytest.raises(ValueError, match="increments need ops of their own"):
            tf.train.Saver(increments=2, write_version=tf.train.SaverDef.V1)


# -- the command


def test_a_list_names_steps_states_and_what_is_missing(training, capsys):
    folder = str(training.folder)
    first = training.save()
    training.touch(3)
    training.save()
    assert main([folder, "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["CHECKPOINT", "STEP", "WRITTEN", "SIZE", "TENSORS", "STATE", "PROBLEM"]
    assert lines[1].split()[0] == "model-1" and " kept " in lines[1]
    assert "newest, increment of model-1" in lines[2]
    os.truncate(BundleReader(first).data_files()[0], 100)
    assert main([folder, "list", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["problem"] for each in found] == ["files are missing or cut short"] * 2


def test_verify_names_the_damaged_tensor(training, capsys):
    prefix = training.save()
    assert main([str(training.folder), "verify"]) == 0
    assert capsys.readouterr().out == "model-1: whole\n"
    path = BundleReader(prefix).data_files()[0]
    with open(path, "r+b") as file:
        file.seek(BundleReader(prefix)._entries[b"table"].offset + 5)
        file.write(b"\xff\xff\xff")
    assert main([str(training.folder), "verify", "model-1"]) == 1
    assert "Checksum does not match for tensor table" in capsys.readouterr().out
    assert main([str(training.folder), "verify", "model-9"]) == 2
    assert "has no checkpoint model-9 (checkpoints: model-1)" in capsys.readouterr().err


def test_prune_keeps_the_newest_those_of_the_hours_and_bases(training, capsys):
    for _ in range(6):
        training.touch(1)
        prefix = training.save()
        number = training.number
        for path in (f"{prefix}.index", *BundleReader(prefix).data_files()):
            os.utime(path, (number * 3600, number * 3600))
    assert main([str(training.folder), "prune", "--keep", "1", "--dry-run"]) == 0
    assert "would remove model-1" in capsys.readouterr().out
    assert main([str(training.folder), "prune", "--keep", "1", "--every-hours", "3", "--json"]) == 0
    pruned = json.loads(capsys.readouterr().out)
    reasons = {os.path.basename(each["prefix"]): each["reason"] for each in pruned["kept"]}
    assert reasons == {
        "model-1": "one of every 3 hours",
        "model-2": "model-4 is based on it",
        "model-3": "model-4 is based on it",
        "model-4": "one of every 3 hours",
        "model-5": "model-6 is based on it",
        "model-6": "one of the newest 1",
    }
    training.check(str(training.folder / "model-6"), training.values())
    assert latest_checkpoint(str(training.folder)) == str(training.folder / "model-6")


def saved_whole(folder, count: int) -> list[str]:
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.get_variable("v", [2]).initializer)
        saver = tf.train.Saver()
        return [saver.save(session, str(folder / "model"), step, write_meta_graph=False) for step in range(count)]


def test_prune_of_a_copied_folder_leaves_the_original_alone(tmp_path):
    (tmp_path / "original").mkdir()
    saved = saved_whole(tmp_path / "original", 3)
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    pruned = prune(str(tmp_path / "copy"), 1)
    assert [each.prefix for each, _ in pruned.kept] == [str(tmp_path / "copy" / "model-2")]
    assert len(pruned.removed) == 2
    assert [BundleReader(prefix).is_whole() for prefix in saved] == [True] * 3
    assert latest_checkpoint(str(tmp_path / "copy")) == str(tmp_path / "copy" / "model-2")


def test_prune_keeps_the_newest_of_the_state_file_whatever_the_times_of_files_are(tmp_path):
    (tmp_path / "original").mkdir()
    saved_whole(tmp_path / "original", 4)
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    for folder in (tmp_path / "original", tmp_path / "copy"):
        for step in range(4):
            for path in folder.glob(f"model-{step}.*"):
                os.utime(path, (1000 - step, 1000 - step))  # as after a copy in another order
        own = [each for each in found_in(str(folder)) if each.prefix.startswith(f"{folder}/")]
        assert [each.step for each in own] == [0, 1, 2, 3]
        assert [each.step for each, _ in prune(str(folder), 2).kept] == [2, 3]
        assert latest_checkpoint(str(folder)) == str(folder / "model-3")


def test_prune_after_compact_keeps_the_newest(training):
    for _ in range(4):
        training.touch(1)
        training.save()
    times = {each.name: each.written_at for each in found_in(str(training.folder))}
    assert main([str(training.folder), "compact"]) == 0
    found = found_in(str(training.folder))
    assert [each.step for each in found] == [1, 2, 3, 4]
    assert {each.name: each.written_at for each in found} == times
    assert main([str(training.folder), "prune", "--keep", "1"]) == 0
    assert [each.step for each in found_in(str(training.folder))] == [4]
    training.check(str(training.folder / "model-4"), training.values())


def test_prune_keeps_the_newest_also_where_links_lead_to_its_folder(tmp_path):
    (tmp_path / "original").mkdir()
    saved = saved_whole(tmp_path / "original", 3)
    (tmp_path / "link").symlink_to(tmp_path / "original")
    assert len(found_in(str(tmp_path / "link"))) == 3
    assert len(prune(str(tmp_path / "link"), 1).removed) == 2
    assert BundleReader(saved[-1]).is_whole()


def test_prune_removes_damaged_checkpoints_and_leftovers_but_never_the_last_whole_one(training):
    first = training.save()
    training.session.run(training.dense)
    second = training.save()
    for path in BundleReader(second).data_files():
        os.remove(path)
    (training.folder / "model-3.index.tmp0123456789abcdef").write_bytes(b"x")
    os.utime(training.folder / "model-3.index.tmp0123456789abcdef", (0, 0))
    pruned = prune(str(training.folder), 1)
    assert [each.name for each in pruned.removed] == ["model-2"]
    assert latest_checkpoint(str(training.folder)) == first
    assert not [name for name in os.listdir(training.folder) if "model-2" in name or "tmp" in name]
    with pytest.raises(ValueError, match="at least the newest"):
        prune(str(training.folder), 0)


def test_a_folder_that_is_missing_is_named(tmp_path, capsys):
    assert main([str(tmp_path / "none"), "list"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_the_compact_command_says_what_it_did(training, capsys):
    training.save()
    training.touch(3)
    prefix = training.save()
    assert main([str(training.folder), "compact"]) == 0
    assert capsys.readouterr().out == "model-1: whole already\nmodel-2: compacted\n"
    assert not isinstance(opened(prefix), IncrementReader)
