"""Cluster files that mean what they say: levels, variables, merging, hosts, and what is filled in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from dtfctl import config
from dtfctl.config import load, parse, schema
from dtfctl.config.resolved import document
from dtfctl.config.source import write_yaml
from dtfctl.errors import ConfigError
from dtfctl.plan.expand import fill_path
from dtfctl.values import plan as plans
from dtfctl.values.plan import Autoscale, ClusterPlan, Limits, LogPolicy, Notify, Place, Probe, RestartPolicy, Secret
from dtfctl.wire.typed import from_document
from tests.dtfctl.fakes import plan_of

ROOT = Path(__file__).resolve().parents[2]
FULL_FILE = Path(__file__).with_name("cluster_full.yaml")
EXAMPLES = [*sorted(ROOT.glob("clusters/*/*.yaml")), FULL_FILE]
HEAD = "program: x\n"

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


def ports(job):
    return tuple(place.port for place in job.places)


def hosts(job):
    return " ".join(place.host for place in job.places)


def test_a_full_file_means_what_it_says():
    plan = plan_of(FULL)
    chief, worker, ps, board = plan.jobs
    assert (plan.name, plan.checkpoint_dir, plan.success) == (
        "mnist",
        "/cluster/save/here",
        ("chief", "worker"),
    )
    assert (ports(chief), ports(worker), ports(ps)) == ((2222,), (2223, 2225), (0,))
    assert (chief.has_address, board.has_address) == (True, False)
    assert chief.settings.program == ("python", "train.py", "{cluster_flags}")
    assert chief.settings.restart == RestartPolicy("always", 3, 300.0, 0.25, 2.0, 3600.0)
    assert worker.settings.environment == {"LEVEL": "worker", "ONLY_TOP": "1"}
    assert worker.settings.readiness == Probe("tcp", "", 1.0, 5.0)
    assert (chief.settings.readiness.kind, board.settings.readiness.kind) == ("grpc", "none")
    task, other = plan.task("board:0"), plan.task("chief:0")
    assert (task.python, task.working_dir) == ("/cluster/venv/bin/python", "/")
    assert (other.python, other.working_dir) == (sys.executable, "/cluster")
    assert other.settings.grace_period_s == 30.0
    assert [task.name for task in plan.tasks()] == ["chief:0", "worker:0", "worker:1", "ps:0", "board:0"]


def test_what_a_job_says_of_restarts_is_laid_over_what_the_top_says():
    ps = plan_of(FULL).jobs[2]
    assert ps.settings.restart == RestartPolicy("never", 3, 300.0, 0.25, 2.0, 3600.0)


def test_every_key_has_its_place_in_the_plan():
    plan = load(FULL_FILE, environment={})
    tasks = {task.name: task for task in plan.tasks()}
    worker = tasks["worker:0"].settings
    assert worker.restart == RestartPolicy(
        "exit-code", 3, 300.0, 0.25, 2.0, 3600.0, 0.1, ((128, 255), (129, 129), (75, 75)), 7, "job"
    )
    assert worker.liveness == Probe("grpc", "", 5.0, 3.0, 5)
    assert (worker.preemption.kind, worker.preemption.interval_s) == ("file", 1.0)
    assert worker.limits == Limits(4 << 30, 4096, 1000, 0, 7200, 5)
    assert worker.logs == LogPolicy(16 << 20, 3)
    assert worker.environment["COSTS"] == "5$"
    assert tasks["worker:2"].settings.limits.nice == 0
    assert tasks["worker:1"].settings.environment == {**worker.environment, "ONLY": "one"}
    assert tasks["ps:0"].settings.secrets == (
        Secret("API_TOKEN", "", "API_TOKEN"),
        Secret("DATABASE", str(Path("~/database").expanduser()), ""),
        Secret("OTHER", "", "MINE"),
    )
    assert (tasks["chief:0"].settings.stop_signal, tasks["chief:0"].settings.threads) == ("SIGINT", 4)
    assert (worker.cluster_spec, worker.tensorflow) == ("sparse", "dtf")
    assert {tasks[name].settings.tensorflow for name in ("ps:0", "tensorboard:0")} == {"installed"}
    assert (tasks["ps:1"].settings.durability, worker.durability) == ("process", "none")
    assert (plan.success, plan.success_rule, plan.security) == (("chief", "worker"), "any", "tls")
    assert plan.metrics == "0.0.0.0:9464"
    assert plan.notify == Notify(
        "https://chat.example/hook", ("mail", "-s", "failed", "me@example"), "cat >> restarts", "logger stalled"
    )
    jobs = {job.name: job for job in plan.jobs}
    assert jobs["worker"].spares == ("node9",)
    assert (jobs["worker"].port_range, jobs["ps"].port_range) == ((23000, 23999), (23000, 23999))
    assert [job.name for job in plan.jobs if job.is_sidecar] == ["prepare", "tensorboard"]
    assert [job.name for job in plan.jobs if job.is_member] == ["chief", "worker", "ps"]
    assert tasks["prepare:0"].settings.program == ("sh", "-c", "echo $HOME {index}")


def test_a_plan_survives_its_way_through_json():
    for plan in (plan_of(FULL), load(FULL_FILE, environment={})):
        assert from_document(ClusterPlan, json.loads(json.dumps(plans.to_json(plan)))) == plan


def test_a_job_may_scale_itself_between_two_numbers():
    plan = plan_of(HEAD + "cluster_spec: elastic\nautoscale: {worker: [2, 16]}\njobs: {ps: 1, worker: 2}\n")
    assert plan.autoscale == (Autoscale("worker", 2, 16),)
    assert from_document(ClusterPlan, json.loads(json.dumps(plans.to_json(plan)))) == plan


def test_checkpoints_may_lie_where_only_programs_look():
    plan = plan_of("checkpoint_dir: s3://bucket/run\njobs: {worker: {program: x, port: 1}}\n")
    assert plan.checkpoint_dir == "s3://bucket/run", "no folder of this machine is made of it"
    assert plan.checkpoint_folder == ""
    assert next(plan.tasks()).path(plan.checkpoint_dir) == "s3://bucket/run"
    local = plan_of("checkpoint_dir: file:///run/here\njobs: {worker: {program: x, port: 1}}\n")
    assert local.checkpoint_dir == local.checkpoint_folder == "/run/here"
    with pytest.raises(ConfigError, match='"working_dir" must be a path of this machine; it is "hdfs://a/b"'):
        plan_of("working_dir: hdfs://a/b\njobs: {worker: {program: x, port: 1}}\n")


def test_differences_are_named_by_their_path():
    new = plan_of(FULL.replace("replicas: 2", "replicas: 1").replace("[2223, 2225]", "2224"))
    assert plans.differences(plan_of(FULL), new) == [
        "jobs.worker.replicas: 2 -> 1",
        "jobs.worker.tasks.0.port: 2223 -> 2224",
    ]
    assert plans.differences(new, new) == []
    later = plan_of(FULL.replace("worker:\n", "worker:\n    tasks: {1: {grace_period: 1s}}\n"))
    assert plans.differences(plan_of(FULL), later) == ["jobs.worker.tasks.1.grace_period_s: not there -> 1.0"]


@pytest.mark.parametrize(
    ("jobs", "success"),
    [
        ("{ps: 1, worker: 2}", ("worker",)),
        ("{ps: 1, worker: 2, chief: 1}", ("chief",)),
        ("{ps: 1, master: 1, worker: 1}", ("master",)),
        ("{web: 1, crawler: 2, ps: 1}", ("web", "crawler")),
        ("{ps: 1}", ("ps",)),
        ("{web: 1, helper: {sidecar: true}}", ("web",)),
    ],
)
def test_who_decides_about_success_follows_from_the_jobs(jobs, success):
    assert plan_of(f"program: x\njobs: {jobs}").success == success


@pytest.mark.parametrize(
    ("success", "jobs", "deciding"),
    [
        ("all", "{ps: 1, chief: 1, worker: 2}", "chief:0 worker:0 worker:1"),
        ("any", "{ps: 1, worker: 2}", "worker:0 worker:1"),
        ("chief", "{ps: 1, worker: 2}", "worker:0"),
        ("chief", "{chief: 1, worker: 2}", "chief:0"),
        ("{tasks: first}", "{ps: 1, worker: 2}", "worker:0"),
        ("{jobs: [ps, worker], tasks: first}", "{ps: 2, worker: 2}", "ps:0 worker:0"),
    ],
)
def test_the_file_may_say_who_decides(success, jobs, deciding):
    plan = plan_of(f"program: x\nsuccess: {success}\njobs: {jobs}")
    assert " ".join(task.name for task in plan.deciding_tasks()) == deciding


def test_a_file_without_a_name_is_called_after_its_folder():
    assert parse("program: x\njobs: {a: 1}", "c.yaml", Path("/home/me/my cluster")).name == "my-cluster"


# -- levels


def test_a_task_may_differ_from_its_job():
    text = HEAD + "jobs: {w: {replicas: 3, grace_period: 5s, tasks: {1-2: {grace_period: 1s, program: y}}}}"
    tasks = list(plan_of(text).tasks())
    assert [task.settings.grace_period_s for task in tasks] == [5.0, 1.0, 1.0]
    assert [task.settings.program for task in tasks] == ["x", "y", "y"]


def test_the_file_of_a_probe_may_be_in_the_checkpoint_dir():
    text = HEAD + "checkpoint_dir: c\njobs: {a: {readiness: {file: '{checkpoint_dir}/x'}}, b: {readiness: {file: y/x}}}"
    made = plan_of(text)
    addresses = dict.fromkeys(("a:0", "b:0"), "h:1")
    files = [fill_path(task.job.settings.readiness.target, made, task, addresses) for task in made.tasks()]
    assert files == ["/cluster/c/x", "/cluster/y/x"]


def test_the_kind_of_a_probe_takes_the_place_of_another_kind():
    text = HEAD + "readiness: {command: test, interval: 2s}\njobs: {a: {readiness: tcp}, b: 1}"
    first, second = plan_of(text).jobs
    assert first.settings.readiness == Probe("tcp", "", 2.0)
    assert second.settings.readiness == Probe("command", "test", 2.0)


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("python: top\njobs: {a: 1}", "/cluster/top"),
        ("venv: top\njobs: {a: 1}", "/cluster/top/bin/python"),
        ("venv: top\njobs: {a: {python: job}}", "/cluster/job"),
        ("python: top\njobs: {a: {venv: job}}", "/cluster/job/bin/python"),
        ("jobs: {a: {venv: job, tasks: {0: {python: task}}}}", "/cluster/task"),
        ("python: top\nhosts: {n: {python: /host}}\njobs: {a: 1}", "/host"),
        ("python: top\nhosts: {n: {venv: /host}}\njobs: {a: {python: job}}", "/cluster/job"),
        ("hosts: [n]\njobs: {a: 1}", "python3"),
        ("jobs: {a: {hosts: n}}", "python3"),
        ("venv: /top\njobs: {a: {hosts: n}}", "/top/bin/python"),
    ],
)
def test_the_nearest_interpreter_counts_and_a_hosts_comes_before_the_tops(text, python):
    assert plan_of(HEAD + text).task("a:0").python == python


def test_merge_keys_and_anchors_are_yamls_own():
    text = HEAD + "x-base: &base {replicas: 2, port: 7}\nx-more: &more {port: 9, threads: 3}\n"
    plan = plan_of(text + "jobs: {a: {<<: [*base, *more]}, b: {port: 100, <<: *base}}")
    assert [ports(job) for job in plan.jobs] == [(7, 8), (100, 101)]
    assert plan.jobs[0].settings.threads == 3


# -- variables


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "1"),
        ("${A}${B}", "12"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY-x}", ""),
        ("${NO-x}", "x"),
        ("${NO:-}", ""),
        ("${NO:-a b}", "a b"),
        ("${NO:-${A}}", "1"),
        ("${NO:-${NEITHER:-${B}}}", "2"),
        ("${A:-${NO}}", "1"),
        ("${A:?why}", "1"),
        ("${EMPTY?why}", ""),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$$$$", "$$"),
        ("$A $", "$A $"),
        ("${NO:-$$}", "$"),
        ("}{", "}{"),
    ],
)
def test_variables_are_filled_as_compose_does(text, value):
    plan = parse(
        json.dumps({"program": "x", "environment": {"V": text}, "jobs": {"a": 1}}),
        "c.yaml",
        Path("/cluster"),
        variables={"A": "1", "B": "2", "EMPTY": ""},
    )
    assert plan.jobs[0].settings.environment == {"V": value}


def test_variables_stand_for_any_value_and_may_come_from_a_file_beside(tmp_path):
    (tmp_path / ".env").write_text(
        "export N=3\nPORT='700'  # the first\nNAME=here # too\n\n# done\nUSED=file\n"
    )
    (tmp_path / "c.yaml").write_text(
        'name: ${NAME}\nprogram: x ${USED}\njobs: {a: {replicas: "${N}", port: "${PORT}0"}}\n'
    )
    plan = load(tmp_path / "c.yaml", environment={"USED": "shell"})
    assert (plan.name, ports(plan.jobs[0])) == ("here", (7000, 7001, 7002))
    assert plan.jobs[0].settings.program == "x shell"


def test_an_env_file_gives_what_the_environment_does_not(tmp_path):
    (tmp_path / "e.env").write_text('A=1\nB="two words"\nC={not a placeholder}\n')
    (tmp_path / "c.yaml").write_text(HEAD + "env_file: [e.env]\nenvironment: {A: top}\njobs: {a: 1}\n")
    settings = load(tmp_path / "c.yaml").jobs[0].settings
    assert settings.env_file_values == {"A": "1", "B": "two words", "C": "{not a placeholder}"}
    assert settings.environment == {"A": "top"}


def test_requirements_are_files_and_what_is_in_them(tmp_path):
    (tmp_path / "r.txt").write_text("numpy\n")
    text = HEAD + "venv: ~/v\nrequirements: r.txt\njobs: {a: 1, b: {requirements: {python: python3.12}}}\n"
    (tmp_path / "c.yaml").write_text(text)
    plan = load(tmp_path / "c.yaml")
    one, other = (plan.task(name).settings.requirements for name in ("a:0", "b:0"))
    assert one.files == other.files == (f"{tmp_path}/r.txt",) and (one.python, other.python) == ("", "python3.12")
    assert from_document(ClusterPlan, json.loads(json.dumps(plans.to_json(plan)))) == plan
    read = config.read([tmp_path / "c.yaml"], environment={})
    jobs = document(read.root, read.reader)["jobs"]
    assert jobs["b"]["requirements"] == {"files": [f"{tmp_path}/r.txt"], "python": "python3.12"}
    (tmp_path / "r.txt").write_text("numpy<3\n")
    assert load(tmp_path / "c.yaml").task("a:0").settings.requirements.digest != one.digest


# -- several files, and the command line


def test_a_later_file_is_laid_over_an_earlier_one(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "program: [x, y]\nenvironment: {A: a, B: a}\njobs: {ps: 1, worker: {replicas: 2, port: [1, 2]}}\n"
    )
    (tmp_path / "b.yaml").write_text(
        "program: [z]\nenvironment: {B: b}\njobs: {ps: {threads: 2}, worker: 4, extra: 1}\nrestart: never\n"
    )
    (tmp_path / "c.yaml").write_text("jobs: {worker: {port: auto}}\nrestart: {attempts: 9}\n")
    plan = load([tmp_path / name for name in ("a.yaml", "b.yaml", "c.yaml")])
    ps, worker, extra = plan.jobs
    assert ps.settings.program == ("z",)
    assert ps.settings.environment == {"A": "a", "B": "b"}
    assert (ps.replicas, ps.settings.threads, worker.replicas, extra.name) == (1, 2, 4, "extra")
    assert (ps.settings.restart.policy, ps.settings.restart.attempts) == ("never", 9)
    assert plan.file == str(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("setting", "look", "value"),
    [
        ("jobs.a.replicas=4", lambda plan: plan.jobs[0].replicas, 4),
        ("jobs.a=4", lambda plan: plan.jobs[0].replicas, 4),
        ("jobs.b=1", lambda plan: [job.name for job in plan.jobs], ["a", "b"]),
        ("program=[y, z]", lambda plan: plan.jobs[0].settings.program, ("y", "z")),
        ("program=python t.py --a=b", lambda plan: plan.jobs[0].settings.program, "python t.py --a=b"),
        ("program=echo 'a: b' # c", lambda plan: plan.jobs[0].settings.program, "echo 'a: b' # c"),
        ("restart.attempts=7", lambda plan: plan.jobs[0].settings.restart.attempts, 7),
        ("restart={policy: never}", lambda plan: plan.jobs[0].settings.restart.policy, "never"),
        ("environment.X=${Y:-z}", lambda plan: plan.jobs[0].settings.environment, {"X": "z"}),
        ('hosts."n.example".slots=3', lambda plan: plan.hosts[0].slots, 3),
        ("name=other", lambda plan: plan.name, "other"),
    ],
)
def test_the_command_line_sets_any_key(setting, look, value):
    assert look(parse(HEAD + "jobs: {a: 1}", "c.yaml", Path("/cluster"), [setting])) == value


# -- places


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("jobs: {a: 2}", "localhost localhost"),
        ("jobs: {a: {hosts: 'n[0-2]'}}", "n0 n1 n2"),
        ("jobs: {a: {hosts: ['n[08-10]', gpu-a]}}", "n08 n09 n10 gpu-a"),
        ("jobs: {a: {hosts: 'r[1-2]n[0,5]'}}", "r1n0 r1n5 r2n0 r2n5"),
        ("jobs: {a: {hosts: [n0, n1], tasks_per_host: 2}}", "n0 n0 n1 n1"),
        ("jobs: {a: {hosts: [n0, n1], tasks_per_host: 2, replicas: 3}}", "n0 n0 n1"),
        ("jobs: {a: {hosts: [n0, n1], replicas: 3}}", "n0 n1 n0"),
        ("hosts: [n0, n1]\njobs: {a: 3}", "n0 n1 n0"),
        ("hosts: {n0: {slots: 1}, n1: }\njobs: {a: 4}", "n0 n1 n1 n1"),
        ("hosts: [n0, n1, n2]\njobs: {a: {replicas: 3, spare_hosts: n1}}", "n0 n2 n0"),
        ("hosts: [n0, n1]\njobs: {b: {hosts: n0}, a: 2}", "n1 n0"),
        ("hosts: [n0, n1]\njobs: {a: {replicas: 2, tasks: {1: {host: n0}}}}", "n0 n0"),
    ],
)
def test_tasks_are_dealt_to_hosts(text, places):
    plan = plan_of(HEAD + text)
    assert hosts(next(job for job in plan.jobs if job.name == "a")) == places


def test_what_ssh_is_called_with_is_taken_apart():
    text = "hosts: {a: {ssh: 'ml@gw:2200'}, b: {ssh: gw, user: me, port: 9}, c: , d: {ssh: none, address: 10.0.0.1}}"
    found = plan_of(HEAD + text + "\njobs: {w: 4}").hosts
    assert [(host.name, host.target, host.user, host.port, host.address) for host in found] == [
        ("a", "gw", "ml", 2200, "gw"),
        ("b", "gw", "me", 9, "gw"),
        ("c", "c", "", None, "c"),
        ("d", "", "", None, "10.0.0.1"),
    ]
    (host,) = plan_of(HEAD + "jobs: {w: {hosts: me@box}}").hosts
    assert (host.name, host.target, host.user, host.address) == ("me@box", "box", "me", "box")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("{replicas: 3, port: 5}", (5, 6, 7)),
        ("{hosts: [n0, n1], tasks_per_host: 2, port: 5}", (5, 6, 5, 6)),
        ("{hosts: [n0, n1], replicas: 3, port: 5}", (5, 5, 6)),
        ("{replicas: 3, port: 5, tasks: {0: {port: 80}}}", (80, 6, 7)),
        ("{replicas: 2, port: 5-9}", (0, 0)),
    ],
)
def test_ports_are_counted_on_each_host(text, numbers):
    assert ports(plan_of(HEAD + f"jobs: {{a: {text}}}").jobs[0]) == numbers


def test_cores_and_gpus_are_dealt_out_on_each_host():
    text = "jobs: {a: {hosts: [n0, n1], tasks_per_host: 2, gpus: 2, cpus: 1}, b: {hosts: n0, gpus: 1, cpus: [0-3, 7]}}"
    plan = plan_of(HEAD + text)
    assert [place.gpus for job in plan.jobs for place in job.places] == [(0, 1), (2, 3), (0, 1), (2, 3), (4,)]
    assert [place.cpus for job in plan.jobs for place in job.places] == [
        (0,),
        (1,),
        (0,),
        (1,),
        (0, 1, 2, 3, 7),
    ]
    assert plan_of(HEAD + "jobs: {a: {gpus: none}, b: {gpus: 0}, c: {gpus: []}}").jobs[2].places == (
        Place("localhost", 0, (), ()),
    )


def test_the_address_to_bind_is_apart_from_the_one_that_is_told():
    text = "hosts: {n: {address: 10.0.0.1, bind: 0.0.0.0}, m: }\njobs: {a: {hosts: n}, b: {hosts: n, bind: 10.1.1.1},"
    plan = plan_of(HEAD + text + " c: {hosts: m, advertise: m.example}}")
    assert [(task.advertised_host, task.bind_host) for task in plan.tasks()] == [
        ("10.0.0.1", "0.0.0.0"),
        ("10.0.0.1", "10.1.1.1"),
        ("m.example", "m.example"),
    ]


# -- tensorboard


def test_tensorboard_is_a_sidecar_with_a_port_of_its_own():
    plan = plan_of(HEAD + "checkpoint_dir: c\ntensorboard: true\nrestart: never\njobs: {worker: 1}")
    board = plan.jobs[1]
    assert (board.name, board.is_sidecar, board.is_member, board.has_address) == (
        "tensorboard",
        True,
        False,
        True,
    )
    assert (board.settings.restart.policy, board.settings.readiness.kind) == ("always", "tcp")
    assert plan.success == ("worker",)
    assert board.places == (Place(gpus=()),)
    assert [job.name for job in plan_of(HEAD + "tensorboard: false\njobs: {worker: 1}").jobs] == ["worker"]
    own = plan_of(HEAD + "tensorboard: {logdir: s3, port: 6006, venv: /tb}\njobs: {worker: 1}").task(
        "tensorboard:0"
    )
    assert (own.place.port, own.python, own.settings.program[-1]) == (6006, "/tb/bin/python", "--logdir=s3")


# -- the resolved file, and the schema


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_is_valid(file):
    assert load(file, environment={}).jobs


TEXTS = [FULL, HEAD + "jobs: {a: 1}", FULL_FILE.read_text(), config.template()]


@pytest.mark.parametrize("text", TEXTS, ids=["full", "least", "all keys", "init"])
def test_the_resolved_file_means_the_same_and_is_resolved(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    read = config.read([tmp_path / "c.yaml"], environment={})
    resolved = document(read.root, read.reader)
    (tmp_path / "c.yaml").write_text(write_yaml(resolved))
    again = config.read([tmp_path / "c.yaml"], environment={})
    assert again.plan() == read.plan()
    assert document(again.root, again.reader) == resolved
    jsonschema.validate(json.loads(json.dumps(resolved)), schema.json_schema())


SCHEMA = jsonschema.Draft7Validator(schema.json_schema())


def as_editors_see_it(text):
    """YAML's own types, keys as JSON has them."""
    import yaml

    def keys(value):
        if isinstance(value, dict):
            return {str(key): keys(item) for key, item in value.items()}
        return [keys(item) for item in value] if isinstance(value, list) else value

    return keys(yaml.safe_load(text))


