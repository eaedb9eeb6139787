"""The state file of a folder: which checkpoint is the latest, and what of it can be trusted."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dtf import train
from dtf.train import checkpoint_management
from dtf.wire.checkpoint import BundleWriter


def checkpoint(prefix):
    with BundleWriter(str(prefix)) as writer:
        writer.add("v", np.zeros(3, np.float32))
    return str(prefix)


def test_the_latest_is_what_the_state_file_names(tmp_path):
    first, second = checkpoint(tmp_path / "model-1"), checkpoint(tmp_path / "model-2")
    train.update_checkpoint_state(str(tmp_path), second, [first, second])
    assert train.latest_checkpoint(str(tmp_path)) == second
    state = train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == [first, second]


@pytest.mark.parametrize("damage", ["index", "data", "cut index", "cut data"])
def test_one_that_is_not_whole_is_passed_over_for_the_one_before(tmp_path, damage):
    first, second = checkpoint(tmp_path / "model-1"), checkpoint(tmp_path / "model-2")
    train.update_checkpoint_state(str(tmp_path), second, [first, second])
    if damage == "index":
        os.remove(f"{second}.index")
    elif damage == "data":
        os.remove(f"{second}.data-00000-of-00001")
    elif damage == "cut data":
        os.truncate(f"{second}.data-00000-of-00001", os.path.getsize(f"{second}.data-00000-of-00001") - 1)
    else:
        os.truncate(f"{second}.index", 20)
    assert train.checkpoint_exists(second) == (damage != "index")
    assert train.latest_checkpoint(str(tmp_path)) == first


def test_a_folder_without_a_state_file_has_no_checkpoint(tmp_path):
    checkpoint(tmp_path / "model-1")
    assert train.latest_checkpoint(str(tmp_path)) is None
    assert train.get_checkpoint_state(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize("text", ["model_checkpoint_path: ", "garbage {", "\xff\xfe"])
def test_a_damaged_state_file_is_ignored_with_a_warning(tmp_path, text, caplog):
    (tmp_path / "checkpoint").write_bytes(text.encode("latin1"))
    assert train.get_checkpoint_state(str(tmp_path)) is None
    assert "checkpoint ignored" in caplog.text


@pytest.mark.parametrize("text", ["", 'all_model_checkpoint_paths: "model-1"'])
def test_a_state_file_that_names_no_checkpoint_is_an_error(tmp_path, text):
    (tmp_path / "checkpoint").write_text(text)
    with pytest.raises(ValueError, match="Invalid checkpoint state loaded from"):
        train.get_checkpoint_state(str(tmp_path))


def test_relative_paths_are_relative_to_the_folder(tmp_path, monkeypatch):
    first = checkpoint(tmp_path / "model-1")
    train.update_checkpoint_state(str(tmp_path), first, [first], save_relative_paths=True)
    assert 'model_checkpoint_path: "model-1"' in (tmp_path / "checkpoint").read_text()
    assert train.latest_checkpoint(str(tmp_path)) == first
    monkeypatch.chdir(tmp_path.parent)
    folder = tmp_path.name
    train.update_checkpoint_state(folder, f"{folder}/model-1", [f"{folder}/model-1"])
    assert 'model_checkpoint_path: "model-1"' in (tmp_path / "checkpoint").read_text()
    assert train.latest_checkpoint(folder) == f"{folder}/model-1"


def test_the_state_message_ends_with_the_newest_path():
    state = train.generate_checkpoint_state_proto("/logs", "/logs/b", ["/logs/a"])
    assert list(state.all_model_checkpoint_paths) == ["/logs/a", "/logs/b"]
    with pytest.raises(ValueError, match="timestamps"):
        train.generate_checkpoint_state_proto("/logs", "/logs/b", ["/logs/a"], [1.0, 2.0])


def test_a_removed_checkpoint_leaves_no_file(tmp_path):
    prefix = checkpoint(tmp_path / "model-1")
    other = checkpoint(tmp_path / "model-10")
    (tmp_path / "model-1.meta").write_text("")
    train.remove_checkpoint(prefix)
    train.remove_checkpoint(prefix)
    assert sorted(os.listdir(tmp_path)) == ["model-10.data-00000-of-00001", "model-10.index"]
    assert train.checkpoint_exists(other)


def test_the_times_of_checkpoints_are_those_of_their_indexes(tmp_path):
    prefix = checkpoint(tmp_path / "model-1")
    os.utime(f"{prefix}.index", (5.0, 5.0))
    assert train.get_checkpoint_mtimes([prefix, str(tmp_path / "nothing")]) == [5.0]


def test_the_iterator_yields_each_new_checkpoint_and_ends_at_its_timeout(tmp_path, monkeypatch):
    made = []

    def sleep(_):
        if len(made) < 2:
            made.append(checkpoint(tmp_path / f"model-{len(made)}"))
            train.update_checkpoint_state(str(tmp_path), made[-1], list(made))
        clock[0] += 1.0

    clock = [0.0]
    monkeypatch.setattr(checkpoint_management.time, "sleep", sleep)
    monkeypatch.setattr(checkpoint_management.time, "monotonic", lambda: clock[0])
    asked = []
    found = list(
        train.checkpoints_iterator(str(tmp_path), timeout=3.0, timeout_fn=lambda: asked.append(1) or len(asked) > 1)
    )
    assert found == made
    assert len(asked) == 2


def test_what_killed_saves_left_is_removed_and_nothing_else(tmp_path):
    unfinished = tmp_path / f"model.ckpt-5_temp_{'0a' * 16}"
    unfinished.mkdir()
    (unfinished / f"part-00000-of-00002.tempstate{'1' * 16}").write_text("half")
    (tmp_path / f"checkpoint.tmp{'2' * 16}").write_text("half")
    mine = tmp_path / f"notes_temp_{'0b' * 16}"
    mine.mkdir()
    (mine / "diary.txt").write_text("kept")
    (tmp_path / "model.ckpt-4.index").write_text("kept")
    for path in (unfinished, *unfinished.iterdir(), tmp_path / f"checkpoint.tmp{'2' * 16}"):
        os.utime(path, (1, 1))  # nobody writes there any more
    checkpoint_management.remove_unfinished(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.ckpt-4.index", mine.name]
