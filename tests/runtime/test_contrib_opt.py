"""tf.contrib.opt: rules of optimizers against the same arithmetic in numpy, and minimizers outside of the graph."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dtf as tf
from dtf.contrib import opt

GRADIENT = np.array([[0.3, -0.2], [0.0, 0.0], [-0.5, 0.4]])
ROWS = [0, 2]
START = np.full((3, 2), 0.5)


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


def after_two_steps(optimizer, is_sparse, use_resource=False):
    variable = tf.get_variable("x", initializer=START.astype(np.float32), use_resource=use_resource)
    gradient = tf.constant(GRADIENT, tf.float32)
    if is_sparse:
        gradient = tf.IndexedSlices(tf.gather(gradient, ROWS), tf.constant(ROWS), tf.constant([3, 2]))
    step = tf.train.get_or_create_global_step()
    train = optimizer.apply_gradients([(gradient, variable)], step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        session.run(train)
        return session.run(variable)


def adamax(g):
    x, m, v = START.copy(), 0.0, 0.0
    for t in (1, 2):
        m, v = 0.9 * m + 0.1 * g, np.maximum(0.999 * v, np.abs(g))
        x -= 0.1 / (1 - 0.9**t) * m / (v + 1e-8)
    return x


def nadam(g):
    x, m, v = START.copy(), 0.0, 0.0
    for t in (1, 2):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= 0.1 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * (0.9 * m + 0.1 * g) / (np.sqrt(v) + 1e-8)
    return x


def lazy(g):
    x, m, v = START.copy(), 0.0, 0.0
    for t in (1, 2):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= 0.1 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
    return x


def signed(factor):
    def rule(g):
        x, m = START.copy(), 0.0
        for t in (0, 1):
            m = 0.9 * m + 0.1 * g
            x -= 0.1 * factor(np.sign(g) * np.sign(m) * 0.5**t) * g
        return x

    return rule


def lars(g):
    x, accumulated = START.copy(), 0.0
    for _ in range(2):
        norm = np.linalg.norm(x)
        ratio = 0.001 * norm / (np.linalg.norm(g) + 0.0001 * norm)
        accumulated = 0.9 * accumulated + (g + 0.0001 * x) * 0.1 * ratio
        x = x - accumulated
    return x


def decay(step):
    return 0.5 ** tf.cast(step, tf.float32)


RULES = {
    "adamax": (lambda: opt.AdaMaxOptimizer(0.1), adamax, True),
    "nadam": (lambda: opt.NadamOptimizer(0.1), nadam, True),
    "lazy adam": (lambda: opt.LazyAdamOptimizer(0.1), lazy, True),
    "add sign": (lambda: opt.AddSignOptimizer(0.1, sign_decay_fn=decay), signed(lambda s: 1 + s), True),
    "power sign": (lambda: opt.PowerSignOptimizer(0.1, sign_decay_fn=decay), signed(np.exp), True),
    "lars": (lambda: opt.LARSOptimizer(0.1), lars, False),
}


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_rules_are_those_of_the_papers(name, use_resource):
    make, rule, has_sparse = RULES[name]
    for is_sparse in [False, True] if has_sparse else [False]:
        with tf.Graph().as_default():
            found = after_two_steps(make(), is_sparse, use_resource)
        np.testing.assert_allclose(found, rule(GRADIENT), rtol=1e-4, atol=2e-5)


def test_lazy_adam_leaves_rows_without_gradients_alone():
    variable = tf.get_variable("x", initializer=START.astype(np.float32))
    rows = tf.placeholder(tf.int32, [None])
    loss = tf.reduce_sum(tf.gather(variable, rows))
    train = opt.LazyAdamOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {rows: [0]})
        first = session.run(variable)[0].copy()
        session.run(train, {rows: [1]})
        np.testing.assert_array_equal(session.run(variable)[0], first)


def test_a_sign_decay_needs_a_global_step():
    variable = tf.get_variable("x", [2])
    with pytest.raises(ValueError, match="needs global_step"):
        opt.AddSignOptimizer(sign_decay_fn=decay).minimize(tf.reduce_sum(variable))


class Halving(opt.ExternalOptimizerInterface):
    def _minimize(self, initial_val, loss_grad_func, step_callback, optimizer_kwargs, **_):
        for _ in range(optimizer_kwargs["steps"]):
            initial_val = initial_val - 0.25 * loss_grad_func(initial_val)[1]
            step_callback(initial_val)
        return initial_val


def test_an_external_minimizer_gets_one_vector_of_all_variables():
    x, y = tf.Variable([3.0, 4.0]), tf.Variable(5.0)
    loss = tf.reduce_sum(tf.square(x)) + tf.square(y)
    seen, losses = [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        Halving(loss, steps=2).minimize(session, fetches=[loss], step_callback=seen.append, loss_callback=losses.append)
        np.testing.assert_allclose(session.run(x), [0.75, 1.0])
        assert session.run(y) == 1.25
    assert len(seen) == 2 and losses == [50.0, 12.5]


def test_scipy_minimizes_within_bounds_and_constraints():
    pytest.importorskip("scipy", reason="scipy is not installed")
    x = tf.Variable([7.0, 7.0])
    loss = tf.reduce_sum(tf.square(x))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        opt.ScipyOptimizerInterface(loss, options={"maxiter": 100}).minimize(session)
        np.testing.assert_allclose(session.run(x), 0, atol=1e-3)
        opt.ScipyOptimizerInterface(loss, var_to_bounds={x: ([1, 2], np.inf)}).minimize(session)
        np.testing.assert_allclose(session.run(x), [1, 2], atol=1e-3)
        constrained = opt.ScipyOptimizerInterface(loss, equalities=[x[1] - 2.0], inequalities=[x[0] - 1.0])
        constrained.minimize(session)
        np.testing.assert_allclose(session.run(x), [1, 2], atol=1e-3)
