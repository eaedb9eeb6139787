"""Values that one step leaves for a later one."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.contrib.staging import MapStagingArea, StagingArea


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_entries_come_in_their_order():
    x = tf.placeholder(tf.float32)
    area = StagingArea([tf.float32, tf.float32], shapes=[[], [1]])
    put = area.put([x, tf.expand_dims(x * 2, 0)])
    get, peek, size, clear = area.get(), area.peek(0), area.size(), area.clear()
    assert [each.get_shape().as_list() for each in get] == [[], [1]]
    with tf.Session() as session:
        for value in (1.0, 2.0, 3.0):
            session.run(put, {x: value})
        assert session.run(size) == 3
        assert session.run(peek)[0] == 1.0
        assert [session.run(get)[0] for _ in range(2)] == [1.0, 2.0]
        session.run(clear)
        assert session.run(size) == 0


def test_a_pipeline_of_two_stages_is_one_step_behind():
    x = tf.placeholder(tf.float32)
    area = StagingArea([tf.float32])
    put = area.put([x])
    (before,) = area.get()
    with tf.Session() as session:
        session.run(put, {x: 0.0})
        assert [session.run([before, put], {x: value})[0] for value in (1.0, 2.0)] == [0.0, 1.0]


def test_names_make_dictionaries():
    area = StagingArea([tf.int32, tf.string], shapes=[[2], []], names=["ids", "text"])
    put, get = area.put({"text": "a", "ids": [1, 2]}), area.get()
    with tf.Session() as session:
        session.run(put)
        found = session.run(get)
    np.testing.assert_array_equal(found["ids"], [1, 2])
    assert found["text"] == b"a"


def test_entries_by_key_may_come_in_pieces():
    area = MapStagingArea([tf.float32, tf.int32], ordered=True)
    first, second = area.put(2, [1.5], indices=[0]), area.put(2, [7], indices=[1])
    other, get, waiting = area.put(1, [0.5, 3]), area.get(), area.incomplete_size()
    with tf.Session() as session:
        session.run(first)
        assert session.run(waiting) == 1
        session.run(second)
        session.run(other)
        assert session.run(area.peek(2)) == [1.5, 7]
        assert session.run(get) == (1, [0.5, 3])
        assert session.run(area.get(2)) == (2, [1.5, 7])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StagingArea([tf.int32], capacity=-1), "must not be negative"),
        (lambda: StagingArea([tf.int32], shapes=[[], []]), "shapes must be the same length"),
        (lambda: StagingArea([tf.int32], names=["a", "b"]), "names must be the same length"),
        (lambda: StagingArea([tf.int32], shared_name=7), "shared_name must be a string"),
        (lambda: StagingArea([tf.int32, tf.int32]).put([1]), "an entry has 2 components, not 1"),
        (lambda: StagingArea([tf.int32], shapes=[[2]]).put([1]), r"component 0 has the shape \(\), not \(2,\)"),
        (lambda: StagingArea([tf.int32], names=["a"]).put({"b": 1}), "no component named 'b'"),
        (lambda: StagingArea([tf.int32], names=["a"]).put([1]), "must be a dictionary"),
        (lambda: StagingArea([tf.int32]).put({"a": 1}), "must be a list"),
        (lambda: MapStagingArea([tf.int32]).put(1, [1], indices=[4]), "no component 4"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
