"""Trains the handwritten digits without parameter servers: every worker has the whole model, and their gradients are
averaged in a ring.

Every task runs this file. The workers take their parts of the same batch, compute gradients, have them reduced round
the ring (each sends and receives at most twice the size of the model, however many there are), and all make the same
update. The chief (worker 0) gives the others its first values, saves checkpoints and summaries, and prints the
held-out accuracy.

    python trainer.py --worker_hosts=localhost:2222,localhost:2223 --job_name=worker --task_index=0
    python trainer.py --worker_hosts=localhost:2222,localhost:2223 --job_name=worker --task_index=1

`--runtime=tensorflow` runs the same program on real TensorFlow's 1.x API, which has the operations but not the
optimizer around them: see tensorflow_ring.py.
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
    tf.logging.set_verbosity(tf.logging.INFO)
    server_config = None
    if FLAGS.runtime == "tensorflow":
        import tensorflow_ring

        tf.disable_v2_behavior()
        all_reduce, server_config = tensorflow_ring.AllReduceOptimizer, tensorflow_ring.server_config()
    else:
        all_reduce = tf.train.AllReduceOptimizer

    cluster = tf.train.ClusterSpec({"worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index, config=server_config)
    train_images, train_labels, test_images, test_labels = load_digits()
    is_chief = FLAGS.task_index == 0
    workers = cluster.num_tasks("worker")

    tf.set_random_seed(FLAGS.seed)
    # Everything is on this worker, the variables too.
    with tf.device(f"/job:worker/task:{FLAGS.task_index}"):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        loss, accuracy = build_model(tf, images, labels)
        optimizer = all_reduce(tf.train.MomentumOptimizer(FLAGS.learning_rate, 0.9), workers)
        train_op = optimizer.minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)

    hooks = [optimizer.make_session_run_hook(is_chief, last_step=FLAGS.train_steps)]
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

    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.checkpoint_dir,
        hooks=hooks,
        save_checkpoint_steps=FLAGS.save_steps,
        save_checkpoint_secs=None,
        save_summaries_steps=50,
        log_step_count_steps=100,
    ) as session:
        while not session.should_stop():
            # A lost worker is handled inside: the others wait until it is back, and go on where they are.
            step, value = session.run_step_fn(train)
            if step % FLAGS.log_steps == 0:
                print(f"step {step}: loss of its part {value:.7f}", flush=True)

    if is_chief:
        print(f"held-out accuracy: {100 * final.final_ops_values:.2f} %", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # The cluster
    parser.add_argument("--worker_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--job_name", default="worker", choices=["worker"])
    parser.add_argument("--task_index", type=int, required=True, help="index of the task within its job")
    # The training
    parser.add_argument("--train_steps", type=int, default=400)
    parser.add_argument("--batch_size", type=int, default=120, help="of all workers together")
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1, help="of the variables' first values")
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--save_steps", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--log_steps", type=int, default=50, help="steps between the losses that are printed")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
