"""Folders of strangers, as an archive may hold them: pipes and links to devices in the place of files keep nobody."""

from __future__ import annotations

import os

import pytest

import dtf as tf
from dtf import train
from dtf.wire import errors, filesystems


@pytest.fixture(params=["a pipe", "a device", "a link to itself"])
def place(request):
    """Puts something that is no regular file at a path."""

    def put(path):
        path.unlink(missing_ok=True)
        if request.param == "a pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero" if request.param == "a device" else path.name)

    return put


def model(folder, version=2):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(v.initializer)
        return train.Saver(write_version=version).save(session, str(folder / "model"))


@pytest.mark.parametrize("name", ["checkpoint", "model.index", "model.data-00000-of-00001"])
def test_a_checkpoint_that_is_none_keeps_no_trainer_waiting(tmp_path, place, name):
    prefix = model(tmp_path)
    place(tmp_path / name)
    assert train.latest_checkpoint(str(tmp_path)) is None
    if name != "checkpoint":
        with tf.Graph().as_default(), tf.Session() as session, pytest.raises((errors.OpError, ValueError)):
            tf.get_variable("v", [2])
            train.Saver().restore(session, prefix)


def test_a_checkpoint_of_the_old_format_that_is_none_keeps_no_trainer_waiting(tmp_path, place):
    model(tmp_path, 1)
    place(tmp_path / "model")
    assert train.latest_checkpoint(str(tmp_path)) is None


def test_a_graph_that_is_none_keeps_nobody_waiting(tmp_path, place):
    model(tmp_path)
    place(tmp_path / "model.meta")
    with tf.Graph().as_default(), pytest.raises((errors.OpError, OSError)):
        train.import_meta_graph(str(tmp_path / "model.meta"))
    place(tmp_path / "saved_model.pb")
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises((errors.OpError, OSError)):
        tf.saved_model.loader.load(session, ["serve"], str(tmp_path))


def test_a_folder_is_still_called_a_folder(tmp_path):
    with pytest.raises(IsADirectoryError):
        filesystems.read_regular(tmp_path)
