"""What clients and peers of a server see when it is stopped: a lost task, AbortedError or UnavailableError, which
MonitoredSession recovers from, and never a cancellation that nobody of theirs has asked for."""

from __future__ import annotations

import threading

import pytest

import dtf as tf
from dtf.testing import LocalCluster
from dtf.train.recovery import LOST
from dtf.wire import errors

ROUNDS = 3
KINDS = ("runs steps", "waits in a step", "makes sessions", "has its master there")


class Client(threading.Thread):
    """Runs steps on ps:0 by way of a worker, or of the ps itself, until an error ends it."""

    def __init__(self, cluster, kind, number):
        super().__init__(daemon=True)
        self.kind, self.number = kind, number
        self.target = cluster.target("ps" if kind == "has its master there" else "worker")
        self.is_there, self.error = threading.Event(), None

    def run(self):
        try:
            with tf.Graph().as_default():
                self._train()
        except errors.OpError as error:
            self.error = error

    def _train(self):
        with tf.device("/job:ps/task:0"):
            weights = tf.Variable(tf.zeros([64]), name=f"weights{self.number}")
            element = tf.FIFOQueue(2, [tf.float32], [[]], shared_name=f"queue{self.number}").dequeue()
        with tf.device("/job:ps/task:1"):
            other = tf.Variable(tf.zeros([64]), name=f"other{self.number}")
        update = tf.group(weights.assign_add(other + 1.0), other.assign_add(weights * 0.1))
        config = tf.ConfigProto(rpc_options={"use_rpc_for_inprocess_master": True})
        session = tf.Session(self.target, config=config)
        session.run(tf.global_variables_initializer())
        self.is_there.set()
        if self.kind == "waits in a step":
            session.run(element)
        while True:
            if self.kind == "makes sessions":
                session = tf.Session(self.target, config=config)
            session.run(update)


@pytest.mark.parametrize("channel", ["on", "off"])
def test_a_server_that_is_stopped_is_a_lost_task_to_everybody(channel, monkeypatch):
    monkeypatch.setenv("DTF_CHANNEL", channel)
    with LocalCluster({"ps": 2, "worker": 1}) as cluster:
        for number in range(ROUNDS):
            clients = [Client(cluster, kind, f"_{number}_{index}") for index, kind in enumerate(KINDS)]
            for client in clients:
                client.start()
            for client in clients:
                assert client.is_there.wait(60), client.kind
            cluster.stop("ps", 0)
            # Who makes a new session waits for the ps, and finds it without variables.
            cluster.start("ps", 0)
            for client in clients:
                client.join(60)
                is_new = client.kind == "makes sessions" and isinstance(client.error, errors.FailedPreconditionError)
                assert isinstance(client.error, LOST) or is_new, (client.kind, client.error)
