"""Programs with branches, loops and functions over two tasks, in words that both runtimes understand.

Each is a function of the module `tf` that builds a graph and returns what to run: a function of the session that
gives arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Program = Callable[[Any], Callable[[Any], list[Any]]]
X = np.array([0.3, -0.4], np.float32)


def on(tf, job):
    return tf.device(f"/job:{job}/task:0")


def fetch(tf, fetches, *feeds):
    """Runs `fetches` once for each of `feeds`, initial values first."""
    initialize = tf.global_variables_initializer()

    def run(session):
        session.run(initialize)
        return [value for feed in feeds for value in session.run(fetches, feed)]

    return run


def variable(tf, name, value, use_resource):
    with on(tf, "ps"):
        shape = np.shape(value)
        initializer = tf.constant_initializer(value)
        return tf.get_variable(name, shape, initializer=initializer, use_resource=use_resource)


def loop(tf):
    with on(tf, "worker"):
        x = tf.placeholder(tf.float32, [2])

        def body(i, y):
            with on(tf, "ps"):
                z = y * 2.0
            return i + 1, z - 1.0

        _, y = tf.while_loop(lambda i, y: i < 5, body, [0, x])
        grad = tf.gradients(tf.reduce_sum(y * y), x)
    return fetch(tf, [y, *grad], {x: X})


def nested_loops(tf):
    with on(tf, "worker"):
        x = tf.placeholder(tf.float32, [2])

        def body(i, y):
            with on(tf, "ps"):
                z = y * 2.0

            def inner(k, u):
                with on(tf, "ps"):
                    w = u + 1.0
                return k + 1, w * 1.5

            _, z = tf.while_loop(lambda k, u: k < 2, inner, [0, z])
            return i + 1, z - 1.0

        _, y = tf.while_loop(lambda i, y: i < 3, body, [0, x])
        grad = tf.gradients(y, x)
    return fetch(tf, [y, *grad], {x: X})


def loop_decided_elsewhere(tf):
    x = tf.placeholder(tf.float32, [2])
    with on(tf, "worker"):

        def condition(i, y):
            with on(tf, "ps"):
                return tf.reduce_sum(y) < 100.0

        i, y = tf.while_loop(condition, lambda i, y: (i + 1, y * 2.0), [0, x])
    return fetch(tf, [i, y], {x: np.array([1, 2], np.float32)}, {x: np.array([99, 2], np.float32)})


def variables_in_a_loop(tf):
    counter = variable(tf, "counter", 0.0, False)
    factor = variable(tf, "factor", 1.0, True)
    with on(tf, "worker"):

        def body(i, total):
            counted = tf.assign_add(counter, tf.cast(i, tf.float32))
            with tf.control_dependencies([counted]):
                grown = factor.assign_add(1.0)
                with tf.control_dependencies([grown if isinstance(grown, tf.Operation) else grown.op]):
                    return i + 1, total + counted * factor.read_value()

        _, total = tf.while_loop(lambda i, t: i < 4, body, [0, tf.constant(0.0)], parallel_iterations=1)
        with tf.control_dependencies([total]), on(tf, "ps"):
            after = [counter.read_value(), factor.read_value()]
    return fetch(tf, [total, *after], {})


def gradients_of_variables(tf):
    w, r = variable(tf, "w", [0.7, 0.5], False), variable(tf, "r", [0.3, 0.1], True)
    with on(tf, "worker"):
        x = tf.placeholder(tf.float32, [2])
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y * w + r)), [0, x])
        grads = tf.gradients(y, [x, w, r])
    return fetch(tf, [y, *grads], {x: X})


def branches_in_a_loop(tf):
    with on(tf, "worker"):
        x = tf.placeholder(tf.float32, [2])

        def body(i, y):
            def even():
                with on(tf, "ps"):
                    return y * 3.0

            def odd():
                with on(tf, "ps"):
                    z = y + 1.0
                return z * 0.5

            return i + 1, tf.cond(tf.equal(i % 2, 0), even, odd)

        _, y = tf.while_loop(lambda i, y: i < 5, body, [0, x])
        grad = tf.gradients(y, x)
    return fetch(tf, [y, *grad], {x: X})


def branches(tf):
    with on(tf, "worker"):
        p = tf.placeholder(tf.bool, [])
        x = tf.placeholder(tf.float32, [2])

        def yes():
            with on(tf, "ps"):
                a = x * 2.0
            return a + 1.0

        def no():
            b = x - 5.0
            with on(tf, "ps"):
                return b * b

        y = tf.cond(p, yes, no)
        with on(tf, "ps"):
            z = tf.cond(p, lambda: tf.constant(1.0), lambda: tf.reduce_sum(y))
        grad = tf.gradients(y, x)
    return fetch(tf, [y, z, *grad], {x: X, p: True}, {x: X, p: False})


def loop_in_a_branch(tf):
    with on(tf, "worker"):
        p = tf.placeholder(tf.bool, [])
        x = tf.placeholder(tf.float32, [2])

        def doubled():
            def body(i, y):
                with on(tf, "ps"):
                    return i + 1, y * 2.0

            return tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]

        y = tf.cond(p, doubled, lambda: x)
    return fetch(tf, [y], {x: X, p: True}, {x: X, p: False})


def tensor_arrays(tf):
    w = variable(tf, "w", [[1.0, 0.5], [-0.5, 1.0]], False)
    with on(tf, "worker"):
        x = tf.placeholder(tf.float32, [4, 2])
        inputs = tf.TensorArray(tf.float32, 4).unstack(x)

        def body(i, h, outputs):
            h = tf.tanh(tf.matmul(tf.expand_dims(inputs.read(i), 0) + h, w))
            return i + 1, h, outputs.write(i, h)

        start = [0, tf.zeros([1, 2]), tf.TensorArray(tf.float32, 4)]
        stacked = tf.while_loop(lambda i, *_: i < 4, body, start)[2].stack()
        grads = tf.gradients(tf.reduce_sum(stacked * stacked), [w, x])
    return fetch(tf, [stacked, *grads], {x: np.arange(8, dtype=np.float32).reshape(4, 2) / 10})


def no_iteration(tf):
    with on(tf, "worker"):
        x = tf.placeholder(tf.float32, [2])

        def body(i, y):
            with on(tf, "ps"):
                return i + 1, y * 2.0

        _, y = tf.while_loop(lambda i, y: i < 0, body, [0, x])
        grad = tf.gradients(y, x)
    return fetch(tf, [y, *grad], {x: X})


def cases(tf):
    with on(tf, "worker"):
        k = tf.placeholder(tf.int32, [])
        x = tf.placeholder(tf.float32, [2])

        def branch(number):
            def scaled():
                with on(tf, "ps" if number % 2 else "worker"):
                    return x * float(number + 1)

            return scaled

        y = tf.switch_case(k, [branch(0), branch(1), branch(2)])
        grad = tf.gradients(y, x)
    return fetch(tf, [y, *grad], *({x: X, k: number} for number in (0, 1, 2, 5, -1)))


def variables_in_functions(tf):
    w, n = variable(tf, "w", [0.7, 0.5], True), variable(tf, "n", 0.0, True)
    with on(tf, "worker"):
        p = tf.placeholder(tf.bool, [])
        x = tf.placeholder(tf.float32, [2])

        def body(i, y):
            with tf.control_dependencies([n.assign_add(1.0)]):
                return i + 1, tf.tanh(y * w)

        _, y = tf.while_loop(lambda i, y: i < 3, body, [0, x])
        z = tf.cond(p, lambda: y * w, lambda: y + 1.0)
        grads = [tf.convert_to_tensor(grad) for grad in tf.gradients(z, [x, w])]
        with tf.control_dependencies([z]):
            count = n.read_value()
    return fetch(tf, [y, z, count, *grads], {x: X, p: True}, {x: X, p: False})


def calls(tf):
    """TensorFlow's master refuses a function with a variable of another task; dtf's puts its nodes in place."""
    w, c = variable(tf, "w", [1.5, 2.0], True), variable(tf, "c", 0.0, True)
    with on(tf, "worker"):
        x = tf.placeholder(tf.float32, [2])

        @tf.function
        def inner(a):
            return tf.square(a) * w

        @tf.function
        def outer(a):
            c.assign_add(1.0)
            with on(tf, "ps"):
                b = inner(a) + 1.0
            return b, a - 1.0

        y, z = outer(x)
        grads = [tf.convert_to_tensor(grad) for grad in tf.gradients(y, [x, w])]
        with tf.control_dependencies([y, z]):
            count = c.read_value()
    return fetch(tf, [y, z, count, *grads], {x: X}, {x: X})


SWITCHES = [
    loop, nested_loops, loop_decided_elsewhere, variables_in_a_loop, gradients_of_variables, branches_in_a_loop,
    branches, loop_in_a_branch, tensor_arrays, no_iteration,
]  # fmt: skip
"""Of Switch, Merge, Enter and Exit: both clients build them."""

FUNCTIONS = [
    loop, nested_loops, gradients_of_variables, branches_in_a_loop, branches, loop_in_a_branch, tensor_arrays,
    no_iteration, cases, variables_in_functions, calls,
]  # fmt: skip
"""Of If, While, Case and PartitionedCall, which only TensorFlow's client makes."""


def outcomes(tf: Any, target: str, programs: Iterable[Program], prefix: str = "") -> dict[str, np.ndarray]:
    """Program name/number -> what it gives."""
    found = {}
    for program in programs:
        with tf.Graph().as_default(), tf.container((prefix + program.__name__).replace("_", ".")):
            run = program(tf)
            with tf.Session(target) as session:
                values = run(session)
        found.update({f"{prefix}{program.__name__}/{number}": np.asarray(v) for number, v in enumerate(values)})
    return found


def outcomes_of_functions(tf: Any, target: str, programs: Iterable[Program]) -> dict[str, np.ndarray]:
    """The same with TensorFlow's control flow v2."""
    tf.enable_control_flow_v2()
    try:
        return outcomes(tf, target, programs, "functions_")
    finally:
        tf.disable_control_flow_v2()
