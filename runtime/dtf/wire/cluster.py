"""Clusters: which jobs there are, and the addresses of their tasks. Also the ServerDef of one task, and targets.

    ClusterSpec({"ps": ["host1:2222"], "worker": {0: "host2:2222", 7: "host3:2222"}})

The words only: nothing here opens a connection (rpc) or starts a server (server).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dtf.wire import errors

_NOT_A_CLUSTER = (
    "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, "
    "or a `ClusterDef` protocol buffer"
)


ELASTIC_VARIABLE = "DTF_ELASTIC"


def is_elastic() -> bool:
    """Whether the environment says that tasks of this cluster come and go, so that some do not know all others."""
    return os.environ.get(ELASTIC_VARIABLE, "") not in ("", "0")


class ClusterSpec:
    """The tasks of a cluster: job name -> task index -> "host:port". A value: nothing changes it.

    Args:
      cluster: a dictionary from job names to lists of addresses or, where indices are missing, to dictionaries from
        task indices to addresses; or a ClusterDef; or another ClusterSpec.

    Raises:
      TypeError: `cluster` is none of these, or an address or a job name is no string.
      ValueError: a task index is not a number.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/ClusterSpec
    """

    def __init__(self, cluster: Any) -> None:
        self._jobs = _jobs_of(cluster)

    def as_dict(self) -> dict[str, Any]:
        """Job -> list of addresses, or dictionary from task indices where the indices are not 0, 1, 2 ..."""
        return {job: list(tasks.values()) if _is_dense(tasks) else dict(tasks) for job, tasks in self._jobs.items()}

    def as_cluster_def(self) -> Any:
        """The ClusterDef, jobs in the order of their names."""
        from dtf.wire.pb import cluster_pb2

        cluster_def = cluster_pb2.ClusterDef()
        for job in sorted(self._jobs):
            cluster_def.job.add(name=job, tasks=self._jobs[job])
        return cluster_def

    @property
    def jobs(self) -> list[str]:
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """The number of tasks of a job; a ValueError when there is no such job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of a job's tasks, ascending; a ValueError when there is no such job."""
        return list(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """ "host:port" of a task; a ValueError when there is no such job or task."""
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job by task index, None where an index is missing; a ValueError for no such job."""
        tasks = self._tasks(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _tasks(self, job_name: str) -> dict[int, str]:
        try:
            return self._jobs[job_name]
        except KeyError:
            raise ValueError(f"No such job in cluster: {job_name!r}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClusterSpec):
            return NotImplemented
        return self._jobs == other._jobs

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __repr__(self) -> str:
        jobs = self.as_dict()
        return f"ClusterSpec({ {job: jobs[job] for job in sorted(jobs)} })"


def make_server_def(
    server_or_cluster_def: Any,
    job_name: str | None = None,
    task_index: int | None = None,
    protocol: str | None = None,
    config: Any = None,
) -> Any:
    """The ServerDef that the arguments of `tf.train.Server` describe; each of them overrides the first one's.

    Args:
      server_or_cluster_def: a ServerDef, ClusterDef, ClusterSpec or dictionary.
      job_name, task_index: which task; may be left out where there is only one.
      protocol: "grpc" by default.
      config: the ConfigProto that sessions of this server start from.

    Raises:
      TypeError: an argument is of the wrong type.
      ValueError: which task is meant is not told, or the cluster has no such task.
    """
    from dtf.wire.pb import tensorflow_server_pb2

    server_def = tensorflow_server_pb2.ServerDef()
    if hasattr(server_or_cluster_def, "job_name"):
        # Through bytes, so that TensorFlow's own message serves as well.
        server_def.ParseFromString(server_or_cluster_def.SerializeToString())
        if job_name is None and not server_def.job_name:
            raise ValueError("server_def.job_name must be specified.")
    else:
        cluster = ClusterSpec(server_or_cluster_def)
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        server_def.cluster.CopyFrom(cluster.as_cluster_def())
        server_def.protocol = "grpc"
    if job_name is not None:
        server_def.job_name = job_name
    if task_index is not None:
        server_def.task_index = task_index
    if protocol is not None:
        server_def.protocol = protocol
    if config is not None:
        server_def.default_session_config.ParseFromString(config.SerializeToString())
    ClusterSpec(server_def.cluster).task_address(server_def.job_name, server_def.task_index)
    return server_def


def parse_target(target: str) -> str:
    """ "host:port" of a session's target "grpc://host:port".

    Raises:
      NotFoundError: `target` is not of this form.
    """
    prefix, separator, address = target.partition("://")
    if prefix != "grpc" or not separator:
        raise errors.NotFoundError.of(
            f"No session factory registered for the given session options: the target is {target!r}; it must be "
            "'grpc://host:port' or empty."
        )
    split_address(address)
    return address


def split_address(address: str) -> tuple[str, int]:
    """(host, port) of "host:port" or "[ipv6]:port".

    Raises:
      InvalidArgumentError: `address` is not of this form.
    """
    host, separator, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not separator or not host or (":" in host and not bracketed):
        raise errors.InvalidArgumentError.of(f"Could not interpret {address!r} as a host:port pair.")
    if not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise errors.InvalidArgumentError.of(f"Could not interpret {port!r} as the port of {address!r}.")
    return (host[1:-1] if bracketed else host), int(port)


def _jobs_of(cluster: Any) -> dict[str, dict[int, str]]:
    if isinstance(cluster, ClusterSpec):
        return {job: dict(tasks) for job, tasks in cluster._jobs.items()}
    if isinstance(cluster, Mapping):
        return {_text(job, "Job name"): _tasks_of(job, tasks) for job, tasks in cluster.items()}
    if hasattr(cluster, "job") and hasattr(cluster, "SerializeToString"):  # a ClusterDef, ours or TensorFlow's
        return {job.name: _tasks_of(job.name, job.tasks) for job in cluster.job}
    raise TypeError(_NOT_A_CLUSTER)


def _tasks_of(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        by_index = {_index(job, index): address for index, address in tasks.items()}
    elif isinstance(tasks, (list, tuple)):
        by_index = dict(enumerate(tasks))
    else:
        raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
    return {index: _text(by_index[index], "Task address") for index in sorted(by_index)}


def _index(job: Any, index: Any) -> int:
    try:
        number = int(index)
    except (TypeError, ValueError):
        raise ValueError(f"The task index {index!r} of job {job!r} is not a number.") from None
    if number < 0:
        raise ValueError(f"The task index {index!r} of job {job!r} is negative.")
    return number


def _text(value: Any, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    raise TypeError(f"{what} {value!r} must be bytes or unicode")


def _is_dense(tasks: dict[int, str]) -> bool:
    return bool(tasks) and list(tasks) == list(range(len(tasks)))
