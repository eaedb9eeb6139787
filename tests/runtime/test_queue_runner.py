"""Queue runners: threads that fill a queue, and how they end."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf import train
from dtf.wire.measures import measures
from dtf.wire.task_notes import notes


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def counter(limit):
    """Returns an op that counts up to a limit, then raises OutOfRangeError."""
    variable = tf.get_variable("count", initializer=tf.constant(0), collections=[tf.GraphKeys.LOCAL_VARIABLES])
    return variable.count_up_to(limit)


def started(session, runner, **arguments):
    session.run(tf.local_variables_initializer())
    return runner.create_threads(session, start=True, **arguments)


def test_a_queue_is_filled_and_closed_at_the_end_of_the_input(session):
    queue = tf.FIFOQueue(10, [tf.int32])
    dequeue = queue.dequeue()
    runner = train.QueueRunner(queue, [queue.enqueue(counter(3))])
    threads = started(session, runner)
    for thread in threads:
        thread.join(10)
    assert [int(session.run(dequeue)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(dequeue)
    assert runner.exceptions_raised == []


def test_several_threads_close_the_queue_once_all_have_ended(session):
    queue = tf.FIFOQueue(100, [tf.int32], shapes=[[]])
    runner = train.QueueRunner(queue, [queue.enqueue(counter(20))] * 3)
    for thread in started(session, runner):
        thread.join(10)
    taken = sorted(session.run(queue.dequeue_many(20)).tolist())
    assert taken == list(range(20))


def test_a_stop_of_the_coordinator_ends_threads_that_wait(session):
    queue = tf.FIFOQueue(1, [tf.int32])
    runner = train.QueueRunner(queue, [queue.enqueue(1)])
    coord = train.Coordinator()
    threads = started(session, runner, coord=coord)
    assert len(threads) == 2, "one of them closes the queue when a stop is requested"
    session.run(queue.dequeue())
    coord.request_stop()
    coord.join(threads, stop_grace_period_secs=10)


def test_an_error_reaches_the_coordinator(session):
    queue = tf.FIFOQueue(1, [tf.float32])
    bad = tf.placeholder(tf.float32, name="never_fed")
    runner = train.QueueRunner(queue, [queue.enqueue(bad)])
    coord = train.Coordinator()
    threads = started(session, runner, coord=coord)
    with pytest.raises(tf.errors.InvalidArgumentError, match="never_fed"):
        coord.join(threads, stop_grace_period_secs=10)


def test_without_a_coordinator_errors_are_kept(session):
    queue = tf.FIFOQueue(1, [tf.float32])
    runner = train.QueueRunner(queue, [queue.enqueue(tf.placeholder(tf.float32))])
    for thread in started(session, runner):
        thread.join(10)
    assert [type(error) for error in runner.exceptions_raised] == [tf.errors.InvalidArgumentError]


def test_a_session_gets_its_threads_once(session):
    queue = tf.FIFOQueue(1, [tf.int32])
    runner = train.QueueRunner(queue, [queue.enqueue(1)])
    coord = train.Coordinator()
    threads = started(session, runner, coord=coord)
    assert runner.create_threads(session, coord=coord) == []
    coord.request_stop()
    coord.join(threads)


def test_all_runners_of_the_collection_are_started(session):
    queue = tf.FIFOQueue(5, [tf.int32])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(7)]))
    dequeue = queue.dequeue()
    coord = train.Coordinator()
    threads = train.start_queue_runners(coord=coord)
    assert session.run(dequeue) == 7
    coord.request_stop()
    coord.join(threads)


def test_what_a_queue_runner_runs_is_no_step_of_the_training(session):
    queue = tf.FIFOQueue(50, [tf.int32])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(7)]))
    coord = train.Coordinator()
    before, noted = measures.runs.counts.copy(), notes.runs
    threads = train.start_queue_runners(coord=coord)
    session.run(queue.dequeue())
    coord.request_stop()
    coord.join(threads)
    assert sum(measures.runs.counts) - sum(before) == notes.runs - noted == 1


def test_no_session_is_an_error():
    with tf.Graph().as_default():
        import dtf.build.graph

        stack = dtf.build.graph.default_session_stack
        with stack.using(None), pytest.raises(ValueError, match="No default session"):
            train.start_queue_runners()


def test_a_runner_survives_its_message(session):
    queue = tf.FIFOQueue(1, [tf.int32], name="q")
    closed = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
    runner = train.QueueRunner(queue, [queue.enqueue(1)], queue_closed_exception_types=closed)
    message = runner.to_proto()
    assert message.queue_name == "q"
    assert list(message.queue_closed_exception_types) == [tf.errors.OUT_OF_RANGE, tf.errors.CANCELLED]
    again = train.QueueRunner.from_proto(message)
    assert again.to_proto() == message
    assert again.queue_closed_exception_types == closed
    assert again.name == runner.name
    assert runner.to_proto(export_scope="elsewhere") is None


def test_queue_and_message_exclude_each_other(session):
    queue = tf.FIFOQueue(1, [tf.int32])
    message = train.QueueRunner(queue, [queue.enqueue(1)]).to_proto()
    with pytest.raises(ValueError, match="mutually exclusive"):
        train.QueueRunner(queue, queue_runner_def=message)
    with pytest.raises(ValueError, match="Must provide queue"):
        train.QueueRunner(queue)
