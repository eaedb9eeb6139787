"""tf.contrib.cluster_resolver: where the tasks of a cluster are, from the environment or as given.

Those of cloud engines are not here: dtfctl gives their tasks TF_CONFIG.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/cluster_resolver
"""

from __future__ import annotations

import json
import os
from typing import Any

import dtf as tf

__all__ = ["ClusterResolver", "SimpleClusterResolver", "TFConfigClusterResolver", "UnionResolver"]


class ClusterResolver:
    """The base: a cluster, and the place of this task in it."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    environment = ""

    def cluster_spec(self) -> tf.train.ClusterSpec:
        """The addresses of all tasks."""
        raise NotImplementedError

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target of a session: of the given task, or of this one; "" without any."""
        kind = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if kind is None or index is None:
            return ""
        layer = rpc_layer or self.rpc_layer
        address = self.cluster_spec().task_address(kind, index)
        return f"{layer}://{address}" if layer else address

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """{}: devices are found by the servers."""
        return {}


class SimpleClusterResolver(ClusterResolver):
    """A cluster as given.

    Raises:
      TypeError: `cluster_spec` is no ClusterSpec.
    """

    def __init__(
        self, cluster_spec: Any, master: str = "", task_type: str | None = None, task_id: int | None = None,
        environment: str = "", num_accelerators: Any = None, rpc_layer: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(cluster_spec, tf.train.ClusterSpec):
            raise TypeError("cluster_spec must be a tf.train.ClusterSpec.")
        self._cluster_spec, self._master = cluster_spec, master
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self.environment = environment

    def cluster_spec(self) -> tf.train.ClusterSpec:
        """The given one."""
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The given one, or that of the task in the arguments."""
        if task_type is None or task_id is None:
            return self._master
        return super().master(task_type, task_id, rpc_layer)


class TFConfigClusterResolver(ClusterResolver):
    """The cluster of the environment variable TF_CONFIG, read at each call."""

    def __init__(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:  # fmt: skip
        task = self._config().get("task", {})
        self.task_type = task.get("type") if task_type is None else task_type
        index = task.get("index") if task_id is None else task_id
        self.task_id = None if index is None else int(index)
        self.rpc_layer = rpc_layer or self._config().get("rpc_layer")
        self.environment = environment or self._config().get("environment", "")

    def cluster_spec(self) -> tf.train.ClusterSpec:
        """An empty one without the variable."""
        return tf.train.ClusterSpec(self._config().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """`session_master` of TF_CONFIG, or the address of the task."""
        named = self._config().get("session_master")
        if named is not None or not self.cluster_spec().jobs:
            return named or ""
        return super().master(task_type, task_id, rpc_layer)

    @staticmethod
    def _config() -> dict[str, Any]:
        return json.loads(os.environ.get("TF_CONFIG") or "{}")


class UnionResolver(ClusterResolver):
    """The tasks of several resolvers together; the place is the first's."""

    def __init__(self, *resolvers: ClusterResolver, **kwargs: Any) -> None:
        if not resolvers:
            raise ValueError("At least one ClusterResolver is required.")
        self._resolvers = resolvers
        first = resolvers[0]
        self.rpc_layer = kwargs.get("rpc_layer", first.rpc_layer)
        self.task_type, self.task_id = kwargs.get("task_type", first.task_type), kwargs.get("task_id", first.task_id)

    def cluster_spec(self) -> tf.train.ClusterSpec:
        """All tasks; those of one job one after another."""
        jobs: dict[str, list[str]] = {}
        for resolver in self._resolvers:
            spec = resolver.cluster_spec()
            for job in spec.jobs:
                jobs.setdefault(job, []).extend(filter(None, spec.job_tasks(job)))
        return tf.train.ClusterSpec(jobs)


UnionClusterResolver = UnionResolver
