"""A program of either runtime: the layers of tf.layers on the same inputs, with the same values in their variables.

    python layer_programs.py dtf|tensorflow.compat.v1 values.npz

Writes what every expression of `EXPRESSIONS` gives, the gradients of its sum for the inputs and the variables, its
losses, and its variables after its updates; prints as JSON the names of variables, outputs and losses.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from types import SimpleNamespace

import numpy as np

RANDOM = np.random.RandomState(5)
INPUTS = {
    "matrix": RANDOM.uniform(-1, 1, (4, 5)),
    "cube": RANDOM.uniform(-1, 1, (2, 3, 5)),
    "sequence": RANDOM.uniform(-1, 1, (2, 9, 3)),
    "images": RANDOM.uniform(-1, 1, (2, 7, 6, 3)),
    "volume": RANDOM.uniform(-1, 1, (2, 4, 5, 6, 2)),
}


def first(tf, value):
    """The channels as dimension 1."""
    rank = value.shape.ndims
    return tf.transpose(value, [0, rank - 1, *range(1, rank - 1)])


def last(tf, value):
    """The channels as last dimension, which is where TensorFlow's CPU kernels take them."""
    rank = value.shape.ndims
    return tf.transpose(value, [0, *range(2, rank), 1])


def objects(tf, x):
    """A layer that is called twice, one of the same name, and one within a scope."""
    shared = tf.layers.Dense(5, tf.nn.tanh, kernel_regularizer=l2(tf))
    out = shared(shared(x.matrix))
    named = tf.layers.Dense(3, name="fc")
    other = tf.layers.Dense(2, name="fc")
    results = [out, named(x.matrix), other(x.matrix)]
    with tf.variable_scope("outer"):
        inner = tf.layers.Dense(4)
        results.append(inner(x.matrix))
    assert [each.op.name for each in shared.weights] == ["dense/kernel", "dense/bias"]
    assert (shared.scope_name, other.scope_name, inner.scope_name) == ("dense", "fc_1", "outer/dense")
    assert (shared.name, other.name, inner.name) == ("dense_1", "fc", "dense_2")
    assert shared.count_params() == 30 and shared.built and shared.trainable_weights == shared.variables
    return results


def reused(tf, x):
    """Functions that take the variables of one name, in every way of asking for it."""
    made = tf.layers.dense(x.matrix, 3, name="a")
    again = tf.layers.dense(x.matrix, 3, name="a", reuse=True)
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        both = [tf.layers.conv2d(x.images, 2, 3, name="c") for _ in range(2)]
    with tf.variable_scope("s", reuse=True):
        both.append(tf.layers.conv2d(x.images, 2, 3, name="c"))
    return [made, again, *both]


def l2(tf):
    return lambda w: tf.nn.l2_loss(w) * 0.1


def custom(tf, x):
    """A layer of one's own with another one in it, and an update and a loss."""

    class ScaleAndMix(tf.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.mix = tf.layers.Dense(2)

        def build(self, input_shape):
            self.factor = self.add_variable("factor", [int(input_shape[-1])], regularizer=l2(tf))
            self.calls = self.add_weight("calls", [], initializer=tf.zeros_initializer(), trainable=False)
            super().build(input_shape)

        def call(self, inputs, power=1.0):
            self.add_update(tf.assign_add(self.calls, power))
            self.add_loss(tf.reduce_sum(inputs * self.factor))
            return self.mix(inputs * self.factor**power)

    layer = ScaleAndMix()
    out = layer(x.matrix, power=2.0)
    names = [[each.op.name for each in kind] for kind in (layer.trainable_weights, layer.non_trainable_weights)]
    scope = "scale_and_mix/"
    assert names == [[scope + "factor"], [scope + "calls"]], names
    assert [each.op.name for each in layer.mix.weights] == [scope + "dense/kernel", scope + "dense/bias"]
    assert (len(layer.updates), len(layer.losses)) == (1, 2)
    return [out]


def frozen(tf, x):
    layer = tf.layers.Dense(3, trainable=False)
    out = layer(x.matrix)
    assert layer.trainable_weights == [] and len(layer.non_trainable_weights) == 2
    return [out]


def regularized(tf, x):
    with tf.variable_scope("r", regularizer=l2(tf)):
        inner = tf.layers.dense(x.matrix, 3)
    out = tf.layers.dense(
        x.matrix,
        3,
        kernel_regularizer=l2(tf),
        bias_regularizer=l2(tf),
        activity_regularizer=lambda y: tf.reduce_sum(tf.abs(y)),
    )
    return [out, inner]


def partitioned(tf, x):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2, axis=1)):
        layer = tf.layers.Dense(4, bias_initializer=None, use_bias=False)
        out = layer(x.matrix)
    assert [each.op.name for each in layer.weights] == ["p/dense/kernel/part_0", "p/dense/kernel/part_1"]
    return [out]


