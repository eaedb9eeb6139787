"""Branches and loops through meta graphs: gradients of an imported graph must be those of the first one."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

X = np.array([1.0, 2.0], np.float32)


def nested(x: tf.Tensor) -> tf.Tensor:
    """A loop of branches, of which one holds another loop."""

    def body(i, y):
        def inner():
            return tf.while_loop(lambda k, u: k < 2, lambda k, u: (k + 1, u * x), [0, y])[1]

        return i + 1, tf.cond(tf.equal(i % 2, 0), inner, lambda: tf.sin(y) + x)

    return tf.while_loop(lambda i, y: i < 3, body, [0, x], parallel_iterations=4)[1]


def branch(x: tf.Tensor) -> tf.Tensor:
    p = tf.reduce_sum(x) > 0.0
    return tf.cond(p, lambda: tf.cond(p, lambda: x * x, lambda: x), lambda: tf.exp(x))


def loop(x: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * x), [0, x])[1]


def values(y: tf.Tensor, x: tf.Tensor) -> list[np.ndarray]:
    [grad] = tf.gradients(y, x)
    with tf.Session() as session:
        return session.run([y, grad], {x: X})


@pytest.mark.parametrize("import_scope", [None, "inside"])
@pytest.mark.parametrize("build", [nested, branch, loop])
def test_an_imported_graph_gives_the_same_gradients(build, import_scope):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.identity(build(x), name="y")
        meta_graph = tf.train.export_meta_graph()
        wanted = values(y, x)
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta_graph, import_scope=import_scope)
        prefix = f"{import_scope}/" if import_scope else ""
        found = values(graph.get_tensor_by_name(f"{prefix}y:0"), graph.get_tensor_by_name(f"{prefix}x:0"))
        again = tf.train.export_meta_graph(export_scope=import_scope)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    for key in ("cond_context", "while_context"):
        assert len(again.collection_def[key].bytes_list.value) == len(meta_graph.collection_def[key].bytes_list.value)


def test_only_outermost_contexts_are_in_collections():
    with tf.Graph().as_default() as graph:
        nested(tf.placeholder(tf.float32, [2]))
        branch(tf.placeholder(tf.float32, [2]))
        assert len(graph.get_collection(tf.GraphKeys.WHILE_CONTEXT)) == 1
        assert len(graph.get_collection(tf.GraphKeys.COND_CONTEXT)) == 2
