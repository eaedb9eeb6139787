"""A cluster file run from within a program of Ray, on the Ray cluster that the program uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dtfctl import config
from dtfctl.embedded import Embedded

__all__ = ["run"]


def run(cluster_file: str | os.PathLike[str], settings: Mapping[str, object] | None = None) -> None:
    """Starts the cluster on hosts of this program's Ray, and returns when the training has succeeded.

    The cluster is that of `dtfctl up --attach`: other terminals can look at it and command it. It ends with this
    program.

    Args:
      cluster_file: a cluster file; `engine: {ray: {nodes: 4}}` in it says how many hosts it gets.
      settings: values over those of the file, as those of `--set`: {"jobs.worker.replicas": 4}.

    Raises:
      DtfctlError: the training has failed, or the cluster could not start; the reason is on stderr.
    """
    import ray

    if not ray.is_initialized():
        ray.init()
    pairs = [f"{key}={value}" for key, value in (settings or {}).items()]
    file = os.fspath(cluster_file)
    if not config.read([Path(file)], pairs).plan().engine:
        pairs.append("engine=ray")
    Embedded(file, pairs, {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}).wait()
