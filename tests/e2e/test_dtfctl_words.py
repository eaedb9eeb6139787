"""Words of other tools, keys explained, curves, and the end of a training, as typed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.e2e.dtfctl_cluster import ROOT, CommandLine

SLEEPER = "{name: words, program: sleep 1000, readiness: none, jobs: {ps: 1, worker: 2}}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = CommandLine(tmp_path_factory.mktemp("words"), SLEEPER)
    cluster.run("up", "-d")
    yield cluster
    cluster.run("down", "--timeout", "0")


def test_what_only_looks_works_under_other_names(cluster):
    assert cluster.run("ps", "-o", "name").stdout == cluster.run("status", "-o", "name").stdout
    assert cluster.run("get", "tasks", "-o", "name").stdout.splitlines() == ["ps:0", "worker:0", "worker:1"]
    assert cluster.run("get", "clusters", "-q").stdout == "words\n"
    assert "worker:0" in cluster.run("get", "events").stdout
    described = cluster.run("describe", "worker:1").stdout
    assert "command:" in described and "sleep 1000" in described and "events:" in described
    assert cluster.run("version").stdout == cluster.run("--version").stdout


@pytest.mark.parametrize("word", ["kill", "delete", "apply", "run", "cancel"])
def test_what_would_change_something_names_the_command(cluster, word):
    error = cluster.run(word, "worker:0", status=2).stderr
    assert error.startswith(f"error: dtfctl has no {word}: ") and "dtfctl " in error
    assert all(task["ready"] for task in cluster.status()["tasks"])


def test_fields_and_yaml_of_the_status(cluster):
    import yaml

    assert cluster.run("status", "--field", "tasks[*].name").stdout.split() == ["ps:0", "worker:0", "worker:1"]
    assert cluster.run("status", "--field", "{.state}").stdout == "running\n"
    assert "there are: " in cluster.run("status", "--field", "stat", status=2).stderr
    assert yaml.safe_load(cluster.run("status", "-o", "yaml").stdout) == cluster.status()


def test_all_tasks_are_stopped_and_started_again(cluster):
    cluster.run("stop", "worker:0")
    assert "name tasks, or --all" in cluster.run("stop", status=2).stderr
    cluster.run("restart", "--all")
    assert all(task["ready"] for task in cluster.status()["tasks"])


def test_plans_of_actions_change_nothing_and_their_exit_status_says_whether_they_would(cluster):
    before = [(task["name"], task["pid"]) for task in cluster.status()["tasks"]]
    assert cluster.run("restart", "worker:0", "--plan", status=20).stdout.startswith("restart   worker:0 ")
    assert "stop      ps:0 " in cluster.run("stop", "ps", "--plan", status=20).stdout
    assert "nothing: it runs worker:1" in cluster.run("start", "--all", "--plan", status=0).stdout
    assert "The run ends." in cluster.run("down", "--plan", status=20).stdout
    assert [(task["name"], task["pid"]) for task in cluster.status()["tasks"]] == before


def test_a_key_of_the_file_is_explained(tmp_path):
    cluster = CommandLine(tmp_path, SLEEPER)
    explained = cluster.run("explain-key", "jobs.worker.restart").stdout
    assert "attempts" in explained and "`policy`" in explained
    assert "One of: " in cluster.run("explain-key", "jobs.worker.restart.policy").stdout
    assert "metrics" in cluster.run("explain-key").stdout
    assert cluster.run("help", "key", "jobs.worker.restart").stdout == explained
    assert 'has no key "attempt"; did you mean attempts?' in cluster.run(
        "explain-key", "restart.attempt", status=4
    ).stderr


@pytest.mark.slow
def test_a_new_folder_trains_within_three_commands_and_says_what_to_do_next(tmp_path):
    cluster = CommandLine(tmp_path)
    (cluster.folder / "cluster.yaml").unlink()
    cluster.environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'runtime'}"
    cluster.timeout_s = 180.0
    assert "trainer.py" in cluster.run("init").stderr
    cluster.run("validate")
    done = cluster.run("up", "--attach")
    for words in ("cluster succeeded after", "last: step 300", "checkpoint: ", "dtfctl plot", "dtfctl tensorboard"):
        assert words in done.stderr, words
    assert "Saving checkpoints" not in done.stdout
    plotted = cluster.run("plot").stdout
    assert "loss" in plotted and "step" in plotted
    points = cluster.run("plot", "--csv", "loss").stdout.splitlines()
    assert points[0] == "run,tag,step,time,value" and len(points) > 20
    assert "loss" in cluster.run("plot", "--list").stdout
    assert 'no scalar is called "los"' in cluster.run("plot", "los", status=4).stderr
    listed = json.loads(cluster.run("checkpoints", "-o", "json").stdout)
    last = f"model.ckpt-{listed[-1]['step']}"
    assert listed[-1]["standing"] == "newest" and not listed[-1]["problem"]
    assert f"{last}: whole" in cluster.run("checkpoints", "verify").stdout
    assert f"kept {last}: one of the newest 1" in cluster.run("checkpoints", "prune", "--keep", "1").stdout
    assert '"lst" is none of list, verify' in cluster.run("checkpoints", "t", "lst", status=2).stderr


SHELLS = {
    "bash": 'eval "$(dtfctl completion bash)"; COMP_WORDS=(dtfctl sta); COMP_CWORD=1; '
    '_dtfctl_completion dtfctl sta dtfctl; printf "%s\\n" "${COMPREPLY[@]}"',
    "fish": 'dtfctl completion fish | source; complete -C "dtfctl sta"',
    "zsh": "autoload -Uz compinit && compinit -u -D; eval \"$(dtfctl completion zsh)\"; "
    'compadd() { print -l -- "${(@)completions}"; }; '
    '_describe() { print -l -- "${(@)completions_with_descriptions}"; }; '
    "words=(dtfctl sta); CURRENT=2; _dtfctl_completion",
}


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_completes_commands(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    cluster = CommandLine(tmp_path, SLEEPER)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dtfctl").write_text(f"#!/bin/sh\nexec {sys.executable} -m dtfctl \"$@\"\n")
    (folder / "dtfctl").chmod(0o755)
    environment = {**cluster.environment, "PATH": f"{folder}:{cluster.environment['PATH']}", "HOME": str(tmp_path)}
    line = [shell, *(["-f"] if shell == "zsh" else []), "-c", SHELLS[shell]]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert "status" in done.stdout and "start" in done.stdout, done
    assert "Traceback" not in done.stderr
