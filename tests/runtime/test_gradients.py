"""The reverse walk: where gradients go, add up, stop, and what is said when there is none."""

from __future__ import annotations

import numpy as np
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


def test_gradients_of_several_uses_add_up():
    x = tf.placeholder(tf.float32, [])
    [grad] = tf.gradients(x * x + 3.0 * x + tf.exp(x), x)
    assert values(grad, {x: 1.0}) == pytest.approx(2 + 3 + np.e)


def test_targets_are_summed_with_their_weights():
    x = tf.placeholder(tf.float32, [2])
    grads = tf.gradients([x * 2.0, x * 3.0], [x], [tf.constant([1.0, 1.0]), tf.constant([0.0, 10.0])])
    assert values(grads[0], {x: [5.0, 5.0]}).tolist() == [2.0, 32.0]


def test_what_is_not_connected_has_none_or_zeros():
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [3])
    assert tf.gradients(x, [x, y])[1] is None
    zeros = tf.gradients(x, y, unconnected_gradients=tf.UnconnectedGradients.ZERO)[0]
    assert values(zeros, {y: [1, 2, 3]}).tolist() == [0, 0, 0]
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]


def test_stopped_tensors_are_constants():
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0
    assert values(tf.gradients(y * x, x, stop_gradients=[y])[0], {x: 3.0}) == 6.0
    assert values(tf.gradients(tf.stop_gradient(y) * x, x)[0], {x: 3.0}) == 6.0


def test_an_intermediate_tensor_can_be_a_source():
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0
    grads = tf.gradients(y * y, [x, y])
    assert values(grads, {x: 3.0}) == [24.0, 12.0]


def test_variables_of_both_kinds_get_gradients():
    v = tf.Variable([1.0, 2.0])
    r = tf.Variable([3.0, 4.0], use_resource=True)
    assert [g.tolist() for g in values(tf.gradients(tf.reduce_sum(v * r), [v, r]))] == [[3.0, 4.0], [1.0, 2.0]]


def test_rows_that_are_looked_up_get_slices_and_slices_add_up():
    v = tf.Variable(tf.ones([4, 2]))
    rows = tf.gather(v, [0, 2])
    [grad] = tf.gradients(rows, v)
    assert isinstance(grad, tf.IndexedSlices)
    [grad] = tf.gradients([rows, tf.gather(v, [2])], v)
    assert isinstance(grad, tf.IndexedSlices)
    assert values(tf.convert_to_tensor(grad)).tolist() == [[1, 1], [0, 0], [2, 2], [0, 0]]
    [grad] = tf.gradients([rows, v], v)
    assert isinstance(grad, tf.Tensor)
    assert values(grad).tolist() == [[2, 2], [1, 1], [2, 2], [1, 1]]


def test_an_op_without_gradient_is_named():
    x = tf.placeholder(tf.float32, [3], name="x")
    op = x.graph.create_op("SelfMade", [x], [tf.float32], name="mine")
    with pytest.raises(LookupError, match=r"No gradient defined for operation 'mine' \(op type: SelfMade\)"):
        tf.gradients(op.outputs[0], x)


def test_a_gradient_can_be_registered_and_put_in_the_place_of_another(graph):
    @tf.RegisterGradient("TenfoldForTest")
    def tenfold(op, grad):
        return [grad * 10.0]

    x = tf.placeholder(tf.float32, [])
    with graph.gradient_override_map({"Identity": "TenfoldForTest"}):
        y = tf.identity(x)
    assert values(tf.gradients(y, x)[0], {x: 1.0}) == 10.0
    with pytest.raises(KeyError, match="Registering two gradient with name 'TenfoldForTest'!"):
        tf.RegisterGradient("TenfoldForTest")(lambda op, grad: [grad])


def test_wrong_arguments_are_refused():
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(ValueError, match="Passed 2 grad_ys for 1 ys"):
        tf.gradients(x, x, [None, None])
    with pytest.raises(TypeError, match="must be floating"):
        tf.gradients(x, x, [tf.constant([1, 2])])


def test_gradients_can_be_put_beside_their_operations():
    with tf.device("/job:ps/task:0"):
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.exp(x)
    with tf.device("/job:worker"):
        [near] = tf.gradients(y, x, colocate_gradients_with_ops=True)
        [far] = tf.gradients(y, x)
    assert near.device == "/job:ps/task:0" and far.device == "/job:worker"


