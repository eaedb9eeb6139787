"""SIGTERM during a training: the checkpoint is saved, and the process ends with the status that says so."""

from __future__ import annotations

import gc
import signal
import threading

import pytest

import dtf as tf
from dtf import train
from dtf.train import preemption

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread"
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph
    from dtf.train.summary_writer import FileWriterCache

    FileWriterCache.clear()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "the handler is given back"


def newest_step(folder):
    return int(train.load_variable(str(folder), "global_step"))


def add_one():
    return tf.assign_add(train.get_or_create_global_step(), 1)


def training(folder, **arguments):
    return train.MonitoredTrainingSession(checkpoint_dir=str(folder), log_step_count_steps=None, **arguments)


def test_a_notice_ends_the_loop_saves_and_exits_with_status_143(tmp_path):
    add, done = add_one(), []
    with pytest.raises(SystemExit) as ended, training(tmp_path) as session:
        while not session.should_stop():
            done.append(int(session.run(add)))
            if done[-1] == 3:
                signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert done == [1, 2, 3]
    assert newest_step(tmp_path) == 3


def test_a_loop_that_does_not_ask_whether_to_stop_ends_at_its_next_run(tmp_path):
    add, done = add_one(), []
    with pytest.raises(SystemExit), training(tmp_path) as session:
        for _ in range(10):
            done.append(int(session.run(add)))
            if done[-1] == 2:
                signal.raise_signal(signal.SIGTERM)
    assert (done, newest_step(tmp_path)) == ([1, 2], 2)


@pytest.mark.parametrize("through_server", [False, True])
def test_a_step_that_waits_for_others_is_cut_off_and_the_checkpoint_saved(tmp_path, monkeypatch, through_server):
    monkeypatch.setattr(preemption, "STEP_PATIENCE_S", 0.1)
    add = add_one()
    stuck = tf.FIFOQueue(1, [tf.int32]).dequeue()
    server = train.Server.create_local_server() if through_server else None

    class SendLater(train.SessionRunHook):
        def before_run(self, run_context):
            if run_context.original_args.fetches is stuck:
                notice = threading.Timer(0.05, preemption._signal_main_thread)
                notice.start()

    with (
        pytest.raises(SystemExit) as ended,
        training(tmp_path, hooks=[SendLater()], master=server.target if server else "") as session,
    ):
        for _ in range(4):
            session.run(add)
        session.run(stuck)
    assert (ended.value.code, newest_step(tmp_path)) == (143, 4)
    if server:
        server.stop()


def test_a_worker_that_waits_for_its_chief_goes_at_once(tmp_path):
    train.get_or_create_global_step()
    threading.Timer(0.1, preemption._signal_main_thread).start()
    with pytest.raises(SystemExit) as ended:
        train.MonitoredTrainingSession(is_chief=False)
    assert ended.value.code == 143


def test_the_handler_of_the_program_stays(tmp_path):
    add, seen = add_one(), []
    former = signal.signal(signal.SIGTERM, lambda *_: seen.append("mine"))
    try:
        with training(tmp_path, hooks=[train.StopAtStepHook(last_step=3)]) as session:
            while not session.should_stop():
                session.run(add)
                signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, former)
    assert seen == ["mine"] * 3
    assert newest_step(tmp_path) == 3


def test_a_model_that_is_lost_as_the_notice_comes_does_not_change_the_status(tmp_path, caplog):
    add = add_one()

    class LostPs(train.SessionRunHook):
        def end(self, session):
            raise tf.errors.UnavailableError(None, None, "/job:ps/replica:0/task:0: connection refused")

    with pytest.raises(SystemExit) as ended, training(tmp_path, hooks=[LostPs()]) as session:
        session.run(add)
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert "could not be saved" in caplog.text and "/job:ps/replica:0/task:0" in caplog.text


def test_a_session_that_is_dropped_gives_the_handler_back():
    add = add_one()
    session = train.MonitoredSession()
    session.run(add)
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    del session
    gc.collect()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_error_of_the_loop_is_not_hidden_by_a_notice(tmp_path):
    add = add_one()
    with pytest.raises(ValueError, match="mine"), training(tmp_path) as session:
        session.run(add)
        signal.raise_signal(signal.SIGTERM)
        raise ValueError("mine")


def test_the_policy_of_recovery_doubles_its_pauses_up_to_the_longest():
    policy = train.RecoveryPolicy(pause_secs=0.5, pause_secs_max=3.0)
    assert [policy.pause_before(attempt) for attempt in range(1, 7)] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]
