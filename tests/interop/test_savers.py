"""A checkpoint with its meta graph moves between the two runtimes, in both directions."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf import train
from tests.interop.saver_model import model
from tests.interop.tensorflow_process import needs_tensorflow, run

pytestmark = needs_tensorflow

X = [[1.0, 1.0], [2.0, 0.0]]
Y = [[9.5], [8.5]]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_tensorflow_imports_our_meta_graph_and_restores_our_checkpoint(tmp_path):
    with tf.Session() as session:
        saver = model(tf)
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"), global_step=7)
    found = run(
        """
        saver = tf.train.import_meta_graph(sys.argv[1] + ".meta")
        with tf.Session() as session:
            saver.restore(session, sys.argv[1])
            y = tf.get_collection("outputs")[0]
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coord)
            dequeued = session.run("dequeued:0")
            coord.request_stop(); coord.join(threads)
            again = saver.save(session, sys.argv[2], global_step=8)
            print(json.dumps({
                "y": session.run(y, {"x:0": json.loads(sys.argv[3])}).tolist(),
                "variables": sorted(v.name for v in tf.global_variables()),
                "trainable": sorted(v.name for v in tf.trainable_variables()),
                "same": all(any(v is w for w in tf.global_variables()) for v in tf.trainable_variables()),
                "step": tf.get_collection("global_step")[0].name,
                "rates": tf.get_collection("rates"),
                "words": [w.decode() for w in tf.get_collection("words")],
                "dequeued": float(dequeued)}))
        """,
        path,
        str(tmp_path / "theirs"),
        str(X),
    )
    assert found == {
        "y": Y,
        "variables": ["b:0", "global_step:0", "parts/part_0:0", "parts/part_1:0", "w:0"],
        "trainable": ["b:0", "parts/part_0:0", "parts/part_1:0", "w:0"],
        "same": True,
        "step": "global_step:0",
        "rates": [0.25],
        "words": ["hello"],
        "dequeued": 1.0,
    }
    # Our ops, run by TensorFlow, wrote a checkpoint that our Saver reads.
    with tf.Session() as session:
        saver.restore(session, str(tmp_path / "theirs-8"))
        assert session.run("y:0", {"x:0": X}).tolist() == Y


def test_we_import_tensorflows_meta_graph_and_restore_its_checkpoint(tmp_path):
    run(
        """
        from tests.interop.saver_model import model

        saver = model(tf)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            saver.save(session, sys.argv[1], global_step=7)
        """,
        str(tmp_path / "model"),
    )
    saver = train.import_meta_graph(str(tmp_path / "model-7.meta"))
    with tf.Session() as session:
        saver.restore(session, str(tmp_path / "model-7"))
        np.testing.assert_allclose(session.run(tf.get_collection("outputs")[0], {"x:0": X}), Y)
        coord = train.Coordinator()
        threads = train.start_queue_runners(session, coord)
        assert session.run("dequeued:0") == 1.0
        coord.request_stop()
        coord.join(threads)
        path = saver.save(session, str(tmp_path / "ours"))
    assert train.load_variable(path, "parts").tolist() == [[1.0], [2.0], [3.0]]
    assert train.get_global_step() is tf.global_variables()[-1]
    assert [v.name for v in tf.trainable_variables()] == ["w:0", "b:0", "parts/part_0:0", "parts/part_1:0"]
    assert tf.get_collection("rates") == [0.25]
