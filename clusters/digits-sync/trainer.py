"""Trains the handwritten digits with synchronous updates: between-graph replication and SyncReplicasOptimizer.

Every task runs this file. The workers take their parts of the same batch, compute gradients for the same values of
the variables, and wait while the mean of all is applied. So the losses are those of one worker with the whole batch,
however many share it.

    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=ps --task_index=0
    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=worker --task_index=0

`--backup_workers=1` does not wait for the slowest one. `--runtime=tensorflow` runs the same program on real
TensorFlow's 1.x API.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from digits import build_model, load_digits, numbered_batch

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
FLAGS = argparse.Namespace()


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

    train_images, train_labels, test_images, test_labels = load_digits()
    is_chief = FLAGS.task_index == 0
    workers = cluster.num_tasks("worker")

    tf.set_random_seed(FLAGS.seed)
    worker = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        loss, accuracy = build_model(tf, images, labels)
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.MomentumOptimizer(FLAGS.learning_rate, 0.9),
            replicas_to_aggregate=workers - FLAGS.backup_workers,
            total_num_replicas=workers,
        )
        train_op = optimizer.minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)

    # Without tokens to start with, nobody computes a gradient for a step that has been made already.
    hooks = [optimizer.make_session_run_hook(is_chief, num_tokens=0)]
    hooks += [tf.train.StopAtStepHook(last_step=FLAGS.train_steps), tf.train.NanTensorHook(loss)]
    final = tf.train.FinalOpsHook(accuracy, {images: test_images, labels: test_labels})
    if is_chief:
        hooks.append(final)

    def train(step_context):
        # The step names the batch, of which everybody takes his part, also who has just been restarted.
        step = step_context.session.run(global_step)
        rows = numbered_batch(step, FLAGS.batch_size, len(train_labels))[FLAGS.task_index :: workers]
        feed = {images: train_images[rows], labels: train_labels[rows]}
        return step, step_context.run_with_hooks([loss, train_op], feed_dict=feed)[0]

    config = tf.ConfigProto(device_filters=["/job:ps", worker])
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
        # TensorFlow's thread of updates waits at the end for gradients that nobody computes any more.
        stop_grace_period_secs=5,
    ) as session:
        while not session.should_stop():
            step, value = session.run_step_fn(train)
            if step % FLAGS.log_steps == 0:
                print(f"step {step}: loss of its part {value:.7f}", flush=True)

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
    parser.add_argument("--train_steps", type=int, default=400)
    parser.add_argument("--batch_size", type=int, default=120, help="of all workers together")
    parser.add_argument("--backup_workers", type=int, default=0, help="how many of the workers no step waits for")
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1, help="of the variables' first values")
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--save_steps", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--log_steps", type=int, default=50, help="steps between the losses that are printed")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
