"""A short campaign of kills on each level: see tests/e2e/chaos. What it counts and compares is exact."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from tests.e2e import hosts
from tests.e2e.chaos import checks
from tests.e2e.chaos.__main__ import cluster_in
from tests.e2e.chaos.campaign import Campaign, Report, wait_until
from tests.e2e.chaos.trainer import LENGTH, NAMES, PATTERN, STEP, found_wrong


def state(step):
    values = {name: step * (step + 1) // 2 * PATTERN for name in NAMES if name.startswith("sum")}
    return {STEP: step, **values, **{name: 3 * PATTERN for name in NAMES if name.startswith("own")}}


def test_a_state_that_cannot_be_is_found():
    assert found_wrong(state(0)) == found_wrong(state(7)) == ""
    for name in NAMES[1:]:
        half = state(7)
        half[name] = half[name].copy()
        half[name][LENGTH // 2 :] += PATTERN[LENGTH // 2 :]
        assert name in found_wrong(half)
    ahead = {**state(7), "sum_2": state(8)["sum_2"]}
    assert "sum_2" in found_wrong(ahead)
    assert checks.of_checkpoint(state(7), state(8)) == ["the last checkpoint is of step 7; there was one of step 8"]


def test_lost_torn_and_doubled_lines_are_found():
    lines = ["@0123abcd 1 begins .", "dtf: words of its own", "@0123abcd 2 step 4 ."]
    assert checks.of_lines(["\n".join(lines)], {"0123abcd": 2}) == []
    assert checks.of_lines(["\n".join(lines)], {"0123abcd": 1}) == [], "its end came before it had noted the line"
    assert checks.of_lines(["\n".join(lines)], {"0123abcd": 3}) == ["0123abcd has written 3 lines; its log has 2"]
    assert checks.of_lines(["\n".join(lines[1:])], {}) == ["line 0 of 0123abcd is followed by 2"]
    assert checks.of_lines(["@0123abcd 1 beg"], {}) == ["a torn line: '@0123abcd 1 beg'"]


def test_steps_that_are_lost_or_done_twice_are_found():
    def chief(*words):
        return checks.of_chief(["\n".join(f"@0123abcd {n} {each} ." for n, each in enumerate(words, 1))], 3)

    assert chief("from 3", "step 4", "step 5", "saved 5", "from 5", "step 5", "step 6") == ([], 5)
    assert chief("from 2")[0] == ["a session begins at step 2, and 3 was saved"]
    assert chief("from 3", "step 4", "step 6")[0] == ["step 4 is followed by step 6"]
    assert chief("from 3", "step 4", "step 4")[0] == ["step 4 is followed by step 4"]


def test_ends_that_are_blamed_on_the_wrong_one_are_found():
    def events(*pairs):
        return [{"task": "ps:0", "what": what, "cause": cause} for what, cause in pairs]

    fair = events(("ended", "killed by SIGKILL"), ("retry", "killed by SIGKILL from outside; restart not counted"))
    assert checks.of_history(fair, {"ps:0": 1}) == []
    assert checks.of_history(fair, {}) == ["ps:0 died 1 times of SIGKILL, and was killed 0 times"]
    blamed = "exited with status 143; restart 1 of 5 within 10m"
    assert checks.of_history(events(("retry", blamed)), {}) == [f"ps:0 is blamed: {blamed}"]
    assert checks.of_history(events(("ended", "exited with status 1")), {}) == ["ps:0 crashed: exited with status 1"]
    assert checks.of_restarts(events(("start", ""), ("start", "")), {"ps:0": 1}) == []
    assert checks.of_restarts(events(("start", "")), {"ps:0": 1}) == ["ps:0 has 1 restarts, and was started 1 times"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("security", "where", "kills"),
    [("none", "local", 12), ("tls", "local", 6), ("tls", "namespaces", 6)],
)
def test_kills_lose_nothing(tmp_path, security, where, kills):
    if security == "tls":
        pytest.importorskip("cryptography")
    if where == "namespaces" and hosts.why_not():
        pytest.skip(f"no machines of their own: {hosts.why_not()}")
    report = Report()
    with cluster_in(tmp_path, security, where) as cluster:
        Campaign(cluster, 1, kills, report, lambda words: print(words, file=sys.stderr)).run()
    assert report.kills >= kills and report.runs >= 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_chief_that_is_stopped_for_half_a_minute_goes_on_with_its_session(tmp_path):
    """Longer than a client may be without a connection (DTF_CLIENT_GRACE_S), and than gRPC waits for an answer."""
    with cluster_in(tmp_path, "none", "local") as cluster:
        campaign = Campaign(cluster, 1, 0, Report())
        cluster.run("up")
        wait_until(lambda: cluster.progress()[2] >= 3, "the first steps")
        (chief,) = cluster.roles()["chief"]
        os.kill(chief, signal.SIGSTOP)
        time.sleep(30)  # the time is the subject
        reached = cluster.progress()[2]
        os.kill(chief, signal.SIGCONT)
        wait_until(lambda: cluster.progress()[2] > reached + 20, "the training to go on")
        assert cluster.roles()["chief"] == [chief]
        campaign.finish()
