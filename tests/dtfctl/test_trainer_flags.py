"""`dtfctl init trainer.py`: what a program's text says of its flags, and the cluster file that fits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from dtfctl import config
from dtfctl.checks.trainer_flags import cluster_file, flags_of
from dtfctl.cli import commands
from dtfctl.plan import expand

HOSTS = (
    "import tensorflow as tf\nf = tf.app.flags\n"
    "f.DEFINE_string('ps_hosts', '', '')\nf.DEFINE_string('worker_hosts', '', '')\n"
    "f.DEFINE_string('job_name', '', '')\nf.DEFINE_integer('task_index', 0, '')\nf.DEFINE_string('train_dir', '', '')\n"
)
PLACE = (
    "import argparse, tensorflow as tf\np = argparse.ArgumentParser()\np.add_argument('--job_name')\n"
    "p.add_argument('-t', '--task', type=int)\n"
)
A3C = (
    "p.add_argument('--job-name')\np.add_argument('--job')\n"
    "p.add_argument('--task_id')\np.add_argument('--cluster_spec')\n"
)
ESTIMATOR = (
    "import tensorflow as tf\ntf.app.flags.DEFINE_string(name='model_dir', default='', help='')\n"
    "tf.estimator.train_and_evaluate(1, 2, 3)\n"
)
TONY = "import json, os\nspec = json.loads(os.environ['CLUSTER_SPEC'])\n"
ALONE = "import tensorflow as tf\ntf.app.flags.DEFINE_float('rate', 0.1, '')\n"


def last_argv(text, tmp_path):
    plan = config.parse(text, "cluster.yaml", tmp_path)
    task = list(plan.tasks())[-1]
    addresses = {each.name: f"h:{number}" for number, each in enumerate(plan.tasks(), 1)}
    return plan, " ".join(expand.argv(plan, task, addresses))


@pytest.mark.parametrize(
    ("source", "style", "jobs", "ends"),
    [
        (HOSTS, "hosts", {"ps": 1, "worker": 2},
         "--ps_hosts=h:1 --worker_hosts=h:2,h:3 --job_name=worker --task_index=1 --train_dir="),
        (PLACE, "place", {"ps": 1, "worker": 2}, "--job_name=worker --task=1"),
        (A3C, "place", {"ps": 1, "worker": 2}, "--job=worker --task_id=1 --cluster_spec="),
        (ESTIMATOR, "TF_CONFIG", {"chief": 1, "ps": 1, "worker": 1, "evaluator": 1}, "--model_dir="),
        (TONY, "CLUSTER_SPEC", {"ps": 1, "worker": 2}, "trainer.py"),
        (ALONE, "alone", {"worker": 1}, "trainer.py"),
    ],
)  # fmt: skip
def test_a_program_gets_the_flags_that_it_has(source, style, jobs, ends, tmp_path):
    found = flags_of(source)
    assert found.style == style
    plan, line = last_argv(cluster_file("trainer.py", found), tmp_path)
    assert {job.name: job.replicas for job in plan.jobs} == jobs
    assert ends in line
    assert ("-m dtf --exec" in line) == ("tensorflow" in source)


def test_every_example_is_understood():
    root = Path(__file__).resolve().parents[2] / "clusters"
    styles = {path.parent.name: flags_of(path.read_text()).style for path in root.glob("*/trainer.py")}
    assert styles["digits"] == "hosts" and styles["estimator"] == "TF_CONFIG" and styles["hello"] == "alone"


def test_the_command_writes_a_file_that_validates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(HOSTS)
    run = CliRunner().invoke
    assert run(commands, ["init", "src/train.py"]).exit_code == 0
    assert "program: python src/train.py --ps_hosts={ps_hosts}" in (tmp_path / "cluster.yaml").read_text()
    assert run(commands, ["validate"]).output.endswith("1 ps, 2 worker\n")
    assert "exists already" in run(commands, ["init", "src/train.py"]).output
    assert run(commands, ["init", "src/train.py", "other.yaml"]).exit_code == 0
    (tmp_path / "old.py").write_text("print 'x'\n")
    refusal = run(commands, ["init", "old.py", "old.yaml"]).output
    assert "old.py:1: Missing parentheses in call to 'print'" in refusal and "python -m dtf.check old.py" in refusal
    assert "wrote none.py, a training to start from" in run(commands, ["init", "none.py", "old.yaml"]).output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"x = 1" + b" + 1" * 20_000, "nested too deeply"),
        (b"# -*- coding: rot13 -*-\n", "not a text encoding"),
        (b"x = 1\0\n", "null bytes"),
        (None, "not a file of at most 16 MB"),
    ],
)
def test_a_strange_program_is_an_error_in_words(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    if text is None:
        os.mkfifo("strange.py")
    else:
        Path("strange.py").write_bytes(text)
    result = CliRunner().invoke(commands, ["init", "strange.py", "strange.yaml"])
    assert result.exit_code == 1 and words in result.output and "bug in dtfctl" not in result.output
