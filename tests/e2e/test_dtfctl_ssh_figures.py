"""Figures and traces of a cluster on other machines, whose tasks talk by TLS; machines as in hosts.py."""

from __future__ import annotations

import json

import pytest

from tests.e2e import hosts
from tests.e2e.dtfctl_cluster import ROOT
from tests.e2e.test_dtfctl_ssh import RemoteCluster
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(hosts.why_not()), reason=f"no machines of their own: {hosts.why_not()}"),
]

TRAINING = f"""
name: trial
python: %(python)s
security: tls
program: [python, "{ROOT}/tests/e2e/imbalanced_trainer.py", large]
environment: {{PYTHONPATH: "{ROOT}/runtime"}}
hosts:
  node[1-2]: {{address: "10.77.0.[1-2]", working_dir: ~/trial}}
jobs:
  ps: {{hosts: node1}}
  worker: {{hosts: node2}}
"""


def is_counted(figures: str) -> bool:
    """Whether the worker has told how much it has sent to the parameter server."""
    lines = [line for line in figures.splitlines() if line.startswith("dtf_traffic_bytes_total{")]
    return any('peer="ps:0"' in line and 'task="worker:0"' in line for line in lines)


def test_figures_and_a_trace_are_taken_over_ssh_and_tls(tmp_path):
    with hosts.Laboratory(tmp_path, 2) as laboratory:
        laboratory.boot()
        cluster = RemoteCluster(tmp_path, laboratory, TRAINING)
        cluster.timeout_s = 120.0
        try:
            cluster.run("up")
            wait_until(lambda: is_counted(cluster.run("metrics").stdout), "the figures of the worker")
            cluster.run("trace", "--steps", "3", "-o", "trace.json")
            document = json.loads((cluster.folder / "trace.json").read_text())
            names = {event["args"]["name"] for event in document["traceEvents"] if event["name"] == "process_name"}
            assert {"critical path", "ps:0", "worker:0"} <= names
            assert ("large variable", "table") in {
                (each["what"], each["variable"]) for each in document["dtf"]["explanation"]["findings"]
            }
        finally:
            cluster.run("down", "--timeout", "0", status=None)
