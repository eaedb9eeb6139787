"""What is told before anything starts: each kind of mistake, with its position and what to do."""

from __future__ import annotations

import os
import re
import socket
import sys

import pytest

from dtfctl.checks.questions import DOUBT, WRONG, questions, told
from dtfctl.checks.validation import troubles
from dtfctl.config import read
from dtfctl.errors import ConfigError
from dtfctl.launchers.agent import look
from dtfctl.launchers.agent.look import answers
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.values.run import Run
from tests.dtfctl.fakes import plan_of

needs_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may do that")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "trainer.py").write_text("import os\n")
    (tmp_path / "broken.py").write_text("import os\nx = (\n")
    (tmp_path / "needy.py").write_text("import os\nimport no_such_module_at_all\n")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    for name, text in (
        ("bare", "echo\n"),
        ("windows.sh", "#!/bin/sh\r\necho\r\n"),
        ("strange", "#!/no/such/shell\n"),
        ("by_env", "#!/usr/bin/env no-such-shell\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "away.py").symlink_to("nowhere.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    return tmp_path


def found(folder, text, settings=(), environment=None):
    (folder / "c.yaml").write_text(text)
    file = read([folder / "c.yaml"], settings, {})
    return [
        (each.grade, re.sub(r"^.*c\.yaml:", "", each.at), str(each))
        for each in troubles(file, file.plan(), folder / "state", environment or {})
    ]


ONE = "jobs:\n  worker:\n    program: %s\n"


@pytest.mark.parametrize(
    ("program", "grade", "words"),
    [
        ("python trainr.py", WRONG, r'worker:0: trainr.py: no such file in .* \(did you mean "trainer.py"\?\)'),
        ("[python, trainr.py]", WRONG, "trainr.py: no such file"),
        ("python4 trainer.py", WRONG, r'python4: not found in PATH \(did you mean "python'),
        ("pyton trainer.py", WRONG, r'pyton: not found in PATH \(did you mean "python'),
        ("[pyton, trainer.py]", WRONG, 'did you mean "python'),
        ("trainer.py", WRONG, r"trainer.py: not found in PATH \(./trainer.py"),
        ("./run.sh", WRONG, r"run.sh: not executable \(chmod \+x"),
        ("./nowhere.sh", WRONG, "nowhere.sh: no such file"),
        ("./package", WRONG, "not a file"),
        ("python package", WRONG, "package: a folder without __main__.py"),
        ("python away.py", WRONG, "away.py: a link to .*nowhere.py, which does not exist"),
        ("[./bare]", WRONG, "names no interpreter"),
        ("./bare", DOUBT, "names no interpreter"),
        ("./windows.sh", WRONG, r"as on Windows \(CR\)"),
        ("./strange", WRONG, "its interpreter /no/such/shell does not exist"),
        ("./by_env", WRONG, "its interpreter no-such-shell is not found"),
        ("bash nowhere.sh", WRONG, "nowhere.sh: no such file"),
        ("python pipe.py", WRONG, "pipe.py: a named pipe, not a file"),
        ("python -m no_such_module", WRONG, r"no module named no_such_module .*-m pip install no_such_module"),
        ("python -m package", WRONG, "package has no module package.__main__"),
        ("python -m package.part", WRONG, "package has no module package.part"),
        ("python broken.py", WRONG, "broken.py:2: SyntaxError: "),
        ("python needy.py", DOUBT, "needy.py:2: imports no_such_module_at_all, which .* does not have"),
        ("\"python trainer.py 'x\"", WRONG, "the shell cannot parse its program: .*[Uu]nterminated"),
        ("cd nowhere && python trainer.py", WRONG, "the folder .*/nowhere does not exist"),
        ("\"true; no-such-command\"", DOUBT, "no-such-command: not found in PATH"),
    ],
)
def test_a_program_that_cannot_start(folder, program, grade, words):
    ((told_grade, at, text),) = found(folder, ONE % program)
    assert (told_grade, at) == (grade, "3:14")
    assert re.search(words, text), text


@pytest.mark.parametrize(
    "program",
    [
        "python trainer.py {cluster_flags}",
        "[python, trainer.py, '{cluster_flags}']",
        "cd package && python ../trainer.py",
        "python -m package.__init__",
        "python -m json.tool",
        "exec env A=b python -u trainer.py > log",
        "bash -c 'no-such-command'",
        '"[ -e x ] || no-such-command"',
        "$$PYTHON x.py",
        f"{sys.executable} trainer.py",
        "true",
    ],
)
def test_a_program_that_starts_is_not_complained_of(folder, program):
    assert found(folder, ONE % program) == []


TOP = "program: python trainer.py\njobs: {ps: 1, worker: 2}\n"


@pytest.mark.parametrize(
    ("line", "grade", "at", "words"),
    [
        ("venv: nowhere", WRONG, "3:7", r"its venv .*/nowhere does not exist \(python3 -m venv "),
        ("venv: package", WRONG, "3:7", "its venv .*/package has no bin/python"),
        ("python: nowhere/python", WRONG, "3:9", "nowhere/python: no such file"),
        ("working_dir: nowhere", WRONG, "3:14", r"its working_dir .*/nowhere does not exist \(mkdir -p"),
        ("working_dir: trainer.py", WRONG, "3:14", "trainer.py is not a folder"),
        ("checkpoint_dir: trainer.py/here", WRONG, "3:17", "checkpoint_dir .* cannot be made: .*trainer.py is not a f"),
        (f"checkpoint_dir: /tmp/{'x' * 5000}", WRONG, "3:17", "checkpoint_dir .* in /tmp: its name is too long"),
        ("checkpoint_dir: /proc/here", WRONG, "3:17", "checkpoint_dir /proc/here cannot be made in /proc"),
        ("secrets: [KEY]", WRONG, "3:11", r"the secret KEY: the variable KEY is not set; export it"),
        ("secrets: {KEY: {file: nowhere}}", WRONG, "3:16", "the secret KEY: .*nowhere: No such file"),
        ("cpus: 1000", DOUBT, "3:7", r"ps:0 and 2 more: asks for 3000 cores \(0-2999\), and the machine has "),
        ("gpus: 2000", DOUBT, "3:7", r"asks for 6000 GPUs \(0-5999\), and the machine has "),
        ("limits: {memory: 2MiB}", DOUBT, "3:9", r"limits.memory is 2 MiB"),
        ("readiness: {command: no-such-command}", DOUBT, "3:22", "no-such-command: not found in PATH"),
        ("bind: 192.0.2.1", WRONG, "3:7", "servers cannot listen at 192.0.2.1"),
        ("requirements: {files: r.txt, python: python9}\nvenv: v", WRONG, "3:38", "python9: not found in PATH"),
    ],
)
def test_a_setting_that_this_machine_cannot_meet(folder, line, grade, at, words):
    (folder / "r.txt").touch()
    first = found(folder, f"{TOP}{line}\n")[0]
    assert first[:2] == (grade, at)
    assert re.search(words, first[2]), first[2]


@pytest.mark.parametrize(
    ("hosts", "needs_ssh"),
    [
        ("hosts: {node1: {}}", True),
        ("engine: slurm", False),
        ("engine: {kubernetes: {image: i}}", False),
        ("engine: ray", False),
        ("engine: spark", False),
        ("engine: mpi", False),
    ],
)
def test_ssh_is_needed_only_where_hosts_are_reached_by_it(folder, monkeypatch, hosts, needs_ssh):
    monkeypatch.setenv("PATH", str(folder))
    text = f"name: trial\nprogram: [{sys.executable}]\n{hosts}\njobs: {{worker: 1}}\n"
    told = " ".join(each[-1] for each in found(folder, text))
    assert ("hosts are reached by ssh, which is not found" in told) is needs_ssh, told


def test_a_port_that_somebody_has_is_told_with_its_owner(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ((grade, at, text),) = found(folder, f"program: python trainer.py\njobs:\n  worker: {{port: {port}}}\n")
    assert (grade, at) == (WRONG, "3:18")
    assert f"worker:0: port {port} at 127.0.0.1: Address already in use, by pid {os.getpid()}" in text


def test_tensorboard_that_is_not_there_is_told_with_what_installs_it(folder):
    (folder / "other").mkdir()
    text = f"{TOP}checkpoint_dir: c\ntensorboard: {{environment: {{PYTHONPATH: {folder}}}}}\n"
    # Whether this very Python has it or not: in front of it stands one that is empty.
    (folder / "tensorboard").mkdir()
    (folder / "tensorboard" / "__init__.py").touch()
    ((grade, at, words),) = found(folder, text)
    assert (grade, at) == (DOUBT, "4:14")
    assert f"tensorboard has no module tensorboard.main for {sys.executable} (" in words
    assert f"{sys.executable} -m pip install tensorboard)" in words


@pytest.mark.parametrize(
    ("name", "usual"),
    [("wroker", "worker"), ("workers", "worker"), ("Worker", "worker"), ("cheif", "chief"), ("PS", "ps"), ("sp", "ps")],
)
def test_a_job_whose_name_is_a_slip_from_a_usual_one_is_doubted(folder, name, usual):
    ((grade, _, text),) = found(folder, f"program: python trainer.py\njobs: {{worker: 1, {name}: 1}}\n")
    assert grade == DOUBT
    assert f'c.yaml:2:19: the job "{name}" is not the same as "{usual}"' in text


@pytest.mark.parametrize("name", ["worker2", "ps1", "reader", "eval", "a", "actor", "learner"])
def test_other_names_of_jobs_are_anybodys(folder, name):
    assert found(folder, f"program: python trainer.py\njobs: {{worker: 1, {name}: 1}}\n") == []


@pytest.mark.parametrize("setting", ["jobs.wroker.replicas=3", "jobs.wroker=3", "jobs.workers.cpus=1", "jobs.cheif=1"])
def test_what_is_set_for_a_job_that_is_almost_there_is_an_error(folder, setting):
    with pytest.raises(ConfigError, match=r'--set jobs\.\w+.*: the cluster file has no job "\w+" \(did you mean '):
        found(folder, TOP, [setting])


def test_doubled_braces_are_doubted(folder):
    ((grade, at, text),) = found(folder, ONE % "python trainer.py {{cluster_flags}}")
    assert grade == DOUBT and "c.yaml:3:14: {{cluster_flags}} stands for the text {cluster_flags}" in text


def with_cluster(folder, name, checkpoint_dir, is_over):
    plan = plan_of(f"name: {name}\nprogram: x\ncheckpoint_dir: {checkpoint_dir}\njobs: {{worker: 1}}\n")
    paths = ClusterPaths(folder / "state" / name)
    paths.folder.mkdir(parents=True)
    store = Store(paths.store)
    store.begin(Run(1, "token", "boot", plan, {}, {}, 0.0, is_over=is_over), ())
    store.close()


def test_two_running_clusters_may_not_share_their_checkpoints(folder):
    with_cluster(folder, "exp1", folder / "c", is_over=False)
    text = f"{TOP}name: exp2\ncheckpoint_dir: c\n"
    ((grade, at, words),) = found(folder, text)
    assert (grade, at) == (WRONG, "4:17")
    assert f"the cluster exp1 is running on the same checkpoint_dir {folder}/c (choose another: --set " in words
    assert found(folder, text, ["checkpoint_dir=d"]) == []
    assert found(folder, text, ["name=exp1"]) == []


def test_the_checkpoints_of_an_ended_cluster_are_continued_with_a_word(folder):
    with_cluster(folder, "exp1", folder / "c", is_over=True)
    text = f"{TOP}name: exp2\ncheckpoint_dir: c\n"
    assert found(folder, text) == []
    (folder / "c").mkdir()
    (folder / "c" / "checkpoint").touch()
    ((grade, _, words),) = found(folder, text)
    assert grade == DOUBT and "has checkpoints of the cluster exp1; exp2 continues them" in words


def test_a_disk_that_is_full_or_read_only_is_told(tmp_path, monkeypatch):
    class Room:
        f_flag, f_bavail, f_frsize, f_blocks, f_files, f_favail = 0, 1, 4096, 100, 10, 10

    monkeypatch.setattr(look.os, "statvfs", lambda _: Room)
    ask = [{"ask": "makeable", "path": str(tmp_path), "name": "checkpoint_dir"}]
    assert "only 4 KiB are free" in answers(ask)[0][2]
    Room.f_bavail, Room.f_favail = 1 << 30, 0
    assert "has no room for more files" in answers(ask)[0][2]
    Room.f_flag = os.ST_RDONLY
    assert "read-only" in answers(ask)[0][2]


def test_more_open_files_than_the_kernel_allows_are_told(monkeypatch):
    monkeypatch.setattr(look, "_most_open_files", lambda: 4096)
    last = answers([{"ask": "limits", "limits": {"open_files": 5000}}])[-1]
    assert last[1:3] == [WRONG, "limits.open_files is 5000, and the kernel allows 4096"]


@needs_user
def test_limits_above_those_of_this_user_are_told():
    ((_, grade, words, _),) = answers([{"ask": "limits", "limits": {"nice": -20}}])
    assert grade == WRONG and words.startswith("limits.nice is -20")


def test_a_python_that_does_not_work_is_told(folder):
    (folder / "python9").write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    (folder / "python9").chmod(0o755)
    ((grade, _, text),) = found(folder, ONE % "./python9 trainer.py")
    assert grade == WRONG and "python9 does not work: broken" in text


# -- other machines

REMOTE = """
program: python trainer.py
hosts: {far: {ssh: far, address: 10.0.0.1}, near: {ssh: near, address: 10.0.0.2, sync: false, working_dir: /}}
jobs:
  ps: {hosts: far}
  worker: {hosts: near, program: ./no-such-program}
  a: {hosts: far, program: pyton trainer.py, port: none}
  b: {hosts: far, program: python trainr.py, port: none}
"""


def test_what_comes_with_the_folder_is_looked_for_here_and_all_else_there(folder):
    found_here = found(folder, REMOTE)
    assert [(grade, at) for grade, at, _ in found_here] == [(WRONG, "8:28")]
    assert "trainr.py: no such file" in found_here[0][2] and 'did you mean "trainer.py"' in found_here[0][2]
    file = read([folder / "c.yaml"], (), {})
    plan = file.plan()
    for host, words in (("far", "pyton: not found in PATH"), ("near", "./no-such-program: no such file")):
        asked = questions(plan, plan.host(host), file.positions())
        said = [str(each) for each in told(asked, answers([each.question for each in asked]))]
        assert len([each for each in said if "not found" in each or "no such" in each]) == 1
        assert any(words in each for each in said), said


def test_a_thousand_tasks_are_asked_for_once(folder):
    (folder / "c.yaml").write_text("program: python trainer.py {cluster_flags}\njobs: {ps: 10, worker: 1000}\n")
    file = read([folder / "c.yaml"], (), {})
    plan = file.plan()
    asked = questions(plan, plan.hosts[0], file.positions())
    assert len(asked) < 10


def test_a_cluster_spec_that_no_program_could_be_given_is_told(folder):
    text = "program: python trainer.py\nadvertise: 10.0.0.1\nbind: 127.0.0.1\njobs: {ps: 10, worker: %s}\n"
    assert found(folder, text % 5000) == []
    ((grade, _, words),) = found(folder, text % 8000)
    assert grade == WRONG and "Linux gives a program at most 131056 in a word (cluster_spec: sparse" in words
    assert found(folder, text % 8000 + "cluster_spec: sparse\n") == []


def test_tensorflow_is_not_missed_where_dtf_stands_in_for_it(folder):
    (folder / "trainer.py").write_text("import tensorflow_of_nobody as tf\nimport tensorflow.compat.v1\n")
    line = ONE % "python trainer.py"
    ((_, _, first),) = found(folder, f"{line}tensorflow: dtf\n")
    assert "imports tensorflow_of_nobody" in first
    (folder / "trainer.py").write_text("import tensorflow as tf\n")
    assert found(folder, f"{line}tensorflow: dtf\n") == []


def test_a_probe_of_python_runs_nothing_of_the_user(folder):
    (folder / "package" / "__init__.py").write_text("open('was_run', 'w')\n")
    (folder / "trainer.py").write_text("open('was_run', 'w')\n")
    assert found(folder, ONE % "python -m package.nothing")[0][0] == WRONG
    assert found(folder, ONE % "python trainer.py") == []
    assert not (folder / "was_run").exists()
