"""Trains a small convolutional net on handwritten digits: variables on CPUs of the ps, arithmetic on a GPU per worker.

As clusters/digits, with two differences: workers compute on their first GPU, and a session may place on the CPU what
asks for a GPU and finds none.

    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=ps --task_index=0
    python trainer.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 --job_name=worker --task_index=0
"""

from __future__ import annotations

import argparse
import importlib
import sys

from digits import build_model, load_digits, mini_batches

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
FLAGS = argparse.Namespace()


def main(_):
    tf = importlib.import_module(RUNTIMES[FLAGS.runtime])
    if FLAGS.runtime == "tensorflow":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)

    # A ps needs no GPU, and must not take memory of one.
    config = tf.ConfigProto(allow_soft_placement=True, device_count={"GPU": 0 if FLAGS.job_name == "ps" else 1})
    config.gpu_options.allow_growth = True
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index, config=config)
    if FLAGS.job_name == "ps":
        server.join()
        return

    train_images, train_labels, test_images, test_labels = load_digits()
    is_chief = FLAGS.task_index == 0
    worker = f"/job:worker/task:{FLAGS.task_index}"
    config.device_filters.extend(["/job:ps", worker])
    with tf.Session(server.target, config=config) as session:
        own = [each.name for each in session.list_devices() if f"/task:{FLAGS.task_index}/" in each.name]
    gpus = sorted(name for name in own if "/job:worker/" in name and "/device:GPU:" in name)
    device = gpus[0][gpus[0].index("/device:") :] if gpus else "/device:CPU:0"
    print(f"worker:{FLAGS.task_index} computes on {device}", flush=True)

    setter = tf.train.replica_device_setter(
        ps_device="/job:ps/cpu:0", worker_device=f"{worker}/device:GPU:0", cluster=cluster
    )
    with tf.device(setter):
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        loss, accuracy = build_model(tf, images, labels)
        global_step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss, global_step=global_step)

    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps), tf.train.NanTensorHook(loss)]
    final = tf.train.FinalOpsHook(accuracy, {images: test_images, labels: test_labels})
    if is_chief:
        hooks.append(final)
    batches = mini_batches(train_images, train_labels, FLAGS.batch_size, seed=1 + FLAGS.task_index)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.checkpoint_dir,
        hooks=hooks,
        config=config,
        save_checkpoint_steps=100,
        save_checkpoint_secs=None,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=100,
    ) as session:
        while not session.should_stop():
            batch_images, batch_labels = next(batches)
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
    parser.add_argument("--train_steps", type=int, default=600, help="global steps, summed over all workers")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.002)
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
