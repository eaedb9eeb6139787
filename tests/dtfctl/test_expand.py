"""What each task is handed, as flags, TF_CONFIG and environment."""

from __future__ import annotations

import json
import shlex

import pytest

from dtfctl.plan import expand
from dtfctl.plan.shell_line import outliving_signals
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
        (["train", "{{job}}", "$${job}", "{print $1}"], ["train", "{job}", "${job}", "{print $1}"]),
        (["python", "t.py"], ["/venv/bin/python", "t.py"]),
        (["python3", "t.py"], ["/venv/bin/python", "t.py"]),
        (["pythonic", "python"], ["pythonic", "python"]),
        ("python t.py {cluster_flags}", ["/bin/sh", "-c", f"exec /venv/bin/python t.py {' '.join(FLAGS)}"]),
        (
            "echo $HOME && x > {checkpoint_dir}",
            [
                "/bin/sh",
                "-c",
                outliving_signals("echo $HOME && x > '/cluster/my saves'"),
            ],
        ),
    ],
)
def test_a_program_gets_its_place_where_it_asks_for_it(program, argv):
    plan, task = expanded(program, python="/venv/bin/python", checkpoint_dir="my saves")
    assert list(expand.argv(plan, task, ADDRESSES)) == argv


@pytest.mark.parametrize("program", [["python", "t.py"], "cd src && python t.py"])
def test_dtf_makes_way_for_the_program_whose_tensorflow_it_is(program):
    plan, task = expanded(program, python="/venv/bin/python", tensorflow="dtf")
    alone = expand.argv(*expanded(program, python="/venv/bin/python"), ADDRESSES)
    assert expand.argv(plan, task, ADDRESSES) == ("/venv/bin/python", "-m", "dtf", "--exec", *alone)


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
    assert expand.thread_defaults(plan, cores)["OMP_NUM_THREADS"] == threads


def test_a_job_without_an_address_is_not_in_the_cluster_spec():
    plan = plan_of("program: x {cluster_flags}\njobs: {worker: 1, board: {port: none}}")
    addresses = {"worker:0": "127.0.0.1:2"}
    assert expand.cluster_spec(plan, plan.task("board:0"), addresses) == {"worker": ["127.0.0.1:2"]}
    argv = expand.argv(plan, plan.task("board:0"), addresses)
    assert argv[-1] == "exec x --worker_hosts=127.0.0.1:2 --job_name=board --task_index=0"


def test_with_a_sparse_spec_a_task_sees_itself_and_the_parameter_servers():
    plan, task = expanded("train {cluster_flags} {ps_hosts} {worker_hosts}", cluster_spec="sparse")
    cluster = {"ps": ["127.0.0.1:1"], "worker": {"1": "127.0.0.1:3"}}
    environment = expand.environment(plan, task, ADDRESSES, {})
    assert json.loads(environment["TF_CONFIG"]) == {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    assert json.loads(environment["CLUSTER_SPEC"]) == cluster
    words = shlex.split(expand.argv(plan, task, ADDRESSES)[-1])[1:]
    assert json.loads(words[1].removeprefix("--cluster_spec=")) == cluster
    assert words[2:] == ["--job_name=worker", "--task_index=1", "127.0.0.1:1", "127.0.0.1:3"]
    ps = expand.environment(plan, plan.task("ps:0"), ADDRESSES, {})
    assert json.loads(ps["CLUSTER_SPEC"]) == {"ps": ["127.0.0.1:1"]}


def test_dtf_takes_a_sparse_spec():
    from dtf.wire.cluster import ClusterSpec

    plan, task = expanded("train", cluster_spec="sparse")
    spec = ClusterSpec(json.loads(expand.environment(plan, task, ADDRESSES, {})["CLUSTER_SPEC"]))
    assert spec.task_indices("worker") == [1]
    assert spec.task_address("worker", 1) == "127.0.0.1:3"


def test_a_sidecar_is_told_of_the_cluster_by_placeholders_only():
    text = "program: x {worker_hosts} {port} {bind}\ncheckpoint_dir: c\njobs: {worker: 1, s: {sidecar: true}}"
    plan = plan_of(text)
    addresses = {"worker:0": "127.0.0.1:2", "s:0": "127.0.0.1:9"}
    environment = expand.environment(plan, plan.task("s:0"), addresses, {})
    assert "TF_CONFIG" not in environment and "CLUSTER_SPEC" not in environment
    assert expand.argv(plan, plan.task("s:0"), addresses)[-1] == "exec x 127.0.0.1:2 9 127.0.0.1"
    assert expand.cluster_spec(plan, plan.task("worker:0"), addresses) == {"worker": ["127.0.0.1:2"]}


def test_tensorboard_gets_its_folder_address_and_port():
    plan = plan_of("program: x\npython: /v/bin/python\ncheckpoint_dir: c\ntensorboard: true\njobs: {worker: 1}")
    addresses = {"worker:0": "127.0.0.1:2", "tensorboard:0": "127.0.0.1:9"}
    assert expand.argv(plan, plan.task("tensorboard:0"), addresses) == (
        *("/v/bin/python", "-m", "tensorboard.main"),
        *("--logdir=/cluster/c", "--host=127.0.0.1", "--port=9"),
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"gpus": 1}, {"CUDA_VISIBLE_DEVICES": "2"}),
        ({"gpus": [5, 7]}, {"CUDA_VISIBLE_DEVICES": "5,7"}),
        ({"gpus": "none"}, {"CUDA_VISIBLE_DEVICES": ""}),
        ({}, {"CUDA_VISIBLE_DEVICES": None, "OMP_NUM_THREADS": None, "VIRTUAL_ENV": None}),
        ({"threads": 3}, {"OMP_NUM_THREADS": "3", "TF_NUM_INTRAOP_THREADS": "3"}),
        ({"cpus": "4-5"}, {"OMP_NUM_THREADS": "2"}),
        ({"cpus": 4, "threads": 1}, {"OMP_NUM_THREADS": "1"}),
        ({"venv": "/v"}, {"VIRTUAL_ENV": "/v", "PATH": "/v/bin:/bin:/usr/bin"}),
        (
            {"environment": {"A": "{host} {index}/{replicas} {bind} {folder}"}},
            {"A": "localhost 1/2 127.0.0.1 /cluster"},
        ),
        ({"environment": {"OMP_NUM_THREADS": "9"}, "threads": 3}, {"OMP_NUM_THREADS": "9"}),
    ],
)
def test_settings_reach_the_environment(keys, expected):
    plan, task = expanded("train", **keys)
    environment = expand.environment(plan, task, ADDRESSES, {"PATH": "/bin:/usr/bin"})
    assert {key: environment.get(key) for key in expected} == expected