@pytest.mark.parametrize("text", TEXTS, ids=["full", "least", "all keys", "init"])
def test_the_schema_takes_what_the_reader_takes(text):
    jsonschema.Draft7Validator.check_schema(schema.json_schema())
    assert list(SCHEMA.iter_errors(as_editors_see_it(text))) == []


@pytest.mark.parametrize(
    "text",
    [
        "program: x",
        HEAD + "jobs: [a]",
        HEAD + "jobs: {a: 1}\nprogramme: x",
        HEAD + "jobs: {a: {replica: 2}}",
        HEAD + "jobs: {a: 0}",
        HEAD + "jobs: {'a b': 1}",
        HEAD + "jobs: {a: {tasks: {x: {}}}}",
        HEAD + "jobs: {a: {tasks: {1: {replicas: 2}}}}",
        HEAD + "jobs: {a: {port: 0}}",
        HEAD + "jobs: {a: {port: any}}",
        HEAD + "jobs: {a: {gpus: some}}",
        HEAD + "restart: sometimes\njobs: {a: 1}",
        HEAD + "restart: {attempt: 1}\njobs: {a: 1}",
        HEAD + "grace_period: soon\njobs: {a: 1}",
        HEAD + "limits: {memory: much}\njobs: {a: 1}",
        HEAD + "readiness: {probe: tcp, file: x}\njobs: {a: 1}",
        HEAD + "python: a\nvenv: b\njobs: {a: 1}",
        HEAD + "secrets: {A: word}\njobs: {a: 1}",
        HEAD + "hosts: {n: {adress: x}}\njobs: {a: 1}",
        HEAD + "security: ssl\njobs: {a: 1}",
        HEAD + "sidecar: true\njobs: {a: 1}",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(text):
    with pytest.raises(ConfigError):
        parse(text, "c.yaml", Path("/cluster"))
    assert list(SCHEMA.iter_errors(as_editors_see_it(text)))


def test_the_schema_lets_variables_stand_anywhere():
    text = (
        HEAD
        + "grace_period: ${G}\nsecurity: ${S:-none}\njobs: {a: {replicas: '${N}', port: '${P}', sidecar: '${T}'}}"
    )
    assert list(SCHEMA.iter_errors(as_editors_see_it(text))) == []
