"""Order, branches and loops: what runs, and what is refused while the graph is built."""

from __future__ import annotations

import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def values(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def test_a_group_gathers_each_devices_part_there(graph):
    with tf.device("/job:ps/task:0"):
        a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    with tf.device("/job:ps/task:1"):
        c = tf.constant(3.0, name="c")
    done = tf.group(a, [b, c], name="done")
    assert [(op.name, op.device) for op in done.control_inputs] == [
        ("done/NoOp", "/job:ps/task:0"),
        ("done/NoOp_1", "/job:ps/task:1"),
    ]
    assert tf.group(name="empty").control_inputs == []
    with pytest.raises(TypeError):
        tf.group(3)


def test_a_tuple_holds_every_tensor_back_until_all_are_there():
    v = tf.Variable(1.0)
    first, none, second = tf.tuple([v.assign(2.0), None, tf.constant(1.0)])
    assert none is None and values(second) == 1.0
    assert {op.name for op in first.op.control_inputs} == {"tuple/group_deps"}
    with pytest.raises(ValueError, match="at least one Tensor"):
        tf.tuple([None])


@pytest.mark.parametrize("taken", [True, False])
def test_only_the_branch_that_is_taken_runs(taken):
    left, right = tf.Variable(0), tf.Variable(0)
    p = tf.placeholder(tf.bool, [])
    result = tf.cond(p, lambda: left.assign_add(1), lambda: right.assign_add(1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(result, {p: taken}) == 1
        assert session.run([left, right]) == ([1, 0] if taken else [0, 1])


def test_branches_return_structures():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    result = tf.cond(p, lambda: {"a": x, "b": (x, [x * 2.0])}, lambda: {"a": x + 1.0, "b": (x, [x * 3.0])})
    assert values(result, {p: False, x: 1.0}) == {"a": 2.0, "b": (1.0, [3.0])}
    assert isinstance(tf.cond(p, lambda: [x], lambda: [x]), tf.Tensor)
    assert isinstance(tf.cond(p, lambda: [x], lambda: [x], strict=True), list)


def test_operations_made_in_branches_wait_for_their_side():
    p = tf.placeholder(tf.bool, [])
    done = tf.cond(p, lambda: tf.Assert(False, ["never"]), lambda: tf.no_op())
    values(done, {p: False})
    with pytest.raises(tf.errors.InvalidArgumentError, match="never"):
        values(done, {p: True})


def test_what_is_wrong_with_branches_is_said():
    p, x = tf.placeholder(tf.bool, []), tf.constant(1.0)
    with pytest.raises(TypeError, match="must not be a Python bool"):
        tf.cond(True, lambda: x, lambda: x)
    with pytest.raises(TypeError, match="true_fn must be callable"):
        tf.cond(p, x, lambda: x)
    with pytest.raises(ValueError, match="must have the same type: float32, int32"):
        tf.cond(p, lambda: x, lambda: tf.constant(1))
    with pytest.raises(ValueError, match="same number of tensors"):
        tf.cond(p, lambda: (x, x), lambda: x)
    with pytest.raises(ValueError, match="true_fn must have a return value"):
        tf.cond(p, lambda: None, lambda: x)


def test_what_is_inside_a_branch_can_be_neither_fed_nor_fetched(graph):
    inside = []

    def branch():
        inside.append(tf.constant(1.0) + 1.0)
        return inside[0]

    tf.cond(tf.placeholder(tf.bool, []), branch, lambda: tf.constant(0.0))
    assert not graph.is_fetchable(inside[0]) and not graph.is_feedable(inside[0])


def test_cases_are_tried_in_order():
    n = tf.placeholder(tf.int32, [])
    pairs = [(n < 3, lambda: tf.constant("small")), (n < 10, lambda: tf.constant("medium"))]
    result = tf.case(pairs, default=lambda: tf.constant("large"))
    with tf.Session() as session:
        assert [session.run(result, {n: value}) for value in (1, 5, 20)] == [b"small", b"medium", b"large"]
        strict = tf.case(pairs, default=lambda: tf.constant("large"), exclusive=True)
        assert session.run(strict, {n: 5}) == b"medium"
        with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
            session.run(strict, {n: 1})
        with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions"):
            session.run(tf.case(pairs), {n: 20})


def test_a_loop_runs_until_its_condition_fails():
    i, total = tf.while_loop(lambda i, total: i < 5, lambda i, total: (i + 1, total + i), [0, 0])
    assert values([i, total]) == [5, 10]
    assert values(tf.while_loop(lambda i: i < 5, lambda i: i + 2, [0])) == 6


def test_a_loop_keeps_the_structure_of_its_variables():
    result = tf.while_loop(
        lambda i, pair: i < 2, lambda i, pair: (i + 1, {"a": pair["b"], "b": pair["a"]}), (0, {"a": 1.0, "b": 2.0})
    )
    i, pair = values(result)
    assert i == 2 and pair == {"a": 1.0, "b": 2.0}


def test_a_loop_stops_after_its_maximum():
    i, x = tf.while_loop(lambda i, x: i < 100, lambda i, x: (i + 1, x * 2), [0, 1], maximum_iterations=3)
    assert values([i, x]) == [3, 8]
    assert values(tf.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=7)) == 7


def test_variables_change_in_a_loop():
    v = tf.Variable(1)

    def body(i):
        with tf.control_dependencies([v.assign_add(i)]):
            return i + 1

    done = tf.while_loop(lambda i: i < 4, body, [0])
    with tf.control_dependencies([done]):
        total = v.read_value()
    assert values(total) == 7


def test_what_is_wrong_with_a_loop_is_said():
    with pytest.raises(ValueError, match="No loop variables"):
        tf.while_loop(lambda: True, lambda: None, [])
    with pytest.raises(ValueError, match="is not an invariant for the loop"):
        tf.while_loop(lambda x: True, lambda x: tf.concat([x, x], 0), [tf.ones([2])])
    with pytest.raises(ValueError, match="same number of elements"):
        tf.while_loop(lambda i, j: i < j, lambda i, j: [i], [0, 1])
    with pytest.raises((TypeError, ValueError), match="float32"):
        tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0])
    with pytest.raises(ValueError, match="not compatible with the initial shape"):
        tf.while_loop(lambda x: True, lambda x: x, [tf.ones([2])], shape_invariants=[tf.TensorShape([3])])


def test_an_assertion_shows_its_data():
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0), ["x is", x])]):
        y = tf.identity(x)
    assert values(y, {x: [1, 2]}).tolist() == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="x is"):
        values(y, {x: [1, -2]})
