"""TensorFlowOnSpark's calls for the driver, on a cluster of dtfctl.

    cluster = TFCluster.run(sc, map_fun, args, num_executors=3, num_ps=1, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(rdd, num_epochs=2)
    cluster.shutdown()
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtfctl.embedded import Embedded
from dtfctl.errors import DtfctlError
from dtfctl.launchers.spark.words import reason_in
from dtfctl.spark.feed import INPUT, OUTPUT, Feeder
from dtfctl.spark.gateway import Gateway
from dtfctl.spark.node import DRIVER_VARIABLE, KEY_VARIABLE, NOT_TRAINING
from dtfctl.spark.registry import Registry, connect
from dtfctl.spark.TFNode import Context

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

EPOCHS = 10
"""Of train without a number of them, as TensorFlowOnSpark has it."""

LOOK_S = 0.2
SLOTS_S = 60.0
CLOSE_S = 60.0
THREE_DAYS_S = 259200.0


class InputMode:
    """TENSORFLOW: map_fun reads its data itself; SPARK: train and inference feed it."""

    TENSORFLOW = 0
    SPARK = 1


def run(
    sc: SparkContext,
    map_fun: Callable[[Any, Context], object],
    tf_args: object,
    num_executors: int,
    num_ps: int,
    tensorboard: bool = False,
    input_mode: int = InputMode.TENSORFLOW,
    log_dir: str | None = None,
    driver_ps_nodes: bool = False,
    master_node: str | None = None,
    reservation_timeout: float = 600,
    queues: Sequence[str] = ("input", "output", "error"),
    eval_node: bool = False,
    release_port: bool = True,
) -> TFCluster:
    """Starts map_fun(tf_args, ctx) on each of `num_executors` slots, and returns when it runs on all of them.

    Within map_fun `import tensorflow` gives dtf.

    Args:
      sc: the SparkContext.
      map_fun: a function of (args, ctx); see TFNode.Context.
      tf_args: its first argument, of any kind that can be pickled.
      num_executors: how many nodes there are in all, each on a slot of its own.
      num_ps: how many of them are ps.
      tensorboard: whether a TensorBoard runs beside the training.
      input_mode: one of InputMode.
      log_dir: the folder that the TensorBoard shows.
      driver_ps_nodes: must be false: ps run on executors.
      master_node: the job's name of the first node that is no ps, such as "chief" or "master"; by default it is a
        worker.
      reservation_timeout: how many seconds the start may take. Too few slots are told after three seconds, and after
        60 they end it.
      queues: the names of the nodes' queues.
      eval_node: whether the last node is an evaluator.
      release_port: not used; a node's port is held until its server binds it.

    Raises:
      DtfctlError: the cluster cannot start; the reason is on stderr too.
      ValueError: the numbers leave no node to train.
    """
    if driver_ps_nodes:
        raise ValueError("driver_ps_nodes is not supported: ps run on executors")
    jobs = jobs_of(num_executors, num_ps, master_node, eval_node)
    return TFCluster(
        sc, map_fun, tf_args, jobs, input_mode, tuple(queues), log_dir if tensorboard else None, reservation_timeout
    )


def jobs_of(num_executors: int, num_ps: int, master_node: str | None, eval_node: bool) -> dict[str, int]:
    """How many nodes each job has, in the order of their numbers."""
    workers = num_executors - num_ps - bool(master_node) - eval_node
    if num_ps < 0 or workers < 0 or workers + bool(master_node) < 1:
        raise ValueError(f"num_executors={num_executors} leaves no node to train beside num_ps={num_ps}")
    master = {master_node: 1} if master_node else {}
    jobs = {"ps": num_ps, **master, "worker": workers, "evaluator": int(eval_node)}
    return {job: count for job, count in jobs.items() if count}


def cluster_file(name: str, jobs: dict[str, int], driver: str, log_dir: str | None, wait_s: float) -> dict[str, Any]:
    deciding = [job for job in jobs if job not in NOT_TRAINING]
    found: dict[str, Any] = {
        "name": name,
        "program": ["python", "-m", "dtfctl.spark.node"],
        "tensorflow": "dtf",
        "readiness": "none",
        # An error of map_fun is one the next time too; a process that was killed starts again.
        "restart": {"policy": "exit-code"},
        "success": {"jobs": deciding, "tasks": "all"},
        "environment": {DRIVER_VARIABLE: driver},
        "secrets": [KEY_VARIABLE],
        "engine": {
            "spark": {
                "nodes": sum(jobs.values()),
                "cores": 1,
                "wait": f"{wait_s:g}s",
                "sync": False,
                "working_dir": tempfile.gettempdir(),
            }
        },
        "jobs": {job: {"replicas": count} for job, count in jobs.items()},
    }
    if log_dir:
        found["tensorboard"] = {"logdir": log_dir}
    return found


class TFCluster:
    """A cluster that runs; TFCluster.run makes it."""

    def __init__(
        self,
        sc: SparkContext,
        map_fun: Callable[[Any, Context], object],
        tf_args: object,
        jobs: dict[str, int],
        input_mode: int,
        queues: tuple[str, ...],
        log_dir: str | None,
        start_s: float,
    ) -> None:
        self.sc = sc
        self._input_mode = input_mode
        self._key = secrets.token_bytes(32)
        tasks = [f"{job}:{index}" for job, count in jobs.items() for index in range(count)]
        self._fed = tuple(task for task in tasks if task.partition(":")[0] not in NOT_TRAINING)
        conf = sc.getConf()
        host = conf.get("spark.driver.host") or "127.0.0.1"
        job = {
            "function": pickled(map_fun, tf_args),
            "files": files_of(sc),
            "queues": tuple(dict.fromkeys((*queues, INPUT, OUTPUT))),
            "queue": INPUT,
            "is_fed": input_mode == InputMode.SPARK,
            "order": list(jobs),
            "default_fs": default_fs(sc),
            "working_dir": os.getcwd(),
        }
        self._registry = Registry(conf.get("spark.driver.bindAddress") or host, self._key, job, tasks)
        self._driver = (host, self._registry.address[1])
        self._folder = Path(tempfile.mkdtemp(prefix="dtfctl-spark-"))
        self._gateway = Gateway(sc)
        name = re.sub(r"[^A-Za-z0-9._-]", "-", f"{sc.applicationId}-{secrets.token_hex(2)}")
        text = cluster_file(name, jobs, f"{host}:{self._driver[1]}", log_dir, min(SLOTS_S, start_s))
        file = self._folder / "cluster.yaml"
        file.write_text(json.dumps(text))
        variables = {**self._gateway.variables, KEY_VARIABLE: self._key.hex()}
        # What this program imports its nodes must find, where they share its file system.
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys(map(os.path.abspath, sys.path))))
        self._embedded = Embedded(str(file), [], variables)
        self._watch = threading.Thread(target=self._watch_end, daemon=True)
        self._watch.start()
        try:
            if not self._registry.wait_for_nodes(start_s):
                self._raise(f"the nodes do not run within {start_s:g}s")
        except BaseException:
            self._embedded.stop()
            self._close()
            raise

    def train(
        self, dataRDD: RDD[Any], num_epochs: int = 0, feed_timeout: float = 600, qname: str = INPUT
    ) -> None:
        """Feeds the rows of an RDD to the workers, and returns when they have taken them. Rows that come after the
        workers have ended, or called terminate, are dropped.

        Args:
          dataRDD: any rows that can be pickled.
          num_epochs: how often all rows are fed; 10 times without it.
          feed_timeout: after how many seconds a worker that takes nothing is an error.
          qname: the queue.

        Raises:
          DtfctlError: map_fun has failed, or the rows are not taken.
        """
        if num_epochs < 0:
            raise ValueError("num_epochs must not be negative")
        feeder = self._feeder(feed_timeout, qname)
        rows = self.sc.union([dataRDD] * (num_epochs or EPOCHS))

        def feed(partition: int, rows: Iterable[Any]) -> list[None]:
            feeder.train(partition, rows)
            return []

        try:
            rows.mapPartitionsWithIndex(feed).count()
        except Exception as error:
            self._raise(reason_in(error), error)

    def inference(self, dataRDD: RDD[Any], feed_timeout: float = 600, qname: str = INPUT) -> RDD[Any]:
        """An RDD of the results: one for each row, in the order of the rows. As any RDD it is computed when it is
        used, which must be before `shutdown`.

        Args:
          dataRDD: any rows that can be pickled.
          feed_timeout: after how many seconds a worker that gives no results is an error.
          qname: the queue of the rows.
        """
        return dataRDD.mapPartitionsWithIndex(self._feeder(feed_timeout, qname).infer)

    def shutdown(self, ssc: object = None, grace_secs: float = 0, timeout: float = THREE_DAYS_S) -> None:
        """Ends the feed, and waits for the end of all map_fun but those of ps and evaluator, which it ends.

        Args:
          ssc: must be None: streams are not supported.
          grace_secs: not used; it waits for the workers themselves.
          timeout: after how many seconds the workers are killed.

        Raises:
          DtfctlError: map_fun has failed.
          TimeoutError: the workers did not end in time.
        """
        if ssc is not None:
            raise ValueError("streams are not supported")
        try:
            for node in self._registry.end_feed() if self._input_mode == InputMode.SPARK else ():
                try:
                    with connect(node, self._key) as connection:
                        connection.send(("close", INPUT, timeout))
                        connection.recv()
                except (OSError, EOFError):
                    continue  # it has ended, or it starts again and is told then
            try:
                self._embedded.wait(timeout)
            except TimeoutError:
                self._embedded.kill()
                raise
            except DtfctlError as error:
                self._raise(str(error), error)
        finally:
            self._close()

    def _feeder(self, timeout_s: float, queue: str) -> Feeder:
        if self._input_mode != InputMode.SPARK:
            raise ValueError("train and inference need input_mode=InputMode.SPARK")
        return Feeder(self._driver, self._key, self._fed, timeout_s, queue)

    def _watch_end(self) -> None:
        """A cluster that ends without a word of its nodes must not be waited for."""
        while not self._embedded.is_over:
            time.sleep(LOOK_S)
        try:
            self._embedded.wait(0)
        except (DtfctlError, TimeoutError) as error:
            self._registry.fail(str(error))

    def _raise(self, why: str, cause: Exception | None = None) -> None:
        """What map_fun has said says most."""
        raise DtfctlError(self._registry.failure or why) from cause

    def _close(self) -> None:
        if not self._embedded.is_over:
            try:
                self._embedded.wait(CLOSE_S)
            except (DtfctlError, TimeoutError):
                self._embedded.kill()
        self._gateway.close()
        self._registry.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def pickled(map_fun: Callable[[Any, Context], object], args: object) -> bytes:
    """A function of the program's own modules travels with its text; one of an installed package by its name."""
    from pyspark import cloudpickle

    module = sys.modules.get(map_fun.__module__)
    file = getattr(module, "__file__", None)
    is_own = file is not None and "site-packages" not in Path(file).parts and map_fun.__module__ != "__main__"
    if is_own:
        cloudpickle.register_pickle_by_value(module)
    try:
        found: bytes = cloudpickle.dumps((map_fun, args))
        return found
    finally:
        if is_own:
            cloudpickle.unregister_pickle_by_value(module)


def files_of(sc: SparkContext) -> dict[str, bytes]:
    """The program's further files (addPyFile), by name."""
    from pyspark import SparkFiles

    root = Path(SparkFiles.getRootDirectory())
    return {name: (root / name).read_bytes() for name in sc._python_includes if (root / name).is_file()}


def default_fs(sc: SparkContext) -> str:
    """That of Hadoop's configuration, without a slash at its end."""
    found = str(sc._jsc.hadoopConfiguration().get("fs.defaultFS"))
    return found.rstrip("/") if not found.startswith("file:") else "file://"
