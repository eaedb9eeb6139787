"""Commands on tasks and on what is there to see, as typed: one running cluster is asked all of them."""

from __future__ import annotations

import json
import os
import re
import signal
import time

import pytest

from tests.e2e.dtfctl_cluster import CommandLine
from tests.waiting import wait_until

TALKERS = """
name: trial
readiness: none
grace_period: 5s
jobs:
  ps: {replicas: 2, cluster_spec: sparse, program: "echo ps {task} is process $$$$; exec sleep 1000"}
  worker:
    replicas: 2
    cluster_spec: sparse
    program: "echo one; echo two; echo three; sleep 0.1; echo four; while [ ! -e done ]; do sleep 0.02; done; echo bye"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = CommandLine(tmp_path_factory.mktemp("talkers"), TALKERS)
    cluster.run("up")
    yield cluster
    cluster.run("down", "--timeout", "0")
    assert cluster.processes() == {}


def tasks(cluster):
    return {task["name"]: task for task in cluster.status()["tasks"]}


def test_a_restarted_ps_gets_a_new_process_at_the_same_address_and_the_others_keep_theirs(cluster):
    before = tasks(cluster)
    assert "ps:1 restarted and ready" in cluster.run("restart", "ps:1").stderr
    after = tasks(cluster)
    assert after["ps:1"]["pid"] != before["ps:1"]["pid"]
    assert after["ps:1"]["address"] == before["ps:1"]["address"]
    assert after["ps:1"]["restarts"] == before["ps:1"]["restarts"] + 1
    assert {name: task["pid"] for name, task in after.items() if name != "ps:1"} == {
        name: task["pid"] for name, task in before.items() if name != "ps:1"
    }
    newest = cluster.run("logs", "ps:1", "-n", "1").stdout
    assert newest == f"ps 1 is process {after['ps:1']['pid']}\n"
    assert cluster.run("logs", "ps:1", "--previous").stdout == f"ps 1 is process {before['ps:1']['pid']}\n"
    assert json.loads(cluster.run("logs", "ps:1", "--attempt", "2", "-o", "json").stdout)["attempt"] == 2


def test_stopped_tasks_stay_down_until_they_are_started(cluster):
    cluster.run("stop", "worker:0-1")
    assert {task["state"] for name, task in tasks(cluster).items() if name.startswith("worker")} == {"stopped"}
    assert cluster.status()["state"] == "running"
    assert cluster.run("status", "--exit-code", status=6).stdout.count("stopped by dtfctl stop") == 2
    inside = cluster.run("exec", "worker:1", "--", "sh", "-c", "echo $TASK_INDEX; pwd").stdout
    assert inside == f"1\n{cluster.folder}\n"
    assert "worker:0-1 ready" in cluster.run("start", "w*").stderr
    assert {task["ready"] for task in tasks(cluster).values()} == {True}
    cluster.run("status", "--exit-code")


def test_a_job_is_scaled_and_only_the_new_task_starts_where_specs_are_sparse(cluster):
    before = tasks(cluster)
    assert cluster.run("scale", "worker=3", "--plan", status=20).stdout.split()[:2] == ["start", "worker:2"]
    cluster.run("scale", "worker=3")
    after = tasks(cluster)
    assert after["worker:2"]["ready"]
    assert {name: after[name]["pid"] for name in before} == {name: task["pid"] for name, task in before.items()}
    wait_until(lambda: "four" in cluster.run("logs", "worker:2").stdout, "the new worker's lines")
    cluster.run("scale", "worker=2")
    assert tasks(cluster).keys() == before.keys()
    assert "four" in cluster.run("logs", "worker:2").stdout  # what a removed task has written stays
    assert "at least one task" in cluster.run("scale", "worker=0", status=1).stderr
    assert "JOB=NUMBER" in cluster.run("scale", "worker", status=2).stderr


def test_exec_runs_in_the_tasks_environment_and_folder_and_returns_its_status(cluster):
    script = "echo $JOB_NAME $TASK_INDEX; pwd; env | grep -c DTFCTL_TOKEN; echo words >&2; exit 7"
    done = cluster.run("exec", "ps:0", "--", "sh", "-c", script, status=7)
    assert done.stdout == f"ps 0\n{cluster.folder}\n0\n"
    assert done.stderr == "words\n"
    assert "error: no-such-program: No such file" in cluster.run("exec", "ps:0", "no-such-program", status=1).stderr
    assert "several tasks" in cluster.run("exec", "ps", "true", status=4).stderr


def test_logs_are_chosen_by_number_time_and_pattern(cluster):
    wait_until(lambda: "four" in cluster.run("logs", "worker:0").stdout, "the worker's lines")
    assert cluster.run("logs", "worker:0", "-n", "2").stdout == "three\nfour\n"
    assert set(cluster.run("logs", "worker:0", "--grep", "^t").stdout.split()) == {"two", "three"}
    assert cluster.run("logs", "worker:0", "--since", "0s").stdout == ""
    assert cluster.run("logs", "worker:0", "--until", "1h").stdout == ""
    assert "one" in cluster.run("logs", "worker:0", "--since", "1h").stdout
    lines = cluster.run("logs", "-t", "--prefix", "worker:0").stdout.splitlines()
    times = [re.fullmatch(r"worker:0 \| (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) \w+", line)[1] for line in lines]
    assert times == sorted(times)
    documents = [json.loads(line) for line in cluster.run("logs", "-o", "json").stdout.splitlines()]
    assert {document["task"] for document in documents} >= {"ps:0", "ps:1", "worker:0", "worker:1"}
    assert [document["time"] for document in documents] == sorted(document["time"] for document in documents)
    assert "'noon' is not a time" in cluster.run("logs", "--since", "noon", status=2).stderr
    assert "is not a regular expression" in cluster.run("logs", "--grep", "(", status=2).stderr


def test_events_tell_what_happened_to_whom_and_why(cluster):
    cluster.wait_for_restart("worker:1", cluster.kill("worker:1"))
    lines = cluster.run("events", "worker:1").stdout.splitlines()
    assert any("killed by SIGKILL" in line for line in lines)
    assert all(" worker:1  " in line for line in lines)
    events = [json.loads(line) for line in cluster.run("events", "-n", "3", "-o", "json").stdout.splitlines()]
    assert len(events) == 3
    assert set(events[0]) == {"time", "task", "what", "cause"}
    assert cluster.run("events", "--since", "0s").stdout == ""


def test_clusters_are_listed_by_name(cluster):
    assert cluster.run("ls", "-q").stdout == "trial\n"
    (row,) = json.loads(cluster.run("ls", "-o", "json").stdout)
    assert (row["name"], row["state"], row["tasks"], row["ready"]) == ("trial", "running", 4, 4)
    assert "4/4" in cluster.run("ls").stdout


def test_top_shows_what_tasks_take(cluster):
    document = json.loads(cluster.run("top", "--once", "-o", "json").stdout)
    assert {task["name"] for task in document["tasks"]} == {"ps:0", "ps:1", "worker:0", "worker:1"}
    for task in document["tasks"]:
        assert task["processes"] >= 1 and task["memory_bytes"] > 100_000 and 0 <= task["cpu_cores"] < 64
    assert re.search(r"^ps:0 +running +\d+ +[\d.]+ MiB", cluster.run("top", "--once").stdout, re.M)


def test_waiting_is_bounded_and_ready_is_ready(cluster):
    assert "not done within 0.1s" in cluster.run("wait", "--timeout", "100ms", status=5).stderr
    assert cluster.run("wait", "--ready", "--timeout", "10").stdout == ""


def test_words_can_be_json_or_nothing(cluster):
    done = cluster.run("restart", "ps:0", "--progress", "json")
    assert [json.loads(line)["message"] for line in done.stderr.splitlines()][-1] == "ps:0 restarted and ready"
    assert cluster.run("restart", "ps:0", "--progress", "quiet").stderr == ""
    assert "error: no task" in cluster.run("restart", "ghost", "--progress", "quiet", status=4).stderr


@pytest.mark.slow
def test_watching_and_following_end_with_the_cluster(cluster):
    watch = cluster.start("status", "--watch", "-o", "json")
    wait_until(lambda: "apiVersion" in cluster.out(), "the first look")
    cluster.run("restart", "ps:0")
    wait_until(lambda: cluster.out().count('"apiVersion"') >= 2, "a change to be shown")
    watch.send_signal(signal.SIGINT)
    assert watch.wait(10) == 130
    follow = cluster.start("events", "-f", "-n", "1", "ps:0")
    wait_until(lambda: "  ready  " in cluster.out(), "the last event")
    cluster.run("restart", "ps:0")
    wait_until(lambda: cluster.out().count("  ready  ") >= 2, "the restart to be told")
    follow.send_signal(signal.SIGINT)
    assert follow.wait(10) == 130
    assert "Traceback" not in cluster.err()


@pytest.mark.slow
def test_attaching_to_a_running_cluster_begins_with_its_last_lines_and_ends_with_it(tmp_path):
    text = TALKERS.replace("echo one;", "seq 100;")
    cluster = CommandLine(tmp_path, text)
    cluster.run("up")
    wait_until(lambda: "four" in cluster.run("logs", "worker:1").stdout, "the workers' lines")
    up = cluster.start("up", "--attach")
    wait_until(lambda: cluster.out().count("four") == 2, "what was before")
    cluster.finish()
    assert up.wait(20) == 0
    assert "trial is running already" in cluster.err()
    lines = [line for line in cluster.out().splitlines() if line.startswith("worker:0")]
    assert [line.partition(" | ")[2] for line in lines] == [*map(str, range(94, 101)), "two", "three", "four", "bye"]
    wait_until(lambda: cluster.processes() == {}, "everything to end")


def test_help_has_topics_and_shells_complete_tasks(cluster):
    assert "exit-codes" in cluster.run("help").stdout
    assert "worker:0-3" in cluster.run("help", "tasks").stdout
    assert "How many tasks" in cluster.run("help", "cluster-file").stdout
    assert "Usage: dtfctl logs" in cluster.run("help", "logs").stdout
    assert "topics: tutorial, cluster-file" in cluster.run("help", "love", status=4).stderr
    for shell in ("bash", "zsh", "fish"):
        assert "_DTFCTL_COMPLETE" in cluster.run("completion", shell).stdout
    cluster.environment |= {"_DTFCTL_COMPLETE": "bash_complete", "COMP_WORDS": "dtfctl logs wor", "COMP_CWORD": "2"}
    try:
        assert cluster.run().stdout.split() == ["plain,worker", "plain,worker:0", "plain,worker:1"]
        cluster.environment |= {"COMP_WORDS": "dtfctl down tr"}
        assert "plain,trial" in cluster.run().stdout
    finally:
        for name in ("_DTFCTL_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
            del cluster.environment[name]


def test_the_doctor_finds_what_is_wrong(cluster, tmp_path):
    findings = json.loads(cluster.run("doctor", "-o", "json").stdout)
    assert {finding["grade"] for finding in findings} <= {"ok", "doubt"}
    assert {"python", "open files", "ports", "state folder", "cluster file"} <= {each["subject"] for each in findings}
    bad = tmp_path / "bad.yaml"
    bad.write_text("program: x\nworking_dir: /no/such/folder\njobs: {w: {}}\n")
    assert re.search(r"^wrong w:0 .*/no/such/folder", cluster.run("doctor", str(bad), status=1).stdout, re.M)
    bad.write_text("jobs: {w: {replica: 1}}\n")
    assert re.search(r"^wrong cluster file .*did you mean", cluster.run("doctor", str(bad), status=1).stdout, re.M)


@pytest.mark.slow
def test_commands_on_a_cluster_that_has_ended_say_so(tmp_path):
    cluster = CommandLine(tmp_path, TALKERS)
    cluster.run("up")
    wait = cluster.start("wait")
    cluster.finish()
    assert wait.wait(20) == 0
    assert "trial succeeded after" in cluster.err()
    assert "bye" in cluster.run("logs", "worker").stdout
    for words in (["restart", "ps"], ["scale", "worker=3"], ["exec", "ps:0", "true"]):
        assert "trial is not running" in cluster.run(*words, status=3).stderr
    assert cluster.run("wait").stdout == ""
    assert cluster.run("status", "--exit-code", status=3).stdout.startswith("trial: succeeded")
    assert cluster.run("ls", "-q").stdout == ""
    assert cluster.run("ls", "-qa").stdout == "trial\n"
    wait_until(lambda: cluster.processes() == {}, "everything to end")


def test_a_status_is_there_at_once(cluster):
    """Mostly Python's own start; the live views' library and the supervisor's modules are not loaded."""
    cluster.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    try:
        modules = cluster.run("status").stderr
    finally:
        del cluster.environment["PYTHONPROFILEIMPORTTIME"]
    loaded = {line.rpartition("|")[2].strip() for line in modules.splitlines()}
    assert "dtfctl.show.view" in loaded
    assert not loaded & {"rich", "asyncio", "yaml", "grpc", "psutil", "numpy", "subprocess"}


