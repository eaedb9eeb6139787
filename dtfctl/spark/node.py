"""A task of TFCluster: asks the driver for the job, and calls map_fun. `python -m dtfctl.spark.node`"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pickle
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from dtfctl.spark.feed import STOPPED, FeedServer, Manager
from dtfctl.spark.registry import ask
from dtfctl.spark.TFNode import Context

DRIVER_VARIABLE = "DTFCTL_SPARK_DRIVER"
KEY_VARIABLE = "DTFCTL_SPARK_KEY"
"""The driver's registry, host:port, and its key."""

NOT_TRAINING = ("ps", "evaluator")


def main() -> None:
    host, _, port = os.environ[DRIVER_VARIABLE].rpartition(":")
    key = bytes.fromhex(os.environ.pop(KEY_VARIABLE))
    driver = (host, int(port))
    config = json.loads(os.environ["TF_CONFIG"])
    own: tuple[str, int] = (config["task"]["type"], config["task"]["index"])
    task = f"{own[0]}:{own[1]}"
    job = ask(driver, key, "job")
    manager = Manager(job["queues"])
    server = None
    error = ""
    try:
        bring(job["files"])
        if job["is_fed"] and own[0] not in NOT_TRAINING:
            server = FeedServer(manager, host_of(config["cluster"], own), key)
        is_over = ask(driver, key, "join", task, server.address if server else None)
        if is_over and server is not None:
            for name in job["queues"]:
                if name == job["queue"]:
                    manager.get_queue(name).put(None)
        map_fun, args = pickle.loads(job["function"])
        map_fun(args, context_of(config["cluster"], own, job, manager))
    except BaseException as raised:
        if not isinstance(raised, SystemExit) or raised.code:
            error = "".join(traceback.format_exception(raised)).strip()
        raise
    finally:
        manager.set("state", STOPPED)
        ask(driver, key, "ended", task, error)


def bring(files: dict[str, bytes]) -> None:
    """What the driver has added to its programs (addPyFile), where imports find it."""
    if files:
        folder = Path(tempfile.mkdtemp(prefix="dtfctl-spark-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        sys.path.insert(1, str(folder))
        for name, data in files.items():
            path = folder / os.path.basename(name)
            path.write_bytes(data)
            if path.suffix in (".zip", ".egg", ".jar"):
                sys.path.insert(1, str(path))
        importlib.invalidate_caches()


def host_of(cluster: dict[str, list[str]], own: tuple[str, int]) -> str:
    return cluster[own[0]][own[1]].rpartition(":")[0].strip("[]")


def context_of(
    cluster: dict[str, list[str]], own: tuple[str, int], job: dict[str, Any], manager: Manager
) -> Context:
    nodes = [(name, index) for name in job["order"] for index in range(len(cluster.get(name, ())))]
    return Context(
        executor_id=nodes.index(own),
        job_name=own[0],
        task_index=own[1],
        cluster_spec=cluster,
        defaultFS=job["default_fs"],
        working_dir=job["working_dir"],
        mgr=manager,
        num_workers=sum(name not in NOT_TRAINING for name, _ in nodes),
    )


if __name__ == "__main__":
    main()
