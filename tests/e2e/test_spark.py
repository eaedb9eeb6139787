"""Clusters on Spark: a real standalone master and two workers on this machine, see spark_cluster.py."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests.e2e import spark_cluster
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(spark_cluster.why_not()), reason=f"no Spark: {spark_cluster.why_not()}"),
]

ENGINE = """
engine:
  spark:
    nodes: 2
    cores: 1
    wait: 4m
    master: "{master}"
    python: {python}
    conf: {{spark.driver.host: 127.0.0.1, spark.executor.memory: 512m}}
"""

SLEEPERS = """
name: trial
readiness: none
grace_period: 3s
jobs:
  ps: {program: "echo ps; exec sleep 1000"}
  worker: {program: "echo worker {task} on {host}; while [ ! -e done ]; do sleep 0.02; done; echo bye"}
"""


@pytest.fixture
def spark():
    return spark_cluster.shared()


@pytest.fixture
def cluster(tmp_path, spark):
    cluster = CommandLine(tmp_path, SLEEPERS + ENGINE.format(master=spark.master, python=spark_cluster.PYTHON))
    cluster.timeout_s = 400.0
    yield cluster
    cluster.run("down", status=None)
    wait_until(lambda: cluster.processes() == {}, "the end of all processes of the cluster", 60)
    wait_until(lambda: spark.cores_used() == 0, "the end of the application", 60)


def test_a_cluster_must_survive_the_death_of_an_executor_and_of_the_driver_and_leave_nothing(cluster, spark):
    cluster.run("up")
    before = tasks_of(cluster)
    assert {task["host"] for task in before.values()} == {"node-1", "node-2"}
    assert "matches the file" in cluster.run("up", "--plan").stdout
    os.kill(spark.executors()[0], signal.SIGKILL)
    wait_until(lambda: len(restarted(cluster, before)) == 1, "the executor's task to come back", 240)
    assert "restart not counted" in cluster.run("events").stdout
    before = tasks_of(cluster)
    (bridge,) = cluster.processes("spark/bridge.py")
    os.kill(bridge, signal.SIGKILL)
    wait_until(lambda: len(restarted(cluster, before)) == 2, "the tasks to come back", 240)
    cluster.finish()
    assert cluster.run("wait").returncode == 0
    assert "worker 0 on node-" in cluster.run("logs", "worker:0").stdout


def tasks_of(cluster):
    return {task["name"]: task for task in cluster.status()["tasks"]}


def restarted(cluster, before):
    """Names of the tasks that have come back, where all are ready; nobody runs twice."""
    now = tasks_of(cluster)
    if not all(task["ready"] for task in now.values()):
        return []
    found = [name for name in now if now[name]["pid"] != before[name]["pid"]]
    assert not any(os.path.exists(f"/proc/{before[name]['pid']}") for name in found)
    return found


def test_too_few_slots_must_be_told_with_their_numbers(cluster, spark):
    refused = cluster.run("up", "--set", "engine.spark.nodes=5", "--set", "engine.spark.wait=5s", status=8)
    # How many executors have come by then depends on the machine.
    numbers = r"too few slots: wanted are 5, one for each host; there are \d executors? with \d slots?"
    assert re.search(numbers, refused.stderr)


def test_no_spark_must_be_told_at_once(cluster):
    refused = cluster.run("up", "--set", "engine.spark.master=spark://127.0.0.1:1", status=8)
    assert "no Spark answers at 127.0.0.1:1: Connection refused" in refused.stderr


def test_the_example_must_train_on_its_hosts(cluster, spark):
    cluster.run("down", status=None)
    shutil.copytree(ROOT / "clusters/spark-digits", cluster.folder, dirs_exist_ok=True)
    # Fewer steps than the example's: the machine may be busy.
    mine = {"program": "python trainer.py {cluster_flags} --checkpoint_dir={checkpoint_dir} --train_steps=500"}
    mine |= {"engine.spark.python": spark_cluster.PYTHON, "engine.spark.master": spark.master}
    mine |= {"name": "trial", "engine.spark.wait": "4m"}
    mine |= {"python": sys.executable, "environment.PYTHONPATH": f"{ROOT}/runtime"}
    settings = [word for key, value in mine.items() for word in ("--set", f"{key}={value}")]
    cluster.environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    done = cluster.run("up", "--attach", *settings)
    accuracy = float(re.findall(r"held-out accuracy: ([\d.]+) %", done.stdout)[-1])
    assert accuracy > 90


class Program:
    """spark_program.py at work on a case."""

    def __init__(self, folder, spark, case):
        self._output = folder / f"{case}.txt"
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT}/runtime",
            "DTFCTL_STATE_DIR": str(folder / "state"),
            "PYSPARK_PYTHON": spark_cluster.PYTHON,
        }
        with open(self._output, "w") as output:
            self.process = subprocess.Popen(
                [spark_cluster.PYTHON, str(ROOT / "tests/e2e/spark_program.py"), spark.master, case],
                env=self.environment,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def output(self):
        return self._output.read_text()


@pytest.fixture
def programs(tmp_path, spark):
    has_all = subprocess.run([spark_cluster.PYTHON, "-c", "import click, grpc, pyspark, rich, yaml, psutil"])
    if has_all.returncode:
        pytest.skip(f"{spark_cluster.PYTHON} has pyspark, and not what dtf needs: pip install 'dtf[spark]'")
    cluster = CommandLine(tmp_path)
    begun = []

    def begin(case):
        begun.append(Program(tmp_path, spark, case))
        return begun[-1]

    yield begin
    for program in begun:
        program.process.kill()
        program.process.communicate()
    wait_until(lambda: cluster.processes() == {}, "the end of all processes of the program", 60)
    wait_until(lambda: spark.cores_used() == 0, "the end of the application", 60)


def test_a_program_of_tensorflow_on_spark_must_train_infer_and_be_told_its_errors(programs):
    program = programs("feeds")
    program.process.wait(400)
    output = program.output()
    assert program.process.returncode == 0, output
    rows = [int(count) for count in re.findall(r"rows (\d+) weights", output)]
    assert (len(rows), sum(rows)) == (2, 4000), output
    weights = [[float(word) for word in pair] for pair in re.findall(r"weights (\S+) (\S+)", output)]
    assert weights[-1] == pytest.approx([2.0, -1.0], abs=0.2)
    assert "trained" in output and "inferred" in output
    assert re.search(r"driver sees DtfctlError ValueError: no more of this on worker:\d", output), output
    assert re.search(r"shutdown sees ValueError: no more of this on worker:\d", output), output
    assert "on node-1" in output and "on node-2" in output
    assert "too few slots: wanted are 4, one for each host; there are 3 executors with 3 slots" in output


def test_the_end_of_the_program_must_be_that_of_its_cluster(programs):
    program = programs("killed")
    wait_until(lambda: "\nruns" in program.output() or program.process.poll() is not None, "the cluster", 200)
    assert program.process.poll() is None, program.output()
    program.process.kill()
