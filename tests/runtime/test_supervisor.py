"""Supervisors: sessions, services and their end, as trainers of the first releases use them."""

from __future__ import annotations

import logging
import os
import signal
import threading

import pytest

import dtf as tf
from dtf import train
from dtf.testing import LocalCluster


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def counting():
    step = train.get_or_create_global_step()
    return step, tf.assign_add(step, 1)


def events(folder):
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if "tfevents" in name]
    return [event for file in files for event in train.summary_iterator(file)]


def test_a_chief_initialises_trains_and_writes_what_its_services_are_for(tmp_path):
    step, add = counting()
    tf.summary.scalar("steps", step)
    supervisor = train.Supervisor(logdir=str(tmp_path), save_summaries_secs=3600, save_model_secs=3600)
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            if session.run(add) == 5:
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
                supervisor.summary_computed(session, session.run(supervisor.summary_op))
                supervisor.request_stop()
    assert train.load_variable(str(tmp_path), "global_step") == 5
    assert (tmp_path / "graph.pbtxt").exists()
    told = [event for event in events(tmp_path) if event.HasField("session_log")]
    assert [event.session_log.status for event in told if event.session_log.status != 3] == [1, 2]
    summaries = [event for event in events(tmp_path) if event.HasField("summary")]
    assert (summaries[-1].step, summaries[-1].summary.value[0].simple_value) == (5, 5.0)


def test_a_second_supervisor_goes_on_from_the_checkpoint(tmp_path):
    for expected in (3, 6):
        with tf.Graph().as_default():
            _, add = counting()
            supervisor = train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
            with supervisor.managed_session() as session:
                values = [int(session.run(add)) for _ in range(3)]
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
            assert values[-1] == expected


def test_the_summaries_and_the_step_rate_are_recorded_by_threads(tmp_path):
    step, add = counting()
    tf.summary.scalar("steps", step)
    supervisor = train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0.01, save_model_secs=0)

    def tags():
        supervisor.summary_writer.flush()
        return {value.tag for event in events(tmp_path) for value in event.summary.value}

    with supervisor.managed_session() as session:
        while tags() != {"steps", "global_step/sec"}:
            session.run(add)


def test_the_model_is_saved_by_a_thread_at_once_and_again(tmp_path):
    _, add = counting()
    supervisor = train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0, save_model_secs=0.01)
    with supervisor.managed_session() as session:
        session.run(add)
        while not (tmp_path / "model.ckpt-1.index").exists():
            supervisor.coord.wait_for_stop(0.01)
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None


def test_errors_of_the_block_and_of_threads_reach_the_caller(tmp_path):
    counting()
    supervisor = train.Supervisor()
    with pytest.raises(ValueError, match="mine"), supervisor.managed_session():
        raise ValueError("mine")
    with pytest.raises(ZeroDivisionError), supervisor.managed_session():
        supervisor.loop(None, lambda: 1 // 0)
        supervisor.wait_for_stop()
    with supervisor.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "the input has ended")
    assert supervisor.should_stop()


def test_queue_runners_start_with_the_session_and_end_with_it():
    queue = tf.FIFOQueue(2, [tf.int32])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(7)]))
    value = queue.dequeue()
    supervisor = train.Supervisor()
    before = set(threading.enumerate())
    with supervisor.managed_session() as session:
        assert [int(session.run(value)) for _ in range(3)] == [7, 7, 7]
    left = [thread.name for thread in set(threading.enumerate()) - before if "QueueRunner" in thread.name]
    assert not left


def test_only_the_chief_has_services_and_a_writer(tmp_path, graph):
    with tf.device("/job:ps/task:0"):
        tf.get_variable("v", [], initializer=tf.zeros_initializer())
    worker = train.Supervisor(is_chief=False, logdir=str(tmp_path))
    assert (worker.summary_writer, worker.save_path, worker.summary_op) == (None, None, None)
    assert graph.finalized
    with pytest.raises(RuntimeError, match="Only chief"):
        worker.start_standard_services(None)
    with pytest.raises(RuntimeError, match="summary writer"):
        worker.summary_computed(None, b"")


def test_replicas_need_devices_for_their_variables():
    tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with pytest.raises(ValueError, match="must have their device set: v"):
        train.Supervisor(is_chief=False)


def test_a_model_that_is_not_made_ready_is_an_error():
    tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with pytest.raises(RuntimeError, match="not make model ready.*v"):
        train.Supervisor(init_op=None).prepare_or_wait_for_session()


@pytest.mark.timeout(90)
def test_a_worker_waits_for_the_chief_and_both_survive_a_ps(tmp_path, caplog):
    caplog.set_level(logging.INFO, "dtf")
    with LocalCluster({"ps": 1, "worker": 2}) as cluster:
        seen = {0: [], 1: []}
        restarted, ready = threading.Event(), threading.Barrier(2)

        def run(task):
            with tf.Graph().as_default():
                setter = train.replica_device_setter(
                    cluster=cluster.cluster_spec, worker_device=f"/job:worker/task:{task}"
                )
                with tf.device(setter):
                    step = train.get_or_create_global_step()
                    add = tf.assign_add(step, 1, use_locking=True)
                supervisor = train.Supervisor(
                    is_chief=task == 0, logdir=str(tmp_path), save_model_secs=0.05, save_summaries_secs=0
                )

                def train_step(session):
                    seen[task].append(int(session.run(add)))
                    if len(seen[task]) == 20 and not restarted.is_set() and ready.wait(30) == 0:
                        cluster.stop("ps")
                        cluster.start("ps")
                        restarted.set()
                    if restarted.is_set() and len(seen[task]) >= 60:
                        supervisor.request_stop()

                train.basic_train_loop(supervisor, train_step, master=cluster.target("worker", task))

        threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads), seen
    assert len(seen[0]) >= 60 and len(seen[1]) >= 60
    assert any("Cause: " in record.getMessage() for record in caplog.records)


def test_a_loop_gives_up_what_is_lost_again_and_again():
    counting()
    calls = []

    def lost(session, *args, **kwargs):
        calls.append((args, kwargs))
        raise tf.errors.AbortedError(None, None, "ps 0 has restarted")

    policy = train.RecoveryPolicy(recoveries_max=2, pause_secs=0.0)
    with pytest.raises(tf.errors.AbortedError, match="ps 0"):
        train.basic_train_loop(train.Supervisor(), lost, (1,), {"b": 2}, recovery=policy)
    assert calls == [((1,), {"b": 2})] * 3


def test_a_preemption_notice_saves_the_model_and_exits(tmp_path):
    _, add = counting()
    supervisor = train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
    done = []
    with pytest.raises(SystemExit) as ended, supervisor.managed_session() as session:
        while not supervisor.should_stop():
            done.append(int(session.run(add)))
            if done[-1] == 4:
                signal.raise_signal(signal.SIGTERM)
                supervisor.wait_for_stop()
    assert ended.value.code == 143
    assert train.load_variable(str(tmp_path), "global_step") == done[-1] == 4
