"""What Spark is asked for: its bridge, and the executors of a cluster."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dtfctl.launchers.bridge.client import BridgeProgram
from dtfctl.values.engines import SparkSettings
from dtfctl.values.plan import SPARK, ClusterPlan

SOCKET_VARIABLE = "DTFCTL_SPARK_SOCKET"
"""Names the socket of a program of Spark that gives its own executors (dtfctl.spark)."""

START_S = 120.0
"""Two JVMs start, one after the other."""


def program(settings: SparkSettings) -> BridgeProgram:
    python = settings.python or sys.executable
    master = ["--master", settings.master] if settings.master else []
    return BridgeProgram(
        engine="Spark",
        key=SPARK,
        package="pyspark",
        python=python,
        program=Path(__file__).with_name("bridge.py"),
        argument=json.dumps({"master": settings.master, "conf": properties(settings)}, sort_keys=True),
        by_hand=shlex.join(["pyspark", *master]),
        start_s=START_S,
        socket=settings.socket,
    )


def request(plan: ClusterPlan) -> dict[str, Any]:
    return {"wait_s": plan.spark.wait_s}


def settled(plan: ClusterPlan) -> SparkSettings:
    """The settings that the run keeps: with the cores that its tasks need, and the program that gives executors."""
    cores: dict[str, int] = {}
    for task in plan.tasks():
        cores[task.host.name] = cores.get(task.host.name, 0) + max(1, len(task.place.cpus))
    wanted = plan.spark.cores or max(cores.values(), default=1)
    return replace(plan.spark, cores=wanted, socket=os.environ.get(SOCKET_VARIABLE, ""))


def properties(settings: SparkSettings) -> dict[str, str]:
    """An executor for each host, with one slot: all its cores."""
    own = {
        "spark.app.name": "dtfctl",
        "spark.executor.instances": str(settings.nodes),
        "spark.executor.cores": str(settings.cores),
        "spark.task.cpus": str(settings.cores),
        "spark.cores.max": str(settings.nodes * settings.cores),
        "spark.dynamicAllocation.enabled": "false",
        "spark.ui.enabled": "false",
    }
    return {**own, **settings.conf}
