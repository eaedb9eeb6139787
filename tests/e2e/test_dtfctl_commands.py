"""up, status, logs, down as typed: what they print, what they return, what they leave behind (nothing)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket

import pytest

from tests.e2e.dtfctl_cluster import SLEEPERS, CommandLine
from tests.waiting import wait_until


@pytest.fixture
def cluster(tmp_path):
    cluster = CommandLine(tmp_path)
    yield cluster
    if cluster.state.exists():
        cluster.write(SLEEPERS)
        cluster.run("down", "--timeout", "0", status=None)
    assert cluster.processes() == {}


def test_up_must_return_when_all_are_ready_and_down_must_leave_nothing(cluster):
    done = cluster.run("up")
    assert done.stdout == ""
    assert "all tasks are ready" in done.stderr
    document = cluster.status()
    assert (document["apiVersion"], document["name"], document["state"]) == ("dtfctl/v1", "trial", "running")
    assert [task["name"] for task in document["tasks"]] == ["ps:0", "ps:1", "worker:0", "worker:1"]
    for task in document["tasks"]:
        assert set(task) == {"name", "state", "ready", "pid", "host", "address", "restarts", "reason"}
        assert (task["state"], task["ready"], task["host"], task["restarts"]) == ("running", True, "localhost", 0)
        assert re.fullmatch(r"127\.0\.0\.1:2\d{4}|127\.0\.0\.1:3\d{4}", task["address"])
        os.kill(task["pid"], 0)
    assert "stopped by dtfctl down" in cluster.run("down").stderr
    assert cluster.processes() == {}
    assert list(cluster.state.rglob("*.sock")) == []
    assert cluster.status()["state"] == "stopped"
    assert {task["state"] for task in cluster.status()["tasks"]} == {"stopped"}


def test_the_end_of_the_workers_must_end_the_ps_and_be_the_result(cluster):
    up = cluster.start("up", "--attach")
    wait_until(lambda: "worker 1" in cluster.out(), "the workers")
    cluster.finish()
    assert up.wait(20) == 0
    assert cluster.processes() == {}
    document = cluster.status()
    assert document["state"] == "succeeded"
    assert {task["state"] for task in document["tasks"]} == {"succeeded"}
    assert "worker:0 | bye\n" in cluster.out()
    assert "trial succeeded after" in cluster.err()
    assert all(re.match(r"(ps|worker):\d +\| ", line) for line in cluster.out().splitlines())


def test_a_failure_must_be_the_exit_status_and_its_cause_with_its_last_words_come_first(cluster):
    cluster.write(SLEEPERS + "  chief: {program: 'echo last words; exit 3', restart: {attempts: 2, backoff: 10ms}}\n")
    done = cluster.run("up", "--attach", status=10)
    assert "chief:0  | last words\n" in done.stdout
    assert "failed" in done.stderr
    assert "chief:0 failed: exited with status 3; gave up after 2 restarts within 10m" in done.stderr
    assert "    last words\n" in done.stderr
    document = cluster.status()
    assert document["state"] == "failed"
    assert {task["name"]: task["state"] for task in document["tasks"]}["chief:0"] == "gave-up"
    assert "last words" in cluster.run("logs", "chief").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_must_stop_everything_within_the_grace_period(cluster, number):
    up = cluster.start("up", "--attach")
    wait_until(lambda: "worker 1" in cluster.out(), "the workers")
    up.send_signal(number)
    assert up.wait(10) == 128 + number
    assert cluster.processes() == {}
    assert cluster.status()["state"] == "stopped"


@pytest.mark.slow
def test_a_second_ctrl_c_must_kill_what_does_not_want_to_end(cluster):
    cluster.write(SLEEPERS.replace("5s", "1h").replace("echo worker", "trap '' TERM; echo worker"))
    up = cluster.start("up", "--attach")
    wait_until(lambda: "worker 1" in cluster.out(), "the workers")
    up.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again kills" in cluster.err(), "the first one to be answered")
    up.send_signal(signal.SIGINT)
    assert up.wait(10) == 130
    assert cluster.processes() == {}


def test_a_deaf_task_must_be_killed_after_its_grace_period(cluster):
    cluster.write(SLEEPERS.replace("5s", "200ms").replace("echo worker", "trap '' TERM; echo worker"))
    cluster.run("up")
    cluster.run("down")
    assert cluster.processes() == {}


def test_the_second_up_must_start_anew_with_the_same_addresses_and_fresh_counts(cluster):
    cluster.run("up")
    before = cluster.status()
    cluster.wait_for_restart("ps:0", cluster.kill("ps:0"))
    cluster.run("down")
    cluster.run("up")
    after = cluster.status()
    assert [task["address"] for task in after["tasks"]] == [task["address"] for task in before["tasks"]]
    assert [task["restarts"] for task in after["tasks"]] == [0, 0, 0, 0]


@pytest.mark.slow
def test_up_on_a_running_cluster_must_show_and_do_what_the_file_has_changed_and_nothing_else(cluster):
    assert cluster.run("up", "--plan", status=20).stdout.splitlines()[0].split() == ["start", "ps:0", "localhost"]
    assert not cluster.state.exists()
    cluster.run("up")
    before = cluster.status()
    assert "trial is running already\n" in cluster.run("up").stderr
    assert "nothing would change" in cluster.run("up", "--plan").stdout
    assert cluster.status() == before
    sparse = SLEEPERS.replace("worker: {", "worker: {cluster_spec: sparse, ")
    cluster.write(sparse.replace("replicas: 2, p", "replicas: 3, p"))
    plan = cluster.run("up", "--plan", status=20).stdout
    assert re.search(r"^start     worker:2    added: worker has 3 tasks, before 2$", plan, re.M)
    assert cluster.status() == before
    done = cluster.run("up")
    assert [line.strip() for line in done.stderr.splitlines() if line.startswith("    ")] == plan.splitlines()
    assert {task["name"] for task in cluster.status()["tasks"] if task["ready"]} >= {"ps:2", "worker:2"}
    cluster.write(SLEEPERS)
    cluster.run("up")
    assert [task["name"] for task in cluster.status()["tasks"]] == ["ps:0", "ps:1", "worker:0", "worker:1"]


def test_up_must_say_who_is_missing_and_why_and_be_bounded_by_its_timeout(cluster):
    cluster.write("name: trial\nprogram: echo I am slow; exec sleep 1000\njobs: {worker: 1}\n")
    cluster.run("up", "--no-wait")
    # What is to be said is there before anybody asks, however busy the machine is.
    wait_until(lambda: cluster.run("logs").stdout == "I am slow\n", "its line")
    wait_until(lambda: "is not open yet" in cluster.task("worker:0")["reason"], "the first question of its readiness")
    done = cluster.run("up", "--timeout", "0.5", status=5)
    assert re.search(r"waiting \d+s for worker:0: starting \(\d+s\): 127\.0\.0\.1:\d+ is not open yet", done.stderr)
    assert "    I am slow\n" in done.stderr
    assert "error: not ready within 0.5s" in done.stderr
    assert cluster.status()["state"] == "starting"


def test_an_attached_up_that_is_not_ready_in_time_must_stop_what_it_started(cluster):
    cluster.write("name: trial\nprogram: echo I am slow; exec sleep 1000\njobs: {worker: 1}\n")
    done = cluster.run("up", "--attach", "--timeout", "0.5", status=5)
    assert "error: not ready within 0.5s, and stopped" in done.stderr
    assert cluster.processes() == {}


@pytest.mark.slow
def test_a_port_in_use_must_be_refused_with_its_owner_and_nothing_started(cluster):
    with socket.create_server(("127.0.0.1", 0)) as owner:
        port = owner.getsockname()[1]
        cluster.write(f"name: trial\nprogram: sleep 1000\nreadiness: none\njobs: {{worker: {{port: {port}}}}}\n")
        done = cluster.run("up", status=1)
    words = f"error: trial cannot start: port {port} of worker:0: Address already in use, by pid {os.getpid()}"
    assert words in done.stderr
    wait_until(lambda: cluster.processes() == {}, "the supervisor to end")
    cluster.run("up")
    assert cluster.task("worker:0")["address"] == f"127.0.0.1:{port}"


def test_logs_must_be_those_of_the_tasks_asked_for(cluster):
    cluster.run("up")
    # In the order of time, which on a busy machine need not be that of the file.
    both = ["worker:0 | worker 0", "worker:1 | worker 1"]
    wait_until(lambda: sorted(cluster.run("logs", "w*").stdout.splitlines()) == both, "the workers' lines")
    assert cluster.run("logs", "worker:1").stdout == "worker 1\n"
    follow = cluster.start("logs", "-f", "-n", "1", "worker")
    wait_until(lambda: sorted(cluster.out().splitlines()) == both, "what is there already")
    cluster.finish()
    assert follow.wait(20) == 0
    assert "worker:0 | bye\n" in cluster.out()
    cluster.run("down", "--purge")
    assert "error: " in cluster.run("logs", status=4).stderr
    assert not (cluster.state / "trial").exists()


@pytest.mark.slow
def test_two_clusters_of_one_file_must_live_side_by_side(cluster):
    cluster.run("up", "-n", "one")
    cluster.run("up", "-n", "two")
    assert "name one (clusters: one, two)" in cluster.run("status", status=4).stderr
    assert json.loads(cluster.run("status", "two", "-o", "json").stdout)["name"] == "two"
    cluster.run("down", "one")
    assert json.loads(cluster.run("status", "-o", "json").stdout)["name"] == "two"
    cluster.run("down")


def test_down_of_what_does_not_run_must_be_no_error_and_of_what_never_was_one(cluster):
    assert "never up" in cluster.run("down", status=4).stderr
    cluster.run("up")
    cluster.run("down")
    assert "trial is not running" in cluster.run("down").stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["up", "nowhere.yaml"], 2, "error: nowhere.yaml: No such file or directory"),
        (
            ["validate", "bad.yaml"],
            2,
            'error: bad.yaml:3:7: unknown key "replica" under jobs.w (did you mean "replicas"?)',
        ),
        (["up", "gone.yaml"], 2, "error: gone.yaml:1:10: w:0: trainer.py: no such file in "),
        (["up", "-n", "../x"], 2, 'error: "../x" is not a valid cluster name'),
        (["status", "stranger"], 4, 'error: no cluster is called "stranger" (no clusters are known)'),
        (["logs"], 4, "error: cluster.yaml was never up (no clusters are known)"),
        (["sing"], 2, "No such command 'sing'"),
        (["up", "--timeout", "soon"], 2, "'soon' is not a duration"),
    ],
)
def test_a_mistake_must_get_one_message_and_its_exit_status(cluster, arguments, status, words):
    (cluster.folder / "bad.yaml").write_text("program: x\njobs:\n  w: {replica: 2}\n")
    (cluster.folder / "gone.yaml").write_text("program: python trainer.py\njobs: {w: 1}\n")
    done = cluster.run(*arguments, status=status)
    assert words in done.stderr
    assert done.stdout == ""


def test_validate_config_and_expand_must_start_nothing(cluster):
    assert cluster.run("validate").stdout == "trial: 2 ps, 2 worker\n"
    assert "grace_period: 5s" in cluster.run("config").stdout
    assert json.loads(cluster.run("config", "-o", "json").stdout)["jobs"]["worker"]["replicas"] == 2
    expanded = cluster.run("expand").stdout
    assert "worker:1:\n  argv: /bin/sh -c '" in expanded and "; echo worker 1;" in expanded
    assert 'TF_CONFIG={"cluster": {"ps": ["127.0.0.1:0", "127.0.0.1:0"]' in expanded
    (host,) = json.loads(cluster.run("expand", "-o", "json").stdout)["hosts"]
    assert (host["host"], len(host["tasks"])) == ("localhost", 4)
    assert not cluster.state.exists()


def test_files_and_settings_must_be_laid_over_each_other(cluster):
    (cluster.folder / "more.yaml").write_text("jobs: {worker: 5}\n")
    assert cluster.run("validate", "cluster.yaml", "-f", "more.yaml").stdout == "trial: 2 ps, 5 worker\n"
    done = cluster.run("validate", "-f", "cluster.yaml", "-f", "more.yaml", "--set", "jobs.ps=1")
    assert done.stdout == "trial: 1 ps, 5 worker\n"
    done = cluster.run("validate", "--set", "jobs.ps.replica=1", status=2)
    assert "--set jobs.ps.replica: unknown key" in done.stderr


def test_the_resolved_file_must_be_a_file_of_the_same_meaning(cluster):
    resolved = cluster.run("config").stdout
    expanded = cluster.run("expand").stdout
    cluster.write(resolved)
    assert cluster.run("config").stdout == resolved
    assert cluster.run("expand").stdout == expanded


def test_init_must_write_a_valid_file_and_never_overwrite_one(cluster):
    before = (cluster.folder / "cluster.yaml").read_text()
    assert "exists already" in cluster.run("init", status=1).stderr
    assert (cluster.folder / "cluster.yaml").read_text() == before
    assert "wrote new.yaml" in cluster.run("init", "new.yaml").stderr
    trainer = (cluster.folder / "trainer.py").read_text()
    assert "MonitoredTrainingSession" in trainer
    cluster.run("validate", "new.yaml")
    (cluster.folder / "trainer.py").write_text("mine")
    assert "trainer.py" not in cluster.run("init", "other.yaml").stderr
    assert (cluster.folder / "trainer.py").read_text() == "mine", "a program that is there is not overwritten"
    (cluster.folder / "trainer.py").unlink()
    done = cluster.run("validate", "new.yaml", status=2)
    assert "new.yaml:14:10: ps:0 and 1 more: trainer.py: no such file" in done.stderr
    done = cluster.run("init", "sub/train.py", status=1)
    (cluster.folder / "sub").mkdir()
    assert "wrote sub/train.py" in cluster.run("init", "sub/train.py", "third.yaml").stderr
    cluster.run("validate", "third.yaml")
    (cluster.folder / "trainer.py").touch()
    assert cluster.run("validate", "new.yaml").stdout == "cluster: 1 ps, 2 worker\n"
    properties = json.loads(cluster.run("schema").stdout)["properties"]
    assert {"jobs", "hosts", "program", "restart"} <= set(properties)


def test_secrets_must_reach_the_task_and_nothing_else(cluster):
    (cluster.folder / "key").write_text("from-a-file\n")
    text = SLEEPERS.replace("echo worker {task}", "echo $$FILE_KEY $$VARIABLE_KEY | rev")
    cluster.write(text + "secrets: {FILE_KEY: {file: key}, VARIABLE_KEY: }\n")
    done = cluster.run("up", status=2)
    words = "error: cluster.yaml:8:47: the secret VARIABLE_KEY: the variable VARIABLE_KEY is not set"
    assert words in done.stderr
    cluster.environment["VARIABLE_KEY"] = "from-the-shell"
    cluster.run("up")
    wait_until(lambda: "elif-a-morf" in cluster.run("logs", "worker:0").stdout, "the task to have read its secrets")
    assert "llehs-eht-morf elif-a-morf" in cluster.run("logs", "worker:0").stdout
    told = [cluster.run(word).stdout for word in ("config", "expand", "logs")]
    shown = "".join([*cluster.processes().values(), *told])
    assert "from-a-file" not in shown and "from-the-shell" not in shown
    kept = [path for path in cluster.state.rglob("*") if path.is_file() and b"from-a-file" in path.read_bytes()]
    assert all(path.name.startswith("store.sqlite") and path.stat().st_mode & 0o077 == 0 for path in kept)
    cluster.run("down")
    shown = "".join([cluster.run("status", "-o", "json").stdout, cluster.run("logs").stdout])
    assert "from-a-file" not in shown


@pytest.mark.slow
def test_limits_cores_and_ports_must_be_those_of_the_file(cluster):
    cluster.write(
        """
