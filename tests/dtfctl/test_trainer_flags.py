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


FLAGS = "import tensorflow as tf\n"
JOB_FLAGS = "f.DEFINE_string('job_name', '', '')\nf.DEFINE_integer('task_index', 0, '')\n"
HOST_FLAGS = "f.DEFINE_string('ps_hosts', '', '')\nf.DEFINE_string('worker_hosts', '', '')\n"
ALL = "--ps_hosts=h:1 --worker_hosts=h:2,h:3 --job_name=worker --task_index=1"
PAIR = {"ps": 1, "worker": 2}
PARSER = "import argparse\np = argparse.ArgumentParser()\n"

STYLES = {
    "tf.app.flags": (HOSTS, "hosts", PAIR, ALL + " --train_dir="),
    "argparse with a short name": (PLACE, "place", PAIR, "--job_name=worker --task=1"),
    "several names for a job": (A3C, "place", PAIR, "--job-name=worker --task_id=1 --cluster_spec="),
    "an estimator": (ESTIMATOR, "TF_CONFIG", {"chief": 1, "ps": 1, "worker": 1, "evaluator": 1}, "--model_dir="),
    "CLUSTER_SPEC": (TONY, "CLUSTER_SPEC", PAIR, "trainer.py"),
    "no cluster": (ALONE, "alone", {"worker": 1}, "trainer.py"),
    "absl": ("from absl import flags as f\n" + HOST_FLAGS + JOB_FLAGS, "hosts", PAIR, ALL),
    "tf.flags and other names": (
        "import tensorflow as tf\nf = tf.flags\nf.DEFINE_string('ps_hosts', '', '')\n"
        "f.DEFINE_string('worker_hosts', '', '')\nf.DEFINE_enum('role', 'ps', ['ps', 'worker'], '')\n"
        "f.DEFINE_integer('task_id', 0, '')\nf.DEFINE_string('logdir', '', '')\n",
        "hosts", PAIR, "--ps_hosts=h:1 --worker_hosts=h:2,h:3 --role=worker --task_id=1 --logdir="),
    "lists": ("from absl import flags as f\nf.DEFINE_list('ps_hosts', [], '')\nf.DEFINE_list('worker_hosts', [], '')\n"
              + JOB_FLAGS, "hosts", PAIR, ALL),
    "a DEFINE function under another name": (
        "import tensorflow as tf\nstring = tf.app.flags.DEFINE_string\nnumber = tf.app.flags.DEFINE_integer\n"
        "string('ps_hosts', '', '')\nstring('worker_hosts', '', '')\nstring('job_name', '', '')\n"
        "number('task_index', 0, '')\n", "hosts", PAIR, ALL),
    "a function around DEFINE": (
        "import tensorflow as tf\ndef flag(name, default, make=None):\n"
        "    tf.app.flags.DEFINE_string(name, default, 'help')\n"
        "flag('ps_hosts', '')\nflag('worker_hosts', '')\nflag(default='', name='job_name')\n"
        "flag('task_index', '0')\n", "hosts", PAIR, ALL),
    "a loop of flags": (
        "import tensorflow as tf\nfor name, default in [('ps_hosts', ''), ('worker_hosts', ''), ('job_name', '')]:\n"
        "    tf.app.flags.DEFINE_string(name, default, '')\ntf.app.flags.DEFINE_integer('task_index', 0, '')\n",
        "hosts", PAIR, ALL),
    "flags in a function": (
        "def add(parser):\n    group = parser.add_argument_group('x')\n    group.add_argument('--ps_hosts')\n"
        "    group.add_argument('--worker_hosts')\n    group.add_argument('--job_name')\n"
        "    group.add_argument('--task_index', type=int)\n", "hosts", PAIR, ALL),
    "argparse with dashes": (
        PARSER + "p.add_argument('--ps-hosts')\np.add_argument('--worker-hosts')\np.add_argument('--job-name')\n"
        "p.add_argument('--task-index', type=int)\np.add_argument('--checkpoint-dir')\n", "hosts", PAIR,
        "--ps-hosts=h:1 --worker-hosts=h:2,h:3 --job-name=worker --task-index=1 --checkpoint-dir="),
    "one dash": (PARSER + "p.add_argument('-job_name')\np.add_argument('-task_index', type=int)\n", "place", PAIR,
                 "-job_name=worker -task_index=1"),
    "click": (
        "import click\n@click.command()\n@click.option('--ps-hosts')\n@click.option('--worker-hosts')\n"
        "@click.option('--job-name')\n@click.option('--task-index', type=int)\ndef main(**_):\n    pass\n",
        "hosts", PAIR, "--ps-hosts=h:1 --worker-hosts=h:2,h:3 --job-name=worker --task-index=1"),
    "addresses under other names": (
        PARSER + "p.add_argument('--ps_addrs')\np.add_argument('--worker_addrs')\np.add_argument('--job')\n"
        "p.add_argument('--index', type=int)\n", "hosts", PAIR,
        "--ps_addrs=h:1 --worker_addrs=h:2,h:3 --job=worker --index=1"),
    "parameter servers": (
        PARSER + "p.add_argument('--parameter_servers')\np.add_argument('--param_server_hosts')\n"
        "p.add_argument('--workers_hosts')\np.add_argument('--job_name')\np.add_argument('--task_index', type=int)\n",
        "hosts", PAIR, "--param_server_hosts=h:1 --workers_hosts=h:2,h:3 --job_name=worker --task_index=1"),
    "ps and workers": (
        PARSER + "p.add_argument('--ps')\np.add_argument('--workers')\np.add_argument('--type')\n"
        "p.add_argument('--task', type=int)\n", "hosts", PAIR,
        "--ps=h:1 --workers=h:2,h:3 --type=worker --task=1"),
    "numbers of tasks are not addresses": (
        PARSER + "p.add_argument('--ps', type=int)\np.add_argument('--workers', type=int)\n", "alone", {"worker": 1},
        "trainer.py"),
    "a chief": (
        "import tensorflow as tf\nf = tf.app.flags\nf.DEFINE_string('chief_hosts', '', '')\n" + HOST_FLAGS + JOB_FLAGS,
        "hosts", {"chief": 1, "ps": 1, "worker": 2}, "--chief_hosts=h:1 --ps_hosts=h:2 --worker_hosts=h:3,h:4"),
    "positional arguments of argparse": (
        PARSER + "p.add_argument('job_name', choices=['ps', 'worker'])\np.add_argument('task_index', type=int)\n",
        "place", PAIR, "trainer.py worker 1"),
    "sys.argv": ("import sys\njob_name = sys.argv[1]\ntask_index = int(sys.argv[2])\n", "place", PAIR, "worker 1"),
    "sys.argv at once": ("import sys\njob, task = sys.argv[1:3]\n", "place", PAIR, "worker 1"),
    "sys.argv with the script": ("import sys\n_, role, index = sys.argv\n", "place", PAIR, "worker 1"),
    "sys.argv compared": ("import sys\nif sys.argv[1] == 'ps':\n    pass\ntask = int(sys.argv[2])\n", "place", PAIR,
                          "worker 1"),
    "sys.argv of something else": ("import sys\nepochs = int(sys.argv[1])\n", "alone", {"worker": 1}, "trainer.py"),
    "TF_CONFIG": ("import json, os\nconfig = json.loads(os.environ.get('TF_CONFIG', '{}'))\n", "TF_CONFIG", PAIR,
                  "trainer.py"),
    "JOB_NAME": ("import os\njob, task = os.environ['JOB_NAME'], int(os.environ['TASK_INDEX'])\n", "CLUSTER_SPEC", PAIR,
                 "trainer.py"),
    "other variables": (
        "import os\nps = os.getenv('PS_HOSTS').split(',')\nworkers = os.environ['WORKER_HOSTS']\n"
        "task = os.environ.get('TASK_ID')\nrole = os.environ['JOB_TYPE']\n", "CLUSTER_SPEC", PAIR, "trainer.py"),
    "addresses in the text": (
        "import tensorflow as tf\nf = tf.app.flags\n" + JOB_FLAGS + "workers = ['localhost:2223', 'localhost:2224']\n"
        "cluster = tf.train.ClusterSpec({'ps': ['localhost:2222'], 'worker': workers})\n", "place", PAIR,
        "--job_name=worker --task_index=1"),
}  # fmt: skip


