"""TensorBoard's own reader finds in our event files what was written, and each side reads the other's."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.wire.events import read_events
from tests.interop import summary_programs
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_tensorboard_reads_what_a_training_writes(tensorflow, tmp_path):
    summary_programs.train(tf, str(tmp_path))
    found = tensorflow.run(
        """
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(sys.argv[1], size_guidance=dict.fromkeys(
            ("scalars", "histograms", "images", "audio", "tensors"), 0))
        events.Reload()
        histogram = events.Histograms("values")[2].histogram_value
        metadata = events.RunMetadata("step_1")
        image, audio = events.Images("picture/image")[0], events.Audio("sound/audio/1")[0]
        decoded = tf.Session().run([
            tf.image.decode_png(image.encoded_image_string), tf.audio.decode_wav(audio.encoded_audio_string)])
        print(json.dumps({
            "tags": events.Tags(),
            "scalars": [(e.step, e.value) for e in events.Scalars("loss")],
            "histogram": [histogram.min, histogram.max, histogram.num, histogram.sum, sum(histogram.bucket)],
            "image": [image.width, image.height, decoded[0].shape, decoded[0][0, 0].tolist()],
            "audio": [audio.sample_rate, audio.length_frames, audio.content_type, decoded[1].audio.shape,
                      int(decoded[1].sample_rate)],
            "text": [v.decode() for v in tf.make_ndarray(events.Tensors("words")[0].tensor_proto)],
            "plugin": events.SummaryMetadata("words").plugin_data.plugin_name,
            "tensor": tf.make_ndarray(events.Tensors("matrix")[1].tensor_proto).tolist(),
            "nodes": "x" in [node.name for node in events.Graph().node],
            "meta_nodes": len(events.MetaGraph().graph_def.node) == len(events.Graph().node),
            "devices": len(metadata.step_stats.dev_stats) > 0}))
        """,
        str(tmp_path),
    )
    assert found == {
        "tags": {
            "scalars": ["loss", "by_hand"],
            "histograms": ["values"],
            "images": ["picture/image"],
            "audio": ["sound/audio/0", "sound/audio/1"],
            "tensors": ["words", "matrix"],
            "distributions": ["values"],
            "run_metadata": ["step_0", "step_1", "step_2"],
            "graph": True,
            "meta_graph": True,
        },
        "scalars": [[0, 0.0], [1, 1.0], [2, 2.0]],
        "histogram": [2.0, 2.0, 4.0, 8.0, 4.0],
        "image": [5, 4, [4, 5, 3], [0, 2, 4]],
        "audio": [8000.0, 100, "audio/wav", [100, 1], 8000],
        "text": ["some", "words"],
        "plugin": "text",
        "tensor": [[1.0, 2.0], [3.0, 4.0]],
        "nodes": True,
        "meta_nodes": True,
        "devices": True,
    }


def test_tensorboards_data_provider_serves_our_runs(tensorflow, tmp_path):
    for run in ("train", "eval"):
        with tf.Graph().as_default():
            summary_programs.train(tf, str(tmp_path / run))
    found = tensorflow.run(
        """
        from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
        from tensorboard.context import RequestContext

        multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(sys.argv[1])
        multiplexer.Reload()
        provider = data_provider.MultiplexerDataProvider(multiplexer, sys.argv[1])
        context, asked = RequestContext(), {"experiment_id": "", "plugin_name": "scalars"}
        points = provider.read_scalars(context, downsample=100, **asked)["eval"]["loss"]
        print(json.dumps({
            "runs": sorted(run.run_name for run in provider.list_runs(context, experiment_id="")),
            "scalars": sorted(provider.list_scalars(context, **asked)["train"]),
            "points": [(point.step, float(point.value)) for point in points],
            "histograms": sorted(provider.list_tensors(context, experiment_id="", plugin_name="histograms")["train"]),
            "images": sorted(provider.list_blob_sequences(context, experiment_id="", plugin_name="images")["train"])}))
        """,
        str(tmp_path),
    )
    assert found == {
        "runs": ["eval", "train"],
        "scalars": ["by_hand", "loss"],
        "points": [[0, 0.0], [1, 1.0], [2, 2.0]],
        "histograms": ["values"],
        "images": ["picture/image"],
    }


def test_an_event_file_tells_what_tensorflows_does(tensorflow, tmp_path):
    """The same program writes the same events, in the same order, with the same tags, steps and values."""
    summary_programs.train(tf, str(tmp_path / "ours"))
    theirs = tensorflow.run(
        """
        from tests.interop import summary_programs

        summary_programs.train(tf, sys.argv[1])
        print(json.dumps([summary_programs.told(tf, sys.argv[1]), summary_programs.told(tf, sys.argv[2])]))
        """,
        str(tmp_path / "theirs"),
        str(tmp_path / "ours"),
    )
    # Both files through both readers.
    told = [summary_programs.told(tf, str(tmp_path / name)) for name in ("theirs", "ours")]
    assert told == theirs
    assert told[0] == told[1]


def test_summaries_are_tensorflows_to_the_bit(tensorflow, tmp_path):
    """Histograms' buckets and statistics, images' pixels, sounds' samples, of values of every kind."""
    theirs = tensorflow.run(
        """
        from tests.interop import summary_programs

        print(json.dumps(summary_programs.summaries(tf)))
        """
    )
    ours = summary_programs.summaries(tf)
    assert set(ours) == set(theirs)
    assert [name for name, wanted in theirs.items() if ours[name] != wanted] == []


