"""Evolution strategies: a population of networks is evaluated on the workers, and they are updated together on the ps.

The ps holds one network, the parent. Each worker makes children of it, which differ by random noise, and finds out
how long each keeps a pole upright; no gradient goes through that. The ps ranks the children of all workers, and moves
the parent towards the noise of the good ones (Salimans et al., "Evolution Strategies as a Scalable Alternative to
Reinforcement Learning", 2017). All of it is one graph, which the client of worker 0 makes; the other workers serve.

    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=ps --task_index=0
    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=worker --task_index=0

`--runtime=tensorflow` runs the same program on real TensorFlow's 1.x API.
"""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np
from pole import NETWORK_SIZE, STEPS, balance

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
FLAGS = argparse.Namespace()


def ranked(tf, scores):
    """-0.5 for the worst of the scores [n] to 0.5 for the best: only the order counts, not by how much."""
    count = scores.shape.as_list()[0]
    worst_first = tf.nn.top_k(-scores, count)[1]
    return tf.cast(tf.invert_permutation(worst_first), tf.float32) / (count - 1) - 0.5


def generation(tf, parent, workers):
    """Returns (the gradient of the parent [NETWORK_SIZE], the scores of all children)."""
    pairs = FLAGS.population // (2 * workers)
    noises, scores = [], []
    for number in range(workers):
        with tf.device(f"/job:worker/task:{number}"):
            # Children come in pairs with opposite noise, of which much cancels out that has nothing to do with them.
            noise = tf.random_normal([pairs, NETWORK_SIZE])
            children = parent + FLAGS.noise * tf.concat([noise, -noise], 0)
            score = balance(tf, children)
            score.set_shape([2 * pairs])
            noises.append(noise)
            scores.append(score)
    # Scores and ranks are all that the tasks tell each other of the children: the noise stays where it was made.
    with tf.device("/job:ps/task:0"):
        all_scores = tf.concat(scores, 0)
        ranks = tf.split(ranked(tf, all_scores), workers)
    towards = []
    for number in range(workers):
        with tf.device(f"/job:worker/task:{number}"):
            difference = ranks[number][:pairs] - ranks[number][pairs:]
            towards.append(tf.reduce_sum(tf.expand_dims(difference, 1) * noises[number], 0))
    with tf.device("/job:ps/task:0"):
        return -tf.add_n(towards) / (2 * pairs * workers * FLAGS.noise), all_scores


def main(_):
    tf = importlib.import_module(RUNTIMES[FLAGS.runtime])
    if FLAGS.runtime == "tensorflow":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)

    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if (FLAGS.job_name, FLAGS.task_index) != ("worker", 0):
        server.join()
        return

    tf.set_random_seed(FLAGS.seed)
    with tf.device("/job:ps/task:0"):
        global_step = tf.train.get_or_create_global_step()
        parent = tf.get_variable("parent", [NETWORK_SIZE], initializer=tf.zeros_initializer())
    gradient, scores = generation(tf, parent, cluster.num_tasks("worker"))
    with tf.device("/job:ps/task:0"):
        optimizer = tf.train.AdamOptimizer(FLAGS.learning_rate)
        train_op = optimizer.apply_gradients([(gradient, parent)], global_step=global_step)
        tf.summary.histogram("lasted", scores)
        tf.summary.scalar("lasted_mean", tf.reduce_mean(scores))
    with tf.device("/job:worker/task:0"):
        trials = balance(tf, tf.tile(tf.expand_dims(parent, 0), [FLAGS.trials, 1]))

    final = tf.train.FinalOpsHook(trials)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        checkpoint_dir=FLAGS.checkpoint_dir,
        hooks=[tf.train.StopAtStepHook(last_step=FLAGS.generations), final],
        save_checkpoint_steps=10,
        save_checkpoint_secs=None,
        save_summaries_steps=5,
        log_step_count_steps=10,
    ) as session:
        while not session.should_stop():
            step, lasted, _ = session.run([global_step, scores, train_op])
            print(f"generation {step}: the children last {lasted.mean():.1f} of {STEPS} steps", flush=True)

    lasted = final.final_ops_values
    print(f"the parent lasts, of {STEPS} steps: {lasted.mean():.2f}, to the end in {np.mean(lasted == STEPS):.0%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # The cluster
    parser.add_argument("--ps_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--worker_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
    parser.add_argument("--task_index", type=int, required=True, help="index of the task within its job")
    # The evolution
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--population", type=int, default=64, help="children of a generation, on all workers together")
    parser.add_argument("--noise", type=float, default=0.3, help="standard deviation of what differs in a child")
    parser.add_argument("--learning_rate", type=float, default=0.3)
    parser.add_argument("--trials", type=int, default=50, help="of the parent at the end, from different starts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
