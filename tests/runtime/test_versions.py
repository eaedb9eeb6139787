"""Graphs and checkpoints that say who may read them, as TensorFlow 2.21 obeys it."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.wire import checkpoint, checkpoint_v1, errors, versions
from dtf.wire.index_table import read_table, write_table
from dtf.wire.pb import graph_pb2, saved_tensor_slice_pb2, tensor_bundle_pb2, versions_pb2

REFUSED = {
    "min consumer version 1000000 above current version": {"min_consumer": 1_000_000},
    "producer version -5 below min producer 0": {"producer": -5},
    "disallows consumer version": {"bad_consumers": [versions.GRAPH, versions.CHECKPOINT]},
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_graph_for_another_reader_is_refused_when_it_is_imported(words):
    graph_def = graph_pb2.GraphDef(versions=versions_pb2.VersionDef(**REFUSED[words]))
    graph_def.node.add(name="a", op="NoOp")
    with tf.Graph().as_default() as graph, pytest.raises(ValueError, match=words):
        tf.import_graph_def(graph_def)
    assert not graph.get_operations()


def test_a_graph_that_excludes_others_only_is_imported():
    graph_def = graph_pb2.GraphDef(versions=versions_pb2.VersionDef(producer=27, min_consumer=-7, bad_consumers=[1, 2]))
    graph_def.node.add(name="a", op="NoOp")
    with tf.Graph().as_default():
        assert tf.import_graph_def(graph_def, return_elements=["a"], name="")[0].name == "a"


def bundle(tmp_path):
    prefix = str(tmp_path / "m")
    with checkpoint.BundleWriter(prefix) as writer:
        writer.add("v", np.zeros(2, np.float32))
    return prefix, checkpoint.index_file(prefix), tensor_bundle_pb2.BundleHeaderProto, "version"


def table(tmp_path):
    prefix = str(tmp_path / "m")
    checkpoint_v1.write_v1(prefix, [("v", [2], [(0, 2)], np.zeros(2, np.float32))])
    return prefix, prefix, saved_tensor_slice_pb2.SavedTensorSlices, "meta"


@pytest.mark.parametrize("make", [bundle, table])
@pytest.mark.parametrize("words", REFUSED)
def test_a_checkpoint_for_another_reader_is_refused(tmp_path, make, words):
    prefix, path, kind, field = make(tmp_path)
    with open(path, "rb") as file:
        rows = dict(read_table(file.read(), path))
    header = kind.FromString(rows[b""])
    part = header.meta.versions if field == "meta" else header.version
    part.MergeFrom(versions_pb2.VersionDef(**REFUSED[words]))
    rows[b""] = header.SerializeToString()
    with open(path, "wb") as file:
        file.write(write_table(sorted(rows.items())))
    with pytest.raises(errors.InvalidArgumentError, match=f"Checkpoint {words}"):
        checkpoint_v1.open_checkpoint(prefix)


@pytest.mark.parametrize("name", [r"a\000b", r"/dev/zero", "x" * 5000, "http://x/y", "*", r"\355\240\200"])
def test_a_state_that_names_no_checkpoint_names_none(tmp_path, name):
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{name}"\n')
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
