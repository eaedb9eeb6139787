"""Fits a line to numbered records. Each record counts exactly once an epoch while tasks are killed.

The records are in shards of a work queue on the parameter server. A step of a worker confirms its records and adds them
to the variables; `counts` has how often each record was used.

    python trainer.py --ps_hosts=... --worker_hosts=... --job_name=worker --task_index=0 --checkpoint_dir=...
"""

import time

import numpy as np

import dtf as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "comma-separated host:port of the parameter server")
flags.DEFINE_string("worker_hosts", "", "comma-separated host:port of the workers")
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "number of this task within its job")
flags.DEFINE_string("checkpoint_dir", None, "folder of checkpoints")
flags.DEFINE_integer("records", 2000, "how many records there are")
flags.DEFINE_integer("shard_records", 50, "records of a shard")
flags.DEFINE_integer("batch_size", 10, "records of a step")
flags.DEFINE_integer("num_epochs", 2, "how often each record counts")
flags.DEFINE_integer("save_steps", 50, "steps between two checkpoints")
flags.DEFINE_float("lease_s", 5.0, "seconds without a step after which a shard goes to another worker")
flags.DEFINE_float("step_s", 0.0, "seconds that a worker pauses after each step")
FLAGS = flags.FLAGS


def data():
    """Points near the line y = 3 x + 2."""
    random = np.random.RandomState(0)
    x = random.uniform(-1, 1, FLAGS.records).astype(np.float32)
    return x, 3 * x + 2 + random.normal(0, 0.1, FLAGS.records).astype(np.float32)


def build():
    """Returns the work queue, the feeds (numbers of records, x, y), the train op, and what to print at the end."""
    tf.train.get_or_create_global_step()
    shards = tf.train.WorkQueue.ranges(FLAGS.records, FLAGS.shard_records)
    queue = tf.train.WorkQueue(shards, FLAGS.num_epochs, lease_s=FLAGS.lease_s)
    numbers = tf.placeholder(tf.int64, [None])
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    slope = tf.get_variable("slope", [], initializer=tf.zeros_initializer())
    offset = tf.get_variable("offset", [], initializer=tf.zeros_initializer())
    counts = tf.get_variable("counts", [FLAGS.records], tf.int64, tf.zeros_initializer(), trainable=False)
    loss = tf.reduce_mean(tf.square(slope * x + offset - y))
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    counted = tf.scatter_add(counts, numbers, tf.ones_like(numbers))
    train = queue.confirming(tf.group(optimizer.minimize(loss, tf.train.get_global_step()), counted.op))
    return queue, (numbers, x, y), train, (counts, slope, offset)


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{FLAGS.task_index}")):
        queue, feeds, train, results = build()
    x, y = data()
    is_chief = FLAGS.task_index == 0
    steps = 0
    # Workers come and go: a session waits for the parameter server and its own task alone.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{FLAGS.task_index}"])
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief,
        FLAGS.checkpoint_dir,
        save_checkpoint_steps=FLAGS.save_steps,
        save_checkpoint_secs=None,
        config=config,
    ) as session:
        for lease in queue.leases(session, f"worker:{FLAGS.task_index}"):
            begin, end = map(int, lease.work.split(":"))
            with lease:
                for at in range(begin + lease.position, end, FLAGS.batch_size):
                    batch = np.arange(at, min(at + FLAGS.batch_size, end))
                    values = dict(zip(feeds, (batch, x[batch], y[batch]), strict=True))
                    session.run(train, {**values, **lease.feed(int(batch[-1]) + 1 - begin)})
                    steps += 1
                    time.sleep(FLAGS.step_s)
                lease.finish()
        if is_chief:
            counts, slope, offset = session.run(results)
            wrong = np.flatnonzero(counts != FLAGS.num_epochs)
            print(f"y = {slope:.2f} x + {offset:.2f}")
            print(f"records counted {FLAGS.num_epochs} times: {FLAGS.records - wrong.size} of {FLAGS.records}")
    print(f"worker:{FLAGS.task_index} made {steps} steps")


if __name__ == "__main__":
    tf.app.run()
