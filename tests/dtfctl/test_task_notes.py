"""What a task says beside GetStatus, and the checkpoint that it is asked for before a parameter server ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

import dtf as tf
from dtf.wire.task_notes import TaskNotes as Notes
from dtf.wire.task_notes import notes
from dtfctl.control.requests import RequestHandler
from dtfctl.probes import task_notes
from dtfctl.wire.protobuf import varint
from tests.dtfctl.fakes import World


def test_question_and_answer_are_understood_by_the_other_end():
    there = Notes()
    assert there.report() == b"", "a task that only serves says nothing"
    there.runs, there.savers = 7, 1
    there.ask(task_notes.request_for_checkpoint(3, 1.5))
    assert (there.wanted, there.hold_s) == (3, 1.5)
    there.saved = 3
    assert task_notes.found_in(b"\x0a\x02xx" + there.report()) == task_notes.TaskNotes(7, 1, 3)


HOSTILE = [b"", b"[]", b"{}", b'{"save": -1}', b'{"save": 1, "hold_s": "x"}', b'{"save": 1e400}', b"\xff", b"[" * 9999]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_understood_asks_for_nothing_and_says_nothing(value):
    there = Notes()
    field = varint(task_notes.FIELD << 3 | 2) + varint(len(value)) + value
    there.ask(field)
    there.ask(field[:-1])
    there.ask(b"\xff" * 30)
    assert there.wanted == 0
    assert task_notes.found_in(field) is None
    assert task_notes.found_in(field[:-1]) is None
    assert task_notes.found_in(b"\xff" * 30) is None


def test_a_training_session_saves_when_it_is_asked_and_not_before(tmp_path, monkeypatch):
    with tf.Graph().as_default(), tf.train.Server.create_local_server() as server:
        step = tf.train.get_or_create_global_step()
        train = step.assign_add(1)
        address = server.target.partition("//")[2]
        monkeypatch.setattr(notes, "savers", 0)  # whatever sessions other tests of this process have left
        assert not asyncio.run(task_notes.have_saved(address, None, 30.0, 0.0)), "nobody there can save"
        with tf.train.MonitoredTrainingSession(
            server.target, checkpoint_dir=str(tmp_path), save_checkpoint_steps=10**6, save_checkpoint_secs=None
        ) as session:
            for _ in range(5):
                session.run(train)
            assert newest(tmp_path) < 5
            has_saved: list[bool] = []
            asking = threading.Thread(
                target=lambda: has_saved.append(asyncio.run(task_notes.have_saved(address, None, 60.0, 0.0)))
            )
            asking.start()
            while asking.is_alive():
                session.run(train)
            assert has_saved == [True]
            assert 5 <= newest(tmp_path) <= session.run(step)
            before = notes.runs
            session.run(train)
            assert notes.runs > before
        assert notes.savers == 0


def newest(folder):
    """The step of the newest checkpoint."""
    return int(tf.train.latest_checkpoint(str(folder)).rpartition("-")[2])


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.make_ready()
    yield world
    world.store.close()


@pytest.mark.parametrize(
    ("tasks", "is_asked"), [(["ps:0"], True), (["worker:1"], False), (["ps:0", "worker:0", "worker:1"], False)]
)
@pytest.mark.parametrize("do", ["restart", "stop"])
def test_the_chief_is_asked_before_a_parameter_server_ends_without_it(world, tasks, is_asked, do):
    asked = []

    async def save(address, timeout_s):
        assert not world.launcher.signals
        asked.append(address)
        return True

    handler = RequestHandler(world.supervisor, world.launcher, asyncio.Lock(), save)
    reply = asyncio.run(handler.answer({"do": do, "tasks": tasks, "why": "because"}))
    world.supervisor.step()
    assert reply["is"] == "done"
    assert asked == (["127.0.0.1:2"] if is_asked else [])
    assert ("since worker:0 saved" in " ".join(reply["costs"])) == is_asked
    assert {name for name, _ in world.launcher.signals} == set(tasks)
