"""tf.contrib's solvers and interpolation against numpy; adversarial training; averaged copies; tf.compat.v2."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def evaluate(fetches, feeds=None):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(fetches, feeds)


def test_an_equation_is_solved_to_the_wanted_error_and_has_a_gradient():
    start = tf.constant([1.0, 0.0], tf.float64)
    times = np.linspace(0.0, 3.0, 7)
    solution, figures = tf.contrib.integrate.odeint(
        lambda y, t: tf.stack([y[1], -y[0]]), start, times, full_output=True
    )
    (gradient,) = tf.gradients(solution[-1, 0], start)
    value, steps, slope = evaluate([solution, figures["num_steps"], gradient])
    np.testing.assert_allclose(value, np.stack([np.cos(times), -np.sin(times)], 1), atol=1e-5)
    np.testing.assert_allclose(slope, [np.cos(3.0), np.sin(3.0)], atol=1e-5)
    assert 0 < steps < 200


@pytest.mark.parametrize(("method", "error"), [("euler", 0.05), ("midpoint", 2e-3), ("rk4", 1e-6)])
def test_an_equation_is_solved_with_fixed_steps(method: str, error: float):
    times = np.linspace(0.0, 1.0, 5)
    solution = tf.contrib.integrate.odeint_fixed(lambda y, t: -y * t, tf.constant(1.0, tf.float64), times, 0.05, method)
    np.testing.assert_allclose(evaluate(solution), np.exp(-(times**2) / 2), atol=error)


def test_a_linear_system_is_solved_by_conjugate_gradients():
    random = np.random.RandomState(0)
    half = random.rand(5, 5)
    matrix, rhs = half @ half.T + np.eye(5), random.rand(5)
    solvers = tf.contrib.solvers
    operator = solvers.util.create_operator(matrix)
    found = solvers.linear_equations.conjugate_gradient(operator, rhs, tol=1e-10)
    wide = random.rand(7, 3)
    least = solvers.least_squares.cgls(solvers.util.create_operator(wide), random.rand(7) * 0 + 1, tol=1e-10)
    one, other = evaluate([found.x, least.x])
    np.testing.assert_allclose(one, np.linalg.solve(matrix, rhs), atol=1e-7)
    np.testing.assert_allclose(other, np.linalg.lstsq(wide, np.ones(7), rcond=None)[0], atol=1e-7)


def test_an_image_is_interpolated_and_falls_to_zero_outside():
    image = np.arange(12.0).reshape(1, 3, 4, 1)
    points = tf.constant([[[1.0, 2.0], [0.5, 0.5], [-0.5, 0.0], [3.0, 2.5], [9.0, 9.0]]], tf.float64)
    result = tf.contrib.resampler.resampler(tf.constant(image), points)
    assert result.shape.as_list() == [1, 5, 1]
    (slope,) = tf.gradients(result[0, 1, 0], points)
    value, slope = evaluate([result, slope])
    np.testing.assert_allclose(value[0, :, 0], [9.0, 2.5, 0.0, 5.5, 0.0])
    np.testing.assert_allclose(slope[0, 1], [1.0, 4.0])


def test_a_generator_learns_the_mean_of_the_data(tmp_path):
    gan = tf.contrib.gan
    tf.set_random_seed(1)

    def generator(noise):
        return noise + tf.get_variable("shift", [], initializer=tf.zeros_initializer())

    def discriminator(data, _):
        return tf.layers.dense(data, 1, kernel_initializer=tf.zeros_initializer())

    model = gan.gan_model(
        generator, discriminator, tf.random_normal([64, 1], 3.0, 0.1, seed=1), tf.random_normal([64, 1], 0, 0.1, seed=2)
    )
    loss = gan.gan_loss(model, gan.losses.modified_generator_loss, gan.losses.modified_discriminator_loss)
    ops = gan.gan_train_ops(
        model, loss, tf.train.GradientDescentOptimizer(0.2), tf.train.GradientDescentOptimizer(0.2)
    )
    step = gan.gan_train(ops, str(tmp_path), hooks=[tf.train.StopAtStepHook(num_steps=40)], save_checkpoint_secs=None)
    reader = tf.train.load_checkpoint(str(tmp_path)) if tf.train.latest_checkpoint(str(tmp_path)) else None
    assert step == 40
    assert reader is None or reader.get_tensor("Generator/shift") > 0.5


def test_elastic_copies_and_the_global_variables_move_towards_each_other():
    getter = tf.contrib.opt.ElasticAverageCustomGetter("")
    with tf.variable_scope("", custom_getter=getter):
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(4.0))
    shared = next(each for each in tf.global_variables() if "global_center_variable" in each.name)
    optimizer = tf.contrib.opt.ElasticAverageOptimizer(
        tf.train.GradientDescentOptimizer(1.0), 1, getter, communication_period=2, moving_rate=0.5
    )
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(w, global_step=step)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(tf.global_variables_initializer())
        seen = []
        for _ in range(2):
            session.run(train)
            seen.append(session.run([w, shared, step]))
        assert seen == [[3.0, 4.0, 0], [3.0, 3.0, 1]]
        session.run(optimizer.get_init_op(0))


def test_the_global_variables_become_the_mean_of_all_copies():
    getter = tf.contrib.opt.ModelAverageCustomGetter("")
    with tf.variable_scope("", custom_getter=getter):
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(4.0))
    shared = next(each for each in tf.global_variables() if "global_center_variable" in each.name)
    optimizer = tf.contrib.opt.ModelAverageOptimizer(
        tf.train.GradientDescentOptimizer(1.0), 1, True, getter, interval_steps=2
    )
    train = optimizer.minimize(w, global_step=tf.train.get_or_create_global_step())
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(tf.global_variables_initializer())
        seen = []
        for _ in range(2):
            session.run(train)
            seen.append(session.run([w, shared]))
    assert seen == [[3.0, 4.0], [2.0, 2.0]]


def test_a_fresh_gradient_is_applied():
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(2.0, use_resource=True)
    optimizer = tf.contrib.opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(1.0), staleness=0)
    train = optimizer.minimize(w * 1.0, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([w, step]) == [1.0, 1]


def test_names_of_compat_v2_have_tensorflow_2s_arguments():
    v2 = tf.compat.v2
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    kept = v2.nn.dropout(x, 0.0)
    chosen = v2.where(x > 2, x, 0.0)
    mean, _ = v2.nn.moments(x, [0])
    largest = v2.argmax(x, 1)
    loss = v2.nn.sparse_softmax_cross_entropy_with_logits([0, 1], x)
    larger = v2.image.resize(x[..., None], [1, 1])
    values = evaluate([kept, chosen, mean, largest, loss, larger[0, 0, 0]])
    assert values[0].tolist() == [[1, 2], [3, 4]]
    assert values[1].tolist() == [[0, 0], [3, 4]]
    assert values[2].tolist() == [2, 3]
    assert values[3].tolist() == [1, 1]
    np.testing.assert_allclose(values[4], [1.3132617, 0.3132617], rtol=1e-5)
    assert values[5] == 2.5
    assert v2.io.FixedLenFeature is tf.io.FixedLenFeature
    assert v2.train.Checkpoint is tf.train.Checkpoint


def test_raw_ops_take_tensorflows_names_of_arguments():
    raw = tf.raw_ops
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    parts = raw.Split(axis=1, value=x, num_split=2)
    chosen = raw.Select(condition=[True, False], x=[1, 2], y=[3, 4])
    values = evaluate([raw.Sum(input=x, axis=0), parts[1], chosen, raw.Where(condition=[False, True])])
    assert [each.tolist() for each in values] == [[4, 6], [[2], [4]], [1, 4], [[1]]]
    assert raw.Sum(input=x, reduction_indices=0).shape.as_list() == [2]


def test_ops_left_out_name_their_substitute():
    with pytest.raises(AttributeError, match=r"^tf.raw_ops.BoostedTreesPredict: boosted trees"):
        _ = tf.raw_ops.BoostedTreesPredict
    with pytest.raises(AttributeError, match=r"^tf.contrib.tensor_forest: "):
        _ = tf.contrib.tensor_forest
