"""Which variable lies where, read from a MetaGraphDef that dtf has written."""

from __future__ import annotations

import pytest

import dtf as tf
from dtfctl.logs.placement import newest_graph, variables


def test_variables_come_with_place_shape_and_bytes(tmp_path):
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:1"):
            tf.get_variable("large", [100, 8])
        with tf.device("/job:ps/task:0"):
            tf.get_variable("count", [], dtype=tf.int64)
        tf.get_variable("anywhere", [3])
        data = tf.train.export_meta_graph(graph=graph).SerializeToString()
    found = {each.name: (each.task, each.shape, each.bytes) for each in variables(data)}
    assert found == {
        "large": ("ps:1", (100, 8), 3200),
        "count": ("ps:0", (), 8),
        "anywhere": ("", (3,), 12),
    }
    assert newest_graph(tmp_path) is None
    (tmp_path / "model.ckpt-1.meta").write_bytes(data)
    assert newest_graph(tmp_path) == tmp_path / "model.ckpt-1.meta"


def test_what_is_no_graph_is_refused():
    with pytest.raises((ValueError, IndexError)):
        variables(b"\xff\xff\xff")
