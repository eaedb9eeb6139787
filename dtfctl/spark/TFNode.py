"""TensorFlowOnSpark's calls within map_fun."""

from __future__ import annotations

import getpass
import importlib
import queue
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtfctl.spark.feed import INPUT, OUTPUT, TERMINATING, EndPartition, Manager

_SCHEMES = ("file:", "hdfs:", "viewfs:", "s3:", "s3a:", "s3n:", "gs:", "abfs:", "abfss:", "wasb:", "wasbs:")
DRAIN_S = 1.0


@dataclass
class Context:
    """What map_fun(args, ctx) gets.

    Attributes:
      executor_id: the node's number among all of the cluster.
      job_name: ps, worker, chief, master or evaluator.
      task_index: its number within its job.
      cluster_spec: {job: ["host:port", ...]}.
      num_workers: how many nodes train: all but ps and evaluator.
      defaultFS: the file system of paths without a scheme, as the driver's Hadoop configuration has it.
      working_dir: the driver's working folder.
      mgr: the node's queues and values.
    """

    executor_id: int = 0
    job_name: str = ""
    task_index: int = 0
    cluster_spec: dict[str, list[str]] = field(default_factory=dict)
    defaultFS: str = "file://"
    working_dir: str = "."
    mgr: Manager = field(default_factory=Manager)
    num_workers: int = 0

    def absolute_path(self, path: str) -> str:
        """See hdfs_path."""
        return hdfs_path(self, path)

    def start_cluster_server(self, num_gpus: int = 1, rdma: bool = False) -> tuple[Any, Any]:
        """See start_cluster_server."""
        return start_cluster_server(self, num_gpus, rdma)

    def get_data_feed(
        self,
        train_mode: bool = True,
        qname_in: str = INPUT,
        qname_out: str = OUTPUT,
        input_mapping: Mapping[str, str] | None = None,
    ) -> DataFeed:
        """See DataFeed."""
        return DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)


def hdfs_path(ctx: Context, path: str) -> str:
    """The absolute form of a path: one without a scheme is of ctx.defaultFS, and a relative one is of the user's
    folder there, or of the driver's working folder where that is a local file system."""
    if path.startswith(_SCHEMES):
        return path
    if path.startswith("/"):
        return f"{ctx.defaultFS}{path}"
    if ctx.defaultFS.startswith(("hdfs:", "viewfs:")):
        return f"{ctx.defaultFS}/user/{getpass.getuser()}/{path}"
    return f"{ctx.defaultFS}/{ctx.working_dir.strip('/')}/{path}"


def start_cluster_server(ctx: Context, num_gpus: int = 1, rdma: bool = False) -> tuple[Any, Any]:
    """Starts the node's server.

    Args:
      ctx: the node's Context.
      num_gpus: not used; dtfctl gives tasks their GPUs.
      rdma: must be false.

    Returns:
      (tf.train.ClusterSpec, tf.train.Server)

    Raises:
      ValueError: rdma is asked for.
    """
    if rdma:
        raise ValueError("rdma is not supported; servers use grpc")
    # dtf gives it, in a node of dtfctl.
    tf = importlib.import_module("tensorflow")

    cluster = tf.train.ClusterSpec(ctx.cluster_spec)
    return cluster, tf.train.Server(cluster, ctx.job_name, ctx.task_index)


class DataFeed:
    """The rows that the driver feeds to this node, in batches.

    Args:
      mgr: ctx.mgr.
      train_mode: False for inference: a batch then ends with its partition.
      qname_in: the queue of the rows.
      qname_out: the queue of the results.
      input_mapping: {column: tensor}; batches are then {tensor: values}, with the columns in order of their names.
    """

    def __init__(
        self,
        mgr: Manager,
        train_mode: bool = True,
        qname_in: str = INPUT,
        qname_out: str = OUTPUT,
        input_mapping: Mapping[str, str] | None = None,
    ) -> None:
        self.mgr = mgr
        self.train_mode = train_mode
        self.qname_in = qname_in
        self.qname_out = qname_out
        self.done_feeding = False
        self.input_tensors = [tensor for _, tensor in sorted(input_mapping.items())] if input_mapping else None

    def next_batch(self, batch_size: int) -> list[Any] | dict[str, list[Any]]:
        """Waits for `batch_size` rows; fewer come at the end of the feed, and for inference at a partition's end."""
        rows = self.mgr.get_queue(self.qname_in)
        batch: list[Any] = []
        while len(batch) < batch_size:
            row = rows.get()
            rows.task_done()
            if row is None:
                self.done_feeding = True
                break
            if isinstance(row, EndPartition):
                if not self.train_mode and batch:
                    break
                continue
            batch.append(row)
        if self.input_tensors is None:
            return batch
        return {tensor: [row[column] for row in batch] for column, tensor in enumerate(self.input_tensors)}

    def should_stop(self) -> bool:
        """Whether the feed has ended."""
        return self.done_feeding

    def batch_results(self, results: Iterable[Any] | Sequence[Any]) -> None:
        """Gives back the results of a batch: one for each row, in their order."""
        target = self.mgr.get_queue(self.qname_out)
        for result in results:
            target.put(result)

    def terminate(self) -> None:
        """This node takes no more rows: what is fed to it is dropped. To be called when training ends early."""
        self.mgr.set("state", TERMINATING)
        rows = self.mgr.get_queue(self.qname_in)
        try:
            while True:
                rows.get_nowait()
                rows.task_done()
        except queue.Empty:
            self.done_feeding = True