def test_a_cut_or_damaged_file_is_read_as_far_as_tensorflow_reads_it(tensorflow, tmp_path):
    with tf.summary.FileWriter(str(tmp_path / "whole")) as writer:
        for step in range(3):
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=step)]), step)
    (path,) = (tmp_path / "whole").iterdir()
    data = path.read_bytes()
    files = {f"cut{size}": data[:-size] for size in (1, 4, 5, 20, 30)}
    for position in (5, len(data) - 2, len(data) - 8, len(data) // 2):
        damaged = bytearray(data)
        damaged[position] ^= 1
        files[f"flip{position}"] = bytes(damaged)
    files["empty"] = b""
    files["text"] = b"this is no event file"
    for name, contents in files.items():
        (tmp_path / name).write_bytes(contents)
    theirs = tensorflow.run(
        summary_programs.HOW_FAR + "print(json.dumps({n: how_far(tf, f'{sys.argv[1]}/{n}') for n in sys.argv[2:]}))",
        str(tmp_path),
        *files,
    )
    names: dict = {}
    exec(summary_programs.HOW_FAR, names)
    assert {name: names["how_far"](tf, str(tmp_path / name)) for name in files} == theirs
    assert "DataLossError" in str(theirs) and "end" in str(theirs)


def test_our_suffix_reopened_files_and_session_logs_are_found(tensorflow, tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path), filename_suffix=".eval", max_queue=1, flush_secs=1)
    writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 1)
    writer.flush()
    writer.close()
    writer.reopen()
    writer.add_session_log(tf.SessionLog(status=tf.SessionLog.STOP), 2)
    writer.close()
    paths = sorted(map(str, tmp_path.iterdir()))
    assert len(paths) == 2 and all(path.endswith(".eval") for path in paths)
    read = (
        "[[[e.step, e.session_log.status] for e in tf.train.summary_iterator(p) if e.HasField('session_log')]"
        " for p in {}]"
    )
    theirs = tensorflow.run(f"print(json.dumps({read.format('sys.argv[1:]')}))", *paths)
    assert sorted(theirs) == [[[1, 1]], [[2, 2]]]
    assert eval(read.format("paths"), {"tf": tf, "paths": paths}) == theirs
    assert [event.file_version for event in read_events(paths[0])][:1] == ["brain.Event:2"]
    assert np.isfinite([event.wall_time for event in read_events(paths[0])]).all()
