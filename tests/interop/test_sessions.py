"""Clients, masters and workers of the two kinds in one cluster: each pair must train the same model."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import dtf as tf
from dtf.server import Server
from dtf.wire import errors
from dtf.wire.pb import config_pb2
from tests.interop import tensorflow_process
from tests.interop.tensorflow_process import needs_tensorflow, tensorflow_server
from tests.ports import free_ports

pytestmark = needs_tensorflow

# One program for both: build, train, and say what came of it. `tf`, `np` and `target` are given.
PROGRAM = """
with tf.Graph().as_default():
    tf.set_random_seed(1)
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
        r = tf.get_variable("r", [2], use_resource=True, initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        y = tf.placeholder(tf.float32, [None, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        grad, = tf.gradients(loss, [w])
        text = tf.constant([b"some", b"strings"])
        big = tf.reduce_sum(tf.fill([300, 1000], 1.0) * r[0])
    with tf.device("/job:ps/task:0"):
        train = tf.assign_sub(w, 0.1 * grad)
        with tf.control_dependencies([train]):
            count = tf.assign_add(step, 1)
        moved = tf.identity(text)
    random = np.random.RandomState(0)
    xs = random.normal(size=(32, 3)).astype(np.float32)
    ys = xs @ np.array([[1.0], [2.0], [-1.0]], np.float32)
    result = {}
    with tf.Session(target) as session:
        session.run([w.initializer, step.initializer, r.initializer])
        for _ in range(100):
            session.run(count, {x: xs, y: ys})
        result["loss"] = float(session.run(loss, {x: xs, y: ys}))
        result["step"] = int(session.run(step))
        result["text"] = [word.decode() for word in session.run(moved)]
        result["big"] = float(session.run(big))
        result["callable"] = float(session.make_callable(loss, [x, y])(xs, ys))
        result["devices"] = sorted(device.name for device in session.list_devices())
        try:
            session.run(loss, {y: ys})
        except tf.errors.InvalidArgumentError as error:
            result["unfed"] = "must feed a value for placeholder tensor 'x'" in error.message
"""


def dtf_server(cluster, job, index):
    return Server(cluster, job, index)


def addresses():
    ps, worker = free_ports(2)
    return {"ps": [f"127.0.0.1:{ps}"], "worker": [f"127.0.0.1:{worker}"]}


def run_here(target):
    config = config_pb2.ConfigProto(rpc_options={"use_rpc_for_inprocess_master": True})
    names = {"tf": _WithConfig(config), "np": np, "target": target}
    exec(PROGRAM, names)
    return names["result"]


class _WithConfig:
    """The module dtf, with sessions that do not take the short way to a server of this process."""

    def __init__(self, config):
        self._config = config

    def __getattr__(self, name):
        return getattr(tf, name)

    def Session(self, target):
        return tf.Session(target, config=self._config)


def run_there(target):
    program = "target = sys.argv[1]\n" + PROGRAM + "\nprint(json.dumps(result))"
    return tensorflow_process.run("import json, sys\n" + program, target)


@pytest.mark.parametrize("client", [run_here, run_there], ids=["dtf client", "tensorflow client"])
@pytest.mark.parametrize(
    ("ps", "worker"),
    [
        (dtf_server, dtf_server),
        (tensorflow_server, dtf_server),
        (dtf_server, tensorflow_server),
        (tensorflow_server, tensorflow_server),
    ],
    ids=["dtf", "tensorflow ps", "tensorflow worker", "tensorflow"],
)
@pytest.mark.parametrize("master", ["worker", "ps"])
def test_every_mixture_trains_the_model(client, ps, worker, master):
    cluster = addresses()
    with ps(cluster, "ps", 0), worker(cluster, "worker", 0):
        result = client(f"grpc://{cluster[master][0]}")
    assert result["loss"] == pytest.approx(0.0, abs=1e-3)
    assert result["callable"] == result["loss"]
    assert result["step"] == 100
    assert result["text"] == ["some", "strings"]
    assert result["big"] == 300_000
    assert result["unfed"]
    assert "/job:ps/replica:0/task:0/device:CPU:0" in result["devices"]
    assert "/job:worker/replica:0/task:0/device:CPU:0" in result["devices"]


def test_a_restarted_dtf_ps_is_aborted_or_unavailable_to_a_tensorflow_client():
    cluster = addresses()
    program = """
    import json, sys
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    session = tf.Session(sys.argv[1])
    session.run(v.initializer)
    print("initialized", flush=True)
    sys.stdin.readline()
    try:
        session.run(v)
        print("nothing")
    except tf.errors.OpError as error:
        print(type(error).__name__)
    """
    import textwrap

    with dtf_server(cluster, "worker", 0):
        ps = dtf_server(cluster, "ps", 0)
        process = tensorflow_process.start(textwrap.dedent(program), f"grpc://{cluster['worker'][0]}")
        assert process.stdout.readline().strip() == "initialized"
        ps.stop()
        with dtf_server(cluster, "ps", 0):
            output, complaints = process.communicate("\n", timeout=60)
    assert output.strip() in ("AbortedError", "UnavailableError"), complaints[-2000:]


def test_a_dtf_client_gets_tensorflows_errors_as_its_own():
    cluster = addresses()
    with (
        tensorflow_server(cluster, "ps", 0),
        tensorflow_server(cluster, "worker", 0),
        tf.Graph().as_default(),
        tf.Session(f"grpc://{cluster['worker'][0]}") as session,
    ):
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized") as caught:
            session.run(v.read_value())
        assert caught.value.op is not None
        assert sys.modules["dtf"] is tf
