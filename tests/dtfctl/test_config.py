"""Cluster files, good ones and a corpus of bad ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dtfctl import plan as plans
from dtfctl.config import load, parse
from dtfctl.errors import ConfigError
from dtfctl.plan import Probe, RestartPolicy
from tests.dtfctl.fakes import plan_of

ROOT = Path(__file__).resolve().parents[2]

FULL = """
name: mnist
checkpoint_dir: save/here
program: [python, train.py, "{cluster_flags}"]
environment: {LEVEL: top, ONLY_TOP: "1"}
success: [chief, worker]
restart: {policy: always, attempts: 3, window: 5m, backoff: 250ms, backoff_max: 2s, healthy_after: 1h}
jobs:
  chief: {port: 2222, grace_period: 30s}
  worker:
    replicas: 2
    port: [2223, 2225]
    environment: {LEVEL: worker}
    readiness: {probe: tcp, interval: 1s, timeout: 5}
  ps:
    restart: never
    port: auto
  board:
    program: tensorboard --logdir {checkpoint_dir}
    port: none
    python: venv/bin/python
    working_dir: ..
"""


def test_a_full_file_means_what_it_says():
    plan = plan_of(FULL)
    chief, worker, ps, board = plan.jobs
    assert (plan.name, plan.checkpoint_dir, plan.success) == ("mnist", "/cluster/save/here", ("chief", "worker"))
    assert (chief.ports, worker.ports, ps.ports, board.ports) == ((2222,), (2223, 2225), None, ())
    assert chief.program == ("python", "train.py", "{cluster_flags}")
    assert chief.restart == RestartPolicy("always", 3, 300.0, 0.25, 2.0, 3600.0)
    assert ps.restart == RestartPolicy("never")
    assert worker.environment == {"LEVEL": "worker", "ONLY_TOP": "1"}
    assert worker.readiness == Probe("tcp", "", 1.0, 5.0)
    assert (chief.readiness.kind, board.readiness.kind) == ("grpc", "none")
    assert (board.python, board.working_dir) == ("/cluster/venv/bin/python", "/")
    assert (chief.python, chief.working_dir, chief.grace_period_s) == (sys.executable, "/cluster", 30.0)
    assert [task.name for task in plan.tasks()] == ["chief:0", "worker:0", "worker:1", "ps:0", "board:0"]


def test_a_plan_survives_its_way_through_json():
    import json

    plan = plan_of(FULL)
    assert plans.from_json(json.loads(json.dumps(plans.to_json(plan)))) == plan


def test_differences_are_named_by_their_path():
    new = plan_of(FULL.replace("replicas: 2", "replicas: 1").replace("[2223, 2225]", "2223"))
    assert plans.differences(plan_of(FULL), new) == [
        "jobs.worker.ports: (2223, 2225) -> (2223,)",
        "jobs.worker.replicas: 2 -> 1",
    ]
    assert plans.differences(new, new) == []


@pytest.mark.parametrize(
    ("jobs", "success"),
    [
        ("{ps: 1, worker: 2}", ("worker",)),
        ("{ps: 1, worker: 2, chief: 1}", ("chief",)),
        ("{ps: 1, master: 1, worker: 1}", ("master",)),
        ("{web: 1, crawler: 2, ps: 1}", ("web", "crawler")),
        ("{ps: 1}", ("ps",)),
    ],
)
def test_who_decides_about_success_follows_from_the_jobs(jobs, success):
    assert plan_of(f"program: x\njobs: {jobs}").success == success


def test_a_file_without_a_name_is_called_after_its_folder():
    assert parse("program: x\njobs: {a: 1}", "c.yaml", Path("/home/me/my cluster")).name == "my-cluster"


@pytest.mark.parametrize("file", sorted(ROOT.glob("clusters/*/*.yaml")), ids=lambda path: path.parent.name)
def test_every_example_is_valid(file):
    assert load(file).jobs


HEAD = "program: x\n"

MALFORMED = {
    "nothing": ("", "c.yaml:1:1: the file is empty"),
    "only a comment": ("# hello\n", "c.yaml:1:1: the file is empty"),
    "a list": ("- a\n", "c.yaml:1:1: a cluster file must be a mapping of keys to values, not a list"),
    "a word": ("hello", 'c.yaml:1:1: a cluster file must be a mapping of keys to values, not "hello"'),
    "broken yaml": ("jobs: {a: 1\nprogram", "c.yaml:2:8: "),
    "a tab": ("jobs:\n\tps: 1\n", "c.yaml:2:1: found character '\\t' that cannot start any token"),
    "an unclosed quote": ('program: "x\njobs: {a: 1}', "c.yaml:2:13: "),
    "a control character": ("program: \x01", "c.yaml: "),
    "an unknown alias": ("program: *x\n", "c.yaml:1:10: found undefined alias"),
    "two documents": ("a: 1\n---\nb: 1\n", "c.yaml:2:1: but found another document"),
    "no jobs": ("program: x\n", 'c.yaml:1:1: the key "jobs" is missing'),
    "jobs empty": (HEAD + "jobs: {}\n", 'c.yaml:2:7: "jobs" names no job'),
    "jobs null": (HEAD + "jobs:\n", 'c.yaml:2:6: "jobs" must be a mapping of keys to values, not nothing'),
    "jobs a list": (HEAD + "jobs: [ps]\n", 'c.yaml:2:7: "jobs" must be a mapping of keys to values, not a list'),
    "jobs misspelled": (HEAD + "job: {ps: 1}\n", 'c.yaml:2:1: unknown key "job" (did you mean "jobs"?)'),
    "a key far from all": (HEAD + "zzz: 1\n", 'c.yaml:2:1: unknown key "zzz" (known: name, checkpoint_dir, jobs'),
    "replica": (
        HEAD + "jobs:\n  worker:\n    replica: 2\n",
        'c.yaml:4:5: unknown key "replica" under jobs.worker (did you mean "replicas"?)',
    ),
    "upper case": (
        HEAD + "jobs: {w: {Replicas: 2}}",
        'c.yaml:2:12: unknown key "Replicas" under jobs.w (did you mean "replicas"?)',
    ),
    "a key twice": (HEAD + "program: y\njobs: {a: 1}", 'c.yaml:2:1: the key "program" is there twice'),
    "a job twice": (HEAD + "jobs:\n  a: 1\n  a: 2\n", 'c.yaml:4:3: the key "a" is there twice under jobs'),
    "a key that is a list": (HEAD + "? [a]\n: 1\n", "c.yaml:2:3: a key must be a word, not a list"),
    "no program": ("jobs: {a: 1}\n", 'c.yaml:1:11: the key "program" is missing, both at the top and under jobs.a'),
    "an empty program": ("program: ''\njobs: {a: 1}", 'c.yaml:1:10: "program" is empty'),
    "a program of nothing": ("program: []\njobs: {a: 1}", 'c.yaml:1:10: "program" is empty'),
    "a null program": ("program:\njobs: {a: 1}", 'c.yaml:1:9: "program" has no value'),
    "a program of maps": ("program: [{a: 1}]\njobs: {a: 1}", 'c.yaml:1:11: "program" must be one value, not a mapping'),
    "a mapping as program": (
        "program: {a: 1}\njobs: {a: 1}",
        'c.yaml:1:10: "program" must be one value, not a mapping',
    ),
    "a zero byte": ('program: "a\\0b"\njobs: {a: 1}', 'c.yaml:1:10: "program" holds a zero byte'),
    "no replicas": (
        HEAD + "jobs: {a: 0}",
        'c.yaml:2:11: "jobs.a.replicas" must be a whole number from 1 to 10000, not "0"',
    ),
    "negative replicas": (HEAD + "jobs: {a: -1}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "half a replica": (HEAD + "jobs: {a: 1.5}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "replicas in words": (HEAD + "jobs: {a: two}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "too many replicas": (HEAD + "jobs: {a: 10001}", 'c.yaml:2:11: "jobs.a.replicas" must be a whole number'),
    "far too many replicas": (HEAD + f"jobs: {{a: {'9' * 5000}}}", 'c.yaml:2:11: "jobs.a.replicas" must be'),
    "a list of replicas": (
        HEAD + "jobs: {a: {replicas: [1]}}",
        'c.yaml:2:22: "jobs.a.replicas" must be one value, not a list',
    ),
    "a null job": (HEAD + "jobs: {a: }", 'c.yaml:2:10: "jobs.a.replicas" has no value'),
    "a job that is a list": (
        HEAD + "jobs: {a: [1]}",
        'c.yaml:2:11: "jobs.a" must be a mapping of keys to values, not a list',
    ),
    "a job name with a colon": (HEAD + 'jobs: {"a:b": 1}', 'c.yaml:2:15: "a:b" is no name for a job'),
    "an empty job name": (HEAD + 'jobs: {"": 1}', 'c.yaml:2:12: "" is no name for a job'),
    "a job name in digits": (HEAD + "jobs: {1: 1}", 'c.yaml:2:11: "1" is no name for a job'),
    "port zero": (
        HEAD + "jobs: {a: {port: 0}}",
        'c.yaml:2:18: "jobs.a.port" must be a whole number from 1 to 65535, not "0"',
    ),
    "port too high": (HEAD + "jobs: {a: {port: 65536}}", 'c.yaml:2:18: "jobs.a.port" must be a whole number'),
    "ports run out": (
        HEAD + "jobs: {a: {port: 65535, replicas: 2}}",
        'c.yaml:2:18: "jobs.a.port" must be a whole number from 1 to 65534',
    ),
    "port in words": (
        HEAD + "jobs: {a: {port: any}}",
        'c.yaml:2:18: "jobs.a.port" must be auto, none, a number or a list of numbers, not "any"',
    ),
    "too few ports": (
        HEAD + "jobs: {a: {port: [1], replicas: 2}}",
        'c.yaml:2:18: "jobs.a.port" lists 1 ports for 2 tasks',
    ),
    "a port twice": (HEAD + "jobs: {a: {port: 5}, b: {port: [5]}}", "c.yaml:2:25: port 5 is that of a:0 and of b:0"),
    "overlapping ports": (
        HEAD + "jobs: {a: {port: 5, replicas: 3}, b: {port: 7}}",
        "c.yaml:2:38: port 7 is that of a:2 and of b:0",
    ),
    "a policy": (
        HEAD + "restart: onfailure\njobs: {a: 1}",
        'c.yaml:2:10: "restart" must be always, on-failure or never, not "onfailure" (did you mean "on-failure"?)',
    ),
    "a policy list": (HEAD + "restart: [always]\njobs: {a: 1}", 'c.yaml:2:10: "restart" must be a mapping'),
    "a policy key": (
        HEAD + "restart: {attempt: 3}\njobs: {a: 1}",
        'c.yaml:2:11: unknown key "attempt" under restart (did you mean "attempts"?)',
    ),
    "negative attempts": (HEAD + "restart: {attempts: -1}\njobs: {a: 1}", 'c.yaml:2:21: "restart.attempts" must be'),
    "a duration": (
        HEAD + "restart: {window: soon}\njobs: {a: 1}",
        'c.yaml:2:19: "restart.window" must be a duration such as 500ms, 10s, 5m or 1h, not "soon"',
    ),
    "a duration in days": (HEAD + "grace_period: 1d\njobs: {a: 1}", 'c.yaml:2:15: "grace_period" must be a duration'),
    "a negative duration": (HEAD + "grace_period: -1s\njobs: {a: 1}", 'c.yaml:2:15: "grace_period" must be a duration'),
    "an endless duration": (
        HEAD + f"grace_period: {'9' * 400}h\njobs: {{a: 1}}",
        'c.yaml:2:15: "grace_period" must be at least 0s and at most',
    ),
    "a probe": (
        HEAD + "readiness: http\njobs: {a: 1}",
        'c.yaml:2:12: "readiness" must be grpc, tcp or none, not "http"',
    ),
    "two probes": (
        HEAD + "readiness: {probe: tcp, file: x}\njobs: {a: 1}",
        'c.yaml:2:12: "readiness" needs exactly one of the keys',
    ),
    "no probe": (
        HEAD + "readiness: {interval: 1s}\njobs: {a: 1}",
        'c.yaml:2:12: "readiness" needs exactly one of the keys',
    ),
    "a probe without a port": (
        HEAD + "jobs: {a: {port: none, readiness: grpc}}",
        'c.yaml:2:35: readiness by grpc needs a port, and "port" is none',
    ),
    "a probe in a hurry": (
        HEAD + "readiness: {probe: tcp, interval: 0}\njobs: {a: 1}",
        'c.yaml:2:35: "readiness.interval" must be at least 0.01s',
    ),
    "a placeholder": (
        "program: x {ps_host}\njobs: {ps: 1}",
        'c.yaml:1:10: unknown placeholder "{ps_host}" (did you mean "ps_hosts"?)',
    ),
    "a placeholder of another job": (
        "program: x {chief_hosts}\njobs: {ps: 1}",
        'c.yaml:1:10: unknown placeholder "{chief_hosts}"',
    ),
    "a placeholder in the environment": (
        HEAD + "environment: {A: '{tsk}'}\njobs: {a: 1}",
        'c.yaml:2:18: unknown placeholder "{tsk}" (did you mean "task"?)',
    ),
    "an environment list": (
        HEAD + "environment: [A=1]\njobs: {a: 1}",
        'c.yaml:2:14: "jobs.a.environment" must be a mapping',
    ),
    "an environment name": (
        HEAD + "environment: {A=B: 1}\njobs: {a: 1}",
        'c.yaml:2:20: "A=B" is no name for an environment variable',
    ),
    "an environment of maps": (
        HEAD + "environment: {A: {b: 1}}\njobs: {a: 1}",
        'c.yaml:2:18: "environment.A" must be one value, not a mapping',
    ),
    "success of nobody": (HEAD + "success: []\njobs: {a: 1}", 'c.yaml:2:10: "success" names no job'),
    "success of a stranger": (
        HEAD + "success: wroker\njobs: {worker: 1, ps: 1}",
        'c.yaml:2:10: "success" must be worker or ps, not "wroker" (did you mean "worker"?)',
    ),
    "a name with a slash": (HEAD + "name: a/b\njobs: {a: 1}", 'c.yaml:2:7: "name" must be letters, digits'),
    "a name that climbs": (HEAD + "name: ..\njobs: {a: 1}", 'c.yaml:2:7: "name" must be letters, digits'),
    "a name too long": (HEAD + f"name: {'n' * 65}\njobs: {{a: 1}}", 'c.yaml:2:7: "name" must be letters, digits'),
    "an empty folder": (HEAD + "working_dir: ''\njobs: {a: 1}", 'c.yaml:2:14: "working_dir" is empty'),
    "nested without end": ("[" * 5000, "c.yaml: nested too deeply"),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_file_gets_one_line_that_says_where_and_what(text, message):
    with pytest.raises(ConfigError) as raised:
        parse(text, "c.yaml", Path("/cluster"))
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_text_or_not_there_is_named(tmp_path):
    (tmp_path / "c.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match=r"c\.yaml: not a text file \(byte 3"):
        load(tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: No such file"):
        load(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load(tmp_path)