WINDOWS = {
    "conv1d": lambda tf, x: tf.layers.conv1d(x.sequence, 4, 3, 2, "same", activation=tf.nn.relu),
    "conv1d_dilated": lambda tf, x: tf.layers.conv1d(x.sequence, 4, 3, dilation_rate=2, use_bias=False),
    "conv2d": lambda tf, x: tf.layers.conv2d(x.images, 4, [3, 2], strides=(2, 1), padding="same"),
    "conv2d_class": lambda tf, x: tf.layers.Conv2D(4, 3, activation=tf.nn.elu, name="layer")(x.images),
    "conv3d": lambda tf, x: tf.layers.conv3d(x.volume, 3, 2, strides=(1, 2, 1)),
    "conv2d_transpose": lambda tf, x: tf.layers.conv2d_transpose(x.images, 2, 3, strides=2),
    "conv2d_transpose_same": lambda tf, x: tf.layers.conv2d_transpose(x.images, 2, (3, 2), (2, 1), "same"),
    "conv3d_transpose": lambda tf, x: tf.layers.conv3d_transpose(x.volume, 3, 3, strides=2),
    "separable_conv1d": lambda tf, x: tf.layers.separable_conv1d(x.sequence, 4, 3, 2, depth_multiplier=2),
    "separable_conv2d": lambda tf, x: tf.layers.separable_conv2d(x.images, 4, 3, depth_multiplier=2, padding="same"),
    **{
        f"{kind}_pooling{rank}d_{padding}": lambda tf, x, kind=kind, rank=rank, padding=padding: getattr(
            tf.layers, f"{kind}_pooling{rank}d"
        )([x.sequence, x.images, x.volume][rank - 1], 2, (1, 2, 2)[-rank:] if rank > 1 else 2, padding)
        for kind in ("max", "average")
        for rank in (1, 2, 3)
        for padding in ("valid", "same")
    },
    "pooling_class": lambda tf, x: tf.layers.MaxPooling2D(3, 2)(x.images),
}

EXPRESSIONS = {
    **WINDOWS,
    "dense": lambda tf, x: tf.layers.dense(x.matrix, 3, tf.nn.relu),
    "dense_cube": lambda tf, x: tf.layers.dense(x.cube, 3, name="named"),
    "two_dense": lambda tf, x: tf.layers.dense(tf.layers.dense(x.matrix, 4), 2, use_bias=False),
    "flatten": lambda tf, x: tf.layers.flatten(x.images),
    "flatten_first": lambda tf, x: tf.layers.flatten(first(tf, x.images), data_format="channels_first"),
    "dropout_off": lambda tf, x: tf.layers.dropout(x.matrix, 0.5),
    "dropout_seeded": lambda tf, x: tf.layers.dropout(x.matrix, 0.4, seed=3, training=True) * x.matrix,
    "dropout_noise": lambda tf, x: tf.layers.Dropout(0.4, [1, 5], seed=3)(x.matrix, training=True),
    "dropout_none": lambda tf, x: tf.layers.Dropout(0.0)(x.matrix, training=True),
    "max_pooling_first": lambda tf, x: last(
        tf, tf.layers.max_pooling1d(first(tf, x.sequence), 2, 2, data_format="channels_first")
    ),
    "batch_norm": lambda tf, x: tf.layers.batch_normalization(x.matrix, training=True) * x.matrix,
    "batch_norm_off": lambda tf, x: tf.layers.batch_normalization(x.matrix),
    "batch_norm_images": lambda tf, x: tf.layers.batch_normalization(x.images, training=True, momentum=0.7) * x.images,
    "batch_norm_fed": lambda tf, x: tf.layers.batch_normalization(x.images, training=tf.reduce_sum(x.matrix) > -99)
    * x.images,
    "batch_norm_fed_off": lambda tf, x: tf.layers.batch_normalization(x.matrix, training=tf.reduce_sum(x.matrix) > 99),
    "batch_norm_plain": lambda tf, x: tf.layers.batch_normalization(x.images, training=True, fused=False, scale=False)
    * x.images,
    "batch_norm_axis": lambda tf, x: tf.layers.batch_normalization(x.cube, axis=1, training=True, center=False)
    * x.cube,
    "batch_norm_axes": lambda tf, x: tf.layers.batch_normalization(x.images, axis=[1, 3], training=True) * x.images,
    "batch_norm_shared": lambda tf, x: [
        tf.layers.batch_normalization(each, training=True, name="bn", reuse=tf.AUTO_REUSE, gamma_regularizer=l2(tf))
        * each
        for each in (x.matrix, x.matrix**3)
    ],
    "objects": objects,
    "reused": reused,
    "custom": custom,
    "frozen": frozen,
    "regularized": regularized,
    "partitioned": partitioned,
}