@pytest.mark.parametrize("name", STYLES)
def test_a_program_gets_the_flags_that_it_has(name, tmp_path):
    source, style, jobs, ends = STYLES[name]
    found = flags_of(source)
    assert found.style == style
    plan, line = last_argv(cluster_file("trainer.py", found), tmp_path)
    assert {job.name: job.replicas for job in plan.jobs} == jobs
    assert ends in line
    assert ("-m dtf --exec" in line) == ("tensorflow" in source)


def test_ports_and_variables_that_a_text_names_are_in_the_file(tmp_path):
    text = cluster_file("trainer.py", flags_of(STYLES["addresses in the text"][0]))
    assert "  worker: {replicas: 2, port: [2223, 2224]}" in text
    plan, _ = last_argv(cluster_file("trainer.py", flags_of(STYLES["other variables"][0])), tmp_path)
    task = list(plan.tasks())[-1]
    variables = expand.environment(plan, task, {each.name: f"h:{n}" for n, each in enumerate(plan.tasks(), 1)}, {})
    assert variables["WORKER_HOSTS"] == "h:2,h:3" and variables["TASK_ID"] == "1" and variables["JOB_TYPE"] == "worker"


def test_unknown_arguments_are_named():
    text = cluster_file("trainer.py", flags_of("import sys\njob = sys.argv[1]\nprefix = sys.argv[2]\n"))
    assert "program: python trainer.py {job}\n" in text and "Not known: the arguments prefix" in text


def test_flags_of_the_program_s_own_modules_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "settings.py").write_text(HOSTS)
    (tmp_path / "train.py").write_text("from pkg.settings import f\nimport numpy, missing\n")
    assert CliRunner().invoke(commands, ["init", "train.py"]).exit_code == 0
    assert "--ps_hosts={ps_hosts}" in (tmp_path / "cluster.yaml").read_text()


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
        (b"x = " + b"-" * 20_000 + b"1", "nested too deeply"),
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
