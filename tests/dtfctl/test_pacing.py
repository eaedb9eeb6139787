"""Reports in turn become rates, shares and waits; a restarted task begins anew."""

from __future__ import annotations

import pytest

from dtfctl.ui.pacing import RUNS_WINDOW_S, Pacing
from dtfctl.values.report import TaskReport, Times


def report(runs=0, run_s=0.0, saves=0, save_s=0.0, answered_s=0.001, **values):
    return TaskReport(
        runs=Times(run_s, (runs,)), saves=Times(save_s, (saves,)), values=values, answered_s=answered_s
    )  # fmt: skip


def pace_after(*reports, every_s=5.0, task="worker:0"):
    pacing = Pacing()
    for number, each in enumerate(reports):
        pacing.take({(task, 1): each}, 100.0 + every_s * number)
    return pacing.paces[task]


def test_one_report_gives_no_rate():
    pace = pace_after(report(runs=10, run_s=1.0))
    assert (pace.runs, pace.runs_per_s, pace.run_s, pace.outside_s, pace.answer_s) == (10, None, None, None, None)


def test_rates_are_those_between_the_reports():
    pace = pace_after(report(runs=10, run_s=1.0), report(runs=20, run_s=2.0), report(runs=30, run_s=3.0))
    assert (pace.runs_per_s, pace.run_s) == (2.0, pytest.approx(0.1))
    assert pace.outside_s == pytest.approx(0.4)
    assert pace.idle_s == 0.0


def test_the_time_without_a_run_is_counted_from_the_last_change():
    pace = pace_after(*[report(runs=10)] * 4, report(runs=11), report(runs=11), report(runs=11))
    assert pace.idle_s == 10.0


def test_only_the_last_half_minute_counts_for_runs_and_more_for_saves():
    reports = [report(runs=100 * n, saves=n // 4, save_s=2.0 * (n // 4)) for n in range(9)] + [report(900, 0, 2, 4.0)]
    pace = pace_after(*reports, report(runs=900, saves=2, save_s=4.0))
    assert pace.runs_per_s == pytest.approx(400 / RUNS_WINDOW_S)
    assert (pace.saves, pace.save_s, pace.save_part) == (2, 2.0, pytest.approx(4 / 50))


def test_the_fastest_of_the_last_answers_counts_and_waits_are_the_last_ones():
    slow = [report(answered_s=each, queue_waits_s={"input": 3.0}) for each in (0.5, 0.02, 0.3)]
    pace = pace_after(*slow)
    assert pace.answer_s == 0.02 and pace.waits_s == {"input": 3.0}


def test_another_process_of_a_task_begins_anew_and_a_silent_one_is_forgotten():
    pacing = Pacing()
    pacing.take({("ps:0", 1): report(runs=50)}, 0.0)
    pacing.take({("ps:0", 2): report(runs=1)}, 5.0)
    assert pacing.paces["ps:0"].runs == 1
    pacing.take({}, 10.0)
    assert "ps:0" in pacing.paces
    pacing.take({}, 10.0 + RUNS_WINDOW_S)
    assert pacing.paces == {}
