"""A program of either runtime: which assertions of tf.test.TestCase hold for which values, and what sessions keep."""

from __future__ import annotations

import collections
import os

import numpy as np

Point = collections.namedtuple("Point", "x y")
NAN = float("nan")
ARRAY = np.array([1.0, 2.0, 3.0])

CASES = [
    ("assertAllClose", [1.0, 2.0], [1.0, 2.0 + 1e-7]),
    ("assertAllClose", [1.0, 2.0], [1.0, 2.1]),
    ("assertAllClose", ARRAY, ARRAY[:2]),
    ("assertAllClose", ARRAY, 1.0),
    ("assertAllClose", {"a": ARRAY, "b": [1, (2, 3)]}, {"a": ARRAY + 1e-8, "b": [1, (2, 3)]}),
    ("assertAllClose", {"a": ARRAY}, {"b": ARRAY}),
    ("assertAllClose", {"a": ARRAY}, ARRAY),
    ("assertAllClose", Point(1.0, ARRAY), Point(1.0, ARRAY)),
    ("assertAllClose", Point(1.0, ARRAY), Point(1.5, ARRAY)),
    ("assertAllClose", [ARRAY, [1.0]], [ARRAY, [1.0]]),
    ("assertAllClose", [ARRAY, [1.0]], [ARRAY, [2.0]]),
    ("assertAllClose", [ARRAY, [1.0]], [ARRAY]),
    ("assertAllClose", NAN, NAN),
    ("assertAllClose", [NAN, 1.0], [1.0, 1.0]),
    ("assertAllClose", float("inf"), float("inf")),
    ("assertAllClose", ARRAY, ARRAY * 1.001, 1e-2, 0.0),
    ("assertAllClose", np.float16([1.0]), np.float16([1.001])),
    ("assertAllCloseAccordingToType", np.float16([1.0]), np.float16([1.001])),
    ("assertAllCloseAccordingToType", np.float32([1.0]), np.float32([1.001])),
    ("assertAllCloseAccordingToType", [np.float16(1.0), 2.0], [np.float16(1.001), 2.0]),
    ("assertAllEqual", [1, 2], [1, 2]),
    ("assertAllEqual", [1, 2], [1.0, 2.0]),
    ("assertAllEqual", [1, 2], [1, 3]),
    ("assertAllEqual", [1, 2], [[1, 2]]),
    ("assertAllEqual", [NAN, 1.0], [NAN, 1.0]),
    ("assertAllEqual", [b"a", b"b"], [b"a", b"b"]),
    ("assertAllEqual", [b"a", b"b"], [b"a", b"c"]),
    ("assertAllEqual", [True, False], [True, False]),
    ("assertNotAllClose", ARRAY, ARRAY + 1),
    ("assertNotAllClose", ARRAY, ARRAY),
    ("assertNotAllEqual", ARRAY, ARRAY + 1),
    ("assertNotAllEqual", ARRAY, ARRAY),
    ("assertAllGreater", ARRAY, 0.5),
    ("assertAllGreater", ARRAY, 1.0),
    ("assertAllGreaterEqual", ARRAY, 1.0),
    ("assertAllLess", ARRAY, 3.5),
    ("assertAllLess", ARRAY, 3.0),
    ("assertAllLessEqual", ARRAY, 3.0),
    ("assertAllInRange", ARRAY, 1.0, 3.0),
    ("assertAllInRange", ARRAY, 1.0, 3.0, True),
    ("assertAllInRange", ARRAY, 1.0, 3.0, False, True),
    ("assertAllInSet", np.array([1, 2, 2]), [1, 2]),
    ("assertAllInSet", np.array([1, 2, 3]), [1, 2]),
    ("assertNear", 1.0, 1.05, 0.1),
    ("assertNear", 1.0, 1.2, 0.1),
    ("assertArrayNear", [1.0, 2.0], [1.0, 2.05], 0.1),
    ("assertArrayNear", [1.0, 2.0], [1.0, 2.5], 0.1),
    ("assertArrayNear", [1.0, 2.0], [1.0], 0.1),
    ("assertNDArrayNear", ARRAY, ARRAY + 0.01, 0.1),
    ("assertNDArrayNear", ARRAY, ARRAY + 1.0, 0.1),
    ("assertShapeEqual", ARRAY, ARRAY + 1),
    ("assertShapeEqual", ARRAY, ARRAY[:2]),
    ("assertDeviceEqual", "/job:ps/task:1/cpu:0", "/job:ps/task:1/device:CPU:0"),
    ("assertDeviceEqual", "/job:ps/task:1", "/job:ps/task:2"),
    ("assertItemsEqual", [1, 2, 2], [2, 1, 2]),
    ("assertItemsEqual", [1, 2], [2, 2]),
    ("assertLen", [1, 2], 2),
    ("assertLen", [1, 2], 3),
    ("assertEmpty", []),
    ("assertEmpty", [1]),
    ("assertNotEmpty", [1]),
    ("assertNotEmpty", []),
    ("assertStartsWith", "abc", "ab"),
    ("assertStartsWith", "abc", "b"),
]


