"""SyncReplicasOptimizer of both kinds in one synchronous job: the workers share accumulators and tokens.

A mixture is the kinds of the chief and its task, of the other worker's client and its task, and of the two ps.
"""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

import dtf
from dtf.server import Server
from tests.interop.synchronous import Replica, alone, data, joined, together
from tests.interop.tensorflow_process import needs_tensorflow
from tests.ports import free_ports

pytestmark = needs_tensorflow

STEPS = 5
TASKS = [("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1)]
MIXTURES = ["TT TT DD", "TD TD DD", "TT DD DT", "DD TT DT", "DD DD TT", "TT DD TT", "DD TT DD"]

_SERVE = """
cluster = json.loads(sys.argv[1])
servers = [tf.train.Server(cluster, job, index) for job, index in json.loads(sys.argv[2])]
kept["job"] = {"cluster": cluster, "servers": servers, "replicas": {}}
"""
_MAKE = """
from tests.interop import synchronous
job, index = kept["job"], json.loads(sys.argv[1])
job["replicas"][index] = synchronous.Replica(
    tf, "grpc://" + job["cluster"]["worker"][index], job["cluster"], index, synchronous.data(index + 3)
)
"""
_START = 'kept["job"]["replicas"][json.loads(sys.argv[1])].start(**json.loads(sys.argv[2]))'
_STEP = """
from tests.interop import synchronous
synchronous.together(*(each.step for each in kept["job"]["replicas"].values()))
"""
_END = 'kept["job"]["replicas"][json.loads(sys.argv[1])].end()'
_TRAIN_ON = """
from tests.interop import synchronous
synchronous.together(*(each.train_on for each in kept["job"]["replicas"].values()))
"""
_SEEN = """
print(json.dumps({index: [each.losses, each.tokens] for index, each in kept["job"]["replicas"].items()}))
"""


class Job:
    """The two workers of a mixture, each in the process of its kind."""

    def __init__(self, tensorflow, cluster, clients):
        self.tensorflow = tensorflow
        self.clients = clients
        self.ours = {}
        for index, kind in enumerate(clients):
            if kind == "T":
                tensorflow.run(_MAKE, json.dumps(index))
            else:
                target = f"grpc://{cluster['worker'][index]}"
                self.ours[index] = Replica(dtf, target, cluster, index, data(index + 3))

    def start(self, **options):
        """The chief before the other: TensorFlow's workers look only every 30 s whether a chief is ready."""
        for index, kind in enumerate(self.clients):
            if kind == "T":
                self.tensorflow.run(_START, json.dumps(index), json.dumps(options))
            else:
                self.ours[index].start(**options)

    def _theirs(self, program):
        return [lambda: self.tensorflow.run(program)] if "T" in self.clients else []

    def step(self):
        together(*(each.step for each in self.ours.values()), *self._theirs(_STEP))

    def end(self):
        for index, kind in enumerate(self.clients):
            if kind == "T":
                self.tensorflow.run(_END, json.dumps(index))
            else:
                self.ours[index].end()

    def train_on(self):
        together(*(each.train_on for each in self.ours.values()), *self._theirs(_TRAIN_ON))

    def seen(self):
        """The losses and the tokens of each worker."""
        theirs = self.tensorflow.run(_SEEN)
        return [
            theirs[str(index)] if kind == "T" else (self.ours[index].losses, self.ours[index].tokens)
            for index, kind in enumerate(self.clients)
        ]


@contextlib.contextmanager
def job_of(tensorflow, mixture):
    workers = mixture.split()[:2]
    kinds = workers[0][1] + workers[1][1] + mixture.split()[2]
    addresses = [f"127.0.0.1:{port}" for port in free_ports(4)]
    cluster = {"worker": addresses[:2], "ps": addresses[2:]}
    theirs = [task for task, kind in zip(TASKS, kinds, strict=True) if kind == "T"]
    tensorflow.run(_SERVE, json.dumps(cluster), json.dumps(theirs))
    with contextlib.ExitStack() as stack:
        for task, kind in zip(TASKS, kinds, strict=True):
            if kind == "D":
                stack.enter_context(Server(cluster, *task))
        yield Job(tensorflow, cluster, [worker[0] for worker in workers])


@pytest.mark.parametrize("mixture", MIXTURES)
def test_workers_of_both_kinds_train_as_one_with_both_batches(tensorflow, mixture):
    with job_of(tensorflow, mixture) as job:
        job.start(num_tokens=0)
        for _ in range(STEPS):
            job.step()
        seen = job.seen()
        # The chief's end closes the queue.
        job.end()
    for _, tokens in seen:
        assert tokens == list(range(1, STEPS + 1))
    mean = np.mean([losses for losses, _ in seen], 0)
    np.testing.assert_allclose(mean, alone(dtf, joined([data(3), data(4)]), False, STEPS), rtol=3e-4)


@pytest.mark.parametrize("mixture", ["TT DD DT", "DD TT DT", "TT TT DD"])
def test_they_start_and_end_by_themselves(tensorflow, mixture):
    with job_of(tensorflow, mixture) as job:
        job.start(last_step=15)
        job.train_on()
        seen = job.seen()
    for losses, tokens in seen:
        assert tokens == sorted(tokens)
        assert losses[-1] < losses[0]
