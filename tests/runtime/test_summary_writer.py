"""FileWriter: what reaches the event file, and when."""

from __future__ import annotations

import errno

import pytest

import dtf as tf
from dtf import train
from dtf.train.summary_writer import FileWriter, FileWriterCache
from dtf.wire import errors
from dtf.wire.pb import config_pb2, event_pb2, summary_pb2


def events(folder, number=0):
    """The events of a folder's files but the first one of each, which names the version."""
    return list(train.summary_iterator(str(sorted(folder.glob("events.*"))[number])))[1:]


def scalar(tag, value):
    return summary_pb2.Summary(value=[{"tag": tag, "simple_value": value}])


def test_summaries_are_written_with_step_and_time(tmp_path):
    with FileWriter(str(tmp_path), clock=lambda: 12.5) as writer:
        writer.add_summary(scalar("loss", 0.5), 3)
        writer.add_summary(scalar("loss", 0.25).SerializeToString(), global_step=4)
        writer.add_summary(scalar("loss", 0.125))
    assert [(e.step, e.wall_time, e.summary.value[0].simple_value) for e in events(tmp_path)] == [
        (3, 12.5, 0.5),
        (4, 12.5, 0.25),
        (0, 12.5, 0.125),
    ]


def test_what_a_tag_means_is_written_once(tmp_path):
    summary = scalar("loss", 0.5)
    summary.value[0].metadata.plugin_data.plugin_name = "scalars"
    with FileWriter(str(tmp_path)) as writer:
        writer.add_summary(summary, 1)
        writer.add_summary(summary, 2)
    assert [e.summary.value[0].HasField("metadata") for e in events(tmp_path)] == [True, False]
    assert summary.value[0].HasField("metadata"), "the caller's message stays as it was"


def test_graphs_logs_and_run_metadata_are_written(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="c")
    with FileWriter(str(tmp_path), graph) as writer:
        writer.add_graph(None, graph_def=graph.as_graph_def())
        writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.START), 1)
        writer.add_run_metadata(config_pb2.RunMetadata(), "step_1", 1)
        with pytest.raises(ValueError, match="already used"):
            writer.add_run_metadata(config_pb2.RunMetadata(), "step_1", 2)
        writer.add_event(event_pb2.Event(step=9, wall_time=1.0))
        for wrong in (lambda: writer.add_graph(3), lambda: writer.add_meta_graph(3)):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(ValueError, match="pass a graph"):
            writer.add_graph(None)
        with pytest.raises(ValueError, match="not both"):
            writer.add_graph(graph, graph_def=graph.as_graph_def())
    kinds = [event.WhichOneof("what") for event in events(tmp_path)]
    assert kinds == ["graph_def", "meta_graph_def", "graph_def", "session_log", "tagged_run_metadata", None]
    assert type(graph.as_graph_def()).FromString(events(tmp_path)[0].graph_def).node[0].name == "c"


def test_flush_returns_when_all_can_be_read(tmp_path):
    writer = FileWriter(str(tmp_path), max_queue=3)
    for step in range(20):
        writer.add_summary(scalar("loss", 0.5), step)
    writer.flush()
    assert len(events(tmp_path)) == 20
    writer.close()


def test_what_waits_is_flushed_after_its_time_without_another_event(tmp_path):
    writer = FileWriter(str(tmp_path), flush_secs=0.01)
    flushed = []
    sink = writer._sink
    flush = sink._writer.flush
    import threading

    done = threading.Event()
    sink._writer.flush = lambda: (flush(), flushed.append(1), done.set())
    writer.add_summary(scalar("loss", 0.5), 1)
    assert done.wait(10)
    assert len(events(tmp_path)) == 1
    writer.close()


def test_a_closed_writer_loses_events_with_one_warning_until_it_is_reopened(tmp_path, caplog):
    writer = FileWriter(str(tmp_path))
    writer.close()
    writer.close()
    writer.add_summary(scalar("lost", 0.5), 1)
    writer.add_summary(scalar("lost", 0.5), 1)
    writer.flush()
    assert caplog.text.count("closed FileWriter") == 1
    writer.reopen()
    writer.add_summary(scalar("kept", 0.5), 2)
    writer.close()
    assert len(list(tmp_path.glob("events.*"))) == 2
    assert events(tmp_path, 0) == []
    assert events(tmp_path, 1)[0].summary.value[0].tag == "kept"


def test_a_full_disk_is_said_once_and_stops_nobody(tmp_path, caplog):
    writer = FileWriter(str(tmp_path))

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer._sink._writer.write = full
    writer.add_summary(scalar("loss", 0.5), 1)
    writer.add_summary(scalar("loss", 0.5), 2)
    writer.close()
    assert caplog.text.count("No space left on device") == 1


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.OpError, match="file"):
        FileWriter(str(tmp_path / "file" / "logs"))
    with pytest.raises(ValueError, match="session"):
        FileWriter(str(tmp_path), session=object())


def test_one_folder_has_one_writer(tmp_path):
    first = FileWriterCache.get(str(tmp_path))
    assert FileWriterCache.get(str(tmp_path)) is first
    assert first.get_logdir() == str(tmp_path)
    FileWriterCache.clear()
    second = FileWriterCache.get(str(tmp_path))
    assert second is not first
    FileWriterCache.clear()


def test_the_description_of_a_tensor_summary_is_read_from_its_node():
    with tf.Graph().as_default():
        made = tf.raw_ops.TensorSummary(tensor=tf.constant([1.0]), description='{"typeHint": "matrix"}')
        assert tf.summary.get_summary_description(made.op.node_def).type_hint == "matrix"
        with pytest.raises(ValueError, match="Can't get_summary_description on ScalarSummary"):
            tf.summary.get_summary_description(tf.summary.scalar("x", 1.0).op.node_def)
