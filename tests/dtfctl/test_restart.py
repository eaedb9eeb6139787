"""The restart decision as a table: policy and history in, decision out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dtfctl.supervise.restart import decide, remembering
from dtfctl.values.plan import RestartPolicy
from dtfctl.values.task import Exit, TaskStatus

CRASH = {"code": 1}
CLEAN = {"code": 0}
KILLED = {"signal": 9}


def ended(how, at=1000.0, ready_at=None, failures=()):
    return TaskStatus("worker:0", "exited", exit=Exit(at, **how), ready_at=ready_at, failures=tuple(failures))


@pytest.mark.parametrize(
    ("policy", "how", "event", "reason"),
    [
        ("on-failure", CLEAN, "succeed", "exited with status 0"),
        ("never", CLEAN, "succeed", "exited with status 0"),
        ("always", CLEAN, "retry", "exited with status 0; restart 1 of 5 within 10m"),
        ("on-failure", CRASH, "retry", "exited with status 1; restart 1 of 5 within 10m"),
        ("on-failure", KILLED, "retry", "killed by SIGKILL; restart 1 of 5 within 10m"),
        (
            "on-failure",
            {"error": "could not be started: x"},
            "retry",
            "could not be started: x; restart 1 of 5 within 10m",
        ),
        ("always", KILLED, "retry", "killed by SIGKILL; restart 1 of 5 within 10m"),
        ("never", KILLED, "fail", "killed by SIGKILL (restart: never)"),
        ("exit-code", KILLED, "retry", "killed by SIGKILL; restart 1 of 5 within 10m"),
        ("exit-code", {"code": 143}, "retry", "exited with status 143; restart 1 of 5 within 10m"),
        (
            "exit-code",
            CRASH,
            "fail",
            "exited with status 1 (not among the exit codes that are retried)",
        ),
        ("exit-code", CLEAN, "succeed", "exited with status 0"),
        ("exit-code", {"error": "was lost"}, "retry", "was lost; restart 1 of 5 within 10m"),
    ],
)
def test_the_policy_decides_what_an_end_means(policy, how, event, reason):
    decision = decide(RestartPolicy(policy), ended(how), 0.0)
    assert (decision.event, decision.reason) == (event, reason)


def test_the_first_restart_of_a_task_that_had_been_ready_is_immediate_and_that_of_another_is_not():
    policy = RestartPolicy(backoff_s=0.5)
    assert decide(policy, ended(KILLED, ready_at=999.0), 0.0).delay_s == 0.0
    assert decide(policy, ended(KILLED), 0.0).delay_s == 0.5


def test_a_crash_loop_waits_twice_as_long_each_time_and_is_given_up_at_the_end():
    policy = RestartPolicy(attempts=7, backoff_s=0.5, backoff_max_s=8.0)
    failures: tuple[float, ...] = ()
    delays = []
    now = 1000.0
    while (decision := decide(policy, ended(CRASH, at=now, failures=failures), 0.0)).event == "retry":
        failures = decision.failures
        delays.append(decision.delay_s)
        now += decision.delay_s
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert decision.event == "give-up"
    assert decision.reason == "exited with status 1; gave up after 7 restarts within 10m"


def test_jitter_stretches_a_delay_by_at_most_a_quarter():
    policy = RestartPolicy(backoff_s=4.0)
    assert decide(policy, ended(CRASH), 0.5).delay_s == 4.5
    assert 4.99 < decide(policy, ended(CRASH), 0.999).delay_s < 5.0


def test_failures_older_than_the_window_are_forgiven():
    policy = RestartPolicy(attempts=2, window_s=60)
    assert decide(policy, ended(CRASH, failures=(990, 995)), 0.0).event == "give-up"
    decision = decide(policy, ended(CRASH, failures=(930, 995)), 0.0)
    assert decision.event == "retry"
    assert decision.failures == (995, 1000.0)


def test_a_task_that_was_healthy_for_long_enough_begins_anew():
    policy = RestartPolicy(attempts=2, healthy_s=60)
    decision = decide(policy, ended(CRASH, ready_at=940.0, failures=(900, 930)), 0.0)
    assert (decision.event, decision.delay_s, decision.failures) == ("retry", 0.0, (1000.0,))
    assert decide(policy, ended(CRASH, ready_at=941.0, failures=(900, 930)), 0.0).event == "give-up"


def test_no_attempts_at_all_gives_up_at_the_first_failure():
    assert decide(RestartPolicy(attempts=0), ended(CRASH), 0.0).event == "give-up"


def test_thousands_of_attempts_do_not_overflow_the_backoff():
    failures = tuple(1000.0 - number / 1000 for number in range(5000, 0, -1))
    decision = decide(RestartPolicy(attempts=10_000), ended(CRASH, failures=failures), 0.0)
    assert decision.delay_s == 30.0


# -- preemption


@pytest.mark.parametrize(
    ("how", "ready_at", "reason"),
    [
        ({"signal": 9}, 990.0, "killed by SIGKILL from outside; restart not counted"),
        ({"signal": 15}, 990.0, "killed by SIGTERM from outside; restart not counted"),
        ({"code": 143}, 990.0, "exited with status 143 from outside; restart not counted"),
        ({"signal": 1}, 990.0, "killed by SIGHUP from outside; restart not counted"),
        ({"signal": 15, "preempted": "preempted: notice"}, None, "preempted: notice; restart not counted"),
        ({"code": 0, "preempted": "preempted: notice"}, None, "preempted: notice; restart not counted"),
        ({"signal": 9}, None, "killed by SIGKILL; restart 1 of 5 within 10m"),
        ({"signal": 11}, 990.0, "killed by SIGSEGV; restart 1 of 5 within 10m"),
        ({"signal": 6}, 990.0, "killed by SIGABRT; restart 1 of 5 within 10m"),
        ({"code": 1}, 990.0, "exited with status 1; restart 1 of 5 within 10m"),
        (
            {"signal": 9, "is_out_of_memory": True},
            990.0,
            "killed by SIGKILL: out of memory; restart 1 of 5 within 10m",
        ),
    ],
)
def test_a_preemption_is_told_apart_from_a_crash(how, ready_at, reason):
    decision = decide(RestartPolicy(), ended(how, ready_at=ready_at), 0.0)
    assert (decision.event, decision.reason) == ("retry", reason)
    assert bool(decision.failures) is not reason.endswith("not counted")


def test_no_number_of_preemptions_is_too_many_but_each_waits_longer_than_the_one_before():
    status = ended({"signal": 15}, ready_at=999.9)
    delays = []
    for _ in range(9):
        decision = decide(RestartPolicy(attempts=2), status, 0.0)
        delays.append(decision.delay_s)
        status = replace(status, preemptions=decision.preemptions, failures=decision.failures)
    assert (decision.event, decision.failures) == ("retry", ())
    assert delays == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_who_must_never_be_restarted_is_not_after_a_preemption_either():
    decision = decide(RestartPolicy("never"), ended({"signal": 15}, ready_at=990.0), 0.0)
    assert (decision.event, decision.reason) == ("fail", "killed by SIGTERM (restart: never)")


# -- failures that look the same


def loop(policy, lives):
    """Plays failures, each (how, seconds lived), and returns the decisions."""
    status = TaskStatus("worker:0", "exited")
    now = 1000.0
    decisions = []
    for how, lived in lives:
        status = replace(status, started_at=now, exit=Exit(now + lived, **how))
        decision = decide(policy, status, 0.0)
        decisions.append(decision)
        status = remembering(status, decision)
        now += lived + decision.delay_s
    return decisions


@pytest.mark.parametrize(
    ("lives", "events"),
    [
        ([(CRASH, 0.3)] * 4, ["retry", "retry", "retry", "give-up"]),
        ([(CRASH, 5.0), (CRASH, 5.8), (CRASH, 4.8), (CRASH, 5.4)], ["retry", "retry", "retry", "give-up"]),
        ([(CRASH, 0.3), (CRASH, 0.3), (CRASH, 0.3), ({"code": 2}, 0.3)], ["retry"] * 4),
        ([(CRASH, 0.3), (CRASH, 0.3), (CRASH, 0.3), (CRASH, 3.0)], ["retry"] * 4),
        ([(CRASH, 60.0)] * 5, ["retry"] * 5),
        ([({"signal": 11}, 0.1)] * 4, ["retry", "retry", "retry", "give-up"]),
        ([({"error": "could not be started: x"}, 0.0)] * 4, ["retry", "retry", "retry", "give-up"]),
    ],
)
def test_the_same_end_after_the_same_short_time_over_and_over_is_given_up_early(lives, events):
    assert [decision.event for decision in loop(RestartPolicy(), lives)] == events


def test_what_was_given_up_early_says_so_within_four_seconds_of_waiting():
    decisions = loop(RestartPolicy(), [(CRASH, 0.3)] * 4)
    assert sum(decision.delay_s for decision in decisions) == 3.5
    assert decisions[-1].reason == "exited with status 1; gave up: failed 4 times in a row after about 0.3s"


def test_alike_of_zero_gives_every_attempt_its_chance():
    policy = RestartPolicy(attempts=6, alike=0)
    assert [decision.event for decision in loop(policy, [(CRASH, 0.3)] * 7)] == ["retry"] * 6 + ["give-up"]


# -- failures that another start cannot heal

IMPORT = "Traceback (most recent call last):\n  ...\nModuleNotFoundError: No module named 'x'"
ABSENT = "Traceback (most recent call last):\n  ...\nFileNotFoundError: [Errno 2] No such file or directory: 'words'"
REFUSED = "Traceback (most recent call last):\n  ...\nConnectionRefusedError: [Errno 111] Connection refused"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"code": 127}, "exited with status 127; gave up: the program is not found"),
        ({"code": 126}, "exited with status 126; gave up: the program cannot be executed"),
        (
            {"error": "could not be started: train: No such file or directory"},
            "could not be started: train: No such file or directory; gave up: a restart cannot fix that",
        ),
        (
            {"code": 1, "traceback": IMPORT},
            "exited with status 1; gave up: ModuleNotFoundError: No module named 'x' (a restart cannot fix that)",
        ),
        (
            {"code": 1, "traceback": "/usr/bin/python3: No module named nosuch"},
            "exited with status 1; gave up: /usr/bin/python3: No module named nosuch (a restart cannot fix that)",
        ),
    ],
)
def test_what_cannot_heal_is_given_up_at_once(how, reason):
    decision = decide(RestartPolicy(), ended(how), 0.0)
    assert (decision.event, decision.reason) == ("give-up", reason)


def test_the_same_traceback_twice_before_readiness_is_given_up():
    how = {"code": 1, "traceback": ABSENT}
    first, second = loop(RestartPolicy(), [(how, 2.0), (how, 60.0)])
    assert first.event == "retry"
    assert second.event == "give-up" and "the same traceback twice, before it was ready" in second.reason


@pytest.mark.parametrize(
    "hows",
    [
        [{"code": 1, "traceback": REFUSED}] * 2,
        [{"code": 1, "traceback": ABSENT}, {"code": 1, "traceback": f"{ABSENT}2"}],
        [{"error": "could not be started: train: Resource temporarily unavailable"}] * 2,
        [{"signal": 9, "is_out_of_memory": True}] * 2,
    ],
)
def test_what_may_pass_is_tried_again(hows):
    assert [each.event for each in loop(RestartPolicy(), [(how, 1.0) for how in hows])] == ["retry", "retry"]


def test_what_had_answered_or_was_taken_away_is_tried_again():
    answered = ended({"code": 1, "traceback": IMPORT}, ready_at=999.0)
    assert decide(RestartPolicy(), answered, 0.0).event == "retry"
    preempted = ended({"code": 127, "preempted": "the host is lost"})
    assert decide(RestartPolicy(), preempted, 0.0).event == "retry"


def test_a_task_that_nobody_asks_has_answered_once_it_has_lived_for_a_while():
    status = replace(ended({"code": 127}, ready_at=999.0), started_at=999.0)
    assert decide(RestartPolicy(), status, 0.0, is_asked=False).event == "give-up"
    assert decide(RestartPolicy(), replace(status, started_at=900.0), 0.0, is_asked=False).event == "retry"


def test_alike_of_zero_tries_even_what_cannot_heal():
    assert decide(RestartPolicy(alike=0), ended({"code": 127}), 0.0).event == "retry"


def test_exit_codes_that_the_user_names_are_tried_again():
    policy = RestartPolicy("exit-code", codes=((127, 127),))
    assert decide(policy, ended({"code": 127}), 0.0).event == "retry"
