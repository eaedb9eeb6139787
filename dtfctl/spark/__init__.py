"""Clusters on the executors of a Spark program.

    run ......... a function or a cluster file, run to its end
    TFCluster ... the calls of TensorFlowOnSpark for the driver: run, train, inference, shutdown
    TFNode ...... its calls for map_fun: DataFeed, start_cluster_server, hdfs_path

    gateway ..... gives the program's executors to dtfctl, in a thread of the driver
    registry .... the driver's part of the talk with nodes: the job, their addresses, their ends
    feed ........ rows: from a partition to a node's queues, and results back
    node ........ a task's program, which calls map_fun

The Python of the executors needs dtf and its dependencies: pip install 'dtf[spark]'.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dtfctl.spark.TFNode import Context

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["run"]


def run(
    sc: SparkContext,
    program: Callable[[object, Context], object] | str | os.PathLike[str],
    args: object = None,
    ps: int = 0,
    worker: int = 1,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Runs a cluster on executors of the program's Spark, and returns when the training has succeeded.

    Other terminals can look at the cluster with `dtfctl status` and `logs`. It ends with this program.

    Args:
      sc: the SparkContext.
      program: a function of (args, ctx), as TensorFlowOnSpark's map_fun, called in each task; or a cluster file.
      args: the first argument of the function.
      ps: how many tasks of the function are ps.
      worker: how many of them are workers.
      settings: for a cluster file, values over the file's, as those of `--set`: {"jobs.worker.replicas": 4}.

    Raises:
      DtfctlError: the training has failed, or the cluster could not start; the reason is on stderr, and for a
        function also in the error.
    """
    from dtfctl.spark import TFCluster

    if callable(program):
        TFCluster.run(sc, program, args, ps + worker, ps).shutdown()
        return
    from dtfctl import config
    from dtfctl.embedded import Embedded
    from dtfctl.spark.gateway import Gateway

    pairs = [f"{key}={value}" for key, value in (settings or {}).items()]
    file = os.fspath(program)
    if not config.read([Path(file)], pairs).plan().engine:
        pairs.append("engine=spark")
    with Gateway(sc) as gateway:
        Embedded(file, pairs, gateway.variables).wait()
