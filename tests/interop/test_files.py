"""Checkpoints and event files that either side writes are read by the other."""

from __future__ import annotations

import numpy as np

from dtf.wire import checkpoint
from dtf.wire.events import EventsWriter, read_events
from dtf.wire.pb import event_pb2
from tests.interop.tensorflow_process import needs_tensorflow, run

pytestmark = needs_tensorflow


def test_tensorflow_reads_what_we_write(tmp_path):
    prefix = str(tmp_path / "ours")
    whole = np.arange(600, dtype=np.float32).reshape(200, 3)
    with checkpoint.BundleWriter(prefix) as writer:
        writer.add("strings", np.array([b"ab", b"", b"x" * 300], object))
        writer.add("scalar", np.int64(5))
        writer.add_slice("parts", [200, 3], [(0, 100), (0, -1)], whole[:100])
        writer.add_slice("parts", [200, 3], [(100, 100), (0, 3)], whole[100:])
        for number in range(300):
            writer.add(f"layer{number:03}/kernel", np.full(3, number, np.int32))
    found = run(
        """
        reader = tf.train.load_checkpoint(sys.argv[1])
        print(json.dumps({
            "shapes": len(reader.get_variable_to_shape_map()),
            "strings": [len(s) for s in reader.get_tensor("strings")],
            "scalar": int(reader.get_tensor("scalar")),
            "parts": reader.get_tensor("parts").tolist(),
            "last": reader.get_tensor("layer299/kernel").tolist()}))
        """,
        prefix,
    )
    assert found == {
        "shapes": 303,
        "strings": [2, 0, 300],
        "scalar": 5,
        "parts": whole.tolist(),
        "last": [299] * 3,
    }


def test_we_read_what_tensorflow_writes(tmp_path):
    found = run(
        """
        parts = tf.get_variable("parts", [300, 3], partitioner=tf.fixed_size_partitioner(3))
        values = {"strings": tf.constant([b"hello", b"", b"z" * 500]), "half": tf.constant([1.5], tf.float16),
                  "complex": tf.constant([1 + 2j]), "bfloat16": tf.constant([3.0], tf.bfloat16)}
        for name, value in values.items():
            tf.get_variable(name, initializer=value)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver(sharded=True).save(session, sys.argv[1] + "/theirs")
            print(json.dumps(session.run(tf.concat(list(parts), 0)).tolist()))
        """,
        str(tmp_path),
    )
    reader = checkpoint.BundleReader(str(tmp_path / "theirs"))
    assert reader.keys() == ["bfloat16", "complex", "half", "parts", "strings"]
    np.testing.assert_array_equal(reader.read("parts"), np.array(found, np.float32))
    assert reader.read("strings").tolist() == [b"hello", b"", b"z" * 500]
    assert float(reader.read("bfloat16")[0]) == 3.0 and reader.read("complex")[0] == 1 + 2j


def test_event_files_are_read_both_ways(tmp_path):
    writer = EventsWriter(str(tmp_path / "ours"))
    event = event_pb2.Event(step=3)
    event.summary.value.add(tag="loss", simple_value=0.5)
    writer.write(event)
    writer.close()
    found = run(
        """
        events = tf.train.summary_iterator(sys.argv[1])
        values = [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value]
        writer = tf.summary.FileWriter(sys.argv[2])
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="accuracy", simple_value=0.25)]), 9)
        writer.close()
        print(json.dumps(values))
        """,
        writer.path,
        str(tmp_path / "theirs"),
    )
    assert found == [[3, "loss", 0.5]]
    (path,) = (tmp_path / "theirs").iterdir()
    values = [(e.step, v.tag, v.simple_value) for e in read_events(str(path)) for v in e.summary.value]
    assert values == [(9, "accuracy", 0.25)]
