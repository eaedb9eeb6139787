"""tf.distribute.cluster_resolver: where the tasks of a cluster are, from the environment or as given.

    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver({"ps": 1, "worker": 4})
    job, index = resolver.get_task_info()
    server = tf.train.Server(resolver.cluster_spec(), job, index)

Those of cloud engines are not here: dtfctl gives their tasks TF_CONFIG.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/distribute/cluster_resolver
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dtf.wire.cluster import ClusterSpec

__all__ = [
    "ClusterResolver", "SimpleClusterResolver", "SlurmClusterResolver", "TFConfigClusterResolver",
    "UnionClusterResolver", "UnionResolver", "expand_hostlist", "expand_tasks_per_node", "format_master_url",
]  # fmt: skip


def format_master_url(master: str, rpc_layer: str | None = None) -> str:
    """An address as a session's target: grpc://host:port; without a layer as it is."""
    return f"{rpc_layer}://{master}" if rpc_layer else master


class ClusterResolver:
    """The base: a cluster, and the place of this task in it."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    environment: str | None = ""

    def cluster_spec(self) -> ClusterSpec:
        """The addresses of all tasks."""
        raise NotImplementedError

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target of a session: of the given task, or of this one; "" without any.

        Raises:
          ValueError: the cluster has no such task.
        """
        kind = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if kind is None or index is None:
            return ""
        return format_master_url(self.cluster_spec().task_address(kind, index), rpc_layer or self.rpc_layer)

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """{}: devices are found by the servers."""
        return {}


