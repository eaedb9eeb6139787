"""A cluster of estimators within one process, over real sockets."""

from __future__ import annotations

import json
import queue
import threading
from functools import partial

import dtf as tf
from dtf.estimator.cluster_place import place_from
from tests.ports import free_ports


class Cluster:
    """A chief, workers, parameter servers and an evaluator, each in a thread of this process.

    Args:
      folder: below which the model is.
      model_fn: of all estimators.
    """

    def __init__(self, folder, model_fn=None, ps=2, workers=1):
        ports = iter(free_ports(1 + ps + workers))
        self.addresses = {
            job: [f"localhost:{next(ports)}" for _ in range(count)]
            for job, count in (("chief", 1), ("ps", ps), ("worker", workers))
            if count
        }
        self.folder = str(folder / "model")
        self.tasks = [(job, index) for job, tasks in self.addresses.items() for index in range(len(tasks))]
        self._model_fn = model_fn

    def estimator(self, job, index):
        """The Estimator of one task."""
        return tf.estimator.Estimator(self._model_fn, config=self.config(job, index))

    def config(self, job, index):
        """The RunConfig of one task."""
        text = json.dumps({"cluster": self.addresses, "task": {"type": job, "index": index}})
        return tf.estimator.RunConfig(
            self.folder,
            tf_random_seed=1,
            save_checkpoints_steps=20,
            experimental_max_worker_delay_secs=0,
            place=place_from({"TF_CONFIG": text}),
        )

    def run(self, train_spec, eval_spec, evaluator=True):
        """Runs all tasks to their ends; returns what each returned."""
        tasks = [*self.tasks, ("evaluator", 0)] if evaluator else self.tasks
        return side_by_side(
            {
                task: partial(tf.estimator.train_and_evaluate, self.estimator(*task), train_spec, eval_spec)
                for task in tasks
            }
        )


def side_by_side(calls):
    """{name: result} of functions that are called in threads of their own; the first error is raised."""
    ended = queue.Queue()

    def call(name, function):
        try:
            ended.put((name, function(), None))
        except BaseException as error:
            ended.put((name, None, error))

    for name, function in calls.items():
        threading.Thread(target=call, args=(name, function), daemon=True).start()
    results = {}
    for _ in calls:
        name, result, error = ended.get(timeout=60)
        if error is not None:
            raise error
        results[name] = result
    return results