def holds(case, call) -> bool:
    try:
        call()
    except Exception:  # TensorFlow raises others too for what cannot be compared
        return False
    return True


def outcomes(tf):
    """What every assertion says, and every behaviour does."""

    class Case(tf.test.TestCase):
        def runTest(self):
            pass

    case = Case()
    case.setUp()
    found = [holds(case, lambda call=call: getattr(case, call[0])(*call[1:])) for call in CASES]
    found += tensors(tf, case)
    case.tearDown()
    return found


def tensors(tf, case):
    """Assertions about tensors, sessions, messages, errors and threads."""
    found = [tf.get_default_graph().seed]
    values = tf.constant([1.0, 2.0])
    variable = tf.get_variable("v", initializer=3.0)
    with case.cached_session() as session:
        session.run(variable.initializer)
        session.run(tf.assign_add(variable, 1.0))
        found.append(holds(case, lambda: case.assertAllClose(values, [1.0, 2.0])))
        found.append(holds(case, lambda: case.assertAllEqual(values * 2.0, [1.0, 2.0])))
    with case.cached_session() as again:
        found += [again is session, float(again.run(variable)), tf.get_default_session() is again]
    found.append(float(case.evaluate(variable)))
    with case.session() as other:
        found += [other is session, bool(other.run(tf.is_variable_initialized(variable)))]
        found.append([float(each) for each in case.evaluate({"a": values, "b": [values]})["b"][0]])
    with case.session(graph=tf.Graph()) as elsewhere:
        found.append(elsewhere.graph is tf.get_default_graph())
        made = tf.constant(1)
        found.append(made.graph is elsewhere.graph)
    found.append(holds(case, lambda: case.assertShapeEqual(np.zeros([2]), values)))
    found.append(holds(case, lambda: case.assertDTypeEqual(values.eval(session=session), np.float32)))
    proto = tf.NodeDef(name="a", op="NoOp")
    found.append(holds(case, lambda: case.assertProtoEquals('name: "a" op: "NoOp"', proto)))
    found.append(holds(case, lambda: case.assertProtoEquals('name: "b" op: "NoOp"', proto)))

    def fails(pattern, message="wrong wish"):
        def call():
            with case.assertRaisesOpError(pattern):
                session.run(tf.Assert(False, ["wrong wish"], name="asserted"))

        return call

    with case.cached_session():
        found.append(holds(case, fails("wrong w.sh")))
        found.append(holds(case, fails("something else")))
        found.append(holds(case, fails(lambda error: isinstance(error, tf.errors.InvalidArgumentError))))

    def nothing():
        with case.assertRaisesOpError("x"):
            pass

    found.append(holds(case, nothing))

    def threaded(target):
        thread = case.checkedThread(target)
        thread.start()
        thread.join()

    found.append(holds(case, lambda: threaded(lambda: None)))
    found.append(holds(case, lambda: threaded(lambda: 1 / 0)))
    found.append([os.path.isdir(case.get_temp_dir()), case.get_temp_dir() == case.get_temp_dir()])
    found.append(os.path.isdir(tf.test.get_temp_dir()))
    found.append([tf.test.is_gpu_available(), tf.test.gpu_device_name(), tf.test.is_built_with_rocm()])
    return found + graphs_and_gradients(tf, case)


def graphs_and_gradients(tf, case):
    def graph_def(*names):
        with tf.Graph().as_default() as graph:
            for name in names:
                tf.constant(1.0, name=name)
        return graph.as_graph_def()

    found = [
        holds(case, lambda: tf.test.assert_equal_graph_def(graph_def("a", "b"), graph_def("b", "a"))),
        holds(case, lambda: tf.test.assert_equal_graph_def(graph_def("a", "b"), graph_def("a"))),
        holds(case, lambda: tf.test.assert_equal_graph_def(graph_def("a"), graph_def("c"))),
    ]
    with case.session(graph=tf.Graph()):
        start = [np.arange(4.0).reshape(2, 2) / 4, np.arange(6.0).reshape(2, 3) / 3]
        x, w = (tf.constant(each) for each in start)
        y = tf.matmul(tf.tanh(x), w)
        pairs = tf.test.compute_gradient([x, w], [[2, 2], [2, 3]], y, [2, 3], start)
        found += [[np.round(each, 4).tolist() for each in pair] for pair in pairs]
        found.append(tf.test.compute_gradient_error([x, w], [[2, 2], [2, 3]], y, [2, 3], start) < 1e-5)
        one = tf.test.compute_gradient(x, [2, 2], y, [2, 3], start[0], extra_feed_dict={w: start[1]})
        found.append([each.shape for each in one])
    return [np.asarray(each).tolist() for each in found]
