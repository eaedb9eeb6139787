"""TensorBoard's own reader finds in our event files what was written."""

from __future__ import annotations

import numpy as np

import dtf as tf
from tests.interop.tensorflow_process import needs_tensorflow, run

pytestmark = needs_tensorflow


def test_tensorboard_reads_what_a_training_writes(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        image = tf.reshape(tf.linspace(0.0, 1.0, 2 * 4 * 5 * 3), [2, 4, 5, 3])
        tf.summary.scalar("loss", tf.reduce_mean(x))
        tf.summary.histogram("values", x)
        tf.summary.image("picture", image, max_outputs=1)
        merged = tf.summary.merge_all()
        with tf.summary.FileWriter(str(tmp_path), session.graph) as writer:
            for step in range(3):
                metadata = tf.RunMetadata()
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                summary = session.run(merged, {x: np.full(4, step)}, options=options, run_metadata=metadata)
                writer.add_summary(summary, step)
                writer.add_run_metadata(metadata, f"step_{step}", step)
    found = run(
        """
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(sys.argv[1], size_guidance={"images": 0, "histograms": 0})
        events.Reload()
        histogram = events.Histograms("values")[2].histogram_value
        metadata = events.RunMetadata("step_1")
        print(json.dumps({
            "tags": {kind: value for kind, value in events.Tags().items() if kind in (
                "scalars", "histograms", "images", "run_metadata", "graph", "meta_graph")},
            "scalars": [(e.step, e.value) for e in events.Scalars("loss")],
            "histogram": [histogram.min, histogram.max, histogram.num, histogram.sum, sum(histogram.bucket)],
            "image": [events.Images("picture/image")[0].height, events.Images("picture/image")[0].width],
            "decoded": [int(v) for v in tf.Session().run(tf.shape(tf.image.decode_png(
                events.Images("picture/image")[0].encoded_image_string)))],
            "nodes": "x" in [node.name for node in events.Graph().node],
            "meta_nodes": len(events.MetaGraph().graph_def.node) == len(events.Graph().node),
            "devices": len(metadata.step_stats.dev_stats) > 0}))
        """,
        str(tmp_path),
    )
    assert found == {
        "tags": {
            "scalars": ["loss"],
            "histograms": ["values"],
            "images": ["picture/image"],
            "run_metadata": ["step_0", "step_1", "step_2"],
            "graph": True,
            "meta_graph": True,
        },
        "scalars": [[0, 0.0], [1, 1.0], [2, 2.0]],
        "histogram": [2.0, 2.0, 4.0, 8.0, 4.0],
        "image": [4, 5],
        "decoded": [4, 5, 3],
        "nodes": True,
        "meta_nodes": True,
        "devices": True,
    }


def test_we_read_what_tensorflow_writes(tmp_path):
    run(
        """
        with tf.Graph().as_default(), tf.Session() as session:
            summary = tf.summary.scalar("loss", 0.5)
            with tf.summary.FileWriter(sys.argv[1], session.graph) as writer:
                writer.add_summary(session.run(summary), 7)
        """,
        str(tmp_path),
    )
    (path,) = tmp_path.glob("events.*")
    events = list(tf.train.summary_iterator(str(path)))
    assert [event.WhichOneof("what") for event in events] == ["file_version", "graph_def", "meta_graph_def", "summary"]
    assert (events[3].step, events[3].summary.value[0].tag, events[3].summary.value[0].simple_value) == (7, "loss", 0.5)
