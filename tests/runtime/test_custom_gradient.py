"""Gradients that a program gives itself, and second derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


@tf.custom_gradient
def doubled_back(x):
    return tf.square(x), lambda grad: 2.0 * grad


def test_the_gradient_is_the_given_one_and_never_that_of_the_function():
    x = tf.constant([3.0, -1.0])
    y = doubled_back(x)
    (grad,) = tf.gradients(tf.reduce_sum(y * [1.0, 5.0]) + x[0], x)
    found = run([y, grad])
    np.testing.assert_array_equal(found, [[9, 1], [3, 10]])


def test_a_stable_gradient_may_use_what_the_function_computed():
    @tf.custom_gradient
    def log1pexp(x, scale=1.0):
        e = tf.exp(x)
        return tf.log(1 + e) * scale, lambda grad: grad * (1 - 1 / (1 + e)) * scale

    x = tf.constant(100.0)
    (naive,) = tf.gradients(tf.log(1 + tf.exp(x)), x)
    (stable,) = tf.gradients(log1pexp(x, scale=2.0), x)
    assert np.isnan(run(naive)) and run(stable) == 2


def test_several_arguments_and_results_of_which_one_is_not_used():
    @tf.custom_gradient
    def both(x, y):
        return (x + y, x * y), lambda of_sum, of_product: (of_sum * 10.0, of_product + 7.0)

    x, y = tf.constant(2.0), tf.constant(3.0)
    total, product = both(x, y)
    assert run(tf.gradients(total, [x, y])) == [10, 7]
    assert run(tf.gradients(total + product, [x, y])) == [10, 8]
    assert run([total, product]) == [5, 6]


def test_a_custom_gradient_works_in_a_loop():
    x = tf.constant(1.5)
    _, out = tf.while_loop(lambda i, _: i < 3, lambda i, value: (i + 1, doubled_back(value)), [0, x])
    assert run(tf.gradients(out, x)) == [8]
    assert run(out) == pytest.approx(1.5**8)


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_of_the_function_get_gradients_too(use_resource):
    with tf.variable_scope("", use_resource=use_resource):
        w = tf.get_variable("w", initializer=4.0)

    @tf.custom_gradient
    def scaled(x):
        def back(grad, variables=None):
            assert variables == [w]
            return grad * 100.0, [grad * 1000.0]

        return x * w, back

    x = tf.constant(2.0)
    y = scaled(x)
    assert run([y, *tf.gradients(y, [x, w])]) == [8, 100, 1000]


def test_what_does_not_fit_is_named():
    with tf.variable_scope("", use_resource=True):
        w = tf.get_variable("w", initializer=4.0)

    @tf.custom_gradient
    def forgets_variables(x):
        return x * w, lambda grad: grad

    with pytest.raises(TypeError, match="forgets_variables uses the variables .'w'.*'variables'"):
        forgets_variables(1.0)

    @tf.custom_gradient
    def too_many(x):
        return x, lambda grad: (grad, grad)

    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="too_many was expected to return 1 gradients of its arguments"):
        tf.gradients(too_many(x), x)


def test_hessians_are_second_derivatives():
    x = tf.placeholder(tf.float64, [3])
    matrix = np.array([[2.0, 1, 0], [1, 4, -1], [0, -1, 6]])
    y = 0.5 * tf.reduce_sum(x[:, None] * x[None, :] * matrix) + tf.reduce_sum(x**3)
    (found,) = tf.hessians(y, x)
    assert found.shape.as_list() == [3, 3]
    point = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(run(found, {x: point}), matrix + np.diag(6 * point))


def test_hessians_of_matrices_and_of_what_is_linear():
    a, b = tf.constant([[1.0, 2.0]]), tf.constant(3.0)
    of_a, of_b = tf.hessians(tf.reduce_sum(a * a * b), [a, b])
    found = run([of_a, of_b])
    np.testing.assert_array_equal(found[0].reshape(2, 2), 6 * np.eye(2))
    assert found[0].shape == (1, 2, 1, 2) and found[1] == 0
    with pytest.raises(ValueError, match="do not depend"):
        tf.hessians(a, tf.constant(1.0))
