"""The handwritten digits, and a small convolutional net that learns them: what the digits examples share.

Owns the data and the model; how they are spread over a cluster is each trainer's. The other folders link to this file
and to digits.npz (dtfctl brings what a link stands for to other machines).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

HELD_OUT = 360  # of 1,797 images


def load_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns training images, training labels, held-out images, held-out labels.

    Images are float32 [n, 8, 8, 1] in 0..1, labels int64 [n]. The split is the same in every task.
    """
    with np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.npz")) as data:
        images = data["images"].astype(np.float32)[..., np.newaxis] / 16.0
        labels = data["labels"].astype(np.int64)
    order = np.random.RandomState(0).permutation(len(labels))
    images, labels = images[order], labels[order]
    return images[:-HELD_OUT], labels[:-HELD_OUT], images[-HELD_OUT:], labels[-HELD_OUT:]


def mini_batches(
    images: np.ndarray, labels: np.ndarray, size: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields shuffled mini-batches for ever."""
    random = np.random.RandomState(seed)
    while True:
        order = random.permutation(len(labels))
        for start in range(0, len(labels) - size + 1, size):
            rows = order[start : start + size]
            yield images[rows], labels[rows]


def numbered_batch(number: int, size: int, count: int) -> np.ndarray:
    """The rows, of `count`, that batch `number` of a training has: shuffled epochs, the same in every task."""
    per_epoch = count // size
    order = np.random.RandomState(number // per_epoch).permutation(count)
    start = number % per_epoch * size
    return order[start : start + size]


def build_model(tf, images, labels):
    """Returns (loss, accuracy) of a 3x3 convolution, pooling, and two dense layers."""
    conv = tf.get_variable("conv/kernel", [3, 3, 1, 16], initializer=tf.truncated_normal_initializer(stddev=0.3))
    conv_bias = tf.get_variable("conv/bias", [16], initializer=tf.zeros_initializer())
    hidden = tf.get_variable("hidden/kernel", [4 * 4 * 16, 64], initializer=tf.truncated_normal_initializer(stddev=0.1))
    hidden_bias = tf.get_variable("hidden/bias", [64], initializer=tf.zeros_initializer())
    output = tf.get_variable("output/kernel", [64, 10], initializer=tf.truncated_normal_initializer(stddev=0.1))
    output_bias = tf.get_variable("output/bias", [10], initializer=tf.zeros_initializer())

    net = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, conv, strides=[1, 1, 1, 1], padding="SAME"), conv_bias))
    net = tf.nn.max_pool(net, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    net = tf.reshape(net, [-1, 4 * 4 * 16])
    net = tf.nn.relu(tf.matmul(net, hidden) + hidden_bias)
    logits = tf.matmul(net, output) + output_bias

    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    correct = tf.equal(tf.argmax(logits, 1), labels)
    return loss, tf.reduce_mean(tf.cast(correct, tf.float32))
