"""Small variables that are updated together must move exactly as each would alone."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor import flat_program
from dtf.run.executor.executor import Executor, local_step, run_graph_def
from dtf.run.executor.flat_program import FlatProgram
from dtf.wire import dtypes, errors
from dtf.wire.tensor_shape import TensorShape
from tests.runtime.graphs import GraphBuilder

SHAPES = [(3,), (), (4, 5), (1,), (7, 1, 2), (90, 91)]
OPTIMIZERS = {
    "Adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "ProximalAdagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered RMSProp": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
}
F32 = dtypes.float32


@pytest.fixture
def joined(monkeypatch) -> list[str]:
    """The names of the nodes that joint updates have absorbed, of all programs."""
    seen: list[str] = []

    def watched(instructions):
        result = joint(instructions)
        seen.extend(instructions[each.index].name for each in result[: len(instructions)] if each.joined_to is not None)
        return result

    joint = flat_program.with_joint_updates
    monkeypatch.setattr(flat_program, "with_joint_updates", watched)
    return seen


def moved(optimizer: str, shapes, dtype, use_resource: bool, steps: int = 2) -> list[np.ndarray]:
    """The variables and their slots after some steps, in one graph."""
    with tf.Graph().as_default(), tf.Session() as session:
        make, pairs = OPTIMIZERS[optimizer](), []
        for number, shape in enumerate(shapes):
            start = np.random.RandomState(len(shape) + sum(shape)).standard_normal(shape).astype(dtype)
            variable = tf.get_variable(f"v{number}", initializer=start, use_resource=use_resource)
            pairs.append((tf.constant(np.cos(np.arange(start.size)).reshape(shape).astype(dtype)), variable))
        train = make.apply_gradients(pairs)
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        slots = [make.get_slot(v, name) for name in make.get_slot_names() for _, v in pairs]
        return session.run([*(v for _, v in pairs), *slots])


CASES = [*((name, "float32", False) for name in OPTIMIZERS), ("Adam", "float64", True), ("Momentum", "float32", True)]


@pytest.mark.parametrize("optimizer, dtype, use_resource", CASES)
def test_variables_of_all_shapes_and_their_slots_move_as_each_does_alone(optimizer, dtype, use_resource, joined):
    together = moved(optimizer, SHAPES, dtype, use_resource)
    assert len(joined) >= len(SHAPES)
    joined.clear()
    for number in (1, 2, 5):
        alone = moved(optimizer, [SHAPES[number]], dtype, use_resource)
        for one, other in zip(alone, together[number :: len(SHAPES)], strict=True):
            np.testing.assert_array_equal(one, other)
    assert not joined


def test_updates_of_other_scalars_and_of_large_variables_are_not_joined(joined):
    with tf.Graph().as_default(), tf.Session() as session:
        small = [tf.get_variable(f"small{number}", [4]) for number in range(3)]
        large = [tf.get_variable(f"large{number}", [200, 100]) for number in range(2)]
        fast, slow = tf.train.GradientDescentOptimizer(0.5), tf.train.GradientDescentOptimizer(0.25)
        train = [fast.apply_gradients([(tf.ones(v.shape), v) for v in [*small[:1], *large]])]
        train.append(slow.apply_gradients([(tf.ones(v.shape), v) for v in small[1:]]))
        session.run(tf.global_variables_initializer())
        before = session.run(small)
        session.run(train)
        after = session.run(small)
    assert len(joined) == 2
    assert [(one - other).tolist() for one, other in zip(before, after, strict=True)] == [
        pytest.approx([rate] * 4, abs=1e-6) for rate in (0.5, 0.25, 0.25)
    ]


def updates(g: GraphBuilder, shapes: list[list[int]], gradients: list[list[int]], after: dict[int, int]) -> list[str]:
    """Descents of variables, the one of a key of `after` behind the one of its value."""
    rate, names = g.const(np.float32(0.5)), []
    for number, (shape, size) in enumerate(zip(shapes, gradients, strict=True)):
        variable = g.node("VariableV2", name=f"v{number}", dtype=F32, shape=TensorShape(shape))
        gradient = g.const(np.ones(size, np.float32))
        waits = [f"^u{after[number]}"] if number in after else []
        names.append(g.node("ApplyGradientDescent", variable, rate, gradient, *waits, name=f"u{number}", T=F32))
    return names


def test_updates_that_come_one_after_another_are_not_joined(joined):
    g = GraphBuilder()
    updates(g, [[2]] * 4, [[2]] * 4, {1: 0, 3: 2})
    FlatProgram(Executor(g.graph_def)._instructions)
    assert set(joined) == {"u0", "u2"}


def test_one_variable_that_two_updates_change_is_joined_once(joined):
    g = GraphBuilder()
    rate, gradient = g.const(np.float32(0.5)), g.const(np.ones(2, np.float32))
    variables = [g.node("VariableV2", name=name, dtype=F32, shape=TensorShape([2])) for name in ("v", "w")]
    for number, variable in enumerate([variables[0], variables[0], variables[1]]):
        g.node("ApplyGradientDescent", variable, rate, gradient, name=f"u{number}", T=F32)
    FlatProgram(Executor(g.graph_def)._instructions)
    assert set(joined) == {"u0", "u2"}


@pytest.mark.parametrize("value, message", [(np.ones(3, np.float32), "same shape"), (None, "uninitialized value v1")])
def test_an_update_that_fails_names_its_own_node_and_the_others_take_place(value, message, joined):
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.get_variable(f"v{number}", [2], initializer=tf.zeros_initializer()) for number in range(2)]
        gradients = [tf.ones([2]), tf.placeholder(tf.float32)]
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables, strict=True))
        session.run(variables[0].initializer)
        if value is not None:
            session.run(variables[1].initializer)
        with pytest.raises(errors.OpError, match=message) as failed:
            session.run(train, {gradients[1]: np.ones(2, np.float32) if value is None else value})
        assert failed.value.op.name == "GradientDescent/update_v1/ApplyGradientDescent"
        assert session.run(variables[0]).tolist() == [-1, -1]
    assert len(joined) == 2


def test_what_comes_after_single_updates_comes_after_the_joint_one(joined):
    g = GraphBuilder()
    names = updates(g, [[2]] * 3, [[2]] * 3, {})
    for number in range(3):
        g.node("Assign", f"v{number}", g.const(np.zeros(2, np.float32)), name=f"begin{number}", T=F32)
    reads = [g.node("Identity", f"v{number}", f"^{names[number]}", name=f"read{number}", T=F32) for number in range(3)]

    step = local_step()  # whose state both runs use
    resources, session = step.resources, step.session
    run_graph_def(g.graph_def, [], targets=["begin0", "begin1", "begin2"], resources=resources, session=session)
    found = run_graph_def(g.graph_def, [f"{name}:0" for name in reads], resources=resources, session=session)
    assert [each.tolist() for each in found] == [[-0.5, -0.5]] * 3
    assert set(joined) == set(names)
