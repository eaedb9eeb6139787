"""A trainer for TensorFlow 1.x: between-graph replication with tf.app.flags and MonitoredTrainingSession.

Softmax regression on points of three classes. There is nothing of dtf in it.
"""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("job_name", "", "One of 'ps', 'worker'")
flags.DEFINE_integer("task_index", 0, "Index of task within the job")
flags.DEFINE_string("train_dir", "checkpoints", "Folder of checkpoints")
flags.DEFINE_integer("train_steps", 300, "Number of global steps")
FLAGS = flags.FLAGS


def examples(seed, count=300):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 3, count)
    centers = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]], np.float32)
    return (centers[labels] + random.normal(scale=0.7, size=(count, 2))).astype(np.float32), labels


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()

    worker = "/job:worker/task:" + str(FLAGS.task_index)
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, 2])
        y = tf.placeholder(tf.int64, [None])
        with tf.variable_scope("softmax"):
            weights = tf.get_variable("weights", [2, 3])
            biases = tf.get_variable("biases", [3], initializer=tf.zeros_initializer())
        logits = tf.nn.xw_plus_b(x, weights, biases)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        global_step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)

    test = examples(1)
    final = tf.train.FinalOpsHook(accuracy, {x: test[0], y: test[1]})
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps), final]
    points, labels = examples(2 + FLAGS.task_index)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=(FLAGS.task_index == 0),
        checkpoint_dir=FLAGS.train_dir,
        hooks=hooks,
    ) as session:
        while not session.should_stop():
            session.run(train_op, feed_dict={x: points, y: labels})
    print("held-out accuracy: %.1f%%" % (100 * final.final_ops_values))


if __name__ == "__main__":
    tf.app.run()