def test_a_bind_address_of_its_own_is_told_to_dtfs_servers():
    plan = plan_of("program: train\njobs: {ps: {bind: 0.0.0.0, advertise: node1}, worker: {}}")
    addresses = {task.name: f"{task.advertised_host}:2222" for task in plan.tasks()}
    inherited = {"DTF_BIND": "a stranger's", "DTF_TLS_KEY": "too"}
    given = expand.environment(plan, plan.task("ps:0"), addresses, inherited)
    assert given["DTF_BIND"] == "0.0.0.0" and "DTF_TLS_KEY" not in given
    assert "DTF_BIND" not in expand.environment(plan, plan.task("worker:0"), addresses, inherited)


def test_that_a_task_gets_keys_is_shown_and_they_are_not():
    plan = plan_of("program: train\nsecurity: tls\njobs: {worker: 1}")
    (host,) = expand.described(plan, {"worker:0": "localhost:2222"})
    shown = host["tasks"][0]["environment"]
    assert {shown[f"DTF_TLS_{name}"] for name in ("CA", "CERT", "KEY")} == {
        "(a private file, made when the task is started)"
    }


def test_secrets_are_hidden_until_their_values_are_known():
    plan, task = expanded("train", secrets={"A": {"file": "/key"}, "B": None, "C": {"variable": "MINE"}})
    hidden = expand.environment(plan, task, ADDRESSES, {})
    assert [hidden[name] for name in "ABC"] == [expand.HIDDEN] * 3
    values = {"file /key": "x", "variable B": "y", "variable MINE": "z"}
    known = expand.environment(plan, task, ADDRESSES, {}, values)
    assert [known[name] for name in "ABC"] == ["x", "y", "z"]
    (host,) = expand.described(plan, ADDRESSES)
    assert host["tasks"][0]["environment"]["A"] == "(secret from the file /key)"


def test_what_is_described_is_each_host_with_its_tasks():
    text = "program: x\nhosts: {'n[0-1]': {slots: 2}}\nlimits: {memory: 2MiB}\njobs: {ps: 1, worker: 2}"
    plan = plan_of(text)
    addresses = {task.name: f"{task.advertised_host}:{task.index}" for task in plan.tasks()}
    hosts = expand.described(plan, addresses)
    assert [(host["host"], [task["task"] for task in host["tasks"]]) for host in hosts] == [
        ("n0", ["ps:0", "worker:1"]),
        ("n1", ["worker:0"]),
    ]
    assert hosts[1]["tasks"][0]["limits"] == {"memory_bytes": 2 << 20}
    spec = json.loads(hosts[1]["tasks"][0]["environment"]["CLUSTER_SPEC"])
    assert spec == {"ps": ["n0:0"], "worker": ["n1:0", "n0:1"]}
