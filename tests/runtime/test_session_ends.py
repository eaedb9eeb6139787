"""How a monitored session ends: errors of threads, stop requests, and what its hooks ask for in common."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import dtf as tf
from dtf import train


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


class Keeper(train.SessionRunHook):
    """Keeps the coordinators of its sessions."""

    def __init__(self):
        self.coordinators = []

    def after_create_session(self, session, coord):
        self.coordinators.append(coord)

    def report(self, error):
        """Reports an error as a thread does."""
        try:
            raise error
        except Exception:
            self.coordinators[-1].request_stop(sys.exc_info())


class Asking(train.SessionRunHook):
    """Asks for RunOptions, and keeps what it gets."""

    def __init__(self, options=None):
        self.options = options

    def before_run(self, run_context):
        return train.SessionRunArgs(options=self.options)

    def after_run(self, run_context, run_values):
        self.values = run_values


@pytest.mark.parametrize("error", [ValueError("x"), tf.errors.CancelledError(None, None, "x"), StopIteration()])
def test_an_error_of_a_thread_stops_the_loop_and_is_raised_at_the_close(error):
    keeper = Keeper()
    session = train.MonitoredSession(hooks=[keeper])
    keeper.report(error)
    assert session.should_stop()
    with pytest.raises(type(error)):
        session.close()


def test_a_lost_task_is_recovered_from_as_soon_as_the_loop_asks():
    keeper = Keeper()
    with train.MonitoredSession(hooks=[keeper]) as session:
        keeper.report(tf.errors.AbortedError(None, None, "x"))
        assert not session.should_stop()
        assert len(keeper.coordinators) == 2


@pytest.mark.parametrize("kind", [train.MonitoredSession, train.SingularMonitoredSession])
def test_a_session_is_closed_once(kind):
    with pytest.raises(RuntimeError, match="already closed"), kind() as session:
        session.close()
    with pytest.raises(RuntimeError, match="after the session was closed"):
        session.run_step_fn(lambda step_context: None)
    with pytest.raises(KeyError), kind() as session:  # the error of the block counts
        session.close()
        raise KeyError


def test_a_step_function_that_requests_a_stop_leaves_the_block():
    with train.MonitoredSession() as session:
        session.run_step_fn(lambda step_context: step_context.request_stop())
        pytest.fail("the block goes on")
    session = train.MonitoredSession()
    with pytest.raises(StopIteration):
        session.run_step_fn(lambda step_context: step_context.request_stop())
    assert not session.should_stop()
    session.close()


def test_the_options_of_all_hooks_count():
    watch = tf.RunOptions(report_tensor_allocations_upon_oom=True, timeout_in_ms=70000)
    watch.debug_options.debug_tensor_watch_opts.add(node_name="a")
    other = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=60000)
    other.debug_options.debug_tensor_watch_opts.add(node_name="b")
    hooks = [Asking(), Asking(watch), Asking(other)]
    with train.SingularMonitoredSession(hooks=hooks) as session:
        session.run([], options=tf.RunOptions(output_partition_graphs=True))
    for hook in hooks:
        got = hook.values.options
        assert got.report_tensor_allocations_upon_oom and got.output_partition_graphs
        assert (got.trace_level, got.timeout_in_ms) == (tf.RunOptions.FULL_TRACE, 70000)
        assert [each.node_name for each in got.debug_options.debug_tensor_watch_opts] == ["a", "b"]
    assert not watch.output_partition_graphs


def test_hooks_get_messages_when_nobody_gave_options():
    hook = Asking()
    with train.SingularMonitoredSession(hooks=[hook]) as session:
        session.run([])
    assert hook.values.options.trace_level == 0 and not hook.values.run_metadata.step_stats.dev_stats


def test_a_monitored_session_has_started_its_queue_runners():
    queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(1.0)]))
    value = queue.dequeue()
    with train.MonitoredSession() as session:
        assert session.run(value) == 1.0
        assert train.start_queue_runners(session) == []
    with pytest.raises(TypeError, match="must be a `tf.Session` object"):
        train.start_queue_runners(3)


def test_a_model_without_a_checkpoint_gets_its_local_variables():
    v = tf.Variable(1, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    manager = train.SessionManager(local_init_op=v.initializer)
    session, is_restored = manager.recover_session("", saver=None)
    assert not is_restored and session.run(v) == 1
    session.close()


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_worker_waits_whatever_its_global_step_is(dtype, shape, use_resource):
    step = tf.Variable(np.zeros(shape, dtype), name="global_step", trainable=False, use_resource=use_resource)
    manager = train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.001)
    with pytest.raises(tf.errors.DeadlineExceededError, match="global_step"):
        manager.wait_for_session("", max_wait_secs=0.01)
    with tf.Session() as session:
        session.run(step.initializer)
        assert train.global_step(session, step) == 0
    supervisor = train.Supervisor(logdir=None, is_chief=True, summary_op=None)
    with supervisor.managed_session() as session:
        assert session.run(step) == 0
