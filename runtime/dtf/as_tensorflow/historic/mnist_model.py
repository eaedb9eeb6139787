"""tensorflow.examples.tutorials.mnist.mnist: the two-layer network of the tutorial.

Source: https://www.tensorflow.org/versions/r1.2/get_started/mnist/mechanics
"""

from __future__ import annotations

import math
from typing import Any

import dtf as tf

__all__ = ["IMAGE_PIXELS", "IMAGE_SIZE", "NUM_CLASSES", "evaluation", "inference", "loss", "training"]

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """The logits [batch, 10] of images [batch, 784]."""
    hidden = images
    sizes = (("hidden1", IMAGE_PIXELS, hidden1_units, True), ("hidden2", hidden1_units, hidden2_units, True))
    for scope, inputs, outputs, is_hidden in (*sizes, ("softmax_linear", hidden2_units, NUM_CLASSES, False)):
        with tf.name_scope(scope):
            start = tf.truncated_normal([inputs, outputs], stddev=1.0 / math.sqrt(float(inputs)))
            weights = tf.Variable(start, name="weights")
            biases = tf.Variable(tf.zeros([outputs]), name="biases")
            hidden = tf.matmul(hidden, weights) + biases
            hidden = tf.nn.relu(hidden) if is_hidden else hidden
    return hidden


def loss(logits: Any, labels: Any) -> Any:
    """The mean cross entropy with labels [batch]."""
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    """An op for one step of gradient descent; it counts them in a variable named global_step."""
    tf.summary.scalar("loss", loss)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """How many of the batch are right, an int32."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
