"""Tasks of one kind are killed under clients, masters and chiefs of the other, and come back."""

from __future__ import annotations

import contextlib
import json
import threading

import numpy as np
import pytest

import dtf
from dtf.server import Server
from dtf.testing import LocalCluster
from tests.interop import tensorflow_process
from tests.interop.restarts import Reader, Trainer
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = [*needs_tensorflow, pytest.mark.slow]

_SERVE = """
kept.setdefault("servers", []).append(tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""
_MAKE = """
from tests.interop import restarts
kept["client"] = getattr(restarts, sys.argv[1])(tf, *json.loads(sys.argv[2]))
"""
_CALL = 'print(json.dumps(getattr(kept["client"], sys.argv[1])(*json.loads(sys.argv[2]))))'


class Cluster:
    """Tasks of both kinds, of which some can be killed with SIGKILL: those have a process of their own."""

    def __init__(self, tensorflow, jobs):
        self._tensorflow = tensorflow
        self._processes = LocalCluster(jobs, processes=True, start=False)
        self.jobs = self._processes.cluster_spec.as_dict()
        self._stacks = {}
        self._lasting = contextlib.ExitStack()
        self._lasting.callback(self._processes.stop_all)

    def start(self, kind, job, index):
        """A task that lives as long as the test."""
        if kind == "T":
            self._tensorflow.run(_SERVE, json.dumps(self.jobs), job, str(index))
        else:
            self._lasting.enter_context(Server(self.jobs, job, index))

    def launch(self, kind, job, index):
        """A task that may be killed, and launched again."""
        if kind == "T":
            stack = self._lasting.enter_context(contextlib.ExitStack())
            stack.enter_context(tensorflow_process.tensorflow_server(self.jobs, job, index))
            self._stacks[job, index] = stack.close
        else:
            self._processes.start(job, index)
            self._stacks[job, index] = lambda: self._processes.kill(job, index)

    def kill(self, job, index):
        self._stacks.pop((job, index))()

    def target(self, job):
        return self._processes.target(job)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._lasting.close()


class Client:
    """A Reader or Trainer of either kind, of TensorFlow's in its own process."""

    def __init__(self, tensorflow, kind, what, *arguments):
        self._tensorflow = tensorflow if kind == "T" else None
        if kind == "T":
            tensorflow.run(_MAKE, what.__name__, json.dumps(arguments))
        else:
            self._ours = what(dtf, *arguments)

    def call(self, name, *arguments):
        if self._tensorflow is not None:
            return self._tensorflow.run(_CALL, name, json.dumps(arguments))
        return getattr(self._ours, name)(*arguments)

    def calling(self, name, *arguments):
        """Calls in a thread; returns what waits for the answer."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.call(name, *arguments)), daemon=True)
        thread.start()

        def answer():
            thread.join(120)
            assert answers, f"{name} did not come back"
            return answers[0]

        return answer


@pytest.mark.parametrize(("client", "ps"), [("T", "D"), ("D", "T"), ("D", "D")])
def test_a_client_sees_that_its_ps_has_restarted_in_tensorflows_words(tensorflow, client, ps):
    with Cluster(tensorflow, {"ps": 1, "worker": 1}) as cluster:
        cluster.launch(ps, "ps", 0)
        cluster.start(client, "worker", 0)
        reader = Client(tensorflow, client, Reader, cluster.target("worker"))
        cluster.kill("ps", 0)
        kind, message = reader.call("read")
        assert kind == "UnavailableError", message
        assert "onnect" in message
        cluster.launch(ps, "ps", 0)
        # TensorFlow's close would wait for a ps that is gone.
        reader.call("close")
        reader = Client(tensorflow, client, Reader, cluster.target("worker"))
        assert reader.call("read") == ["float", "6.0"]
        cluster.kill("ps", 0)
        cluster.launch(ps, "ps", 0)
        kind, message = reader.call("read")
        assert kind in ("AbortedError", "UnavailableError"), message
        known = ("Session handle is not found", "different device incarnation", "onnect")
        assert any(words in message for words in known), message
        reader.call("close")


def uninterrupted(workers, folder, steps):
    """The loss before each step, where nothing is killed."""
    with LocalCluster({"ps": 2, "worker": workers}) as cluster:
        trainer = Trainer(dtf, cluster.target("worker"), cluster.cluster_spec.as_dict(), str(folder))
        losses = dict(trainer.train(steps))
        trainer.end()
    return losses


def check(pairs, wanted):
    for step, loss in pairs:
        np.testing.assert_allclose(loss, wanted[step], rtol=3e-4, err_msg=f"step {step}")


@pytest.mark.parametrize("chief", ["T", "D"])
def test_training_goes_on_when_either_kind_of_ps_is_killed(tensorflow, chief, tmp_path):
    with Cluster(tensorflow, {"ps": 2, "worker": 1}) as cluster:
        kinds = "DT"
        for index, kind in enumerate(kinds):
            cluster.launch(kind, "ps", index)
        cluster.start(chief, "worker", 0)
        folder = str(tmp_path / "checkpoints")
        trainer = Client(tensorflow, chief, Trainer, cluster.target("worker"), cluster.jobs, folder)
        pairs = list(trainer.call("train", 7))
        for index, kind in enumerate(kinds):
            cluster.kill("ps", index)
            more = trainer.calling("train", 8)
            cluster.launch(kind, "ps", index)
            pairs += more()
        created = trainer.call("end")
    # It began anew from the last checkpoint after each death, and the model was whole.
    assert created[0] == 0
    assert len(created) >= 3
    assert all(step >= 5 for step in created[1:])
    assert pairs[-1][0] >= 15
    check(pairs, uninterrupted(1, tmp_path / "alone", pairs[-1][0] + 1))


@pytest.mark.parametrize(("chief", "worker"), [("T", "D"), ("D", "T")])
def test_training_goes_on_when_a_worker_of_the_other_kind_is_killed(tensorflow, chief, worker, tmp_path):
    with Cluster(tensorflow, {"ps": 2, "worker": 2}) as cluster:
        for index, kind in enumerate("DT"):
            cluster.start(kind, "ps", index)
        cluster.launch(worker, "worker", 1)
        cluster.start(chief, "worker", 0)
        folder = str(tmp_path / "checkpoints")
        trainer = Client(tensorflow, chief, Trainer, cluster.target("worker"), cluster.jobs, folder)
        pairs = list(trainer.call("train", 7))
        cluster.kill("worker", 1)
        more = trainer.calling("train", 8)
        cluster.launch(worker, "worker", 1)
        pairs += more()
        created = trainer.call("end")
    assert created[0] == 0
    assert len(created) >= 2
    assert created[1] >= 5
    check(pairs, uninterrupted(2, tmp_path / "alone", pairs[-1][0] + 1))
