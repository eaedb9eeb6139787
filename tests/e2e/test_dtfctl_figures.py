"""What others see of a real cluster: Prometheus' figures, messages to commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from urllib.parse import quote

import pytest

from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.ports import free_ports
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

TRAINING = """
name: trial
program: python {digits}/trainer.py {{cluster_flags}} --checkpoint_dir={{checkpoint_dir}} --train_steps=1000000
checkpoint_dir: checkpoints
metrics: {metrics}
notify:
  restarted: cat >> notices.jsonl
jobs: {{ps: 1, worker: 2}}
"""


MAY_BE_EMPTY = re.compile(
    r"== [01]\b|> 0$|> 3$|> 3600|staleness|queue_elements|checkpoint|increase\(|rate\(|changes\("
)
"""Queries that find nothing in a young and healthy training."""


def answer(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
        return json.load(response)["data"]


def asked(port, path, query):
    return answer(port, f"{path}?query={query}")["result"]


def expressions():
    folder = ROOT / "clusters" / "monitoring"
    panels = json.loads((folder / "dashboard.json").read_text())["panels"]
    rules = re.findall(r"^ +expr: (.+)$", (folder / "alerts.yml").read_text(), re.MULTILINE)
    found = [target["expr"].replace("$cluster", "trial") for panel in panels for target in panel["targets"]]
    return [*found, *rules]


@pytest.fixture
def training(tmp_path):
    (port,) = free_ports(1)
    text = TRAINING.format(digits=ROOT / "clusters" / "digits", metrics=port)
    cluster = CommandLine(tmp_path, text)
    cluster.environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'runtime'}"
    cluster.metrics = port
    cluster.run("up")
    yield cluster
    cluster.run("down", "--timeout", "1")


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_a_real_prometheus_reads_a_training_and_sees_a_restart(training, tmp_path):
    (port,) = free_ports(1)
    config = (ROOT / "clusters" / "monitoring" / "prometheus.yml").read_text()
    config = config.replace("9464", str(training.metrics)).replace("5s", "1s")
    (tmp_path / "prometheus.yml").write_text(config)
    shutil.copy(ROOT / "clusters" / "monitoring" / "alerts.yml", tmp_path)
    with open(tmp_path / "prometheus.log", "w") as log:
        prometheus = subprocess.Popen(
            [
                "prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:

        def value(query):
            try:
                found = asked(port, "/api/v1/query", query)
            except OSError:
                return 0.0
            return sum(float(each["value"][1]) for each in found)

        wait_until(lambda: value("up") == 1, "the first scrape")
        wait_until(lambda: value("dtf_task_ready") == 3, "all tasks ready")
        wait_until(lambda: value("dtf_global_step") > 0, "a global step")
        wait_until(lambda: value('dtf_traffic_bytes_total{peer="ps:0",direction="sent"}') > 10_000, "traffic to the ps")
        wait_until(lambda: value("dtf_session_run_duration_seconds_count") > 10, "runs of sessions")
        wait_until(lambda: value("dtf_loss") > 0 and value("dtf_steps_per_second") > 0, "the loss and the rate")
        # Each query of the dashboard and of the alerts is answered, and those of a healthy training have values.
        empty = {expression for expression in expressions() if not asked(port, "/api/v1/query", quote(expression))}
        assert empty <= {expression for expression in expressions() if MAY_BE_EMPTY.search(expression)}, empty
        alerts = answer(port, "/api/v1/rules")["groups"][0]["rules"]
        assert len(alerts) >= 8 and all(rule["health"] == "ok" and not rule.get("lastError") for rule in alerts)
        os.kill(next(task["pid"] for task in training.status()["tasks"] if task["name"] == "ps:0"), signal.SIGKILL)
        wait_until(lambda: value('dtf_task_restarts_total{task="ps:0",cause="signal"}') == 1, "the restart")
    finally:
        prometheus.terminate()
        prometheus.wait(30)
    notices = wait_until(lambda: (training.folder / "notices.jsonl").read_text(), "the message")
    assert [(each["event"], each["task"], each["cause"]) for each in map(json.loads, notices.splitlines())] == [
        ("restarted", "ps:0", "signal")
    ]


def test_the_same_figures_are_printed_once_and_another_supervisor_gives_them_on(training):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    wanted = {"dtf_cluster_state", "dtf_task_memory_bytes", "dtf_traffic_bytes", "dtf_rpc_duration_seconds"}

    def has_all():
        printed = training.run("metrics").stdout
        return wanted <= {family.name for family in text_string_to_metric_families(printed)}

    wait_until(has_all, "the figures of a training that has begun")
    address = f"http://127.0.0.1:{training.metrics}/metrics"
    with urllib.request.urlopen(address, timeout=10) as response:
        assert b"dtf_task_ready" in response.read()
    os.kill(training.supervisor(), signal.SIGKILL)

    def read():
        training.run("status")
        with urllib.request.urlopen(address, timeout=10) as response:
            return response.read()

    wait_until(read, "the figures of the next supervisor")


def test_another_address_is_used_from_the_next_up_on_and_no_task_restarts(training):
    (port,) = free_ports(1)
    before = {task["name"]: task["pid"] for task in training.status()["tasks"]}
    training.run("up", "--set", f"metrics={port}")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        assert b"dtf_task_ready" in response.read()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{training.metrics}/metrics", timeout=10)
    assert {task["name"]: task["pid"] for task in training.status()["tasks"]} == before


def test_an_address_in_use_keeps_the_cluster_from_starting_with_one_line(training, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    text = f"{{name: other, program: sleep 100, metrics: {training.metrics}, jobs: {{a: 1}}}}"
    (other / "cluster.yaml").write_text(text)
    done = training.run("up", str(other / "cluster.yaml"), status=1)
    place = f"127.0.0.1:{training.metrics}"
    assert f"metrics: cannot listen at {place}: the port is used by another program" in done.stderr
    assert training.run("status", "other", status=None).returncode != 0
