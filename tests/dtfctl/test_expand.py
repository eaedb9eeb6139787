"""What each task is handed, as flags, TF_CONFIG and environment."""

from __future__ import annotations

import json

import pytest

from dtfctl import expand
from tests.dtfctl.fakes import plan_of

ADDRESSES = {"ps:0": "127.0.0.1:1", "worker:0": "127.0.0.1:2", "worker:1": "127.0.0.1:3"}
FLAGS = ["--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2,127.0.0.1:3", "--job_name=worker", "--task_index=1"]


def expanded(program, **keys):
    lines = [f"program: {json.dumps(program)}", "jobs: {ps: 1, worker: 2}", "name: trial"]
    plan = plan_of("\n".join(lines + [f"{key}: {json.dumps(value)}" for key, value in keys.items()]))
    return plan, plan.task("worker:1")


@pytest.mark.parametrize(
    ("program", "argv"),
    [
        (["train", "{cluster_flags}", "--lr=1"], ["train", *FLAGS, "--lr=1"]),
        (["train", "x{job}-{task}y", "{port}"], ["train", "xworker-1y", "3"]),
        (["train", "{address}", "{host}", "{name}"], ["train", "127.0.0.1:3", "localhost", "trial"]),
        (["train", "{worker_hosts}"], ["train", "127.0.0.1:2,127.0.0.1:3"]),
        (["train", "{{job}}", "${job}", "{print $1}"], ["train", "{job}", "${job}", "{print $1}"]),
        (["python", "t.py"], ["/venv/bin/python", "t.py"]),
        (["python3", "t.py"], ["/venv/bin/python", "t.py"]),
        (["pythonic", "python"], ["pythonic", "python"]),
        ("python t.py {cluster_flags}", ["/bin/sh", "-c", f"/venv/bin/python t.py {' '.join(FLAGS)}"]),
        ("echo $HOME && x > {checkpoint_dir}", ["/bin/sh", "-c", "echo $HOME && x > '/cluster/my saves'"]),
    ],
)
def test_a_program_gets_its_place_where_it_asks_for_it(program, argv):
    plan, task = expanded(program, python="/venv/bin/python", checkpoint_dir="my saves")
    assert list(expand.argv(plan, task, ADDRESSES)) == argv


def test_tf_config_and_cluster_spec_say_the_same_as_the_flags():
    plan, task = expanded("train")
    environment = expand.environment(plan, task, ADDRESSES, {})
    cluster = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}
    assert json.loads(environment["TF_CONFIG"]) == {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    assert json.loads(environment["CLUSTER_SPEC"]) == cluster
    assert (environment["JOB_NAME"], environment["TASK_INDEX"]) == ("worker", "1")


def test_the_environment_is_inherited_but_for_what_describes_another_cluster():
    plan, task = expanded("train", environment={"RANK": "{task}", "HOME": "/elsewhere"}, python="/venv/bin/python")
    inherited = {"HOME": "/home/me", "PATH": "/usr/bin", "LANG": "C", "TF_CONFIG": "theirs", "DTFCTL_TOKEN": "theirs"}
    environment = expand.environment(plan, task, ADDRESSES, inherited)
    assert (environment["RANK"], environment["HOME"], environment["LANG"]) == ("1", "/elsewhere", "C")
    assert environment["PATH"] == "/venv/bin:/usr/bin"
    assert environment["PYTHONUNBUFFERED"] == "1"
    assert "theirs" not in environment.values()


@pytest.mark.parametrize(("cores", "threads"), [(1, "1"), (2, "1"), (16, "8")])
def test_the_tasks_that_compute_share_the_cores(cores, threads):
    plan, _ = expanded("train")
    assert expand.thread_defaults(plan, cores) == {"OMP_NUM_THREADS": threads}


def test_a_job_without_an_address_is_not_in_the_cluster_spec():
    plan = plan_of("program: x {cluster_flags}\njobs: {worker: 1, board: {port: none}}")
    addresses = {"worker:0": "127.0.0.1:2"}
    assert expand.cluster_spec(plan, addresses) == {"worker": ["127.0.0.1:2"]}
    argv = expand.argv(plan, plan.task("board:0"), addresses)
    assert argv[-1] == "x --worker_hosts=127.0.0.1:2 --job_name=board --task_index=0"
