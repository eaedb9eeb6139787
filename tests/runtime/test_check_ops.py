"""Checks as ops must fail with the values when they run, or at once when the values are known."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.executor import run_graph_def
from dtf.wire import errors


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def passes(check, x, value) -> bool:
    """Whether the check lets the step run on."""
    with tf.control_dependencies([check]):
        after = tf.identity(x)
    try:
        run_graph_def(after.graph.as_graph_def(), [after.name], {x.name: value})
    except errors.InvalidArgumentError:
        return False
    return True


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda x: tf.assert_equal(x, 2.0), 2, 1),
        (lambda x: tf.assert_none_equal(x, 2.0), 1, 2),
        (lambda x: tf.assert_less(x, 2.0), 1, 2),
        (lambda x: tf.assert_less_equal(x, 2.0), 2, 3),
        (lambda x: tf.assert_greater(x, 2.0), 3, 2),
        (lambda x: tf.assert_greater_equal(x, 2.0), 2, 1),
        (tf.assert_positive, 1, 0),
        (tf.assert_negative, -1, 0),
        (tf.assert_non_negative, 0, -1),
        (tf.assert_non_positive, 0, 1),
        (lambda x: tf.assert_near(x, 1.0), 1 + 1e-7, 1.1),
    ],
)
def test_a_check_fails_when_one_element_fails(check, good, bad):
    x = tf.placeholder(tf.float32, [2])
    made = check(x)
    assert passes(made, x, np.array([good, good], np.float32))
    assert not passes(made, x, np.array([good, bad], np.float32))


def test_known_values_fail_at_once():
    with pytest.raises(errors.InvalidArgumentError, match="Condition x == y did not hold"):
        tf.assert_equal([1, 2], [1, 3])


def test_known_ranks_and_types_fail_at_once():
    x = tf.zeros([2, 3])
    with pytest.raises(ValueError, match="must have rank 1.  Received rank 2"):
        tf.assert_rank(x, 1)
    with pytest.raises(ValueError, match="must have rank at least 3"):
        tf.assert_rank_at_least(x, 3)
    with pytest.raises(ValueError, match="must have rank in 0 or 1"):
        tf.assert_rank_in(x, [0, 1])
    with pytest.raises(TypeError, match="must be of type"):
        tf.assert_type(x, tf.int32)
    with pytest.raises(TypeError, match="to be integer type"):
        tf.assert_integer(x)
    with pytest.raises(ValueError, match="Expected scalar shape"):
        tf.assert_scalar(x)


def test_unknown_ranks_are_checked_when_they_are_known():
    x = tf.placeholder(tf.float32)
    check = tf.assert_rank_in(x, [0, 2])
    assert passes(check, x, np.float32(1)) and not passes(check, x, np.zeros(3, np.float32))


def test_order_is_seen_across_rows():
    increasing, level = tf.constant([[1, 2], [3, 4]]), tf.constant([1, 1, 2])
    fetches = [
        tf.is_strictly_increasing(increasing), tf.is_strictly_increasing(level), tf.is_non_decreasing(level),
        tf.is_non_decreasing([2, 1]),
    ]  # fmt: skip
    values = run_graph_def(level.graph.as_graph_def(), [each.name for each in fetches], {})
    assert [bool(value) for value in values] == [True, False, True, False]


def test_the_first_tensor_that_is_not_finite_is_named():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        root = tf.sqrt(x, name="root")
        tf.cast(tf.log(root, name="logarithm"), tf.int32)
        check = tf.add_check_numerics_ops()
        with tf.Session() as session:
            session.run(check, {x: 4.0})
            for value, words in [(-1.0, "root:0 : Tensor had NaN"), (0.0, "logarithm:0 : Tensor had -?Inf")]:
                with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                    session.run(check, {x: value})
        names = [op.name for op in graph.get_operations() if "CheckNumerics" in op.name or "group" in op.name]
        assert names == ["CheckNumerics", "CheckNumerics_1", "CheckNumerics_2", "group_deps"]


def test_tensors_that_are_not_always_there_cannot_be_checked():
    with tf.Graph().as_default():
        tf.cond(tf.placeholder(tf.bool, []), lambda: tf.constant(1.0), lambda: tf.constant(2.0))
        with pytest.raises(ValueError, match=r"inside of a tf.cond\(\)"):
            tf.add_check_numerics_ops()
