"""Graphs that Grappler, the graph optimizer of TensorFlow's master, rewrites before it partitions them.

Each is small, lies on ps 0, and is known by what it becomes there: `REWRITES` says which ops must and must not be in
the partition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.interop.programs import numbers, variable


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """A graph as a function of a `Model`, and what it becomes.

    Attributes:
      build: gives the tensor.
      becomes: op -> attribute `fused_ops` that it must have (empty for any), of ops that the partition must have.
      without: ops that it must not have any more.
    """

    build: Callable[[Model], Any]
    becomes: dict[str, list[str]]
    without: tuple[str, ...] = ()


class Model:
    """The inputs and variables that the graphs share, on ps 0."""

    def __init__(self, tf):
        self.tf = tf
        self.x = tf.placeholder(tf.float32, [4, 6])
        self.images = tf.placeholder(tf.float32, [2, 6, 6, 3])
        self.w = variable(tf, "w", 6, 5)
        self.b = variable(tf, "b", 5, seed=2)
        self.kernel = variable(tf, "kernel", 3, 3, 3, 4)
        self.bias = variable(tf, "bias", 4, seed=3)
        self.feed = {self.x: numbers(1, 4, 6), self.images: numbers(2, 2, 6, 6, 3)}

    def dense(self):
        return self.tf.nn.bias_add(self.tf.matmul(self.x, self.w), self.b)

    def conv(self, strides=1, padding="SAME"):
        return self.tf.nn.conv2d(self.images, self.kernel, [1, strides, strides, 1], padding)

    def convolved(self, **options):
        return self.tf.nn.bias_add(self.conv(**options), self.bias)

    def normalized(self, images, depth):
        fixed = {
            name: np.full(depth, value, np.float32)
            for name, value in (("scale", 2.0), ("offset", 1.0), ("mean", 0.1), ("variance", 3.0))
        }
        return self.tf.nn.fused_batch_norm(images, is_training=False, **fixed)[0]


def fused(activation: Callable[[Model, Any], Any], matmul: bool, *ops: str) -> Rewrite:
    op, plain = ("_FusedMatMul", "MatMul") if matmul else ("_FusedConv2D", "Conv2D")
    return Rewrite(
        lambda model: activation(model, model.dense() if matmul else model.convolved()),
        {op: list(ops)},
        (plain, "BiasAdd", *ops[1:]),
    )


ACTIVATIONS: dict[str, Callable[[Model, Any], Any]] = {
    "Relu": lambda model, out: model.tf.nn.relu(out),
    "Relu6": lambda model, out: model.tf.nn.relu6(out),
    "Elu": lambda model, out: model.tf.nn.elu(out),
    "LeakyRelu": lambda model, out: model.tf.nn.leaky_relu(out, 0.1),
}

REWRITES: dict[str, Rewrite] = {
    **{
        f"{'dense' if matmul else 'conv'}_{name}": fused(activation, matmul, "BiasAdd", name)
        for name, activation in ACTIVATIONS.items()
        for matmul in (True, False)
    },
    "dense_bias": fused(lambda model, out: out, True, "BiasAdd"),
    "conv_bias": fused(lambda model, out: out, False, "BiasAdd"),
    "dense_tanh": Rewrite(
        lambda model: model.tf.tanh(model.dense()), {"_FusedMatMul": ["BiasAdd"], "Tanh": []}, ("MatMul",)
    ),
    "conv_strided": Rewrite(
        lambda model: model.tf.nn.relu(model.convolved(strides=2, padding="VALID")),
        {"_FusedConv2D": ["BiasAdd", "Relu"]},
    ),
    "conv_normalized": Rewrite(
        lambda model: model.normalized(model.conv(), 4), {"_FusedConv2D": ["FusedBatchNorm"]}, ("FusedBatchNormV3",)
    ),
    "conv_normalized_relu": Rewrite(
        lambda model: model.tf.nn.relu(model.normalized(model.conv(), 4)),
        {"_FusedConv2D": ["FusedBatchNorm", "Relu"]},
    ),
    "normalized_relu": Rewrite(
        lambda model: model.tf.nn.relu(model.normalized(model.images * 2.0, 3)),
        {"Mul": [], "Add": []},
        ("FusedBatchNormV3",),
    ),
    "folded": Rewrite(
        lambda model: model.x * model.tf.reduce_sum(model.tf.range(10.0) * model.tf.sqrt(model.tf.constant(4.0))),
        {"Mul": []},
        ("Range", "Sum", "Sqrt"),
    ),
    "shape_folded": Rewrite(
        lambda model: model.tf.cast(model.tf.size(model.x), model.tf.float32) * model.x, {"Mul": []}, ("Size", "Cast")
    ),
    "fill_folded": Rewrite(lambda model: model.tf.fill([4, 6], 2.0) + model.x, {"AddV2": []}, ("Fill",)),
    "division": Rewrite(lambda model: model.x / model.tf.constant(4.0), {"Mul": []}, ("RealDiv",)),
    "square_root": Rewrite(
        lambda model: model.x / model.tf.sqrt(model.tf.abs(model.x) + 1.0), {"Rsqrt": []}, ("RealDiv", "Sqrt")
    ),
    "powers": Rewrite(lambda model: model.tf.pow(model.x, 2.0), {"Square": []}, ("Pow",)),
    "squared_difference": Rewrite(
        lambda model: model.tf.square(model.x - model.x[:1]), {"SquaredDifference": []}, ("Square", "Sub")
    ),
    "log_softmax": Rewrite(
        lambda model: model.tf.log(model.tf.nn.softmax(model.x)), {"LogSoftmax": []}, ("Softmax", "Log")
    ),
    "hoisted_unary": Rewrite(
        lambda model: model.tf.exp(model.tf.concat([model.x, model.x], 0)), {"ConcatV2": [], "Exp": []}
    ),
    "reshaped_twice": Rewrite(
        lambda model: model.tf.reshape(model.tf.reshape(model.x, [24]), [6, 4]) * 2.0, {"Reshape": []}
    ),
    "transposed_twice": Rewrite(
        lambda model: model.tf.transpose(model.tf.transpose(model.x)) * 2.0, {"Mul": []}, ("Transpose",)
    ),
    "layout": Rewrite(
        lambda model: model.tf.transpose(
            model.tf.nn.conv2d(
                model.tf.transpose(model.tf.transpose(model.images, [0, 3, 1, 2]), [0, 2, 3, 1]),
                model.kernel,
                [1, 1, 1, 1],
                "SAME",
            ),
            [0, 3, 1, 2],
        ),
        {"Conv2D": [], "Transpose": []},
    ),
    "decided_branch": Rewrite(
        lambda model: model.tf.cond(model.tf.constant(True), lambda: model.x * 2.0, lambda: model.x - 1.0),
        {"Mul": [], "Merge": []},
    ),
    "loop": Rewrite(
        lambda model: model.tf.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, a * 2.0 + model.tf.reduce_sum(model.tf.range(4.0))),
            [0, model.x],
        )[1],
        {"Enter": [], "NextIteration": []},
        ("Sum", "Range"),
    ),
}


def becomes(tf, session, model: Model, tensor) -> dict[str, list[str]]:
    """The ops of a tensor's partition on ps 0 -> their attribute `fused_ops`."""
    metadata = tf.RunMetadata()
    session.run(tensor, model.feed, tf.RunOptions(output_partition_graphs=True), metadata)
    return {
        node.op: [name.decode() for name in node.attr["fused_ops"].list.s]
        for graph in metadata.partition_graphs
        for node in graph.node
        if "/job:ps/replica:0/task:0" in node.device
    }
