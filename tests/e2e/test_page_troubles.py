"""Troubles beside the five usual ones, made with real trainings: the page alone says within a minute what is wrong."""

from __future__ import annotations

import sys
import time

import pytest

from tests.e2e.chromium import IS_THERE, WHY_NONE, Browser
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.e2e.page import PageProcess
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_THERE, reason=WHY_NONE)]

TRAINER = ROOT / "tests" / "e2e" / "troubled_trainer.py"
CLUSTER = """
name: {case}
program: {python} {trainer} {case} {{checkpoint_dir}}
checkpoint_dir: checkpoints-{case}
environment: {{OPENBLAS_NUM_THREADS: "1"}}
jobs: {{ps: 1, worker: {workers}}}
"""
CASES = {
    "queue": (1, "starved", "waits for an element of the queue input on ps:0, and nobody fills it"),
    "diverge": (1, "diverging", "The loss grows: about"),
    "saves": (1, "slow-saves", "Checkpoints take too long: worker:0 saves for"),
    "pause": (2, "straggler", "worker:1 holds the others up: it spends"),
}
"""(workers, the kind of the finding, words of it) of each case of troubled_trainer.py."""


@pytest.mark.timeout(300)
def test_the_page_says_within_a_minute_which_of_four_trainings_has_which_trouble(tmp_path):
    clusters = CommandLine(tmp_path, "")
    clusters.environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'runtime'}"
    for case, (workers, _, _) in CASES.items():
        text = CLUSTER.format(case=case, python=sys.executable, trainer=TRAINER, workers=workers)
        (clusters.folder / f"{case}.yaml").write_text(text)
    try:
        starting = [clusters.start("up", f"{case}.yaml") for case in CASES]
        assert [process.wait(100) for process in starting] == [0] * len(CASES), clusters.err()
        with PageProcess(clusters.state, "--read-only") as page, Browser() as browser:
            tabs = {case: browser.tab() for case in CASES}
            for case, tab in tabs.items():
                browser.turn_to(tab)
                browser.open(f"{page.address}#{case}/overview")
            begun = time.monotonic()
            for case, (_, kind, words) in CASES.items():
                browser.turn_to(tabs[case])
                said = "document.querySelector(arguments[0])?.textContent.includes(arguments[1])"
                browser.wait_for(said, f"the page to say {words}", f"#wrong li[data-kind={kind}]", words, timeout_s=150)
            assert time.monotonic() - begun < 150  # on an idle machine within a minute
    finally:
        for case in CASES:
            clusters.run("down", case, "--purge", status=None)
    wait_until(lambda: not clusters.processes(), "all processes to end")
