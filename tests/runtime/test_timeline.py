"""Timelines: the trace of a step over all its tasks, as Chrome's viewer wants it."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

import dtf as tf
from dtf.client.timeline import Timeline
from dtf.testing import LocalCluster


def traced(session, fetches, feed=None):
    metadata = tf.RunMetadata()
    session.run(fetches, feed, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    return metadata.step_stats


def events_of(stats, **arguments):
    return json.loads(Timeline(stats).generate_chrome_trace_format(**arguments))["traceEvents"]


@pytest.fixture
def local():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [30, 30], name="x")
        y = tf.matmul(x, x, name="y")
        total = tf.reduce_sum(y + tf.transpose(y, name="turned"), name="total")
        yield traced(session, total, {x: np.ones((30, 30), np.float32)})


def test_every_op_is_a_slice_of_its_device(local):
    events = events_of(local)
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert list(names.values()) == ["/job:localhost/replica:0/task:0/device:CPU:0 Compute"]
    slices = {event["args"]["name"]: event for event in events if event["ph"] == "X"}
    assert (slices["y"]["name"], slices["y"]["args"]["op"]) == ("MatMul", "MatMul")
    assert slices["turned"]["args"]["input0"] == "y"
    for event in slices.values():
        assert event["dur"] >= 1 and event["pid"] in names


def test_slices_of_one_row_do_not_overlap(local):
    rows = {}
    for event in sorted((event for event in events_of(local) if event["ph"] == "X"), key=lambda event: event["ts"]):
        assert rows.get(event["tid"], 0) <= event["ts"]
        rows[event["tid"]] = event["ts"] + event["dur"]


def test_arrows_come_in_pairs_and_may_be_left_out(local):
    events = events_of(local)
    phases = Counter(event["id"] for event in events if event["ph"] in "st")
    assert phases and set(phases.values()) == {2}
    assert "y" in {event["name"] for event in events if event["ph"] == "s"}
    assert not [event for event in events_of(local, show_dataflow=False) if event["ph"] in "st"]


def test_memory_is_a_curve_that_ends_at_nothing(local):
    used = [event["args"]["bytes"] for event in events_of(local, show_memory=True) if event["ph"] == "C"]
    assert max(used) >= 3600
    assert used[-1] == 0
    assert not [event for event in events_of(local) if event["ph"] == "C"]


@pytest.mark.timeout(60)
def test_a_step_over_several_tasks_has_a_process_for_each_and_arrows_between_them():
    with LocalCluster({"ps": 1, "worker": 1}) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [3, 3], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            scaled = tf.multiply(w, 2.0, name="scaled")
        with tf.device("/job:ps/task:0"):
            update = tf.assign_add(w, scaled, name="update")
        with tf.Session(cluster.target("worker")) as session:
            session.run(w.initializer)
            events = events_of(traced(session, update))
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    jobs = {pid: "ps" if "job:ps" in name else "worker" for pid, name in names.items()}
    assert sorted(jobs.values()) == ["ps", "worker"]
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "t"}
    assert begins.keys() == ends.keys()
    ways = {(jobs[begins[number]["pid"]], jobs[ends[number]["pid"]]) for number in begins}
    assert {("ps", "worker"), ("worker", "ps")} <= ways
    for number, begin in begins.items():
        assert begin["ts"] <= ends[number]["ts"]


def test_what_the_labels_do_not_tell_the_graph_may():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        total = tf.add(tf.constant(1.0, name="a"), tf.placeholder(tf.float32, [], name="b"), name="total")
        stats = traced(session, total, {"b:0": 2.0})
        for device in stats.dev_stats:
            for node in device.node_stats:
                node.timeline_label = f"{node.node_name} = {node.timeline_label.split(' = ')[1].split('(')[0]}"
        made = json.loads(Timeline(stats, graph=graph).generate_chrome_trace_format())["traceEvents"]
    (event,) = (event for event in made if event["ph"] == "X" and event["args"]["name"] == "total")
    assert (event["args"]["input0"], event["args"]["input1"]) == ("a:0", "b:0")
