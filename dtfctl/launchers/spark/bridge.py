"""The bridge to Spark: the driver of an application of its own, whose executors are a cluster's hosts. Its Python has
pyspark and need not have dtfctl. The application ends with it, and so do the hosts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    # The modules beside this file are not for this process; of dtfctl it gets only what needs nothing but Python.
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    # It outlives dtfctl's process, which would have to wait for the end of a child of its own.
    if os.fork():
        os._exit(0)

from pyspark import SparkConf, SparkContext

from dtfctl.launchers.bridge.server import run
from dtfctl.launchers.spark.executors import Executors
from dtfctl.launchers.spark.probe import probe

if __name__ == "__main__":
    sys.path.pop(0)


def connect(argument: str) -> Executors:
    wanted = json.loads(argument)
    conf = SparkConf().setAll(list(wanted["conf"].items()))
    if wanted["master"]:
        conf.setMaster(wanted["master"])
    if not conf.get("spark.master"):
        raise RuntimeError("no master is named: engine: {spark: {master: spark://HOST:7077}}")
    probe(conf.get("spark.master") or "")
    if "spark.pyspark.python" not in wanted["conf"]:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return Executors(SparkContext(conf=conf))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], lambda: connect(sys.argv[3]))
