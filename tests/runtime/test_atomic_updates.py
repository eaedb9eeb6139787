"""Updates that take several operations: which they are, and that those of several workers do not mix."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.flat_program import FlatProgram
from dtf.run.executor.instructions import read_graph
from dtf.testing import LocalCluster
from tests.interop.synchronous import together

ROWS, WIDTH = 4000, 32


@pytest.fixture(params=[False, True], ids=["reference", "resource"])
def use_resource(request):
    return request.param


def variable(name, use_resource, shape=(ROWS, WIDTH)):
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer(), use_resource=use_resource)


def program(graph):
    made = FlatProgram(read_graph(graph.as_graph_def(), {}))
    ops = [{made.instructions[index].op for index in segment.instructions} for segment in made.segments]
    return [(segment.is_update, found) for segment, found in zip(made.segments, ops, strict=True)]


def kept_apart(build, use_resource):
    """Whether any part of what `build(variable, what makes another)` makes is."""
    with tf.Graph().as_default() as graph:
        build(variable("a", use_resource), lambda: variable("b", use_resource))
        return any(is_update for is_update, _ in program(graph))


def test_what_is_made_of_a_variable_and_assigned_to_it_is_kept_apart(use_resource):
    assert kept_apart(lambda a, _: a.assign(a * 0.5), use_resource)
    assert kept_apart(lambda a, _: a.assign(tf.sqrt(a + 1.0)), use_resource)
    assert not kept_apart(lambda a, b: a.assign(b() * 0.5), use_resource)
    assert not kept_apart(lambda a, _: a.assign_add(tf.ones([ROWS, WIDTH])), use_resource)


def test_a_change_that_is_made_of_another_is_kept_apart(use_resource):
    assert kept_apart(lambda a, b: b().assign_sub(a.assign_add(tf.ones([ROWS, WIDTH])) * 0.5), use_resource)
    assert not kept_apart(lambda a, _: a.assign_add(a * 2.0), use_resource)


def test_the_update_of_a_common_optimizer_needs_no_more_than_the_variables_lock(use_resource):
    def build(a, b):
        loss = tf.reduce_sum(a) + tf.reduce_sum(tf.gather(b(), [1]))
        for optimizer in (tf.train.GradientDescentOptimizer(0.1), tf.train.AdagradOptimizer(0.1)):
            optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())

    assert not kept_apart(build, use_resource)


def late_update(use_resource, wanted_elsewhere):
    with tf.Graph().as_default() as graph:
        a, b = variable("a", use_resource), variable("b", use_resource)
        queue = tf.FIFOQueue(-1, [tf.float32, tf.float32], shapes=[[ROWS, WIDTH], []])
        more, _ = queue.dequeue()
        _, rate = queue.dequeue()
        mean = a.assign_add(more)
        b.assign_sub(rate * mean)
        if wanted_elsewhere:
            queue.enqueue([tf.identity(mean), rate])
        return program(graph)


def test_the_parts_of_an_update_wait_for_what_comes_last(use_resource):
    parts = [segment for segment in late_update(use_resource, False) if segment[0]]
    assert len(parts) == 1
    assert {"AssignVariableOp", "Assign"} & parts[0][1] == set()
    assert len([op for op in parts[0][1] if op.startswith("Assign")]) == 2


def test_what_is_added_behind_an_assignment_waits_and_the_assignment_does_not(use_resource):
    """As in a sparse Adam, whose slots decay before rows are added to them."""
    with tf.Graph().as_default() as graph:
        a, b = variable("a", use_resource), variable("b", use_resource)
        queue = tf.FIFOQueue(-1, [tf.float32, tf.float32], shapes=[[1, WIDTH], []])
        rows, _ = queue.dequeue()
        _, rate = queue.dequeue()
        with tf.control_dependencies([a.assign(a * 0.5)]):
            if use_resource:
                added = tf.raw_ops.ResourceScatterAdd(resource=a.handle, indices=[3], updates=rows)
                with tf.control_dependencies([added]):
                    mean = a.read_value()
            else:
                mean = tf.scatter_add(a, [3], rows)
        b.assign_sub(rate * mean)
        parts = [found for is_update, found in program(graph) if is_update]
    apart = [{op for op in part if "Scatter" in op or "AssignSub" in op} for part in parts]
    assert [len(found) for found in apart if found] == [2]
    assert any({"AssignVariableOp", "Assign"} & part for part, found in zip(parts, apart, strict=True) if not found)


def test_none_waits_whose_value_may_be_what_is_waited_for(use_resource):
    apart = [found for _, found in late_update(use_resource, True)]
    assert not any(len([op for op in found if op.startswith("Assign")]) == 2 for found in apart)


def test_no_workers_update_is_lost_or_seen_half(use_resource):
    """Sparse Adam decays whole slots, adds to their rows, and steps by their quotient, which is bounded."""
    steps, rate, start = 60, 0.01, threading.Event()
    largest: list[float] = []

    def work(index):
        with tf.Graph().as_default():
            setter = tf.train.replica_device_setter(
                worker_device=f"/job:worker/task:{index}", cluster=cluster.cluster_spec
            )
            # With two ps the powers of the betas are on another than the table.
            with tf.device(setter):
                tf.train.get_or_create_global_step()
                tables = [variable(f"t{number}", use_resource) for number in range(2)]
                indices, wanted = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, WIDTH])
                loss = tf.add_n([tf.reduce_mean(tf.square(tf.gather(table, indices) - wanted)) for table in tables])
                train_op = tf.train.AdamOptimizer(rate).minimize(loss)
            with tf.Session(cluster.target("worker", index)) as session:
                if index == 0:
                    session.run(tf.global_variables_initializer())
                    start.set()
                start.wait(30)
                random = np.random.RandomState(index)
                for _ in range(steps):
                    feed = {indices: random.randint(0, ROWS, 64), wanted: random.normal(size=(64, WIDTH))}
                    session.run(train_op, feed)
                largest.extend(float(np.abs(value).max()) for value in session.run(tables))

    with LocalCluster({"ps": 2, "worker": 2}) as cluster:
        together(lambda: work(0), lambda: work(1))
    assert len(largest) == 4
    # No step is longer: a mean is at most the root of the mean square, times sqrt((1 - beta1)**2 / (1 - beta2)).
    assert max(largest) < 2 * steps * rate * 3.2
