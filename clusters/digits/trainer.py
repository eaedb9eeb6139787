"""Trains a small convolutional net on handwritten digits: between-graph replication, asynchronous updates.

Every task runs this file. A ps serves the variables; each worker builds the same graph, pulls the weights,
computes gradients on its own mini-batches and pushes them without waiting for the others. The chief (worker 0)
initialises or restores the model, saves checkpoints and summaries, and prints the held-out accuracy.

    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=ps --task_index=0
    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=worker --task_index=0

`--runtime=tensorflow` runs the same program on real TensorFlow's 1.x API.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator

import numpy as np

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
HELD_OUT = 360  # of 1,797 images
FLAGS = argparse.Namespace()


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


def main(_):
    tf = importlib.import_module(RUNTIMES[FLAGS.runtime])
    if FLAGS.runtime == "tensorflow":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)

    # Create a cluster from the parameter server and worker hosts, and a server for the local task.
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return

    train_images, train_labels, test_images, test_labels = load_digits()
    is_chief = FLAGS.task_index == 0

    # Variables go to the ps tasks in turn, everything else to the local worker.
    worker = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        loss, accuracy = build_model(tf, images, labels)
        global_step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)
        tf.summary.scalar("batch_accuracy", accuracy)

    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps), tf.train.NanTensorHook(loss)]
    final = tf.train.FinalOpsHook(accuracy, {images: test_images, labels: test_labels})
    if is_chief:
        hooks.append(final)

    # A worker needs the ps tasks only: it must not wait for other workers that have not come yet or have finished.
    config = tf.ConfigProto(device_filters=["/job:ps", worker])
    batches = mini_batches(train_images, train_labels, FLAGS.batch_size, seed=1 + FLAGS.task_index)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.checkpoint_dir,
        hooks=hooks,
        config=config,
        save_checkpoint_steps=FLAGS.save_steps,
        save_checkpoint_secs=None,
        save_summaries_steps=50,
        log_step_count_steps=100,
    ) as session:
        while not session.should_stop():
            batch_images, batch_labels = next(batches)
            # A restarted ps is handled inside: the session is made again and restores the last checkpoint.
            session.run(train_op, feed_dict={images: batch_images, labels: batch_labels})

    if is_chief:
        print(f"held-out accuracy: {100 * final.final_ops_values:.2f} %", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # The cluster
    parser.add_argument("--ps_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--worker_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
    parser.add_argument("--task_index", type=int, required=True, help="index of the task within its job")
    # The training
    parser.add_argument("--train_steps", type=int, default=1500, help="global steps, summed over all workers")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.002)
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--save_steps", type=int, default=100, help="global steps between checkpoints")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
