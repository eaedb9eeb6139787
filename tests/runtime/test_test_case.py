"""tf.test as users' tests use it, and what its assertions say when they do not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import dtf as tf


class GraphTest(tf.test.TestCase):
    """Every test begins with an empty graph; two of them make a variable of one name."""

    def setUp(self):
        super().setUp()
        self.variable = tf.get_variable("v", initializer=[1.0, 2.0])

    def test_tensors_are_evaluated(self):
        with self.session():
            self.variable.initializer.run()
            self.assertAllEqual(tf.square(self.variable), [1, 4])
            self.assertAllClose({"a": [self.variable * 2.0, 3]}, {"a": [[2.0, 4.0], 3]})

    def test_a_cached_session_keeps_what_variables_hold(self):
        self.evaluate(self.variable.initializer)
        with self.cached_session() as session:
            session.run(tf.assign_add(self.variable, [1.0, 1.0]))
        with self.test_session():
            self.assertAllEqual(self.variable.eval(), [2, 3])
        with self.assertRaisesRegex(ValueError, "another graph"), self.cached_session(graph=tf.Graph()):
            pass
        with self.assertRaisesRegex(ValueError, "another config"), self.cached_session(config=tf.ConfigProto()):
            pass

    def test_errors_of_steps_are_matched_with_their_ops(self):
        more = tf.add(self.variable, 1.0)
        with self.session():
            with self.assertRaisesOpError("(?s)uninitialized value v.*Caused by: v/read"):
                more.eval()
            with self.assertRaisesWithPredicateMatch(tf.errors.FailedPreconditionError, lambda e: e.op is not None):
                more.eval()
            with self.assertRaises(AssertionError), self.assertRaisesOpError("something else"):
                more.eval()

    def test_random_numbers_are_the_same_in_every_run(self):
        self.assertEqual(tf.get_default_graph().seed, 87654321)
        first = self.evaluate(tf.random_uniform([2], seed=1))
        self.tearDown()
        self.setUp()
        self.assertAllEqual(self.evaluate(tf.random_uniform([2], seed=1)), first)

    def test_the_first_elements_that_differ_are_named(self):
        with self.assertRaisesRegex(AssertionError, r"2 of 4 elements differ.*\n.*\[0, 1\]: .*2.* != .*5.*\n.*\[1, 0"):
            self.assertAllEqual([[1, 2], [3, 4]], [[1, 5], [6, 4]])
        with self.assertRaisesRegex(AssertionError, r"atol=1e-06\['a'\]\[1\]: 1 of 1 elements differ. the message"):
            self.assertAllClose({"a": ([1, 2], 3.0)}, {"a": ([1, 2], 3.5)}, msg="the message")
        with self.assertRaisesRegex(AssertionError, r"Shape mismatch: expected \(3,\), got \(2,\)"):
            self.assertAllClose([1, 2], [1, 2, 3])
        with self.assertRaisesRegex(AssertionError, r"1 of 3 elements are not > 1: \[1\]"):
            self.assertAllGreater([1, 2, 3], 1)
        with self.assertRaisesRegex(AssertionError, "mismatched keys"):
            self.assertAllClose({"a": 1}, {"b": 1})
        with self.assertRaisesRegex(AssertionError, "mismatched structures"):
            self.assertAllClose([[1, 2], [3]], [[1, 2]])
        with self.assertRaisesRegex(AssertionError, "close at all elements. again"):
            self.assertNotAllClose(1.0, 1.0, msg="again")

    def test_threads_that_fail_make_the_test_fail(self):
        thread = self.checkedThread(lambda: 1 / 0)
        thread.start()
        with self.assertRaisesRegex(AssertionError, "ZeroDivisionError"):
            thread.join()
        self.assertFalse(thread.is_alive())
        forgotten = self.checkedThread(lambda: None)
        forgotten.start()
        with self.assertRaisesRegex(AssertionError, "not joined"):
            self.tearDown()
        forgotten.join()

    def test_folders_are_of_one_test(self):
        folder = self.get_temp_dir()
        self.assertTrue(os.path.isdir(folder))
        self.assertStartsWith(folder, tf.test.get_temp_dir())
        self.doCleanups()
        self.assertFalse(os.path.exists(folder))

    def test_sparse_tensors_are_compared_part_by_part(self):
        sparse = tf.SparseTensor([[0, 1]], [2.5], [2, 2])
        self.assertAllClose(sparse, tf.SparseTensorValue([[0, 1]], [2.5], [2, 2]))
        with self.assertRaises(AssertionError):
            self.assertAllClose(sparse, tf.SparseTensorValue([[0, 1]], [2.0], [2, 2]))


def test_jacobians_by_both_ways():
    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float64, [2])
        y = tf.stack([x[0] * x[1], x[0] ** 2, x[1]])
        exact, numeric = tf.test.compute_gradient(x, [2], y, [3], np.array([3.0, 5.0]))
        np.testing.assert_allclose(exact, [[5, 6, 0], [3, 0, 1]])
        np.testing.assert_allclose(numeric, exact, atol=1e-6)
        assert tf.test.compute_gradient_error(x, [2], y, [3]) < 1e-6


def test_what_has_no_jacobian_is_named():
    case = GraphTest()
    with tf.Graph().as_default():
        x, n = tf.placeholder(tf.float32, [1]), tf.placeholder(tf.int32, [1])
        with case.assertRaisesRegex(ValueError, "default session"):
            tf.test.compute_gradient(x, [1], x * 2.0, [1])
        with tf.Session():
            with case.assertRaisesRegex(TypeError, "int32"):
                tf.test.compute_gradient(n, [1], n * 2, [1])
            with case.assertRaisesRegex(ValueError, "does not depend on"):
                tf.test.compute_gradient(x, [1], tf.constant([1.0]), [1])


def test_the_servers_of_a_local_cluster_share_variables():
    workers, ps = tf.test.create_local_cluster(num_workers=2, num_ps=1)
    try:
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            counter = tf.get_variable("counter", initializer=5)
            with tf.Session(workers[0].target) as first, tf.Session(workers[1].target) as second:
                first.run(counter.initializer)
                assert second.run(tf.assign_add(counter, 2)) == first.run(counter) == 7
    finally:
        for server in (*workers, *ps):
            server.stop(grace_s=0)


def test_graph_defs_are_compared_by_their_nodes():
    case = GraphTest()

    def made(value=1.0, name="a"):
        with tf.Graph().as_default() as graph:
            tf.constant(value, name=name)
            tf.no_op(name="n")
        return graph.as_graph_def()

    tf.test.assert_equal_graph_def(made(), made())
    with case.assertRaisesRegex(AssertionError, "differ in node 'a'"):
        tf.test.assert_equal_graph_def(made(), made(2.0))
    with case.assertRaisesRegex(AssertionError, "Only the actual graph has the nodes .'a'"):
        tf.test.assert_equal_graph_def(made(), made(name="b"))
    with case.assertRaisesRegex(TypeError, "Expected expected to be a GraphDef, got str"):
        tf.test.assert_equal_graph_def(made(), "x")


def test_a_script_of_tests_exits_with_their_outcome(tmp_path: Path):
    script = tmp_path / "square_test.py"
    script.write_text(
        "import dtf as tf\n"
        "class SquareTest(tf.test.TestCase):\n"
        "    def test_right(self):\n"
        "        self.assertAllEqual(tf.square([2, 3]), [4, 9])\n"
        "    def test_wrong(self):\n"
        "        self.assertAllEqual(tf.square([2, 3]), [4, 8])\n"
        "if __name__ == '__main__':\n"
        "    tf.test.main()\n"
    )
    package = str(Path(tf.__file__).parent.parent)

    found = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": package}, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert found.returncode == 1
    assert "Ran 3 tests" in found.stderr and "FAILED (failures=1, skipped=1)" in found.stderr
    assert "1 of 2 elements differ" in found.stderr


class OldTest(tf.test.TestCase):
    """Tests as older programs have them: no super().setUp(), and methods named as ours might be."""

    def setUp(self):
        self.array = [1.0, 2.0]

    def _check(self):
        raise AssertionError("a method of the test was called by tf.test.TestCase")

    _compared = _plain = _array = _all = _check

    def test_comparisons_of_what_is_no_array(self):
        self.assertAllEqual(None, None)
        self.assertAllEqual({1, 2}, {1, 2})
        self.assertAllEqual(tf.TensorShape([2, None]), [2, None])
        self.assertAllClose(tf.constant(self.array), self.array)

    def test_sessions_place_softly_and_ops_for_the_cpu(self):
        with self.test_session() as session:
            self.assertEqual(tf.constant(1).device, "/device:CPU:0")
            with tf.device("/device:GPU:7"):
                self.assertEqual(session.run(tf.constant(1)), 1)
        with self.test_session(config=tf.ConfigProto(), use_gpu=True) as again:
            self.assertIs(again, session)
            self.assertEqual(tf.constant(1).device, "")

    def test_floats_of_messages_are_compared_to_six_decimals(self):
        made = tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=0.1)])
        self.assertProtoEquals("value { tag: 'a' simple_value: 0.1000001 }", made)
        with self.assertRaises(AssertionError):
            self.assertProtoEquals("value { tag: 'a' simple_value: 0.2 }", made)
        graph_def = tf.Graph().as_graph_def()
        self.assertProtoEqualsVersion("", graph_def)


def test_a_complex_number_is_two_elements_of_a_jacobian():
    with tf.Graph().as_default(), tf.Session():
        x = tf.constant(np.array([1 + 2j, 3 - 1j], np.complex64))
        exact, _ = tf.test.compute_gradient(x, [2], x * x, [2])
        assert exact.shape == (4, 4)
        assert tf.test.compute_gradient_error(x, [2], x * x, [2]) < 1e-3
        empty = tf.zeros([0, 3])
        assert tf.test.compute_gradient_error(empty, [0, 3], tf.reduce_sum(empty, 1), [0]) == 0
