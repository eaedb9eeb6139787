"""A program of either runtime: variables that loops, branches and functions read after they have written them.

    python variable_programs.py dtf|tensorflow.compat.v1 values.npz

Every read is ordered by edges, so that there is one right result. Writes what each program fetches.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np


def after(tf, before, value):
    """What `value()` makes, once `before` has run."""
    with tf.control_dependencies(before):
        return value()


def loop(tf, count, body, *start):
    """`body(i, ...)` `count` times; an iteration begins when all of the one before is there."""

    def ordered(i, *values):
        made = body(i, *values)
        return after(tf, made, lambda: [i + 1, *[tf.identity(value) for value in made]])

    return tf.while_loop(lambda i, *_: i < count, ordered, [tf.constant(0), *start], parallel_iterations=1)[1:]


def read_after_assign(tf, v, w):
    """What is assigned in an iteration is read in it."""

    def body(i, total):
        assigned = tf.assign(v, tf.fill([2], tf.cast(i, tf.float32)))
        added = after(tf, [assigned], lambda: tf.assign_add(w, v + 0.0))
        return [after(tf, [added], lambda: total + w)]

    return loop(tf, 5, body, tf.zeros([2]))


def squared(tf, v, w):
    return loop(tf, 3, lambda i, _: [after(tf, [tf.assign(v, v * v)], lambda: v + 0.0)], tf.zeros([2]))


def scattered(tf, v, w):
    def body(i, total):
        row = tf.scatter_add(v, [i % 2], [v[1] + 1.0])
        return [after(tf, [row], lambda: total + tf.gather(v, [0, 1]))]

    return loop(tf, 4, body, tf.zeros([2]))


def condition(tf, v, w):
    """A loop that ends by what it writes."""

    def body(i):
        return after(tf, [tf.assign_add(v, [1.0, 1.0])], lambda: i + 1)

    return [tf.while_loop(lambda i: tf.reduce_sum(v) < 20.0, body, [tf.constant(0)], parallel_iterations=1)]


def nested(tf, v, w):
    def inner(j, total):
        return [after(tf, [tf.assign_add(v, [1.0, 2.0])], lambda: total + v)]

    return loop(tf, 3, lambda i, total: loop(tf, 2, inner, total), tf.zeros([2]))


def branch(tf, v, w):
    def taken():
        return after(tf, [tf.assign(v, v * 2.0)], lambda: v + w)

    first = tf.cond(tf.constant(True), taken, lambda: v + 0.0) + 0.0
    with tf.control_dependencies([first]):
        return [first, tf.case([(tf.constant(False), lambda: w + 0.0)], taken)]


def branch_in_loop(tf, v, w):
    def body(i, total):
        def write():
            return after(tf, [tf.assign_add(v, [1.0, 1.0])], lambda: total + v)

        return [tf.cond(tf.equal(i % 2, 0), write, lambda: total - v)]

    return loop(tf, 5, body, tf.zeros([2]))


def loop_in_branch(tf, v, w):
    return [tf.cond(tf.constant(True), lambda: squared(tf, v, w)[0], lambda: tf.zeros([2]))]


def identity_outside(tf, v, w):
    """Another name of the variable, from outside of the loop."""
    name = tf.identity(v) if "ref" in str(v.dtype) else None

    def body(i, total):
        return [after(tf, [tf.assign_add(v, [1.0, 1.0])], lambda: total + (v if name is None else name))]

    return loop(tf, 3, body, tf.zeros([2]))


def read_value(tf, v, w):
    def body(i, total):
        return [after(tf, [tf.assign_add(v, [1.0, 1.0])], lambda: total + v.read_value())]

    return loop(tf, 3, body, tf.zeros([2]))


def optimized(tf, v, w):
    """Training steps in a loop."""
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)

    def body(i, _):
        step = optimizer.minimize(tf.reduce_sum(tf.square(v - w)), var_list=[v])
        return [after(tf, [step], lambda: v + 0.0)]

    return loop(tf, 4, body, tf.zeros([2]))


def averaged(tf, v, w):
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([tf.assign(v, v * 4.0)]):
        update = average.apply([v])
    return [after(tf, [update], lambda: average.average(v) + 0.0)]


def size_of_a_queue(tf, v, w):
    """What is no variable is asked in every iteration too."""
    queue = tf.FIFOQueue(9, tf.int32, [[]])

    def body(i, total):
        return [after(tf, [queue.enqueue(i)], lambda: total + queue.size())]

    return loop(tf, 4, body, tf.constant(0))


def size_of_a_table(tf, v, w):
    table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64)

    def body(i, total):
        key = tf.cast(tf.reshape(i, [1]), tf.int64)
        insert = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=key, values=key)
        return [after(tf, [insert], lambda: total + tf.raw_ops.LookupTableSizeV2(table_handle=table))]

    return loop(tf, 4, body, tf.constant(0, tf.int64))


def random_numbers_differ(tf, v, w):
    def body(i, distinct):
        return [tf.concat([distinct, tf.random_uniform([1])], 0)]

    i, numbers = tf.while_loop(
        lambda i, _: i < 5,
        lambda i, numbers: [i + 1, body(i, numbers)[0]],
        [tf.constant(0), tf.zeros([0])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    return [tf.size(tf.unique(numbers)[0])]


PROGRAMS = [
    read_after_assign, squared, scattered, condition, nested, branch, branch_in_loop, loop_in_branch, identity_outside,
    read_value, optimized, averaged, size_of_a_queue, size_of_a_table, random_numbers_differ,
]  # fmt: skip


def outcomes(tf, target="", devices=("", "")) -> dict[str, np.ndarray]:
    """What every program fetches, with both kinds of variables; these lie on the devices given."""
    found = {}
    for program in PROGRAMS:
        for use_resource in (False, True):
            with tf.Graph().as_default(), tf.device(devices[0]):
                with tf.variable_scope("", use_resource=use_resource):
                    v, w = (
                        tf.get_variable(name, initializer=tf.constant(value))
                        for name, value in (("v", [2.0, 3.0]), ("w", [1.0, -1.0]))
                    )
                with tf.device(devices[1]):
                    fetches = program(tf, v, w)
                with tf.Session(target) as session:
                    session.run(tf.global_variables_initializer())
                    values = [*session.run(fetches, options=tf.RunOptions(timeout_in_ms=60000))]
                    values += session.run([v, w])
            kind = "resource" if use_resource else "reference"
            found.update({f"{program.__name__}/{kind}/{number}": value for number, value in enumerate(values)})
    return found


def main(runtime: str, path: str) -> None:
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    np.savez(path, **outcomes(tf))
    print(json.dumps({}))


if __name__ == "__main__":
    main(*sys.argv[1:])
