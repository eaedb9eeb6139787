"""Trains the handwritten digits by in-graph replication: one client, one graph, a tower on each worker.

The variables are on the ps tasks. Each tower is a copy of the model that computes the gradients for its part of the
batch on its worker; their mean is taken where the variable is, and applied. All of it is one graph, which the client
of worker 0 makes; the other workers only serve.

    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=ps --task_index=0
    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=worker --task_index=0

`--runtime=tensorflow` runs the same program on real TensorFlow's 1.x API.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from digits import build_model, load_digits, numbered_batch

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
FLAGS = argparse.Namespace()


def mean_gradients(tf, gradients_of_towers):
    """[(mean gradient, variable)] of [[(gradient, variable) of a tower] of all towers], each where the variable is."""
    means = []
    for pairs in zip(*gradients_of_towers, strict=True):
        variable = pairs[0][1]
        with tf.device(variable.device):
            means.append((tf.add_n([gradient for gradient, _ in pairs]) / len(pairs), variable))
    return means


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

    train_images, train_labels, test_images, test_labels = load_digits()
    tf.set_random_seed(FLAGS.seed)
    global_step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(FLAGS.learning_rate, 0.9)
    towers, gradients = [], []
    for number in range(cluster.num_tasks("worker")):
        setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{number}", cluster=cluster)
        with tf.device(setter), tf.variable_scope(tf.get_variable_scope(), reuse=number > 0):
            images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
            labels = tf.placeholder(tf.int64, [None], name="labels")
            loss, accuracy = build_model(tf, images, labels)
            gradients.append(optimizer.compute_gradients(loss))
        towers.append((images, labels, loss, accuracy))
    # The slots of the optimizer are beside the variables; the mean of equal parts is that of the whole batch.
    train_op = optimizer.apply_gradients(mean_gradients(tf, gradients), global_step=global_step)
    loss = tf.add_n([tower[2] for tower in towers]) / len(towers)
    tf.summary.scalar("loss", loss)

    images, labels, _, accuracy = towers[0]
    final = tf.train.FinalOpsHook(accuracy, {images: test_images, labels: test_labels})
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps), tf.train.NanTensorHook(loss), final]

    def train(step_context):
        step = step_context.session.run(global_step)
        rows = numbered_batch(step, FLAGS.batch_size, len(train_labels))
        feed = {}
        for number, (images, labels, _, _) in enumerate(towers):
            part = rows[number :: len(towers)]
            feed[images], feed[labels] = train_images[part], train_labels[part]
        return step, step_context.run_with_hooks([loss, train_op], feed_dict=feed)[0]

    with tf.train.MonitoredTrainingSession(
        master=server.target,
        checkpoint_dir=FLAGS.checkpoint_dir,
        hooks=hooks,
        save_checkpoint_steps=FLAGS.save_steps,
        save_checkpoint_secs=None,
        save_summaries_steps=50,
        log_step_count_steps=100,
    ) as session:
        while not session.should_stop():
            step, value = session.run_step_fn(train)
            if step % FLAGS.log_steps == 0:
                print(f"step {step}: loss {value:.7f}", flush=True)
    print(f"held-out accuracy: {100 * final.final_ops_values:.2f} %", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # The cluster
    parser.add_argument("--ps_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--worker_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
    parser.add_argument("--task_index", type=int, required=True, help="index of the task within its job")
    # The training
    parser.add_argument("--train_steps", type=int, default=400)
    parser.add_argument("--batch_size", type=int, default=120, help="of all towers together")
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1, help="of the variables' first values")
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--save_steps", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--log_steps", type=int, default=50, help="steps between the losses that are printed")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
