"""Each side's Timeline shows the other's trace of a step."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import dtf as tf
from dtf.client.timeline import Timeline
from dtf.wire.pb import step_stats_pb2
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow

_PROGRAM = """
import base64
from tensorflow.python.client import timeline
from tensorflow.core.framework import step_stats_pb2

x = tf.placeholder(tf.float32, [8, 8], name="x")
total = tf.reduce_sum(tf.matmul(x, x, name="y") + tf.transpose(x, name="turned"), name="total")
metadata = tf.RunMetadata()
options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
tf.Session().run(total, {x: np.ones((8, 8), np.float32)}, options=options, run_metadata=metadata)
theirs = metadata.step_stats
ours = step_stats_pb2.StepStats.FromString(base64.b64decode(sys.argv[1]))
print(json.dumps({
    "stats": base64.b64encode(theirs.SerializeToString()).decode(),
    "of theirs": timeline.Timeline(theirs).generate_chrome_trace_format(show_memory=False),
    "of ours": timeline.Timeline(ours).generate_chrome_trace_format(show_memory=False)}))
"""


def told(trace):
    """{(name, op, inputs)} of the ops, and {tensor name} of the arrows."""
    events = json.loads(trace)["traceEvents"]
    slices = [event["args"] for event in events if event["ph"] == "X"]
    ops = {(each["name"], each["op"], each.get("input0"), each.get("input1")) for each in slices}
    return ops, {event["name"].partition(":")[0] for event in events if event["ph"] == "s"}


@pytest.fixture
def stats():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [8, 8], name="x")
        total = tf.reduce_sum(tf.matmul(x, x, name="y") + tf.transpose(x, name="turned"), name="total")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(total, {x: np.ones((8, 8), np.float32)}, options=options, run_metadata=metadata)
        return metadata.step_stats


def test_traces_are_shown_alike(tensorflow, stats):
    found = tensorflow.run(_PROGRAM, base64.b64encode(stats.SerializeToString()).decode())
    theirs = step_stats_pb2.StepStats.FromString(base64.b64decode(found["stats"]))
    for wanted, ours in [(found["of ours"], Timeline(stats)), (found["of theirs"], Timeline(theirs))]:
        ops, arrows = told(ours.generate_chrome_trace_format())
        their_ops, their_arrows = told(wanted)
        assert ops == their_ops
        # TensorFlow draws none between ops of one row.
        assert their_arrows <= arrows
