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

from digits import build_model, load_digits, mini_batches

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
FLAGS = argparse.Namespace()


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
    if FLAGS.runtime == "dtf":
        # How many updates of others come between a pull and its push; each worker is a run of its own in TensorBoard.
        folder = FLAGS.checkpoint_dir if is_chief else os.path.join(FLAGS.checkpoint_dir, f"worker-{FLAGS.task_index}")
        hooks.append(tf.train.StalenessHook(train_op, output_dir=folder))
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
