"""Moving averages: their values over a few updates, their names, and what a checkpoint maps to them."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def after_updates(update, average, values, fed, before=()) -> list:
    """The average after each of the fed values; `before` runs ahead of each update."""
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in values:
            session.run(before, {fed: value})
            session.run(update, {fed: value})
            found.append(session.run(average))
    return found


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_the_average_of_a_variable_starts_at_its_value_and_follows_it(use_resource: bool):
    w = tf.get_variable("w", initializer=[4.0, 8.0], use_resource=use_resource)
    average = tf.train.ExponentialMovingAverage(0.75)
    fed = tf.placeholder(tf.float32, [2])
    update = average.apply([w])
    shadow = average.average(w)
    assert (shadow.op.name, average.average_name(w)) == ("w/ExponentialMovingAverage",) * 2
    assert not shadow.trainable
    assert tf.get_collection(tf.GraphKeys.MOVING_AVERAGE_VARIABLES) == [w]
    found = after_updates(update, shadow, [[0.0, 0.0], [4.0, 4.0]], fed, [tf.assign(w, fed)])
    np.testing.assert_allclose(found, [[3, 6], [3.25, 5.5]])


def test_the_average_of_a_tensor_starts_at_zero():
    fed = tf.placeholder(tf.float32, [])
    doubled = tf.multiply(fed, 2.0, name="doubled")
    average = tf.train.ExponentialMovingAverage(0.5, name="Smooth")
    update = average.apply([doubled])
    assert average.average(doubled).op.name == "doubled/Smooth"
    assert tf.get_collection(tf.GraphKeys.MOVING_AVERAGE_VARIABLES) == []
    np.testing.assert_allclose(after_updates(update, average.average(doubled), [2.0, 2.0], fed), [2, 3])


def test_zero_debias_takes_the_start_at_zero_out():
    fed = tf.placeholder(tf.float32, [])
    value = tf.identity(fed, name="value")
    average = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
    update = average.apply([value])
    found = after_updates(update, average.average(value), [3.0, 3.0, 6.0], fed)
    mean = (0.1 * 3 * (0.81 + 0.9) + 0.1 * 6) / (1 - 0.9**3)
    np.testing.assert_allclose(found, [3, 3, mean], rtol=1e-5)


def test_the_number_of_updates_makes_early_averages_quick():
    w = tf.get_variable("w", initializer=0.0)
    step = tf.train.get_or_create_global_step()
    average = tf.train.ExponentialMovingAverage(0.999, num_updates=step)
    fed = tf.placeholder(tf.float32, [])
    found = after_updates(average.apply(), average.average(w), [10.0], fed, [tf.assign(w, fed)])
    np.testing.assert_allclose(found, [9.0])


def test_a_checkpoint_restores_shadows_into_the_variables():
    w = tf.get_variable("w", initializer=0.0)
    tf.get_variable("fixed", initializer=0.0, trainable=False)
    average = tf.train.ExponentialMovingAverage(0.9)
    before = {name: variable.op.name for name, variable in average.variables_to_restore().items()}
    assert before == {"w/ExponentialMovingAverage": "w", "fixed": "fixed"}
    average.apply([w])
    after = {name: variable.op.name for name, variable in average.variables_to_restore().items()}
    assert after == before


def test_only_floating_values_are_averaged():
    with pytest.raises(TypeError, match="must be half, float, or double"):
        tf.train.ExponentialMovingAverage(0.9).apply([tf.get_variable("n", initializer=1)])
    assert tf.train.ExponentialMovingAverage(0.9).average(tf.constant(1.0)) is None


def test_an_average_that_waits_for_the_train_op_sees_its_update():
    """As where reads share the variable's buffer: the same read serves the loss before the update."""
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([4.0])
        train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(tf.square(w)))
        average = tf.train.ExponentialMovingAverage(0.5)
        with tf.control_dependencies([train]):
            update = average.apply([w])
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run([w, average.average(w)]) == [[0.0], [2.0]]
