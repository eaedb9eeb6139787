"""Monitored sessions: hooks in their order, checkpoints, and what they survive."""

from __future__ import annotations

import logging
import threading
import time

import pytest

import dtf as tf
from dtf import train
from dtf.testing import LocalCluster


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield
    from dtf.train.summary_writer import FileWriterCache

    FileWriterCache.clear()


def counting_model(cluster=None, worker=0):
    """Returns an op that adds one to the global step and to the variable `total`, which is on the last ps."""
    setter = None
    if cluster is not None:
        setter = train.replica_device_setter(
            cluster=cluster.cluster_spec, worker_device=f"/job:worker/task:{worker}"
        )
    with tf.device(setter):
        step = train.get_or_create_global_step()
        total = tf.get_variable("total", [2], initializer=tf.zeros_initializer())
        with tf.control_dependencies([tf.assign_add(total, [1.0, 2.0], use_locking=True)]):
            return tf.assign_add(step, 1, use_locking=True)


class Recorder(train.SessionRunHook):
    """Writes down which of its methods are called."""

    def __init__(self, calls):
        self.calls = calls

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        self.calls.append("after_create_session")

    def before_run(self, run_context):
        self.calls.append("before_run")
        return train.SessionRunArgs(train.get_global_step())

    def after_run(self, run_context, run_values):
        self.calls.append(f"after_run of step {int(run_values.results)}")

    def end(self, session):
        self.calls.append("end")


def test_hooks_are_called_in_the_order_that_is_promised():
    calls = []
    add = counting_model()
    with train.MonitoredSession(hooks=[Recorder(calls), train.StopAtStepHook(last_step=1)]) as session:
        while not session.should_stop():
            session.run(add)
    assert calls[:3] == ["begin", "after_create_session", "before_run"]
    assert calls[3].startswith("after_run of step")
    assert calls[4:] == ["end"]


def test_hooks_do_not_end_after_an_error():
    calls = []
    counting_model()
    failing = tf.py_func(lambda: 1 / 0, [], tf.int64) if hasattr(tf, "py_func") else tf.check_numerics(tf.log(-1.0), "")
    with pytest.raises(tf.errors.OpError), train.MonitoredSession(hooks=[Recorder(calls)]) as session:
        session.run(failing)
    assert "end" not in calls


def test_a_hooks_feeds_and_fetches_join_those_of_the_caller():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    total = x + y
    train.get_or_create_global_step()
    with train.MonitoredSession(hooks=[train.FeedFnHook(lambda: {y: 2.0})]) as session:
        assert session.run({"total": total}, {x: 1.0}) == {"total": 3.0}
        with pytest.raises(RuntimeError, match="fed by two sources"):
            session.run(total, {x: 1.0, y: 1.0})


def test_out_of_range_ends_the_block_quietly():
    train.get_or_create_global_step()
    with train.MonitoredSession() as session:
        raise tf.errors.OutOfRangeError(None, None, "the input is exhausted")
    assert session.should_stop()


def test_a_closed_session_refuses_to_run():
    add = counting_model()
    session = train.MonitoredSession()
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.run(add)
    assert session.should_stop()


def test_a_step_function_runs_the_plain_session_and_the_hooks():
    add = counting_model()
    seen = []

    def step_fn(step_context):
        seen.append(int(step_context.session.run(add)))
        seen.append(int(step_context.run_with_hooks(add)))
        step_context.request_stop()

    with train.MonitoredSession(hooks=[Recorder([])]) as session:
        session.run_step_fn(step_fn)
        assert session.should_stop()
    assert seen == [1, 2]


def test_a_step_function_must_take_the_context():
    train.get_or_create_global_step()
    with train.MonitoredSession() as session, pytest.raises(ValueError, match="step_context"):
        session.run_step_fn(lambda: None)


def test_a_second_session_goes_on_from_the_checkpoint(tmp_path):
    add = counting_model()
    for last in (3, 5):
        with train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), hooks=[train.StopAtStepHook(last_step=last)]
        ) as session:
            while not session.should_stop():
                session.run(add)
        assert train.latest_checkpoint(str(tmp_path)) == str(tmp_path / f"model.ckpt-{last}")
    assert train.load_variable(str(tmp_path), "total").tolist() == [5.0, 10.0]


def test_a_singular_session_lets_errors_through():
    add = counting_model()
    with pytest.raises(tf.errors.AbortedError), train.SingularMonitoredSession() as session:
        session.run(add)
        assert session.raw_session().run(add) == 2
        raise tf.errors.AbortedError(None, None, "lost")


