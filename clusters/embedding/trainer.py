"""Learns embeddings of words from sentences: tables in pieces on several ps, sparse reads and sparse updates.

Every task runs this file. A worker takes the rows of the words around a missing one from the pieces where they are,
predicts the missing one by sampled softmax, and sends back gradients for these rows only. The chief tells at the end
how many of a word's nearest neighbours are of its group.

    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=ps --task_index=0
    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=worker --task_index=0

`--runtime=tensorflow` runs the same program on real TensorFlow's 1.x API.
"""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np
from words import WORDS, Language, group_of_words

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
NEIGHBOURS = 10
FLAGS = argparse.Namespace()


def make_partitioner(tf, ps_count):
    """How the tables are cut: as many pieces as ps, or pieces of at most or at least so many bytes."""
    if FLAGS.partitioner == "fixed_size":
        return tf.fixed_size_partitioner(ps_count)
    if FLAGS.partitioner == "axis_size":
        return tf.variable_axis_size_partitioner(256 << 10)
    return tf.min_max_variable_partitioner(max_partitions=ps_count, min_slice_size=64 << 10)


def make_optimizer(tf):
    # A row's gradient is small, a share of the batch's mean: an accumulator that begins with more would swamp it.
    if FLAGS.optimizer == "adagrad":
        return tf.train.AdagradOptimizer(FLAGS.learning_rate or 0.1, initial_accumulator_value=1e-6)
    if FLAGS.optimizer == "ftrl":
        return tf.train.FtrlOptimizer(FLAGS.learning_rate or 0.1, initial_accumulator_value=1e-6)
    return tf.train.AdamOptimizer(FLAGS.learning_rate or 0.01)


def build_model(tf, context, missing):
    """Returns (the loss, the table of embeddings): the mean of the words around predicts the missing one."""
    bound = 0.5 / FLAGS.width
    with tf.variable_scope("words"):
        table = tf.get_variable("table", [WORDS, FLAGS.width], initializer=tf.random_uniform_initializer(-bound, bound))
        weights = tf.get_variable(
            "weights", [WORDS, FLAGS.width], initializer=tf.truncated_normal_initializer(stddev=FLAGS.width**-0.5)
        )
        biases = tf.get_variable("biases", [WORDS], initializer=tf.zeros_initializer())
    around = tf.nn.embedding_lookup_sparse(table, context, None, partition_strategy="div", combiner="mean")
    losses = tf.nn.sampled_softmax_loss(
        weights=list(weights),
        biases=list(biases),
        labels=missing,
        inputs=around,
        num_sampled=FLAGS.num_sampled,
        num_classes=WORDS,
        partition_strategy="div",
    )
    return tf.reduce_mean(losses), table


def nearest(tf, table, words):
    """The NEIGHBOURS + 1 words whose embeddings point most nearly where those of `words` do; they themselves first."""
    all_rows = tf.nn.l2_normalize(tf.convert_to_tensor(table), 1)
    rows = tf.nn.l2_normalize(tf.nn.embedding_lookup(table, words, partition_strategy="div"), 1)
    return tf.nn.top_k(tf.matmul(rows, all_rows, transpose_b=True), NEIGHBOURS + 1)[1]


def main(_):
    tf = importlib.import_module(RUNTIMES[FLAGS.runtime])
    if FLAGS.runtime == "tensorflow":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)

    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return

    is_chief = FLAGS.task_index == 0
    language = Language(seed=1 + FLAGS.task_index)
    asked = np.random.RandomState(0).choice(WORDS, 500, replace=False)

    tf.set_random_seed(FLAGS.seed)
    # The pieces of each table go to the ps tasks in turn.
    worker = f"/job:worker/task:{FLAGS.task_index}"
    setter = tf.train.replica_device_setter(worker_device=worker, cluster=cluster)
    partitioner = make_partitioner(tf, cluster.num_tasks("ps"))
    with tf.device(setter), tf.variable_scope("", partitioner=partitioner):
        global_step = tf.train.get_or_create_global_step()
        context = tf.sparse_placeholder(tf.int64, name="context")
        missing = tf.placeholder(tf.int64, [None, 1], name="missing")
        loss, table = build_model(tf, context, missing)
        train_op = make_optimizer(tf).minimize(loss, global_step=global_step)
        neighbours = nearest(tf, table, asked)
        tf.summary.scalar("loss", loss)

    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps), tf.train.NanTensorHook(loss)]
    final = tf.train.FinalOpsHook(neighbours)
    if is_chief:
        print("pieces:", ", ".join(f"{piece.op.name} {piece.shape} {piece.device}" for piece in table), flush=True)
        hooks.append(final)

    config = tf.ConfigProto(device_filters=["/job:ps", worker])
    steps = 0
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
            batch = language.sentences(FLAGS.batch_size)
            feed = {context: (batch.indices, batch.words, batch.shape), missing: batch.missing}
            value, _ = session.run([loss, train_op], feed_dict=feed)
            if steps % FLAGS.log_steps == 0:
                print(f"step {steps}: loss {value:.7f}", flush=True)
            steps += 1

    if is_chief:
        groups = group_of_words()
        found = groups[final.final_ops_values[:, 1:]] == groups[asked][:, np.newaxis]
        print(f"neighbours of the same group: {100 * found.mean():.2f} %", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # The cluster
    parser.add_argument("--ps_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--worker_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
    parser.add_argument("--task_index", type=int, required=True, help="index of the task within its job")
    # The model
    parser.add_argument("--width", type=int, default=32, help="of an embedding")
    parser.add_argument("--partitioner", choices=["fixed_size", "axis_size", "min_max"], default="fixed_size")
    parser.add_argument("--num_sampled", type=int, default=64, help="classes that a step compares with")
    # The training
    parser.add_argument("--optimizer", choices=["adagrad", "adam", "ftrl"], default="adagrad")
    parser.add_argument("--learning_rate", type=float, help="default: one that suits the optimizer")
    parser.add_argument("--train_steps", type=int, default=500, help="global steps, summed over all workers")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1, help="of the variables' first values and the sampling")
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--save_steps", type=int, default=200, help="global steps between checkpoints")
    parser.add_argument("--log_steps", type=int, default=50, help="a worker's steps between the losses it prints")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
