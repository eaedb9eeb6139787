"""Where the tensors of a step change hands."""

from __future__ import annotations

import pytest

from dtf.run.exchange.rendezvous import Rendezvous, StepRendezvous, make_key, parse_key
from dtf.wire import errors

PS = "/job:ps/replica:0/task:0/device:CPU:0"
WORKER = "/job:worker/replica:0/task:1/device:CPU:0"
KEY = make_key(PS, 1, WORKER, "edge_7_w")


class Inbox:
    """Takes what a receive is answered with."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self.errors: list[errors.OpError] = []

    def __call__(self, value: object = None, error: errors.OpError | None = None) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.values.append(value)


def test_a_key_has_five_parts_and_an_unsigned_incarnation():
    assert make_key(PS, -1, WORKER, "edge_7_w") == f"{PS};ffffffffffffffff;{WORKER};edge_7_w;0:0"
    parsed = parse_key(make_key(PS, -1, WORKER, "edge_7_w", "2:3"))
    assert parsed.source_incarnation == 0xFFFFFFFFFFFFFFFF
    assert parsed.source_task == "/job:ps/replica:0/task:0"
    assert (parsed.destination_device, parsed.tensor_name, parsed.frame_iteration) == (WORKER, "edge_7_w", "2:3")


@pytest.mark.parametrize("key", ["", "a;b;c", f"{PS};zz;{WORKER};x;0:0", f";1;{WORKER};x;0:0", KEY + ";more"])
def test_a_malformed_key_is_an_invalid_argument(key):
    with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key"):
        parse_key(key)


def test_a_value_arrives_whoever_comes_first():
    step, early, late = StepRendezvous(1), Inbox(), Inbox()
    step.recv("a", early)
    assert early.values == []
    step.send("a", 1)
    step.send("b", 2)
    step.recv("b", late)
    assert (early.values, late.values) == ([1], [2])


def test_a_key_is_sent_and_received_once():
    step = StepRendezvous(1)
    step.send("a", 1)
    with pytest.raises(errors.InternalError, match="Duplicate send"):
        step.send("a", 1)
    first, second = Inbox(), Inbox()
    step.recv("b", first)
    step.recv("b", second)
    assert "Duplicate receive" in second.errors[0].message
    assert step.take("a") == 1
    with pytest.raises(KeyError):
        step.take("a")


def test_an_abort_reaches_those_who_wait_and_those_who_come_later():
    step, waiting, later = StepRendezvous(1), Inbox(), Inbox()
    reason = errors.UnavailableError.of("worker 1 is gone")
    step.recv("a", waiting)
    step.abort(reason)
    step.abort(errors.InternalError.of("too late to matter"))
    step.recv("b", later)
    assert waiting.errors == later.errors == [reason]
    with pytest.raises(errors.UnavailableError):
        step.send("c", 1)


def test_a_receive_can_be_taken_back_until_it_is_answered():
    step, inbox = StepRendezvous(1), Inbox()
    step.recv("a", inbox)
    assert step.forget("a", inbox)
    assert not step.forget("a", inbox)
    step.send("a", 1)
    assert inbox.values == []
    assert step.take("a") == 1


def test_a_receive_may_come_before_the_step():
    rendezvous, inbox = Rendezvous(), Inbox()
    rendezvous.step(5).recv("a", inbox)
    rendezvous.step(5).send("a", 1)
    assert inbox.values == [1]


def test_what_comes_after_the_clean_up_fails_instead_of_waiting():
    rendezvous, inbox = Rendezvous(), Inbox()
    rendezvous.step(5).recv("a", inbox)
    rendezvous.cleanup(5)
    rendezvous.cleanup(5)
    assert [error.message for error in inbox.errors] == ["Cleanup 5"]
    assert inbox.errors[0].derived
    with pytest.raises(errors.AbortedError, match="Cleanup 5"):
        rendezvous.step(5)


def test_the_memory_of_past_steps_is_bounded():
    rendezvous = Rendezvous()
    for step_id in range(10_001):
        rendezvous.cleanup(step_id)
    assert rendezvous.step(0).step_id == 0
    with pytest.raises(errors.AbortedError):
        rendezvous.step(1)


def test_a_step_that_nobody_ran_leaves_nothing_behind():
    rendezvous, inbox = Rendezvous(), Inbox()
    rendezvous.step(5).recv("a", inbox)
    rendezvous.forget_unused(5)
    assert rendezvous.find(5) is not None
    rendezvous.step(5).forget("a", inbox)
    rendezvous.forget_unused(5)
    assert rendezvous.find(5) is None


def test_an_abort_cancels_a_remote_receive_and_its_answer_tells_why():
    cancelled: list[str] = []
    answers: dict[str, object] = {}

    def remote(task, step_id, key, done):
        answers[key] = done

        def cancel():
            cancelled.append(key)
            done(error=errors.CancelledError.of("the call was cancelled"))

        return cancel

    step, lost, kept = StepRendezvous(1, remote), Inbox(), Inbox()
    step.recv("kept", kept, "/job:ps/replica:0/task:0")
    answers["kept"](3)  # type: ignore[operator]
    step.recv("lost", lost, "/job:ps/replica:0/task:0")
    step.abort(errors.AbortedError.of("the root cause"))
    assert kept.values == [3]
    assert cancelled == ["lost"]
    assert [error.message for error in lost.errors] == ["the root cause"]
