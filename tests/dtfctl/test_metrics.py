"""Figures for Prometheus: what tasks report, the families, the endpoint, and the files of the example."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from dtf.wire import task_reports as there
from dtf.wire.measures import BOUNDS_S, RECEIVED, SENT, Measures
from dtfctl.errors import MetricsMissing
from dtfctl.launchers.usage import Usage
from dtfctl.logs.progress import Progress
from dtfctl.metrics import endpoint as endpoints
from dtfctl.metrics.endpoint import MetricsAddressTaken, MetricsEndpoint
from dtfctl.metrics.families import FAMILIES, exposition
from dtfctl.probes import task_reports
from dtfctl.values.history import Happening
from dtfctl.values.restarts import RestartCounts
from dtfctl.values.snapshot import take
from tests.dtfctl.test_snapshot import NOW, STATUSES, a_run
from tests.ports import free_ports
from tests.test_architecture import ROOT

EXAMPLE = ROOT / "clusters" / "monitoring"
PS = "/job:ps/replica:0/task:0 at host:2222"


def a_measured_task():
    measures = Measures()
    for direction in (SENT, RECEIVED):
        traffic = measures.traffic(PS, "tcp", direction)
        traffic.messages, traffic.bytes = 3, 700
    measures.calls("/tensorflow.WorkerService/RunGraph").add(0.003)
    measures.runs.add(0.02)
    measures.saved(0.4)
    measures.stale(4)
    measures.ask("calls_waiting", lambda: [(PS, 2), (PS.replace("2222", "2223"), 1)])
    measures.ask("queue_elements", lambda: [("input", 5)])
    measures.ask("variable_bytes", lambda: [("w", 400), ("b", 40)])
    return measures


def a_snapshot():
    report = task_reports.report_of(json.loads(json.dumps(a_measured_task().report())))
    return take(
        a_run(), STATUSES, NOW, 77.0, {"worker:0": (0.5, Usage(1.5, 2048, 3, 4))}, Progress(9, 2.5, 0.25),
        reports={"worker:0": report}, restarts_by_cause={("ps:0", "signal"): 2},
    )  # fmt: skip


def test_every_family_is_given_and_follows_the_rules_of_openmetrics():
    text, content_type = exposition(a_snapshot(), "application/openmetrics-text")
    assert content_type.startswith("application/openmetrics-text")
    found = {family.name: family for family in text_string_to_metric_families(text.decode())}
    assert found.keys() == FAMILIES.keys()
    assert {name: family.type for name, family in found.items()} == {
        name: kind for name, (kind, _, _) in FAMILIES.items()
    }
    units = {name.rpartition("_")[2] for name, family in found.items() if family.type == "histogram"}
    assert units == {"seconds"}
    assert all(re.fullmatch(r"dtf(_[a-z]+)+", name) for name in found)


def test_the_figures_are_those_of_the_snapshot():
    text = exposition(a_snapshot())[0].decode()
    for line in (
        'dtf_global_step{cluster="trial"} 9.0',
        'dtf_task_memory_bytes{cluster="trial",task="worker:0"} 2048.0',
        'dtf_task_restarts_total{cause="signal",cluster="trial",task="ps:0"} 2.0',
        'dtf_traffic_bytes_total{cluster="trial",direction="sent",peer="ps:0",task="worker:0",way="tcp"} 700.0',
        'dtf_rpc_duration_seconds_bucket{cluster="trial",le="0.0025",method="RunGraph",task="worker:0"} 0.0',
        'dtf_rpc_duration_seconds_bucket{cluster="trial",le="0.005",method="RunGraph",task="worker:0"} 1.0',
        'dtf_calls_waiting{cluster="trial",peer="ps:0",task="worker:0"} 3.0',
        'dtf_variable_bytes{cluster="trial",task="worker:0"} 440.0',
        'dtf_staleness_updates_sum{cluster="trial",task="worker:0"} 4.0',
    ):
        assert line in text.splitlines(), line


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MetricsMissing, match=r"^metrics need prometheus_client: pip install 'dtf\[metrics\]'$"):
        exposition(a_snapshot())


@pytest.mark.parametrize(
    "before, cause",
    [
        ([("ended", "exited with status 1"), ("retry", "exited with status 1")], "exit"),
        ([("ended", "killed by SIGKILL"), ("retry", "killed by SIGKILL from outside")], "signal"),
        ([("ended", "killed by SIGKILL: out of memory")], "out_of_memory"),
        ([("hangs", "no answer"), ("ended", "killed by SIGKILL")], "hung"),
        ([("notice", "preempted: the provider"), ("ended", "exited with status 143")], "preempted"),
        ([("moved", "moved from a to b"), ("ended", "killed by SIGTERM")], "moved"),
        ([("asked for", "restarted by dtfctl restart"), ("ended", "exited with status 143")], "requested"),
        ([("to restart", "its program changed"), ("ended", "exited with status 143")], "changed"),
        ([], "other"),
    ],
)
def test_a_restart_has_one_cause(before, cause):
    history = [("start", "it is in the cluster file"), *before, ("start", "again")]
    counts = RestartCounts(Happening(1.0, "ps:0", what, why, id) for id, (what, why) in enumerate(history, 1))
    assert counts.counts == {("ps:0", cause): 1}
    assert counts.last_id == len(history)


def test_both_ends_agree_on_a_report():
    reply = b"\x0a\x02xx" + there.answer(task_reports.request({"report": True, "clock": True}))
    answer = task_reports.answer_in(reply)
    assert tuple(answer["report"]["bounds_s"]) == BOUNDS_S
    assert answer["clock_ns"] > 0


@pytest.mark.parametrize("reply", [b"", b"\xff" * 40, b"\xa2\x97\x17\x03abc", b"\x0a\x02xx"])
def test_a_reply_that_cannot_be_read_says_nothing(reply):
    assert task_reports.answer_in(reply) is None


@pytest.mark.parametrize("wanted", [{"report": False}, {}, {"trace": "no"}, {"trace": {"number": "a"}}])
def test_a_request_that_makes_no_sense_changes_nothing(wanted):
    answer = task_reports.answer_in(there.answer(task_reports.request(wanted)) or b"")
    assert answer is None or "report" not in answer
    assert there.step_traces.wish is None


def serving(talk):
    """Runs `talk(endpoint, port)` with an endpoint that serves a snapshot."""

    async def look():
        return a_snapshot()

    async def run():
        (port,) = free_ports(1)
        endpoint = MetricsEndpoint(look)
        await endpoint.follow(f"127.0.0.1:{port}")
        try:
            return await talk(endpoint, port)
        finally:
            await endpoint.close()

    return asyncio.run(run())


async def said(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    found = await reader.read()
    writer.close()
    return found


@pytest.mark.parametrize(
    "request_text, status, content",
    [
        (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", b"200 OK", b"dtf_global_step"),
        (b"GET /metrics HTTP/1.1\r\nHost: LOCALHOST:1\r\n\r\n", b"200 OK", b"dtf_global_step"),
        (b"GET /metrics HTTP/1.1\r\nHost: [::1]:9464\r\n\r\n", b"200 OK", b"dtf_global_step"),
        (b"GET /metrics HTTP/1.1\r\nHost: rebound.example:9464\r\n\r\n", b"403 Forbidden", b"http://127.0.0.1:"),
        (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.example\r\n\r\n", b"403 Forbidden", b"Host"),
        (b"GET /metrics?x=1 HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n", b"200 OK", b"# EOF"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200 OK", b""),
        (b"GET /secrets HTTP/1.1\r\n\r\n", b"404 Not Found", b"/metrics"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed", b"GET"),
        (b"nonsense\r\n\r\n", b"400 Bad Request", b""),
        (b"G" * 40_000, b"400 Bad Request", b""),
    ],
)
def test_the_endpoint_answers_get_and_nothing_else(request_text, status, content):
    found = serving(lambda endpoint, port: said(port, request_text))
    assert found.startswith(b"HTTP/1.1 " + status)
    assert content in found


def test_readers_beyond_the_limit_are_sent_away_and_hold_up_nobody():
    async def talk(endpoint, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(16)]
        refused = await said(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        for _, writer in silent:
            writer.close()
        while endpoint._readers:
            await asyncio.sleep(0.01)
        return refused, await said(port, b"GET /metrics HTTP/1.1\r\n\r\n")

    refused, served = serving(talk)
    assert refused.startswith(b"HTTP/1.1 503")
    assert served.startswith(b"HTTP/1.1 200")


def test_a_reader_that_takes_nothing_of_its_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr(endpoints, "ANSWER_TIMEOUT_S", 0.01)
    monkeypatch.setattr(endpoints, "exposition", lambda *_: (bytes(64 << 20), "text/plain"))

    async def talk(endpoint, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await reader.readexactly(1)
        while endpoint._readers:
            await asyncio.sleep(0.01)
        length = 0
        with contextlib.suppress(ConnectionResetError):
            while data := await reader.read(1 << 20):
                length += len(data)
        writer.close()
        return length

    assert serving(talk) < 64 << 20


def test_an_address_in_use_is_one_line():
    async def talk(endpoint, port):
        other = MetricsEndpoint(endpoint._look)
        with pytest.raises(MetricsAddressTaken) as caught:
            await other.follow(f"127.0.0.1:{port}")
        await endpoint.follow("")
        await other.follow(f"127.0.0.1:{port}")
        await other.close()
        return port, str(caught.value)

    port, words = serving(talk)
    assert words == f"metrics: cannot listen at 127.0.0.1:{port}: the port is used by another program; choose another"


def test_a_failure_to_look_is_an_answer_and_not_the_end_of_the_supervisor():
    async def fails():
        raise RuntimeError("no")

    async def talk(endpoint, port):
        endpoint._look = fails
        return await said(port, b"GET /metrics HTTP/1.1\r\n\r\n")

    assert serving(talk).startswith(b"HTTP/1.1 500")


SUFFIXES = {
    "gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count"),
}  # fmt: skip
SAMPLES = {name + suffix for name, (kind, _, _) in FAMILIES.items() for suffix in SUFFIXES[kind]}


def test_every_metric_that_the_dashboard_names_exists():
    document = json.loads((EXAMPLE / "dashboard.json").read_text())
    targets = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    targets += [each["query"] for each in document["templating"]["list"] if each["type"] == "query"]
    named = set(re.findall(r"\bdtf_\w+", " ".join(targets)))
    assert len(named) > 15 and named <= SAMPLES
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
    labels = {label for _, _, of_family in FAMILIES.values() for label in of_family} | {"cluster", "le"}
    grouped = re.findall(r"by \(([^)]*)\)", " ".join(targets)) + re.findall(r"\{\{(\w+)\}\}", json.dumps(document))
    assert {name.strip() for text in grouped for name in text.split(",")} <= labels


def test_every_metric_that_the_alerts_name_exists():
    document = yaml.safe_load((EXAMPLE / "alerts.yml").read_text())
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    named = set(re.findall(r"\bdtf_\w+", " ".join(rule["expr"] for rule in rules)))
    assert len(named) >= 6 and named <= SAMPLES


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus' promtool is not installed")
@pytest.mark.parametrize("check", [("rules", "alerts.yml"), ("config", "prometheus.yml")])
def test_prometheus_own_tool_accepts_the_files_of_the_example(check):
    done = subprocess.run(
        ["promtool", "check", check[0], str(EXAMPLE / check[1])], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus' promtool is not installed")
def test_prometheus_own_tool_finds_no_fault_in_the_names():
    text = exposition(a_snapshot())[0]
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
