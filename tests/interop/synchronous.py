"""A model for synchronous replicas, and one worker of such a job under either runtime (`tf`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.interop.programs import numbers


def model(tf, use_resource: bool = False):
    """A dense and an embedded variable: (loss, placeholders by name)."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    ids = tf.placeholder(tf.int64, [None], name="ids")
    with tf.variable_scope("model", use_resource=use_resource):
        w = tf.get_variable("w", initializer=tf.constant(numbers(1, 3, 1)))
        table = tf.get_variable("table", initializer=tf.constant(numbers(2, 6, 1)))
    out = tf.matmul(x, w) + tf.nn.embedding_lookup(table, ids)
    return tf.reduce_mean(tf.square(out - y)), {"x": x, "y": y, "ids": ids}


def optimizer(tf):
    return tf.train.MomentumOptimizer(0.1, 0.9)


def data(seed: int) -> dict[str, np.ndarray]:
    """A batch. All have the same rows of the table: the mean over those that have a row is the mean over all."""
    return {"x": numbers(seed, 4, 3), "y": numbers(seed + 50, 4, 1), "ids": np.array([0, 2, 3, 5])}


def joined(batches: Iterable[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """One batch of all: its gradient is the mean of theirs."""
    batches = list(batches)
    return {name: np.concatenate([each[name] for each in batches]) for name in batches[0]}


def alone(tf, batch: dict[str, np.ndarray], use_resource: bool, steps: int) -> list[float]:
    """The losses of one worker with the plain optimizer."""
    with tf.Graph().as_default(), tf.Session() as session:
        loss, holders = model(tf, use_resource)
        train = optimizer(tf).minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {holders[name]: value for name, value in batch.items()}
        losses = []
        for _ in range(steps):
            losses.append(float(session.run(loss, feed)))
            session.run(train, feed)
        return losses


class Replica:
    """One worker: its graph, made at once, and its session.

    Attributes:
      losses, tokens: what its steps gave: the loss before the update, and the step to compute the next gradient for.
    """

    def __init__(
        self,
        tf: Any,
        target: str,
        cluster: Any,
        index: int,
        batch: dict[str, np.ndarray],
        use_resource: bool = False,
        workers: int = 2,
    ) -> None:
        self.tf = tf
        self.target = target
        self.is_chief = index == 0
        self.graph = tf.Graph()
        self.losses: list[float] = []
        self.tokens: list[int] = []
        setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)
        with self.graph.as_default(), tf.device(setter):
            self.step_variable = tf.train.get_or_create_global_step()
            self.loss, holders = model(tf, use_resource)
            self.optimizer = tf.train.SyncReplicasOptimizer(optimizer(tf), workers, workers)
            self.train_op = self.optimizer.minimize(self.loss, self.step_variable)
        self.feed = {holders[name]: value for name, value in batch.items()}

    def start(self, num_tokens: int = -1, last_step: int | None = None, **options: Any) -> Replica:
        """Makes the session, which the chief must do before the others."""
        tf = self.tf
        with self.graph.as_default():
            hooks = [self.optimizer.make_session_run_hook(self.is_chief, num_tokens)]
            if last_step is not None:
                hooks.append(tf.train.StopAtStepHook(last_step=last_step))
            self.session = tf.train.MonitoredTrainingSession(
                self.target, self.is_chief, hooks=hooks, log_step_count_steps=None, stop_grace_period_secs=2, **options
            )
        return self

    def step(self) -> None:
        loss, token = self.session.run([self.loss, self.train_op], self.feed)
        self.losses.append(float(loss))
        self.tokens.append(int(token))

    def run(self, **options: Any) -> None:
        """Starts, and trains to the end."""
        self.start(**options).train_on()

    def train_on(self) -> None:
        """Trains to the end, in whichever way it comes."""
        with self.graph.as_default(), self.session as session:
            while not session.should_stop():
                self.step()

    def end(self) -> None:
        with self.graph.as_default():
            self.session.close()


def together(*runs: Callable[[], Any]) -> None:
    """Runs functions in threads; the first error of one is raised."""
    failures: list[BaseException] = []

    def guarded(run: Callable[[], Any]) -> None:
        try:
            run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(run,), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if failures:
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads), "a worker waits forever"