OTHER_OPS = ("conv1d_dilated", "separable_conv1d", "dropout_noise", "dropout_none", "batch_norm_fed_off")
"""The same values by other ops at the end, so that the outputs have other names."""


def fill(variables, session) -> None:
    """Gives every variable values that depend on its name alone."""
    for variable in variables:
        seed = sum(variable.op.name.encode())
        shape = variable.shape.as_list()
        variable.load(np.random.RandomState(seed).uniform(0.2, 1.2, shape).astype(np.float32) - 0.5, session)


def evaluate(tf, name: str):
    """Returns (values, names) of an expression."""
    with tf.Graph().as_default() as graph:
        used = {key: tf.constant(value.astype(np.float32)) for key, value in INPUTS.items()}
        made = EXPRESSIONS[name](tf, SimpleNamespace(**used))
        outputs = made if isinstance(made, list) else [made]
        variables, trained = tf.global_variables(), tf.trainable_variables()
        targets = {**used, **{each.op.name: each for each in trained}}
        found = tf.gradients([tf.square(each) for each in outputs], list(targets.values()))
        gradients = {key: each for key, each in zip(targets, found, strict=True) if each is not None}
        losses = tf.losses.get_regularization_losses()
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            fill(variables, session)
            values = {f"output {number}": value for number, value in enumerate(session.run(outputs))}
            values |= {f"grad {key}": value for key, value in session.run(gradients).items()}
            values |= {f"loss {number}": value for number, value in enumerate(session.run(losses))}
            for update in updates:
                session.run(update)
            values |= {f"after {each.op.name}": session.run(each) for each in variables}
        shapes = [each.shape.as_list() for each in outputs]
        named = [variables, trained, losses, *([] if name in OTHER_OPS else [outputs])]
        return values, [[each.op.name for each in kind] for kind in named] + shapes


def trained(tf):
    """The losses of twenty steps of a small network of layers, and what is in its variables then."""
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [None, 8, 8, 2])
        labels = tf.placeholder(tf.int64, [None])
        training = tf.placeholder(tf.bool, [])
        net = tf.layers.conv2d(images, 6, 3, padding="same", use_bias=False)
        net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, momentum=0.8))
        net = tf.layers.max_pooling2d(net, 2, 2)
        net = tf.layers.separable_conv2d(net, 5, 3, activation=tf.nn.relu)
        net = tf.layers.batch_normalization(tf.layers.flatten(net), training=training)
        logits = tf.layers.dense(net, 3, kernel_regularizer=l2(tf))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        loss += tf.losses.get_regularization_loss()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss)
        random = np.random.RandomState(9)
        losses = []
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            fill(tf.trainable_variables(), session)
            for _ in range(20):
                feed = {images: random.normal(size=(6, 8, 8, 2)), labels: random.randint(0, 3, 6)}
                losses.append(session.run(loss, {**feed, training: False}))
                session.run(train, {**feed, training: True})
            return {"losses": losses, **{each.op.name: session.run(each) for each in tf.global_variables()}}


def main(runtime: str, path: str) -> None:
    if runtime != "dtf":
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.layers is in the package tf_keras
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
    arrays, names = {}, {}
    for name in EXPRESSIONS:
        values, names[name] = evaluate(tf, name)
        arrays |= {f"{name}|{key}": value for key, value in values.items()}
    arrays |= {f"trained|{key}": value for key, value in trained(tf).items()}
    np.savez(path, **arrays)
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
