"""What a client sees when a task of its cluster is killed, under either runtime (`tf`)."""

from __future__ import annotations

from typing import Any

from tests.interop.programs import numbers


class Reader:
    """A plain session that reads a variable of ps 0."""

    def __init__(self, tf: Any, target: str) -> None:
        self.tf = tf
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device("/job:ps/task:0"):
                self.variable = tf.get_variable("v", initializer=3.0)
            with tf.device("/job:worker/task:0"):
                self.value = self.variable * 2.0
            self.session = tf.Session(target)
            self.session.run(self.variable.initializer)
            self.session.run(self.value)

    def read(self) -> list[str]:
        """The value, or the class of the error and its message."""
        try:
            return ["float", str(float(self.session.run(self.value)))]
        except self.tf.errors.OpError as error:
            return [type(error).__name__, error.message]

    def close(self) -> None:
        self.session.close()


class Trainer:
    """The chief of a job with a worker and two ps, which saves a checkpoint after each fifth step."""

    def __init__(self, tf: Any, target: str, cluster: Any, folder: str) -> None:
        self.tf = tf
        self.created: list[int] = []
        self.graph = tf.Graph()
        created = self.created

        class Hook(tf.train.SessionRunHook):
            def after_create_session(self, session, coord):
                created.append(int(session.run(step)))

        with self.graph.as_default():
            with tf.device(tf.train.replica_device_setter(cluster=cluster)):
                step = tf.train.get_or_create_global_step()
                w = tf.get_variable("w", initializer=tf.constant(numbers(1, 4, 3)))
                b = tf.get_variable("b", initializer=tf.constant(numbers(2, 3)), use_resource=True)
            x = tf.placeholder(tf.float32, [None, 4])
            with tf.device("/job:worker/task:0"):
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b))
            # Another task computes a part, where there is one.
            if len(cluster["worker"]) > 1:
                with tf.device("/job:worker/task:1"):
                    loss = loss + tf.reduce_mean(tf.abs(tf.matmul(x, w)))
            train = tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss, step)
            self.seen, self.train_op, self.feed = [step, loss], train, {x: numbers(3, 8, 4)}
            self.session = tf.train.MonitoredTrainingSession(
                target,
                checkpoint_dir=folder,
                hooks=[Hook()],
                save_checkpoint_steps=5,
                save_summaries_steps=None,
                log_step_count_steps=None,
            )

    def train(self, steps: int) -> list[tuple[int, float]]:
        """Pairs of the global step and the loss before each update."""
        pairs = []
        for _ in range(steps):
            # Not in one run: nothing would order the reading of a variable and its update.
            step, loss = self.session.run(self.seen, self.feed)
            pairs.append((int(step), float(loss)))
            self.session.run(self.train_op, self.feed)
        return pairs

    def end(self) -> list[int]:
        """Ends the session; gives the global step at the start of each session that there was."""
        self.session.close()
        return self.created
