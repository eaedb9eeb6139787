"""Optimizers: what minimize adds to the graph, slots, sparse gradients. Their arithmetic is op_cases/training's."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.5),
    "AdagradDA": lambda: tf.train.AdagradDAOptimizer(1.0, tf.train.get_or_create_global_step()),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.05),
    "CenteredRMSProp": lambda: tf.train.RMSPropOptimizer(0.05, centered=True, epsilon=1e-3),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.5),
    "Adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-2),
    "ProximalGradientDescent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
    "ProximalAdagrad": lambda: tf.train.ProximalAdagradOptimizer(0.5),
}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(*fetches, steps: int = 1):
    """Initializes the variables of the default graph, runs the first fetch some times, then fetches the rest."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(fetches[0])
        return session.run(list(fetches[1:]))


def weights(use_resource: bool = False, name: str = "w"):
    return tf.get_variable(name, initializer=np.float32([[1, -2], [3, 0.5]]), use_resource=use_resource)


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_finds_the_minimum_of_a_bowl(name: str, use_resource: bool):
    w = weights(use_resource)
    loss = tf.reduce_sum(tf.square(w - 1.0))
    before, after = run(tf.no_op(), loss)[0], run(OPTIMIZERS[name]().minimize(loss), loss, steps=60)[0]
    assert after < before / 10


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"Adam"}))
def test_a_sparse_gradient_with_a_row_twice_counts_as_the_sum(name: str, use_resource: bool):
    start = np.float32([[1, -2], [3, 0.5], [0.25, 4]])
    results = []
    for rows, values in (([1, 1], [[1.0, 2], [3, -1]]), ([1], [[4.0, 1]])):
        with tf.Graph().as_default():
            w = tf.get_variable("w", initializer=start, use_resource=use_resource)
            gradient = tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant([3, 2]))
            results.append(run(OPTIMIZERS[name]().apply_gradients([(gradient, w)]), w, steps=3)[0])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)
    np.testing.assert_array_equal(results[0][[0, 2]], start[[0, 2]])


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_adam_takes_a_sparse_gradient_for_a_dense_one(use_resource: bool):
    results = []
    for sparse in (False, True):
        with tf.Graph().as_default():
            w = weights(use_resource)
            gradient = tf.constant([[0.0, 0], [2, -3]])
            if sparse:
                gradient = tf.IndexedSlices(tf.constant([[2.0, -3]]), tf.constant([1]), tf.constant([2, 2]))
            results.append(run(tf.train.AdamOptimizer(0.1).apply_gradients([(gradient, w)]), w, steps=4)[0])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_scalar_is_trained_like_the_element_of_a_vector(name: str):
    scalar, vector = tf.get_variable("s", initializer=3.0), tf.get_variable("v", initializer=[3.0])
    train = OPTIMIZERS[name]().minimize(tf.square(scalar - 1.0) + tf.reduce_sum(tf.square(vector - 1.0)))
    one, (other,) = run(train, scalar, vector, steps=5)
    assert one == other != 3


def test_slots_are_named_after_the_variable_and_the_optimizer():
    with tf.variable_scope("model"):
        w = weights()
    optimizer = tf.train.AdamOptimizer(name="MyAdam")
    optimizer.minimize(tf.reduce_sum(w * w))
    assert optimizer.get_name() == "MyAdam"
    assert optimizer.get_slot_names() == ["m", "v"]
    assert [optimizer.get_slot(w, name).op.name for name in ("m", "v")] == ["model/w/MyAdam", "model/w/MyAdam_1"]
    assert optimizer.get_slot(w, "none") is None
    names = [variable.op.name for variable in optimizer.variables()]
    assert names == ["beta1_power", "beta2_power", "model/w/MyAdam", "model/w/MyAdam_1"]
    assert tf.trainable_variables() == [w]


def test_updates_are_on_the_variables_device_and_the_step_after_them(graph):
    with tf.device("/job:ps/task:1"):
        w = weights()
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
    with tf.device("/job:worker/task:2"):
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(w * w), global_step=step)
    update = graph.get_operation_by_name("Momentum/update_w/ApplyMomentum")
    assert update.device == "/job:ps/task:1"
    assert graph.get_operation_by_name("w/Momentum").device == "/job:ps/task:1"
    assert (train.name, train.type, train.device) == ("Momentum", "AssignAdd", "/job:ps/task:0")
    group = graph.get_operation_by_name("Momentum/update")
    before = [*train.control_inputs, *(each for tensor in train.inputs for each in tensor.op.control_inputs)]
    assert group in before
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train]


def test_the_global_step_counts_the_updates():
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(weights()), global_step=step)
    assert run(train, step, steps=3) == [3]


def test_gradients_can_be_changed_before_they_are_applied():
    w = weights()
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(w * 5.0))
    clipped = [(tf.clip_by_value(gradient, -1.0, 1.0), variable) for gradient, variable in pairs]
    (value,) = run(optimizer.apply_gradients(clipped), w)
    np.testing.assert_allclose(value, np.float32([[0, -3], [2, -0.5]]))


@pytest.mark.parametrize(
    "gate", [tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_GRAPH]
)
def test_every_way_of_gating_gives_the_same_gradients(gate: int):
    w, other = weights(), weights(name="other")
    pairs = tf.train.GradientDescentOptimizer(1.0).compute_gradients(tf.reduce_sum(w * other), gate_gradients=gate)
    found = run(tf.no_op(), *(gradient for gradient, _ in pairs))
    np.testing.assert_array_equal(found[0], [[1, -2], [3, 0.5]])


