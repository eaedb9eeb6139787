"""The life of a task, line by line."""

from __future__ import annotations

import json

import pytest

from dtfctl.values import state
from dtfctl.values.task import Exit, Life, TaskStatus, Then


@pytest.mark.parametrize(("line", "target"), state.TRANSITIONS.items(), ids=lambda value: str(value))
def test_every_line_of_the_table_leads_from_a_known_state_to_a_known_state(line, target):
    source, event = line
    assert source in state.STATES and target in state.STATES
    assert state.after(source, event) == target


def test_what_has_ended_stays_ended_unless_somebody_wants_it_again():
    assert {event for source, event in state.TRANSITIONS if source in state.ENDED} == {"renew"}


def test_what_has_a_process_is_not_renewed_before_that_has_ended():
    renewed = {source for source, event in state.TRANSITIONS if event == "renew"}
    assert renewed == {state.EXITED, state.BACKOFF, *state.ENDED}


def test_every_state_can_be_reached_and_every_other_one_can_be_left():
    assert set(state.TRANSITIONS.values()) | {state.PENDING} == set(state.STATES)
    assert {source for source, _ in state.TRANSITIONS} | state.ENDED == set(state.STATES)


def test_an_event_that_the_table_does_not_have_is_a_programmers_error():
    with pytest.raises(state.IllegalTransition, match="a task that is succeeded cannot start"):
        state.after(state.SUCCEEDED, "start")


def test_a_new_process_starts_with_nothing_of_the_last_one():
    former = TaskStatus(
        "worker:0",
        state.BACKOFF,
        generation=3,
        restarts=2,
        pid=7,
        started_at=1.0,
        ready_at=2.0,
        next_start_at=3.0,
        stop_at=4.0,
        stop_why="asked",
        after_stop=Then.RENEW,
        kill_at=5.0,
        renew="asked",
        ailing="hangs",
    )
    assert former.starting("a", is_restart=True) == TaskStatus(
        "worker:0", state.STARTING, generation=4, restarts=3, host="a", restart_reason="asked"
    )


def test_what_was_found_of_a_process_ends_with_it():
    status = TaskStatus(
        "ps:0", state.STARTING, 1, pid=7, waiting_for="a port", ailing="hangs", stalled="no step", stalled_since=1.0
    )
    assert status.ended(Exit(9.0, 1)) == TaskStatus("ps:0", state.EXITED, 1, exit=Exit(9.0, 1))


def test_a_renewed_task_has_no_history():
    failed = TaskStatus("ps:0", state.GAVE_UP, 3, failures=(1.0,), preemptions=(2.0,), alike=2, former=Life("x", 1.0))
    assert failed.renewed("asked") == TaskStatus("ps:0", state.PENDING, 3, reason="asked")


def test_a_word_is_its_text():
    assert f"{Then.RETRY:<7}|{Then.RETRY}|" + json.dumps([Then.RETRY]) == 'retry  |retry|["retry"]'
    assert {"retry": 1}[Then.RETRY] == 1
