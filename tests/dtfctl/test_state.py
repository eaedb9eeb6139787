"""The life of a task, line by line."""

from __future__ import annotations

import pytest

from dtfctl import state


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