name: trial
readiness: none
limits: {open_files: 64, nice: 3}
cpus: 1
port: 21000-31000
jobs: {worker: {replicas: 2, program: "ulimit -n; nice; grep Cpus_allowed_list /proc/self/status; exec sleep 1000"}}
"""
    )
    cluster.run("up")
    wait_until(lambda: "Cpus" in cluster.run("logs", "worker:1").stdout, "what the task prints")
    assert re.match(r"64\n3\nCpus_allowed_list:\s+\d+\n$", cluster.run("logs", "worker:1").stdout)
    assert 21000 <= int(cluster.task("worker:1")["address"].rpartition(":")[2]) <= 31000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts: [node0.invalid]\n", "1 of 1 hosts cannot be used; nothing was started"),
    ],
)
def test_what_cannot_be_had_must_be_refused_and_nothing_started(cluster, text, words):
    cluster.write(SLEEPERS + text)
    assert words in cluster.run("up", status=8).stderr
    wait_until(lambda: cluster.processes() == {}, "the supervisor to end")
    cluster.write(SLEEPERS)
    cluster.run("up")


@pytest.mark.slow
def test_a_damaged_store_must_be_said_in_words_and_purged_with_its_processes(cluster):
    cluster.run("up")
    supervisor, store = cluster.supervisor(), cluster.state / "trial" / "store.sqlite"
    os.kill(cluster.keeper(), signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    for path in cluster.state.glob("trial/store.sqlite*"):
        path.unlink()
    store.write_bytes(b"nonsense" * 1000)
    os.kill(cluster.keeper(), signal.SIGCONT)
    assert "dtfctl down trial --purge" in cluster.run("status", "trial", status=1).stderr
    cluster.run("down", "trial", "--purge")
    assert not (cluster.state / "trial").exists()


@pytest.mark.slow
def test_outside_a_folder_with_a_cluster_the_newest_that_runs_is_meant(cluster, tmp_path):
    text = "readiness: none\njobs: {worker: {program: sleep 1000}}"
    file = cluster.folder / "cluster.yaml"
    for name in ("old", "new", "ended"):
        cluster.write(text)
        cluster.run("up", "-n", name)
    cluster.run("down", "ended", "--timeout", "0")
    file.rename(cluster.folder / "elsewhere.yaml")
    done = cluster.run("status")
    assert done.stdout.startswith("new: running")
    assert done.stderr == "new is chosen, the newest of those that run (others: old)\n"
    # Nothing is removed on a guess.
    assert "name one (clusters: new, old, ended (ended))" in cluster.run("down", "--purge", status=4).stderr
    cluster.run("down", "new", "--timeout", "0")
    done = cluster.run("restart", "worker:0")
    assert done.stderr.splitlines() == ["worker:0 restarted and ready"]
    cluster.run("down", "old", "--timeout", "0")
    hint = cluster.run("restart", "-c", "old", "worker:0", status=3).stderr
    assert f"dtfctl up {file} -n old" in hint or f"dtfctl up {file}" in hint


@pytest.mark.slow
def test_waiting_for_a_run_that_has_ended_says_the_same_each_time(cluster):
    cluster.write("name: trial\nreadiness: none\njobs: {worker: {program: exit 3}}\nrestart: never")
    cluster.run("up", status=None)  # its worker may fail before `up` returns, or after
    first = cluster.run("wait", status=10).stderr
    assert "trial failed after" in first and "dtfctl logs -c trial worker:0" in first
    import sqlite3

    with sqlite3.connect(cluster.state / "trial" / "store.sqlite") as store:
        run = {field: json.loads(document) for field, document in store.execute("SELECT field, document FROM run")}
        assert run["ended_at"] >= run["started_at"]
        times = [(run["started_at"] - 1000, "started_at"), (run["ended_at"] - 900, "ended_at")]
        store.executemany("UPDATE run SET document = ? WHERE field = ?", times)
    store.close()
    again = cluster.run("wait", status=10).stderr
    assert "trial failed after 10" in again, "by the end of the run, not by the clock"
