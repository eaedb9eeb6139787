"""Sessions that bring their cluster to servers that know of none."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf.server import Server
from dtf.wire import errors
from tests.ports import free_ports


@pytest.fixture
def addresses():
    found = [f"127.0.0.1:{port}" for port in free_ports(2)]
    with Server({"idle": [found[0]]}, "idle", 0), Server({"idle": [found[1]]}, "idle", 0), tf.Graph().as_default():
        yield found


def config_for(addresses, **more):
    cluster = tf.train.ClusterSpec({"other": {0: addresses[0], 3: addresses[1]}})
    rpc_options = {"use_rpc_for_inprocess_master": True}
    return tf.ConfigProto(cluster_def=cluster.as_cluster_def(), rpc_options=rpc_options, **more)


def test_the_servers_are_tasks_of_the_sessions_cluster(addresses):
    with tf.device("/job:other/task:3"):
        v = tf.Variable(2.0)
    with tf.device("/job:other/task:0"):
        y = v * 3.0
    with tf.Session(f"grpc://{addresses[0]}", config=config_for(addresses)) as session:
        session.run(v.initializer)
        metadata = tf.RunMetadata()
        assert session.run(y, options=tf.RunOptions(trace_level=3), run_metadata=metadata) == 6.0
        names = [f"/job:other/replica:0/task:{index}/device:CPU:0" for index in (0, 3)]
        assert sorted(device.name for device in session.list_devices()) == names
        assert sorted(device.device for device in metadata.step_stats.dev_stats) == names


def test_such_a_session_has_its_own_state_unless_it_shares(addresses):
    with tf.device("/job:other/task:3"):
        v = tf.Variable(2.0)
    with tf.Session(f"grpc://{addresses[0]}", config=config_for(addresses)) as session:
        session.run(v.initializer)
    with (
        tf.Session(f"grpc://{addresses[0]}", config=config_for(addresses)) as session,
        pytest.raises(errors.FailedPreconditionError),
    ):
        session.run(v)
    shared = config_for(addresses)
    shared.experimental.share_session_state_in_clusterspec_propagation = True
    with tf.Session(f"grpc://{addresses[0]}", config=shared) as session:
        session.run(v.initializer)
    with tf.Session(f"grpc://{addresses[0]}", config=shared) as session:
        assert session.run(v) == 2.0


def test_a_server_that_is_not_in_the_cluster_refuses(addresses):
    config = config_for(["127.0.0.1:1", addresses[1]])
    with (
        tf.Session(f"grpc://{addresses[0]}", config=config) as session,
        pytest.raises(errors.InvalidArgumentError, match="no task at"),
    ):
        session.run(tf.constant(1.0))


def test_a_malformed_cluster_of_a_peer_is_an_invalid_argument(addresses):
    config = config_for(addresses)
    config.cluster_def.job[0].tasks[-2] = addresses[0]
    with (
        tf.Session(f"grpc://{addresses[0]}", config=config) as session,
        pytest.raises(errors.InvalidArgumentError, match="Malformed ConfigProto.cluster_def: The task index -2"),
    ):
        session.run(tf.constant(1.0))


def test_a_local_session_brings_no_cluster(addresses):
    with (
        tf.Session(config=config_for(addresses)) as session,
        pytest.raises(errors.InvalidArgumentError, match="cluster_def"),
    ):
        session.run(tf.constant(1.0))


def test_placement_is_logged_when_asked_for(caplog):
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        x = tf.placeholder(tf.float32, name="x")
        session.run(tf.sqrt(x, name="root"), {x: 1.0})
        session.run("root:0", {x: 4.0})
    assert caplog.messages.count("root: (Sqrt): /job:localhost/replica:0/task:0/device:CPU:0") == 1
