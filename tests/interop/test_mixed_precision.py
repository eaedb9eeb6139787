"""The rewrite to mixed precision must narrow the same nodes as TensorFlow's, with casts at the same edges."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

import dtf as tf
from dtf.run.passes import parse_tensor_name
from dtf.run.passes.mixed_precision import in_mixed_precision
from tests.interop.tensorflow_process import needs_tensorflow, start

pytestmark = needs_tensorflow

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"

REWRITE = """
import base64, os
os.environ["TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_SIMULATE_GPU"] = "1"
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.grappler import tf_optimizer

found = {}
for name, (text, kept) in json.loads(sys.stdin.read()).items():
    graph_def = tf.GraphDef.FromString(base64.b64decode(text))
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
        for node in kept:
            tf.add_to_collection("train_op", graph.get_operation_by_name(node))
        meta_graph = tf.train.export_meta_graph(graph=graph, graph_def=graph_def)
    config = config_pb2.ConfigProto()
    rewrite = config.graph_options.rewrite_options
    rewrite.optimizers.append("auto_mixed_precision")
    rewrite.min_graph_nodes = -1
    rewrite.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    result = tf_optimizer.OptimizeGraph(config, meta_graph)
    found[name] = base64.b64encode(result.SerializeToString()).decode()
print(json.dumps(found))
"""


def convolutional(is_fused: bool) -> Any:
    images = tf.placeholder(tf.float32, [4, 8, 8, 3])
    labels = tf.placeholder(tf.int64, [4])
    x = tf.layers.conv2d(images, 4, 3, padding="same")
    if is_fused:
        x = tf.layers.batch_normalization(x, training=True, fused=True)
    x = tf.layers.flatten(tf.layers.max_pooling2d(tf.nn.relu(x), 2, 2))
    logits = tf.layers.dense(x, 5)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def with_resources() -> Any:
    with tf.variable_scope("", use_resource=True):
        x = tf.layers.dense(tf.placeholder(tf.float32, [4, 8]), 8, activation=tf.nn.tanh)
        x = tf.concat([x, tf.exp(x)], 1)
        return tf.nn.softmax(tf.layers.dense(x, 3, activation=tf.nn.sigmoid), name="end")


def recurrent() -> Any:
    cell = tf.nn.rnn_cell.LSTMCell(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.placeholder(tf.float32, [2, 3, 4]), dtype=tf.float32)
    return tf.reduce_sum(outputs, name="end")


def attention() -> Any:
    x = tf.placeholder(tf.float32, [2, 3, 4])
    weights = tf.nn.softmax(tf.matmul(x, x, transpose_b=True) / 2.0)
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    y = tf.matmul(weights, (x - mean) * tf.rsqrt(variance + 1e-3))
    return tf.gradients(tf.reduce_sum(tf.square(y)), x)[0]


def without_products() -> Any:
    return tf.reduce_sum(tf.nn.relu(tf.placeholder(tf.float32, [3])), name="end")


PROGRAMS: dict[str, Callable[[], Any]] = {
    "convolutional": lambda: convolutional(False),
    "convolutional, normalised": lambda: convolutional(True),
    "with resources": with_resources,
    "recurrent": recurrent,
    "attention": attention,
    "without products": without_products,
}


@pytest.fixture(scope="module")
def graphs() -> dict[str, tuple[Any, str]]:
    """By name: the graph, all on a GPU, and the node that is kept."""
    found = {}
    for name, build in PROGRAMS.items():
        with tf.Graph().as_default() as graph:
            end = build()
            graph_def = graph.as_graph_def()
            for node in graph_def.node:
                node.device = GPU
        found[name] = graph_def, getattr(end, "op", end).name
    return found


@pytest.fixture(scope="module")
def theirs(graphs: dict[str, tuple[Any, str]]) -> dict[str, Any]:
    sent = {
        name: (base64.b64encode(graph.SerializeToString()).decode(), [kept]) for name, (graph, kept) in graphs.items()
    }
    process = start(REWRITE)
    output, complaints = process.communicate(json.dumps(sent), timeout=250)
    assert process.returncode == 0, complaints[-2000:]
    answers = json.loads(output.strip().splitlines()[-1])
    return {name: tf.GraphDef.FromString(base64.b64decode(text)) for name, text in answers.items()}


def described(nodes: dict[str, Any], names: set[str]) -> dict[str, tuple[Any, ...]]:
    """Of each node: its op, which of its types are float16, and its inputs with casts seen through."""
    found = {}
    for name in names & nodes.keys():
        node = nodes[name]
        narrow = sorted(attr for attr, value in node.attr.items() if value.type == tf.float16.as_datatype_enum)
        inputs = []
        for text in node.input:
            source = parse_tensor_name(text)[0]
            if source not in names and "CastTo" in source:
                inputs.append((nodes[source].input[0], source.split("CastTo")[1][:4].lower()))
            else:
                inputs.append((text, ""))
        found[name] = node.op, narrow, [each for each in inputs if not each[0].startswith("^")]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_nodes_become_narrow(name: str, graphs: dict[str, Any], theirs: dict[str, Any]):
    graph, kept = graphs[name]
    names = {node.name for node in graph.node}
    ours = in_mixed_precision({node.name: node for node in graph.node}, [kept])
    expected = described({node.name: node for node in theirs[name].node}, names)
    found = described(dict(ours), names & expected.keys())
    different = {node: (found[node], expected[node]) for node in expected if found[node] != expected[node]}
    assert different == {}
    if name != "without products":
        assert any(narrow for _, narrow, _ in expected.values())