class SimpleClusterResolver(ClusterResolver):
    """A cluster as given.

    Raises:
      TypeError: `cluster_spec` is no ClusterSpec.
    """

    def __init__(
        self, cluster_spec: ClusterSpec, master: str = "", task_type: str | None = None, task_id: int | None = None,
        environment: str = "", num_accelerators: Mapping[str, int] | None = None, rpc_layer: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._cluster_spec, self._master = cluster_spec, master
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self.environment = environment
        self._accelerators = num_accelerators

    def cluster_spec(self) -> ClusterSpec:
        """The given one."""
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The given one, or that of the task in the arguments."""
        if task_type is None or task_id is None:
            return format_master_url(self._master, rpc_layer or self.rpc_layer)
        return super().master(task_type, task_id, rpc_layer)

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """The given ones."""
        return dict(self._accelerators or {})


class TFConfigClusterResolver(ClusterResolver):
    """The cluster of the environment variable TF_CONFIG, read at each call. What the arguments say comes first."""

    def __init__(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:  # fmt: skip
        self._given: dict[str, Any] = {"type": task_type, "index": task_id, "rpc_layer": rpc_layer}
        self.environment = environment

    def cluster_spec(self) -> ClusterSpec:
        """An empty one without the variable."""
        return ClusterSpec(self._config().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """`session_master` of TF_CONFIG, or the address of the task."""
        named = self._config().get("session_master")
        if named is not None or not self.cluster_spec().jobs:
            return named or ""
        return super().master(task_type, task_id, rpc_layer)

    @staticmethod
    def _config() -> dict[str, Any]:
        return json.loads(os.environ.get("TF_CONFIG") or "{}")

    def _of_task(self, name: str) -> Any:
        given = self._given[name]
        return self._config().get("task", {}).get(name) if given is None else given

    @property
    def task_type(self) -> str | None:
        """The job of this task."""
        return self._of_task("type")

    @task_type.setter
    def task_type(self, value: str | None) -> None:
        self._given["type"] = value

    @property
    def task_id(self) -> int | None:
        """The index of this task."""
        index = self._of_task("index")
        return None if index is None else int(index)

    @task_id.setter
    def task_id(self, value: int | None) -> None:
        self._given["index"] = value

    @property
    def rpc_layer(self) -> str | None:
        """The layer of targets."""
        layer: str | None = self._given["rpc_layer"] or self._config().get("rpc_layer")
        return layer

    @rpc_layer.setter
    def rpc_layer(self, value: str | None) -> None:
        self._given["rpc_layer"] = value


class UnionResolver(ClusterResolver):
    """The tasks of several resolvers together; the place is the first's, unless it is given.

    Raises:
      TypeError: an argument is no ClusterResolver.
      ValueError: there is no resolver.
    """

    def __init__(
        self, *resolvers: ClusterResolver, rpc_layer: str | None = None, task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:  # fmt: skip
        if not resolvers:
            raise ValueError("At least one ClusterResolver is required.")
        if not all(isinstance(each, ClusterResolver) for each in resolvers):
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._resolvers = resolvers
        first = resolvers[0]
        self.rpc_layer = rpc_layer or first.rpc_layer
        self.task_type = first.task_type if task_type is None else task_type
        self.task_id = first.task_id if task_id is None else task_id
        self.environment = first.environment

    def cluster_spec(self) -> ClusterSpec:
        """All tasks. Those of one job come one after another; where a resolver numbers them, they keep their numbers.

        Raises:
          KeyError: two resolvers give a task the same number.
        """
        parts: dict[str, list[list[str] | dict[int, str]]] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                parts.setdefault(job, []).append(tasks)
        jobs: dict[str, list[str] | dict[int, str]] = {}
        for job, groups in parts.items():
            if all(isinstance(group, list) for group in groups):
                jobs[job] = list(itertools.chain.from_iterable(groups))  # type: ignore[arg-type]
                continue
            numbered: dict[int, str] = {}
            for group in groups:
                found = dict(enumerate(group)) if isinstance(group, list) else group
                twice = numbered.keys() & found.keys()
                if twice:
                    raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}")
                numbered |= found
            jobs[job] = numbered
        return ClusterSpec(jobs)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target of the task in the arguments, or that of the first resolver."""
        if task_type is None or task_id is None:
            return self._resolvers[0].master()
        return super().master(task_type, task_id, rpc_layer)


UnionClusterResolver = UnionResolver


class SlurmClusterResolver(ClusterResolver):
    """The tasks of a job step of Slurm, which is read from the environment of srun.

    The step's tasks are numbered host by host, and the jobs take them in their order. Each task of a host has the next
    port.

    Args:
      jobs: the number of tasks of each job; by default all are workers.
      port_base: the port of the first task of each host.
      gpus_per_node: GPUs of a host; by default those of SLURM_GPUS_ON_NODE.
      gpus_per_task: GPUs of a task; by default the host's, shared out evenly.
      tasks_per_node: tasks of each host; by default those of SLURM_STEP_TASKS_PER_NODE.
      auto_set_gpu: whether `cluster_spec` sets CUDA_VISIBLE_DEVICES to the GPUs of this task, if there are any.

    Raises:
      RuntimeError: the jobs have other tasks than the step, or the tasks of a host need more GPUs than it has.
      KeyError: this process is no task of a job step.
    """

    def __init__(
        self, jobs: Mapping[str, int] | None = None, port_base: int = 8888, gpus_per_node: int | None = None,
        gpus_per_task: int | None = None, tasks_per_node: int | None = None, auto_set_gpu: bool = True,
        rpc_layer: str | None = "grpc",
    ) -> None:  # fmt: skip
        self._rank = int(os.environ["SLURM_PROCID"])
        hosts = self._resolve_hostnames()
        if tasks_per_node is None:
            counts = expand_tasks_per_node(os.environ["SLURM_STEP_TASKS_PER_NODE"])
        else:
            counts = [tasks_per_node] * len(hosts)
        assigned = sum(counts)
        self._jobs = {"worker": assigned} if jobs is None else dict(jobs)
        if sum(self._jobs.values()) != assigned:
            raise RuntimeError(f"Requested {sum(self._jobs.values())} tasks but only {assigned} were assigned.")
        gpus = int(os.environ.get("SLURM_GPUS_ON_NODE") or 0) if gpus_per_node is None else gpus_per_node
        each = gpus // max(counts) if gpus_per_task is None else gpus_per_task
        if gpus_per_node is not None and gpus_per_task is not None and each * max(counts) > gpus:
            raise RuntimeError("Requested more GPUs per node than available.")
        self._places = [
            (f"{host}:{port_base + offset}", range(offset * each, (offset + 1) * each))
            for host, count in zip(hosts, counts, strict=True)
            for offset in range(count)
        ]
        self._sets_gpus = auto_set_gpu
        self.rpc_layer = rpc_layer
        self.task_type, self.task_id = self.get_task_info()

    def _resolve_hostnames(self) -> list[str]:
        return expand_hostlist(os.environ.get("SLURM_STEP_NODELIST") or os.environ["SLURM_NODELIST"])

    def _of_jobs(self) -> Iterator[tuple[str, int]]:
        for job, count in self._jobs.items():
            for index in range(count):
                yield job, index

    def get_task_info(self) -> tuple[str, int]:
        """The job and the index of this task."""
        return list(self._of_jobs())[self._rank]

    def cluster_spec(self) -> ClusterSpec:
        """The addresses of all tasks. It sets CUDA_VISIBLE_DEVICES, see `auto_set_gpu`."""
        jobs: dict[str, list[str]] = {job: [] for job in self._jobs}
        for (job, _), (address, _) in zip(self._of_jobs(), self._places, strict=True):
            jobs[job].append(address)
        gpus = self._places[self._rank][1]
        if self._sets_gpus and gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
        return ClusterSpec(jobs)


def expand_hostlist(hostlist: str) -> list[str]:
    """The hosts of a list in Slurm's short form: "n[1-2],m5" gives n1, n2 and m5; zeros in front stay.

    Raises:
      ValueError: it is no such list.
    """
    hosts = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", hostlist):
        choices: list[list[str]] = []
        for fixed, ranges in re.findall(r"([^\[]+)|\[([^\]]*)\]", part):
            choices.append([fixed] if fixed else list(_numbers(ranges, hostlist)))
        hosts += ["".join(each) for each in itertools.product(*choices)]
    return hosts


def _numbers(ranges: str, hostlist: str) -> Iterator[str]:
    for text in ranges.split(","):
        first, dash, last = text.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{hostlist!r} is no list of hosts: {text!r} is no range")
        for number in range(int(first), int(last or first) + 1):
            yield str(number).zfill(len(first))


def expand_tasks_per_node(tasks_per_node: str) -> list[int]:
    """The tasks of each host from Slurm's short form: "3(x2),1" gives [3, 3, 1].

    Raises:
      ValueError: it is no such list.
    """
    counts: list[int] = []
    for part in tasks_per_node.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if found is None:
            raise ValueError(f"{tasks_per_node!r} does not say the tasks of each host, as 3(x2),1 does")
        counts += [int(found[1])] * int(found[2] or 1)
    return counts
