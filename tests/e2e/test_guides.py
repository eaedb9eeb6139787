"""The programs of the well-known guides to distributed TensorFlow must run as they stand there."""

from __future__ import annotations

import pytest

import dtf as tf
from tests.ports import free_ports


def addresses(count: int) -> list[str]:
    return [f"localhost:{port}" for port in free_ports(count)]


def test_hello_distributed_tensorflow():
    with tf.Graph().as_default():
        c = tf.constant("Hello, distributed TensorFlow!")
        server = tf.train.Server.create_local_server()
        try:
            with tf.Session(server.target) as sess:
                assert sess.run(c) == b"Hello, distributed TensorFlow!"
        finally:
            server.stop()


def test_the_cluster_spec_of_the_guide_answers_as_printed():
    cluster = tf.train.ClusterSpec({"ps": ["ps0:1", "ps1:2"], "worker": ["w0:3", "w1:4", "w2:5"]})
    assert cluster.jobs == ["ps", "worker"]
    assert cluster.as_dict() == {"ps": ["ps0:1", "ps1:2"], "worker": ["w0:3", "w1:4", "w2:5"]}
    assert cluster.job_tasks("worker") == ["w0:3", "w1:4", "w2:5"]
    assert cluster.num_tasks("worker") == 3
    assert cluster.task_address("worker", 2) == "w2:5"
    assert cluster.task_indices("worker") == [0, 1, 2]
    jobs = {job.name: dict(job.tasks) for job in cluster.as_cluster_def().job}
    assert jobs == {"ps": {0: "ps0:1", 1: "ps1:2"}, "worker": {0: "w0:3", 1: "w1:4", 2: "w2:5"}}


def test_two_servers_of_one_local_job_serve_each_other():
    cluster = tf.train.ClusterSpec({"local": addresses(2)})
    servers = [tf.train.Server(cluster, job_name="local", task_index=index) for index in range(2)]
    try:
        with tf.Graph().as_default():
            with tf.device("/job:local/task:1"):
                far = tf.constant(20.0)
            with tf.device("/job:local/task:0"), tf.Session(servers[0].target) as sess:
                assert sess.run(far + 1.0) == 21.0
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def ps_and_two_workers():
    ps, worker0, worker1 = addresses(3)
    cluster = tf.train.ClusterSpec({"ps": [ps], "worker": [worker0, worker1]})
    tasks = (("ps", 0), ("worker", 0), ("worker", 1))
    servers = [tf.train.Server(cluster, job_name=job, task_index=index) for job, index in tasks]
    yield servers
    for server in servers:
        server.stop()


def test_a_value_that_one_worker_changes_on_the_ps_is_seen_by_all(ps_and_two_workers):
    """The walk-through of three servers in one process: worker1 adds, and writes back to the ps."""
    ps, worker0, worker1 = ps_and_two_workers
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            a = tf.Variable(3.0, name="a")
            b = tf.constant(4.0)
        with tf.device("/job:worker/task:0"):
            add_node = tf.add(a, b)
        with tf.device("/job:worker/task:1"):
            update = tf.assign(a, tf.constant(9.0) + b)
        with tf.Session(worker0.target) as sess:
            sess.run(tf.global_variables_initializer())
            assert sess.run(add_node) == 7.0
        with tf.Session(worker1.target) as sess:
            assert sess.run(update) == 13.0
        with tf.Session(ps.target) as sess:
            assert sess.run(a) == 13.0


def test_a_model_on_several_devices_trains_by_one_client(ps_and_two_workers):
    """Variables on the ps, layers on a worker, gradients back: the guide's device example, finished."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            weights_1 = tf.Variable(tf.fill([2, 3], 0.5))
            biases_1 = tf.Variable(tf.zeros([3]))
            weights_2 = tf.Variable(tf.fill([3, 1], 0.5))
            biases_2 = tf.Variable(tf.zeros([1]))
        with tf.device("/job:worker/task:1"):
            inputs, labels = tf.constant([[1.0, 2.0]]), tf.constant([[3.0]])
            layer_1 = tf.nn.relu(tf.matmul(inputs, weights_1) + biases_1)
            logits = tf.nn.relu(tf.matmul(layer_1, weights_2) + biases_2)
            loss = tf.reduce_sum(tf.square(logits - labels))
            train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        with tf.Session(ps_and_two_workers[1].target) as sess:
            sess.run(tf.global_variables_initializer())
            first = sess.run(loss)
            for _ in range(50):
                sess.run(train_op)
            assert sess.run(loss) < first / 100


def test_the_trainer_skeleton_stops_at_its_step(ps_and_two_workers, tmp_path):
    _, worker0, _ = ps_and_two_workers
    cluster = tf.train.ClusterSpec(worker0.server_def.cluster)
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=cluster)):
            x = tf.Variable(5.0, name="x")
            loss = tf.square(x)
            global_step = tf.contrib.framework.get_or_create_global_step()
            train_op = tf.train.AdagradOptimizer(0.01).minimize(loss, global_step=global_step)
        hooks = [tf.train.StopAtStepHook(last_step=20)]
        runs = 0
        with tf.train.MonitoredTrainingSession(
            master=worker0.target, is_chief=True, checkpoint_dir=str(tmp_path), hooks=hooks
        ) as mon_sess:
            while not mon_sess.should_stop():
                mon_sess.run(train_op)
                runs += 1
    assert runs == 20
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-20")
