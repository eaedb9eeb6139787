"""Datasets must give their elements whatever happens around them, and say what is wrong when they cannot."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

import dtf as tf
from dtf.run.datasets import prefetch, sources, transformations
from dtf.run.datasets.dataset import Scope
from dtf.run.executor import executor
from dtf.testing import LocalCluster

Dataset = tf.data.Dataset
WAIT_S = 20


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def all_of(dataset, session=None):
    """All elements, with an iterator of their own."""
    iterator = dataset.make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        return rest(session, following)


def rest(session, following):
    taken = []
    while True:
        try:
            taken.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return [each.tolist() if isinstance(each, (np.ndarray, np.generic)) else each for each in taken]


# -- iterators


def test_an_iterator_that_is_not_initialized_says_so():
    following = Dataset.range(3).make_initializable_iterator().get_next()
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="initializer"):
        session.run(following)


def test_the_end_stays_the_end_until_the_initializer_runs_again():
    iterator = Dataset.range(2).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert rest(session, following) == [0, 1]
        assert rest(session, following) == []
        session.run(iterator.initializer)
        assert rest(session, following) == [0, 1]


def test_one_iterator_can_take_the_elements_of_several_datasets():
    training, validation = Dataset.range(3), Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(training.output_types, training.output_shapes)
    following = iterator.get_next()
    first, second = iterator.make_initializer(training), iterator.make_initializer(validation)
    with tf.Session() as session:
        session.run(first)
        assert session.run(following) == 0
        session.run(second)
        assert rest(session, following) == [10, 11]
    with pytest.raises(TypeError, match="output types"):
        iterator.make_initializer(Dataset.from_tensors("text"))
    with pytest.raises(TypeError, match="output shapes"):
        iterator.make_initializer(Dataset.from_tensors(np.zeros(2, np.int64)))


def test_a_placeholder_may_say_which_iterator_is_meant():
    handle = tf.placeholder(tf.string, [])
    iterators = [Dataset.range(start, 9).make_initializable_iterator() for start in (0, 5)]
    following = tf.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([])).get_next()
    with tf.Session() as session:
        session.run([each.initializer for each in iterators])
        handles = session.run([each.string_handle() for each in iterators])
        assert [session.run(following, {handle: handles[index]}) for index in (0, 1, 0, 1)] == [0, 5, 1, 6]
        with pytest.raises(tf.errors.InvalidArgumentError, match="not the handle of an iterator"):
            session.run(following, {handle: b"\xff"})


def test_a_handle_of_other_elements_is_refused():
    handle = tf.placeholder(tf.string, [])
    iterator = Dataset.range(3).make_initializable_iterator()
    following = tf.data.Iterator.from_string_handle(handle, tf.float32, []).get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"int64.*float32"):
            session.run(following, {handle: session.run(iterator.string_handle())})


def test_a_shared_iterator_goes_on_in_another_session():
    with LocalCluster({"worker": 1}) as cluster:
        iterator = Dataset.range(4).make_initializable_iterator(shared_name="shared")
        following = iterator.get_next()
        with tf.Session(cluster.target("worker", 0)) as session:
            session.run(iterator.initializer)
            assert session.run(following) == 0
        with tf.Session(cluster.target("worker", 0)) as session:
            assert session.run(following) == 1


def test_a_one_shot_iterator_cannot_use_a_variable():
    factor = tf.get_variable("factor", [], tf.int64, use_resource=True)
    dataset = Dataset.range(3).map(lambda x: x * factor)
    with pytest.raises(ValueError, match=r"Cannot capture a stateful node \(name:factor.*make_initializable_iterator"):
        dataset.make_one_shot_iterator()


def test_a_function_sees_a_variable_as_it_is_when_it_is_called():
    factor = tf.get_variable("factor", initializer=tf.constant(2, tf.int64), use_resource=True)
    iterator = Dataset.range(1, 9).map(lambda x: x * factor).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run([factor.initializer, iterator.initializer])
        assert session.run(following) == 2
        session.run(factor.assign(10))
        assert session.run(following) == 20


def test_a_variable_by_reference_is_taken_as_it_was_at_initialization():
    factor = tf.get_variable("factor", initializer=tf.constant(2, tf.int64), use_resource=False)
    iterator = Dataset.range(1, 9).map(lambda x: x * factor).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(factor.initializer)
        session.run(iterator.initializer)
        session.run(factor.assign(10))
        assert session.run(following) == 2


# -- what happens at the same time


def test_parallel_calls_run_at_the_same_time():
    barrier = threading.Barrier(3, timeout=WAIT_S)

    def meet(x):
        barrier.wait()
        return x

    dataset = Dataset.range(6).map(lambda x: tf.py_func(meet, [x], tf.int64), num_parallel_calls=3)
    assert all_of(dataset) == [0, 1, 2, 3, 4, 5]


def test_prefetching_goes_on_while_nobody_asks():
    made = [threading.Event() for _ in range(4)]

    def make(x):
        made[x].set()
        return x

    dataset = Dataset.range(4).map(lambda x: tf.py_func(make, [x], tf.int64)).prefetch(2)
    iterator = dataset.make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(following) == 0
        assert made[2].wait(WAIT_S)
        assert rest(session, following) == [1, 2, 3]


def test_a_step_that_is_cut_off_loses_no_element():
    may_go_on = threading.Event()

    def slow():
        yield 1
        may_go_on.wait(WAIT_S)
        yield 2
        yield 3

    iterator = Dataset.from_generator(slow, tf.int64, []).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(following) == 1
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(following, options=tf.RunOptions(timeout_in_ms=50))
        may_go_on.set()
        assert rest(session, following) == [2, 3]


def test_an_iterator_can_begin_anew_while_an_element_is_being_made():
    may_go_on = threading.Event()

    def stuck():
        may_go_on.wait(WAIT_S)
        yield 1

    iterator = tf.data.Iterator.from_structure(tf.int64, [])
    following = iterator.get_next()
    wait = iterator.make_initializer(Dataset.from_generator(stuck, tf.int64, []))
    go_on = iterator.make_initializer(Dataset.range(2))
    with tf.Session() as session:
        session.run(wait)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(following, options=tf.RunOptions(timeout_in_ms=50))
        session.run(go_on)
        assert rest(session, following) == [0, 1]
        may_go_on.set()


def test_the_thread_of_a_prefetch_ends_with_its_scope():
    step = executor.local_step()
    scope = Scope.of_step(step)
    endless = transformations.repeat(sources.number_range(0, 5, 1, np.int64), -1)
    elements = prefetch.prefetched(endless, 2).start(scope)
    assert next(elements) == (0,)
    scope.close()
    with elements._condition:
        assert elements._condition.wait_for(lambda: not elements._is_running, WAIT_S)


def test_the_threads_of_an_iterator_end_when_its_session_is_gone(monkeypatch):
    scopes = []
    start = Scope.of_step

    def watched(step):
        scopes.append(start(step))
        return scopes[-1]

    monkeypatch.setattr(Scope, "of_step", staticmethod(watched))
    iterator = Dataset.range(100).prefetch(2).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(following)
    del session
    gc.collect()
    ended = threading.Event()
    if scopes[0].cancellation.register(ended.set) is not None:
        assert ended.wait(WAIT_S)


# -- a cluster


def test_each_worker_takes_its_shard():
    with LocalCluster({"worker": 2}) as cluster:
        taken = []
        for index in range(2):
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{index}"):
                following = Dataset.range(6).shard(2, index).map(lambda x: x * 10).make_one_shot_iterator().get_next()
                with tf.Session(cluster.target("worker", 0)) as session:
                    taken.append(rest(session, following))
    assert taken == [[0, 20, 40], [10, 30, 50]]


def test_a_dataset_on_another_task_than_its_iterator_is_a_clear_error():
    with LocalCluster({"worker": 2}) as cluster:
        with tf.device("/job:worker/task:1"):
            dataset = Dataset.range(3)
        with tf.device("/job:worker/task:0"):
            iterator = dataset.make_initializable_iterator()
        message = r"RangeDataset.*one tf.device block"
        with (
            tf.Session(cluster.target("worker", 0)) as session,
            pytest.raises(tf.errors.UnimplementedError, match=message),
        ):
            session.run(iterator.initializer)


# -- bad input


def test_a_generator_that_raises_says_what_and_hangs_nobody():
    def broken():
        yield 1
        raise KeyError("lost")

    iterator = Dataset.from_generator(broken, tf.int64, []).prefetch(3).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(following) == 1
        with pytest.raises(tf.errors.UnknownError, match="KeyError: 'lost'"):
            session.run(following)
        assert rest(session, following) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [("text", "could not be converted"), ([1, 2], "element of shape"), ((1, 2), "expected structure|element of shape")],
)
def test_a_generator_that_yields_something_else_says_what(value, message):
    dataset = Dataset.from_generator(lambda: iter([value]), tf.int64, tf.TensorShape([]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        all_of(dataset)


def test_a_generator_is_closed_when_nobody_takes_the_rest():
    closed = threading.Event()

    def numbers():
        try:
            yield from range(100)
        finally:
            closed.set()

    assert all_of(Dataset.from_generator(numbers, tf.int64, []).take(2)) == [0, 1]
    assert closed.wait(WAIT_S)


def test_a_file_that_vanishes_between_two_passes_is_named(tmp_path):
    path = tmp_path / "lines"
    path.write_text("one\n")
    iterator = tf.data.TextLineDataset(str(path)).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert rest(session, following) == [b"one"]
        path.unlink()
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.NotFoundError, match=f"{path}; No such file"):
            session.run(following)


def test_after_a_corrupt_file_the_next_one_is_read(tmp_path):
    paths = [str(tmp_path / name) for name in ("bad", "good")]
    for path in paths:
        with tf.python_io.TFRecordWriter(path) as writer:
            writer.write(b"record")
    Path(paths[0]).write_bytes(b"?" * 30)
    records = tf.data.TFRecordDataset(paths)
    with pytest.raises(tf.errors.DataLossError, match=f"{paths[0]}: corrupted record at 0"):
        all_of(records)
    assert all_of(records.apply(tf.data.experimental.ignore_errors())) == [b"record"]


def test_elements_of_different_shapes_make_no_batch():
    dataset = Dataset.range(3).map(lambda x: tf.fill([x], x)).batch(3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"component 0.*\[0\] and element 1 had shape \[1\]"):
        all_of(dataset)


def test_an_error_of_one_element_leaves_those_behind_it():
    def risky(x):
        return tf.check_numerics(1.0 / tf.cast(x - 1, tf.float32), "a message")

    for calls in (None, 2):
        iterator = Dataset.range(3).map(risky, calls).prefetch(1).make_initializable_iterator()
        following = iterator.get_next()
        with tf.Session() as session:
            session.run(iterator.initializer)
            assert session.run(following) == -1
            with pytest.raises(tf.errors.InvalidArgumentError, match="a message"):
                session.run(following)
            assert rest(session, following) == [1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda d: d.range(), ValueError, "between 1 and 3"),
        (lambda d: d.filter(lambda x: x), ValueError, "tf.bool"),
        (lambda d: d.flat_map(lambda x: x), TypeError, "must return a `Dataset`"),
        (lambda d: d.concatenate(d.from_tensors("a")), TypeError, "Incompatible dataset elements"),
        (lambda d: d.from_tensor_slices(([1, 2], [1])), ValueError, "are not compatible"),
        (lambda d: d.from_generator(3, tf.int32), TypeError, "callable"),
        (lambda d: d.zip([d, d]), TypeError, "give a tuple"),
        (lambda d: d.unbatch(), ValueError, "scalar components"),
        (lambda d: d.padded_batch(2, [3]), ValueError, "not compatible"),
        (lambda d: d.apply(lambda each: 3), TypeError, "must return a Dataset"),
        (lambda d: d.map(3), ValueError, "must be a callable"),
    ],
)
def test_a_wrong_argument_is_named_when_the_graph_is_built(make, error, message):
    with pytest.raises(error, match=message):
        make(Dataset.range(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: d.batch(0), "Batch size must be greater than zero, got 0"),
        (lambda d: d.shuffle(0), "buffer_size must be greater than zero"),
        (lambda d: d.shard(2, 2), "Index must be between 0 and 1"),
        (lambda d: d.shard(0, 0), "Number of shards"),
        (lambda d: d.prefetch(-2), "buffer_size"),
        (lambda d: d.map(lambda x: x, 0), "num_parallel_calls must be greater than zero"),
        (lambda d: d.interleave(lambda x: Dataset.range(2), 0), "cycle_length"),
        (lambda d: d.window(0), "Window size"),
        (lambda d: tf.data.TFRecordDataset("x", "LZW"), "compression_type: LZW"),
    ],
)
def test_a_wrong_number_is_named_when_the_iterator_begins(make, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        all_of(make(Dataset.range(3)))


# -- files that are made


def test_a_cache_in_a_file_is_complete_or_absent(tmp_path):
    path = str(tmp_path / "cache")
    calls = []

    def counted(x):
        calls.append(int(x))
        return x

    dataset = Dataset.range(3).map(lambda x: tf.py_func(counted, [x], tf.int64)).cache(path)
    assert all_of(dataset) == [0, 1, 2]
    assert all_of(dataset) == [0, 1, 2]
    assert calls == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["cache.tfrecord"]


def test_parallel_reads_take_files_in_turns(tmp_path):
    paths = []
    for name in "ab":
        path = tmp_path / name
        path.write_text(f"{name}1\n{name}2\n")
        paths.append(str(path))
    dataset = tf.data.TextLineDataset(paths, num_parallel_reads=2)
    assert all_of(dataset) == [b"a1", b"b1", b"a2", b"b2"]
