"""Programs that build graphs, with TensorFlow's names only: each is a function of the module `tf`.

As a script it is run by a Python that has TensorFlow; it prints the GraphDef of each program as one line of JSON,
in the form of `described`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Described = dict[str, dict[str, Any]]


def arithmetic(tf):
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    n = tf.placeholder(tf.int32, [], name="n")
    y = (x + 1) * 2.0 - 3 / x
    y = -y // 2.0 % 3.0
    tf.abs(y)
    _ = 1.0 - y
    _ = y < 1.0
    _ = n / 2
    _ = (n > 1) & (n <= 3) | (n >= 7)
    _ = ~(n < 3)
    _ = x[0], x[:, 1], x[..., 2:], x[1:3, tf.newaxis], x[n]
    _ = x**2.0


def scopes(tf):
    with tf.name_scope("a"):
        tf.constant(1.0, name="c")
        tf.constant(1.0, name="c")
        with tf.name_scope("b") as inner:
            tf.constant([1, 2], name="d")
        with tf.name_scope(inner):
            tf.constant([1, 2], name="d")
        with tf.name_scope("/".join(["b", ""])):
            tf.constant(1.0)
    with tf.name_scope("a"):
        tf.constant(1.0, name="c")
    with tf.name_scope(None):
        tf.constant("text", name="C")
        tf.constant("text", name="c")
    tf.constant(0.0, shape=[2, 3])
    tf.identity(tf.constant([[1.0], [2.0]], tf.float64), "i")


def devices(tf):
    with tf.device("/job:ps/task:1"):
        a = tf.constant(1.0, name="a")
        with tf.device("/cpu:0"):
            tf.constant(1.0, name="b")
        with tf.device("/job:worker"):
            tf.constant(1.0, name="c")
        with tf.device(None):
            tf.constant(1.0, name="d")
        with tf.device(lambda op: "/job:x" if op.type == "Const" else None):
            tf.constant(1.0, name="e")
        with tf.colocate_with(a):
            tf.constant(1.0, name="f")
    with tf.device("/job:local/device:CPU:*"), tf.colocate_with(a, ignore_existing=True):
        tf.constant(1.0, name="g")


def dependencies(tf):
    a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    with tf.control_dependencies([a, b]):
        c = a + 1.0
        with tf.control_dependencies([c]):
            tf.identity(c, name="d")
            tf.no_op(name="e")
        with tf.control_dependencies(None):
            tf.no_op(name="f")
    with tf.device("/job:ps/task:0"):
        g = tf.constant(1.0, name="g")
    tf.group(a, b)
    tf.group(a, g, name="both")
    tf.tuple([a, c])


def variables(tf):
    v = tf.Variable([1.0, 2.0], name="v")
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(tf.zeros([3, 2]), name="w")
        u = tf.Variable(lambda: tf.ones([3]), name="u", dtype=tf.float32)
    tf.assign(v, [3.0, 4.0])
    v.assign_add([1.0, 1.0])
    _ = v + 1.0
    tf.Variable(7, trainable=False)
    w.read_value()
    tf.global_variables_initializer()
    tf.is_variable_initialized(u)
    with tf.device("/job:worker/task:1"):
        tf.Variable(v.initialized_value() * 2.0, name="twice")


def resource_variables(tf):
    v = tf.Variable([1.0, 2.0], name="v", use_resource=True)
    with tf.device("/job:ps/task:0"):
        tf.Variable(lambda: tf.ones([3]), name="u", dtype=tf.float32, use_resource=True)
    _ = v + 1.0
    v.read_value()
    tf.global_variables_initializer()


def shared_variables(tf):
    def layer(x):
        w = tf.get_variable("w", [4, 3], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [3], initializer=tf.constant_initializer(0.1))
        return tf.nn.relu(tf.matmul(x, w) + b)

    x = tf.placeholder(tf.float32, [None, 4], name="x")
    with tf.variable_scope("layer") as scope:
        layer(x)
    with tf.variable_scope(scope, reuse=True):
        layer(x)
    with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        layer(x)
    with tf.variable_scope(None, "layer"):
        layer(x)
    with tf.variable_scope("outer", initializer=tf.ones_initializer()):
        with tf.variable_scope("inner"):
            tf.get_variable("v", [2])
        with tf.variable_scope(None, default_name="inner"):
            tf.get_variable("v", [2])
        tf.get_variable("c", initializer=3)
        tf.identity(tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(2)))


def random_initial_values(tf):
    tf.set_random_seed(3)
    tf.get_variable("glorot", [3, 4])
    tf.get_variable("normal", [3], initializer=tf.random_normal_initializer(stddev=0.1))
    tf.get_variable("truncated", [3], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=5))
    tf.get_variable("uniform", [3], initializer=tf.random_uniform_initializer(-1.0, 1.0))


def branches(tf):
    x = tf.placeholder(tf.float32, [3], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    v = tf.Variable([1.0, 2.0, 3.0], name="v")
    tf.cond(p, lambda: x + 1.0, lambda: x * v)
    tf.cond(p, lambda: (x, tf.constant([1])), lambda: (v, tf.constant([2])))
    tf.cond(p, lambda: v.assign(x).op, lambda: tf.no_op())
    tf.cond(p, lambda: tf.cond(p, lambda: x, lambda: x * 2.0), lambda: x)
    tf.case([(p, lambda: x), (tf.logical_not(p), lambda: v + 0.0)], default=lambda: x * 3.0)
    tf.Assert(p, [x])
    tf.Assert(p, ["text"])


def loops(tf):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = x * 2.0
    i, z = tf.while_loop(lambda i, z: i < 10, lambda i, z: (i + 1, z * y), [tf.constant(0), x])
    with tf.control_dependencies([y]):
        tf.while_loop(lambda i: i < 3, lambda i: i + 2, [i])
    tf.while_loop(
        lambda i, z: tf.reduce_sum(z) < 10.0,
        lambda i, z: (i + 1, tf.while_loop(lambda w: w[0] < 5.0, lambda w: w + z, [z])),
        [0, z],
        parallel_iterations=3,
    )


def dense_gradients(tf):
    x = tf.placeholder(tf.float32, [8, 4], name="x")
    labels = tf.placeholder(tf.float32, [8, 3], name="labels")
    w = tf.Variable(tf.zeros([4, 3]), name="w")
    b = tf.Variable(tf.zeros([3]), name="b")
    logits = tf.nn.relu(tf.matmul(x, w) + b)
    loss = tf.reduce_mean(tf.square(logits - labels)) + tf.reduce_sum(w * w)
    tf.gradients(loss, [w, b])


def branch_gradients(tf):
    x = tf.placeholder(tf.float32, [3], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    y = tf.cond(p, lambda: x * 2.0, lambda: tf.exp(x))
    tf.gradients(y, x)


def loop_gradients(tf):
    x = tf.placeholder(tf.float32, [3], name="x")
    w = tf.Variable([1.0, 2.0, 3.0], name="w")
    _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * w), [tf.constant(0), x])
    tf.gradients(y, [x, w])


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    program.__name__: program
    for program in (
        arithmetic, scopes, devices, dependencies, variables, resource_variables, shared_variables,
        random_initial_values, branches, loops, dense_gradients, branch_gradients, loop_gradients,
    )
}  # fmt: skip

#: Programs of which only the forward part must be the same, node by node.
GRADIENT_PROGRAMS = {"dense_gradients", "branch_gradients"}


def described(tf: Any, program: Callable[[Any], Any]) -> Described:
    """Node name -> op, inputs, device, and attributes as text, of the graph that `program` builds."""
    graph = tf.Graph()
    with graph.as_default():
        program(tf)
    return {
        node.name: {
            "op": node.op,
            "inputs": list(node.input),
            "device": node.device,
            "attrs": {key: _attr_text(value) for key, value in node.attr.items()},
        }
        for node in graph.as_graph_def().node
    }


def _attr_text(value: Any) -> str:
    if value.WhichOneof("value") == "tensor":
        proto = value.tensor
        if proto.dtype == 7:
            return f"strings {list(proto.string_val)}"
        sizes = [dim.size for dim in proto.tensor_shape.dim]
        import numpy as np

        if type(value).__module__.startswith("tensorflow"):
            from tensorflow.python.framework.tensor_util import MakeNdarray as make_array
        else:
            from dtf.wire.codec import make_ndarray as make_array
        return f"tensor {proto.dtype} {sizes} {np.asarray(make_array(proto)).tolist()}"
    return " ".join(str(value).split())


def main() -> None:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_resource_variables()
    for name, program in PROGRAMS.items():
        print(json.dumps({"program": name, "nodes": described(tf, program)}))


if __name__ == "__main__":
    sys.exit(main())
