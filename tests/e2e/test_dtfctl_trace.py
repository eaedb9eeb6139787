"""One step over all tasks of a real training: the file of `trace`, and what `explain` finds of made-up faults."""

from __future__ import annotations

import json

import pytest

from tests.e2e.dtfctl_cluster import ROOT, CommandLine

pytestmark = pytest.mark.slow

TRAINING = """
name: trial
program: python {trainer} {case}
jobs: {{ps: {ps}, worker: {workers}}}
"""
CASES = {
    "hot": (2, 1, {("hot ps", "ps:0", "table")}),
    "slow": (1, 2, {("slow worker", "worker:1", "")}),
    "large": (1, 1, {("large variable", "worker:0", "table")}),
    "small": (1, 1, {("small batch", "worker:0", "")}),
}
"""(parameter servers, workers, what must be found) of each case of imbalanced_trainer.py."""


@pytest.mark.parametrize("case", CASES)
def test_a_fault_made_on_purpose_is_found(case, tmp_path):
    ps, workers, wanted = CASES[case]
    trainer = ROOT / "tests" / "e2e" / "imbalanced_trainer.py"
    cluster = CommandLine(tmp_path, TRAINING.format(trainer=trainer, case=case, ps=ps, workers=workers))
    cluster.environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'runtime'}"
    cluster.timeout_s = 120.0
    cluster.run("up")
    try:
        cluster.run("trace", "--steps", "4", "-o", "trace.json")
        document = json.loads((cluster.folder / "trace.json").read_text())
        found = {(each["what"], each["task"], each["variable"]) for each in document["dtf"]["explanation"]["findings"]}
        words = cluster.run("explain", "-i", "trace.json").stdout
        assert wanted <= found, words
        assert "try: " in words and "a step takes" in words
        check_events(document, workers)
    finally:
        cluster.run("down", "--timeout", "0")


def check_events(document, workers):
    """What every trace has: tasks by name, steps, messages from both ends in order, a path that fills each step."""
    events = document["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {"critical path", "ps:0", *(f"worker:{index}" for index in range(workers))} <= names
    flows = {}
    for event in events:
        if event.get("cat") == "message":
            flows.setdefault(event["id"], {})[event["ph"]] = event
    assert flows and all(flow.keys() == {"s", "f"} for flow in flows.values())
    assert all(flow["s"]["pid"] != flow["f"]["pid"] and flow["s"]["ts"] <= flow["f"]["ts"] for flow in flows.values())
    steps = [step for step in document["dtf"]["steps"] if step["is_main"]]
    assert {step["client"] for step in steps} == {f"worker:{index}" for index in range(workers)}
    for step in steps:
        at_us = step["start_us"]
        for part in step["path"]:
            assert part["start_us"] == pytest.approx(at_us, abs=0.01)
            at_us = part["start_us"] + part["duration_us"]
        assert at_us == pytest.approx(step["start_us"] + step["duration_us"], abs=0.01)
    assert any(event.get("args", {}).get("critical") for event in events)


def test_without_a_training_one_line_says_why(tmp_path):
    cluster = CommandLine(tmp_path, "{name: idle, program: sleep 100, readiness: none, jobs: {worker: {port: none}}}")
    assert "was never up" in cluster.run("trace", status=4).stderr
    cluster.run("up")
    try:
        assert cluster.run("explain", status=1).stderr == "error: idle: no task is ready that could be traced\n"
    finally:
        cluster.run("down", "--timeout", "0")
    assert "idle is not running" in cluster.run("explain", status=3).stderr
    (cluster.folder / "x.json").write_text("[]")
    assert cluster.run("explain", "-i", "x.json", status=1).stderr == "error: not a file of dtfctl trace\n"