def test_second_derivatives():
    x = tf.placeholder(tf.float32, [])
    [first] = tf.gradients(x**3.0, x)
    [second] = tf.gradients(first, x)
    assert values(second, {x: 2.0}) == pytest.approx(12.0)


def test_gated_gradients_are_the_same():
    x, w = tf.placeholder(tf.float32, [1, 2]), tf.placeholder(tf.float32, [2, 1])
    grads = tf.gradients(tf.matmul(x, w), [x, w], gate_gradients=True)
    assert {op.type for op in grads[0].op.control_inputs} == {"NoOp"}
    assert values(grads[0], {x: [[1, 2]], w: [[3], [4]]}).tolist() == [[3, 4]]


@pytest.mark.parametrize("taken", [True, False])
def test_a_gradient_goes_through_the_branch_that_was_taken(taken):
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    v = tf.Variable([3.0, 4.0], use_resource=True)
    y = tf.cond(p, lambda: x * v, lambda: tf.square(x))
    found = values(tf.gradients(y, [x, v]), {x: [1.0, 2.0], p: taken})
    assert found[0].tolist() == ([3.0, 4.0] if taken else [2.0, 4.0])
    assert found[1].tolist() == ([1.0, 2.0] if taken else [0.0, 0.0])


def test_a_gradient_goes_back_around_a_loop():
    x, w = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * w), [0, x])
    found = values(tf.gradients(y, [x, w]), {x: [1.0, 2.0], w: [2.0, 0.5]})
    assert found[0].tolist() == [16.0, 0.0625]
    assert found[1].tolist() == [32.0, 4 * 2 * 0.125]


def test_a_loop_that_never_runs_hands_the_gradient_through():
    x = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, tf.exp(y)), [0, x])
    assert values(tf.gradients(y, x)[0], {x: [1.0, 2.0]}).tolist() == [1.0, 1.0]


def test_loops_in_loops_and_branches_in_loops_have_the_gradient_of_differences():
    x, w = tf.placeholder(tf.float64, [3]), tf.placeholder(tf.float64, [3])

    def inner(j, u):
        return j + 1, u * w + tf.cond(tf.equal(j % 2, 0), lambda: tf.sin(u), lambda: u * 0.1)

    def outer(i, y):
        return i + 1, tf.while_loop(lambda j, u: j < i + 1, inner, [0, y])[1]

    y = tf.reduce_sum(tf.while_loop(lambda i, y: i < 3, outer, [0, x])[1])
    grads = tf.gradients(y, [x, w])
    at = {x: np.array([1.0, 2.0, 3.0]), w: np.array([0.5, 1.0, 1.5])}
    with tf.Session() as session:
        for placeholder, grad in zip((x, w), session.run(grads, at), strict=True):
            for index in range(3):
                step = np.eye(3)[index] * 1e-6
                up = session.run(y, {**at, placeholder: at[placeholder] + step})
                down = session.run(y, {**at, placeholder: at[placeholder] - step})
                assert grad[index] == pytest.approx((up - down) / 2e-6, rel=1e-5)


def test_a_loop_variable_may_change_its_shape_around_a_loop():
    x = tf.placeholder(tf.float32, [None])
    _, y = tf.while_loop(
        lambda i, y: i < 2,
        lambda i, y: (i + 1, tf.concat([y, y * x[0]], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    assert values(tf.gradients(y, x)[0], {x: [2.0]}).tolist() == [21.0]


def test_check_gradient_tells_right_from_wrong(graph):
    from dtf.testing import check_gradient

    @tf.RegisterGradient("WrongForTest")
    def wrong(op, grad):
        return [grad * 2.0]

    x, w = tf.placeholder(tf.float64, [2]), tf.Variable([2.0, 3.0], dtype=tf.float64)
    check_gradient(tf.sin(x) * w, x, {x: [0.3, 0.7]})
    with graph.gradient_override_map({"Sin": "WrongForTest"}):
        y = tf.sin(x)
    with pytest.raises(AssertionError, match=r"the gradient of Sin.*differences give"):
        check_gradient(y, [x], {x: [0.3, 0.7]})
