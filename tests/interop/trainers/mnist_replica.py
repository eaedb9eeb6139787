"""Between-graph replication with a Supervisor: a ps and a worker, each with its server, and a synchronous optimizer."""

import socket

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)


holders = [socket.socket() for _ in range(2)]
for holder in holders:
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server can listen beside it, and no other program
    holder.bind(("localhost", 0))
ports = [holder.getsockname()[1] for holder in holders]
cluster = tf.train.ClusterSpec({"ps": ["localhost:%d" % ports[0]], "worker": ["localhost:%d" % ports[1]]})  # noqa: UP031
ps = tf.train.Server(cluster, job_name="ps", task_index=0)
server = tf.train.Server(cluster, job_name="worker", task_index=0)
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=cluster)):
    global_step = tf.Variable(0, name="global_step", trainable=False)
    start = random.normal(size=(16, 5)).astype(np.float32) * 0.3
    hidden_weights = tf.Variable(start, name="hid_w")
    softmax_weights = tf.Variable(np.linspace(-1, 1, 15).reshape(5, 3).astype(np.float32), name="sm_w")
    x = tf.placeholder(tf.float32, [None, 16])
    y_ = tf.placeholder(tf.float32, [None, 3])
    y = tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(x, hidden_weights)), softmax_weights))
    cross_entropy = -tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)))
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.01), 1, total_num_replicas=1)
    train = optimizer.minimize(cross_entropy, global_step=global_step)
tokens = optimizer.get_init_tokens_op()
runner = optimizer.get_chief_queue_runner()
supervisor = tf.train.Supervisor(
    is_chief=True, init_op=tf.global_variables_initializer(), local_init_op=optimizer.chief_init_op,
    ready_for_local_init_op=optimizer.ready_for_local_init_op, recovery_wait_secs=1, global_step=global_step,
)  # fmt: skip
config = tf.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", "/job:worker/task:0"])
LOSSES = []
with supervisor.prepare_or_wait_for_session(server.target, config=config) as session:
    supervisor.start_queue_runners(session, [runner])
    session.run(tokens)
    for _ in range(5):
        feeds = {x: random.normal(size=(4, 16)), y_: np.eye(3)[random.randint(0, 3, 4)]}
        LOSSES.append(float(session.run([cross_entropy, train], feeds)[0]))
    LOSSES.append(int(session.run(global_step)))
    supervisor.request_stop()