def test_variables_without_a_gradient_stay_as_they_are():
    w, other = weights(), weights(name="other")
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(w), var_list=[w, other])
    values = run(train, w, other)
    assert values[0][0, 0] != 1
    np.testing.assert_array_equal(values[1], [[1, -2], [3, 0.5]])
    assert [variable.op.name for variable in tf.global_variables()] == ["w", "other", "w/Momentum"]


def test_a_constraint_holds_after_each_update():
    w = tf.get_variable("w", initializer=[1.0, 2.0], constraint=lambda value: tf.maximum(value, 0.5))
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(tf.constant([3.0, 0.25]), w)])
    np.testing.assert_allclose(run(train, w)[0], [0.5, 1.75])


def test_hyperparameters_may_be_tensors_or_functions():
    w = weights()
    step = tf.train.get_or_create_global_step()
    rate = tf.train.piecewise_constant(step, [0], [1.0, 0.0])
    train = tf.train.MomentumOptimizer(rate, lambda: 0.0).apply_gradients([(tf.ones([2, 2]), w)], global_step=step)
    np.testing.assert_allclose(run(train, w, steps=3)[0], np.float32([[0, -3], [2, -0.5]]))


def test_a_partitioned_variable_is_trained_in_its_pieces():
    w = tf.get_variable(
        "w", [5, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2, axis=0)
    )
    optimizer = tf.train.AdagradOptimizer(0.5)
    train = optimizer.minimize(tf.reduce_sum(tf.nn.embedding_lookup(w, [0, 3])))
    found = run(train, w.as_tensor())[0]
    # With the default strategy "mod" row 3 is row 1 of piece 1, which is row 4 of the whole.
    assert sorted(np.flatnonzero(found[:, 0] != 1)) == [0, 4]
    slots = [optimizer.get_slot(piece, "accumulator") for piece in w]
    assert [slot.op.name for slot in slots] == ["w/part_0/Adagrad", "w/part_1/Adagrad"]
    assert [slot._get_save_slice_info().full_name for slot in slots] == ["w/Adagrad"] * 2
    assert [slot._get_save_slice_info().var_offset for slot in slots] == [[0, 0], [3, 0]]


def test_a_second_minimize_shares_the_slots():
    w = weights()
    optimizer = tf.train.AdamOptimizer()
    optimizer.minimize(tf.reduce_sum(w))
    made = tf.global_variables()
    optimizer.minimize(tf.reduce_sum(w * w))
    assert tf.global_variables() == made


class Signed(tf.train.Optimizer):
    """What a user's own optimizer may override."""

    def _create_slots(self, var_list):
        for variable in var_list:
            self._zeros_slot(variable, "count", self._name)

    def _apply_dense(self, grad, var):
        count = tf.assign_add(self.get_slot(var, "count"), tf.ones_like(grad))
        with tf.control_dependencies([count]):
            return tf.assign_sub(var, tf.sign(grad))

    def _apply_sparse(self, grad, var):
        return self._apply_dense(tf.convert_to_tensor(grad), var)


def test_an_optimizer_can_be_written_by_its_user():
    w = weights()
    optimizer = Signed(use_locking=False, name="Signed")
    train = optimizer.minimize(tf.reduce_sum(w * w))
    value, count = run(train, w, optimizer.get_slot(w, "count"))
    np.testing.assert_allclose(value, [[0, -1], [2, -0.5]])
    np.testing.assert_allclose(count, np.ones((2, 2)))


def test_an_optimizer_says_what_is_wrong():
    w = weights()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.minimize(tf.constant(1.0))
    with pytest.raises(ValueError, match="No variables provided"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        optimizer.compute_gradients(tf.reduce_sum(w), gate_gradients=7)
    with pytest.raises(ValueError, match="No variables to optimize"):
        optimizer.compute_gradients(tf.reduce_sum(w), var_list=[])
    with pytest.raises(ValueError, match="Invalid type"):
        optimizer.minimize(tf.constant(1))
    with pytest.raises(TypeError, match="Argument is not a variable"):
        optimizer.compute_gradients(tf.reduce_sum(w), var_list=["w"])
    with pytest.raises(TypeError, match="Gradient must be"):
        optimizer.apply_gradients([(object(), w)])
    with pytest.raises(ValueError, match="must be positive"):
        tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.0)
    with pytest.raises(ValueError, match="needs to be negative or zero"):
        tf.train.FtrlOptimizer(0.1, learning_rate_power=0.5)
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        tf.train.GradientDescentOptimizer(0.1, name="")


def test_the_global_step_is_found_made_and_checked(graph):
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()
    assert (step.op.name, step.dtype.base_dtype, step.trainable) == ("global_step", tf.int64, False)
    assert tf.train.get_global_step() is step
    assert tf.train.get_or_create_global_step(graph) is step
    with pytest.raises(ValueError, match="already exists"):
        tf.train.create_global_step()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert tf.train.global_step(session, step) == 0
    with pytest.raises(TypeError, match="does not have integer type"):
        tf.train.assert_global_step(tf.get_variable("float", initializer=1.0))
    with pytest.raises(TypeError, match="is not scalar"):
        tf.train.assert_global_step(tf.get_variable("wide", initializer=[1, 2]))