def test_the_graph_is_final_while_the_session_lives():
    counting_model()
    with train.MonitoredSession(), pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1.0)
    tf.constant(1.0)


@pytest.mark.timeout(60)
def test_a_ps_that_is_restarted_is_survived_and_its_state_restored(tmp_path, caplog):
    caplog.set_level(logging.INFO, "dtf")
    with LocalCluster({"ps": 2, "worker": 1}) as cluster:
        add = counting_model(cluster)
        calls = []
        steps = []
        with train.MonitoredTrainingSession(
            cluster.target("worker"),
            checkpoint_dir=str(tmp_path),
            save_checkpoint_steps=5,
            save_checkpoint_secs=None,
            hooks=[Recorder(calls), train.StopAtStepHook(last_step=20)],
        ) as session:
            while not session.should_stop():
                if len(steps) == 8:
                    cluster.stop("ps", 1)
                    cluster.start("ps", 1)
                steps.append(int(session.run(add)))
        assert calls.count("after_create_session") == 2
        assert steps[:8] == list(range(1, 9))
        assert steps[8] <= 9, "the step goes on from the last checkpoint"
        assert steps[-1] == 20
        assert steps[8:] == list(range(steps[8], 21))
    assert train.load_variable(str(tmp_path), "total").tolist() == [20.0, 40.0]
    lost = [record.getMessage() for record in caplog.records if "recreating the session" in record.getMessage()]
    assert len(lost) == 1
    assert "Cause: " in lost[0]


@pytest.mark.timeout(60)
def test_a_ps_that_comes_back_late_is_waited_for(tmp_path):
    with LocalCluster({"ps": 1, "worker": 1}) as cluster:
        add = counting_model(cluster)
        with train.MonitoredTrainingSession(cluster.target("worker"), checkpoint_dir=str(tmp_path)) as session:
            assert session.run(add) == 1
            cluster.stop("ps")
            restart = threading.Timer(0.5, cluster.start, ["ps", 0])
            restart.start()
            assert session.run(add) == 1
            restart.join()


@pytest.mark.timeout(60)
def test_a_worker_goes_on_at_once_when_the_variables_are_ready(tmp_path):
    with LocalCluster({"ps": 1, "worker": 2}) as cluster:
        ran_at = []
        waiting = threading.Event()

        def work():
            with tf.Graph().as_default():
                add = counting_model(cluster, worker=1)
                waiting.set()
                with train.MonitoredTrainingSession(cluster.target("worker", 1), is_chief=False) as session:
                    session.run(add)
                    ran_at.append(time.monotonic())

        worker = threading.Thread(target=work)
        worker.start()
        assert waiting.wait(20)
        counting_model(cluster)
        with train.MonitoredTrainingSession(cluster.target("worker", 0), checkpoint_dir=str(tmp_path)):
            ready_at = time.monotonic()
            worker.join(30)
        assert ran_at and ran_at[0] - ready_at < 0.5, "0.2 s, and what a busy machine adds"


@pytest.mark.timeout(60)
def test_a_loss_does_not_wait_for_queue_runners_that_are_stuck():
    add = counting_model()
    queue = tf.FIFOQueue(1, [tf.int32])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(1)]))
    lost = [tf.errors.AbortedError(None, None, "ps 0 has restarted")]

    class LoseOnce(train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if lost:
                raise lost.pop()

    with train.MonitoredSession(hooks=[LoseOnce()]) as session:
        assert session.run(add) == 1, "a new session, initialised anew"


def test_sessions_that_are_lost_again_and_again_are_given_up_with_the_cause(caplog):
    caplog.set_level(logging.INFO, "dtf")
    policy = train.RecoveryPolicy(recoveries_max=4, pause_secs=0.0)
    add = counting_model()

    class Lost(train.SessionRunHook):
        def after_run(self, run_context, run_values):
            raise tf.errors.UnavailableError(None, None, "ps 0 does not answer")

    with (
        pytest.raises(tf.errors.UnavailableError, match="ps 0"),
        train.MonitoredSession(hooks=[Lost()], recovery=policy) as session,
    ):
        session.run(add)
    told = [record.getMessage() for record in caplog.records if "ps 0 does not answer" in record.getMessage()]
    assert [f"({count} of 4)" in line for count, line in enumerate(told, 1)] == [True] * 4 + [False]
    assert "giving up" in told[-1]
