"""Damaged files are read, or refused in words as DataLossError or ValueError."""

from __future__ import annotations

import warnings

import pytest

import dtf as tf
from dtf.wire import errors
from dtf.wire.files import UnreadableFileError
from tests.fuzz import damaged_files

CORPUS = {
    "meta graph": (12, 147, 313),
    "saved model": (0, 16, 195, 254),
    "saved model as text": (0, 83),
}
"""Seeds that once found something."""
SLOW = {"meta graph": 10, "saved model": 10, "saved model as text": 4, "vocabulary": 20}
"""Targets that take long get few seeds."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    before = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.FATAL)
    yield folder, {target.name: target for target in damaged_files.targets(folder)}
    tf.logging.set_verbosity(before)


def tried(found, name: str, seeds) -> None:
    folder, targets = found
    if name not in targets:
        pytest.skip("needs Pillow")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, of damaged images
        for seed in seeds:
            escaped = damaged_files.try_once(targets[name], seed, folder)
            if escaped is not None:
                raise AssertionError(f"{name} {seed}") from escaped


NAMES = (
    "index", "entries", "data", "v1", "v1 entries", "v1 whole", "state", "latest", "meta graph", "saved model",
    "saved model as text", "frozen graph", "events", "records", "gzip records", "vocabulary", "png", "bmp", "gif",
    "jpeg", "wav", "gzip string",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_must_be_read_or_refused_in_words(name, found):
    tried(found, name, [*CORPUS.get(name, ()), *range(10_000, 10_000 + SLOW.get(name, 60))])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_damaged_files_must_be_read_or_refused_in_words(name, found):
    tried(found, name, range(20_000, 20_000 + 40 * SLOW.get(name, 60)))


def test_what_is_no_message_is_data_loss_and_what_tensorflow_raises(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xfe garbage")
    with pytest.raises(UnreadableFileError, match="Cannot parse file .*saved_model.pb: Error parsing") as refused:
        tf.saved_model.loader.load(tf.Session(), ["serve"], str(tmp_path))
    for kind in (errors.DataLossError, OSError, ValueError):
        assert isinstance(refused.value, kind)
    assert refused.value.error_code == errors.DATA_LOSS
    (tmp_path / "m.meta").write_bytes(b"\xff\xfe garbage")
    with pytest.raises(UnreadableFileError, match="Cannot parse file .*m.meta"):
        tf.train.import_meta_graph(str(tmp_path / "m.meta"))


def test_text_that_nests_without_end_is_refused(tmp_path):
    depth = 3000
    text = "graph_def { node { " + "attr { key: 'f' value { func { " * depth + "} } } " * depth + "} }"
    (tmp_path / "m.meta").write_text(text)
    with pytest.raises(UnreadableFileError, match="Cannot parse file .*m.meta"):
        tf.train.import_meta_graph(str(tmp_path / "m.meta"))
    (tmp_path / "saved_model.pbtxt").write_text(f"meta_graphs {{ {text} }}")
    with pytest.raises(UnreadableFileError, match="Cannot parse file .*saved_model.pbtxt"):
        tf.saved_model.loader.load(tf.Session(), ["serve"], str(tmp_path))
