"""Clusters on Slurm's nodes that share no file system with one another, nor with the submit host: slurm_machines.py."""

from __future__ import annotations

import pytest

from tests.dtfctl.test_environment import a_wheel
from tests.e2e import slurm_machines
from tests.e2e.dtfctl_cluster import CommandLine
from tests.e2e.slurm_machines import SlurmMachines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        bool(slurm_machines.why_not()), reason=f"no Slurm on machines of their own: {slurm_machines.why_not()}"
    ),
]

CLUSTER = """
name: trial
readiness: none
grace_period: 3s
restart: {backoff: 100ms}
engine: {slurm: {nodes: 2, sync: true}}
venv: environment
requirements: requirements.txt
jobs:
  ps: {program: "echo ps; exec sleep 1000"}
  worker:
    replicas: 2
    env_file: words.env
    program: |
      greeting=$(python -c "import greeting; print(greeting.version)")
      echo worker {task} on $(hostname) says $WORD, $(cat data/text) $greeting
      while [ ! -e done ]; do sleep 0.02; done
      echo bye
"""


@pytest.fixture
def cluster(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    cluster = CommandLine(own, CLUSTER)
    (cluster.folder / "words.env").write_text("WORD=hello\n")
    (cluster.folder / "data").mkdir()
    (cluster.folder / "data" / "text").write_text("as it is here\n")
    a_wheel(cluster.folder / "wheels", "greeting", "1.0")
    (cluster.folder / "requirements.txt").write_text("--no-index\n--find-links wheels\ngreeting\n")
    cluster.timeout_s = 180.0
    return cluster


@pytest.fixture
def slurm(tmp_path, cluster):
    with SlurmMachines(tmp_path, 3, apart=(tmp_path / "own",)) as slurm:
        cluster.prefix = slurm.prefix
        cluster.environment.update({name: slurm.environment[name] for name in ("PATH", "SLURM_CONF")})
        cluster.environment.update({"HOME": str(tmp_path / "own"), "XDG_STATE_HOME": str(tmp_path / "own" / "home")})
        yield slurm
        slurm.end_all()
        assert cluster.processes() == {}


def test_the_folder_is_brought_to_each_node_and_commands_reach_the_first(cluster, slurm):
    assert "files of" in cluster.run("up", "--plan", status=20).stdout
    cluster.run("up", "--set", "engine.slurm.python=/nowhere/python")
    slurm.wait_until(lambda: not slurm.run("squeue", "-h"), "the end of the job")
    words = cluster.run("status", status=3).stderr
    assert "node1: /nowhere/python is not there; name another Python: engine.slurm.python" in words, words
    cluster.run("up")

    def has_begun(task):
        done = cluster.run("logs", task, status=None)
        return "on node" in done.stdout

    for task in ("worker:0", "worker:1"):
        slurm.wait_until(lambda task=task: has_begun(task), task)
    tasks = {task["name"]: task for task in cluster.status()["tasks"]}
    assert {task["host"] for task in tasks.values()} == {"node1", "node2"}
    assert "says hello, as it is here 1.0\n" in cluster.run("logs", "worker:1").stdout
    assert not (cluster.state / "trial" / "store.sqlite").exists()
    # A file of the cluster is named by its path here, and from its folder not at all.
    assert "worker:0" in cluster.run("status", str(cluster.folder / "cluster.yaml")).stdout
    words = cluster.run("exec", "worker:1", "--", "hostname").stdout
    assert words == f"{tasks['worker:1']['host']}\n"
    cluster.run("restart", "worker:1")
    slurm.wait_until(lambda: cluster.run("logs", "worker:1").stdout.count("on node") == 2, "the restart")
    for task in ("worker:0", "worker:1"):
        cluster.run("exec", task, "--", "touch", "done")
    slurm.wait_until(lambda: not slurm.run("squeue", "-h"), "the end of the job")
    words = cluster.run("status", status=3).stderr
    assert "(COMPLETED); its state and logs are on node1: srun" in words, words
    line = words.strip().partition("on node1: ")[2]
    assert "succeeded" in slurm.run("sh", "-c", line)
    cluster.run("down")
    assert "never up" in cluster.run("status", status=4).stderr