def test_a_long_log_is_bounded_while_its_task_writes_on(tmp_path):
    text = """
name: trial
readiness: none
logs: {max_size: 64KiB, count: 2}
jobs: {worker: {program: "i=0; while [ ! -e done ]; do i=$((i+1)); echo line $i like many; done; echo bye"}}
"""
    cluster = CommandLine(tmp_path, text.replace("$((", "$$(("))
    cluster.run("up")
    log = next(cluster.state.glob("trial/runs/*/logs/worker-0.1.log"))
    wait_until(lambda: log.stat().st_size > 1 << 20, "a megabyte")
    cluster.finish()
    cluster.run("wait")
    lines = cluster.run("logs").stdout.splitlines()
    numbers = [int(line.split()[1]) for line in lines[:-1]]
    assert lines[-1] == "bye"
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] > 1000
    assert log.stat().st_blocks * 512 < 400 << 10
    assert len(cluster.run("logs", "-n", "5").stdout.splitlines()) == 5
    wait_until(lambda: cluster.processes() == {}, "everything to end")
    assert os.listdir(log.parent) == ["worker-0.1.log"]


@pytest.mark.slow
def test_hundreds_of_megabytes_a_second_lose_and_tear_no_line():
    from tests.bench.logs import measure

    for lines_at_once in (1000, 1):
        found = measure(2, lines_at_once, 2.0, "4MiB")
        assert (found["lost"], found["torn"]) == (0, 0)
        assert 94 * found["kept_lines"] > 0.9 * min(found["written_bytes"], 2 * (8 << 20))
        assert found["disk_bytes"] < 64 << 20


@pytest.mark.slow
def test_a_recorder_that_is_killed_again_and_again_loses_nothing_but_times(tmp_path):
    count = 20_000
    text = f"""
name: trial
readiness: none
logs: {{max_size: 64KiB, count: 100}}
jobs: {{worker: {{program: "for i in $$(seq {count}); do echo line $$i; [ $$((i % 500)) = 0 ] && sleep 0.05; done"}}}}
"""
    cluster = CommandLine(tmp_path, text)
    up = cluster.start("up", "--attach")
    killed = 0
    while up.poll() is None:
        for pid in cluster.processes("recorder.py"):
            os.kill(pid, signal.SIGKILL)
            killed += 1
        time.sleep(0.2)
    assert up.returncode == 0
    assert killed >= 2
    numbers = [int(line.split()[-1]) for line in cluster.out().splitlines()]
    assert numbers == list(range(1, count + 1))
    assert len(cluster.run("logs").stdout.splitlines()) == count
    wait_until(lambda: cluster.processes() == {}, "everything to end")
