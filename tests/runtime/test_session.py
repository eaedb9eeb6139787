"""Session: fetches, feeds, defaults, errors; all in this process."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dtf as tf
from dtf.build.sparse import IndexedSlices, IndexedSlicesValue, SparseTensor, SparseTensorValue
from dtf.run.master.compiled_step import MasterStep
from dtf.session import InteractiveSession, Session, register_session_run_conversion_functions
from dtf.wire import errors
from dtf.wire.pb import config_pb2


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def session(graph):
    with Session(graph=graph) as session:
        yield session


def blocking_dequeue():
    """An op that waits until it is cancelled."""
    from dtf.build.apply import apply_op

    queue = apply_op("FIFOQueueV2", component_types=[tf.float32])
    return apply_op("QueueDequeueV2", handle=queue, component_types=[tf.float32])[0]


# -- fetches


def test_a_structure_of_fetches_comes_back_in_the_same_structure(session):
    Pair = collections.namedtuple("Pair", ["left", "right"])
    a, b = tf.constant(1.0), tf.constant([2, 3])
    result = session.run({"pair": Pair(a, [b, (a.op, "Const:0")]), "op": b.op, "order": collections.OrderedDict(z=a)})
    assert result["op"] is None
    assert result["pair"].left == 1.0
    assert result["pair"].right[0].tolist() == [2, 3]
    assert result["pair"].right[1] == (None, 1.0)
    assert isinstance(result["order"], collections.OrderedDict)


def test_numbers_come_back_as_numpy_scalars_and_strings_as_bytes(session):
    assert isinstance(session.run(tf.constant(1.5)), np.float32)
    assert session.run(tf.constant("text")) == b"text"
    assert session.run([]) == []


def test_sparse_and_sliced_tensors_come_back_in_parts(session):
    sparse = SparseTensor([[0, 1]], [5.0], [2, 2])
    slices = IndexedSlices(tf.constant([[1.0]]), tf.constant([3]))
    got = session.run([sparse, slices])
    assert isinstance(got[0], SparseTensorValue) and got[0].values.tolist() == [5.0]
    assert isinstance(got[1], IndexedSlicesValue) and got[1].indices.tolist() == [3] and got[1].dense_shape is None


def test_an_attrs_class_comes_back_as_one(session):
    class Field:
        def __init__(self, name):
            self.name = name

    class Point:
        __attrs_attrs__ = (Field("x"), Field("y"))

        def __init__(self, x, y):
            self.x, self.y = x, y

    got = session.run(Point(tf.constant(1.0), tf.constant(2.0)))
    assert (got.x, got.y) == (1.0, 2.0)


def test_a_registered_type_is_fetched_and_fed_by_its_functions(session):
    class Squared:
        def __init__(self, tensor):
            self.tensor = tensor

    register_session_run_conversion_functions(
        Squared,
        lambda squared: ([squared.tensor], lambda values: values[0] ** 2),
        lambda squared, value: [(squared.tensor, value**0.5)],
    )
    x = tf.placeholder(tf.float32, [])
    assert session.run(Squared(x), {Squared(x): 9.0}) == 9.0


def test_a_fetched_array_belongs_to_the_caller(session):
    c = tf.constant([1.0, 2.0])
    first = session.run(c)
    first += 10
    assert session.run(c).tolist() == [1.0, 2.0]


def test_a_fed_array_may_be_changed_after_the_call(session):
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([0.0, 0.0])
    value = np.ones(2, np.float32)
    session.run(tf.assign(v, x), {x: value})
    value += 5
    assert session.run(v).tolist() == [1.0, 1.0]


def test_a_fed_tensor_that_is_fetched_comes_back_as_given(session):
    x, y = tf.placeholder(tf.float32, []), tf.constant(2.0)
    assert session.run([y, x, y], {x: 1.0}) == [2.0, 1.0, 2.0]
    assert session.run(x, {x: 3.0}) == 3.0


@pytest.mark.parametrize(
    ("fetch", "error", "words"),
    [
        (None, TypeError, "Fetch argument None has invalid type"),
        (1.0, TypeError, "must be a string or Tensor"),
        ("nope:0", ValueError, "cannot be interpreted as a Tensor"),
        ("nope", ValueError, "cannot be interpreted as a Tensor"),
    ],
)
def test_what_cannot_be_fetched_is_named(session, fetch, error, words):
    with pytest.raises(error, match=words):
        session.run(fetch)


def test_a_fetch_of_another_graph_is_refused(session):
    with tf.Graph().as_default():
        foreign = tf.constant(1.0, name="foreign")
    with pytest.raises(ValueError, match="foreign.*is not an element of this graph"):
        session.run(foreign)


def test_an_unfetchable_operation_is_refused(session, graph):
    c = tf.constant(1.0)
    graph.prevent_fetching(c.op)
    with pytest.raises(ValueError, match="marked as not fetchable"):
        session.run(c)


# -- feeds


def test_a_wrong_shape_is_refused_in_tensorflows_words(session):
    x = tf.placeholder(tf.float32, [3], name="x")
    with pytest.raises(ValueError) as caught:
        session.run(x + 1.0, {x: [1.0, 2.0]})
    assert str(caught.value) == "Cannot feed value of shape (2,) for Tensor 'x:0', which has shape '(3,)'"


def test_an_unknown_dimension_takes_any_size(session):
    x = tf.placeholder(tf.float32, [None, 2])
    assert session.run(x + 1.0, {x: np.zeros((5, 2))}).shape == (5, 2)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        session.run(x + 1.0, {x: np.zeros(2)})


def test_feeds_are_converted_to_the_tensors_type(session):
    x, s = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.string, [2])
    assert session.run(tf.identity(x), {x: [1, 2]}).dtype == np.int32
    assert session.run(tf.identity(s), {s: ["a", b"b"]}).tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (300, TypeError, "Type of feed value 300 with type <class 'int'> is not compatible with Tensor type"),
        ("text", ValueError, "invalid literal"),
        ([[1], [1, 2]], ValueError, "sequence"),
    ],
)
def test_a_value_that_the_type_cannot_hold_is_refused(session, value, error, words):
    x = tf.placeholder(tf.int8)
    with pytest.raises(error, match=words):
        session.run(tf.identity(x), {x: value})


def test_a_tensor_is_no_value(session):
    x = tf.placeholder(tf.float32)
    with pytest.raises(TypeError, match="The value of a feed cannot be a tf.Tensor object"):
        session.run(x + 1.0, {x: tf.constant(1.0)})


def test_a_key_that_is_no_tensor_is_refused(session):
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
        session.run(tf.constant(1.0), {"nope:0": 1})
    assert session.run(tf.constant(1.0), {}) == 1.0


def test_an_unfeedable_tensor_is_refused(session, graph):
    c = tf.constant(1.0)
    graph.prevent_feeding(c)
    with pytest.raises(ValueError, match="may not be fed"):
        session.run(tf.identity(c), {c: 2.0})


def test_any_feedable_tensor_can_be_replaced(session):
    a = tf.constant(1.0)
    b = a + 1.0
    assert session.run(b * 2.0, {b: 10.0}) == 20.0


# -- errors


def test_an_error_carries_the_operation_of_the_clients_graph(session):
    x = tf.placeholder(tf.float32, [], name="x")
    with pytest.raises(errors.InvalidArgumentError, match="You must feed a value for placeholder tensor 'x'") as caught:
        session.run(x + 1.0)
    assert caught.value.op is x.op
    assert caught.value.node_def.name == "x"


def test_an_uninitialized_variable_is_named(session):
    v = tf.Variable(1.0, name="weights")
    with pytest.raises(errors.FailedPreconditionError, match="Attempting to use uninitialized value weights"):
        session.run(v)


def test_a_device_that_does_not_exist_is_named(session):
    with tf.device("/job:ps/task:3"):
        c = tf.constant(1.0, name="far")
    with pytest.raises(errors.InvalidArgumentError, match="Cannot assign a device for operation far"):
        session.run(c)


def test_a_step_may_have_a_deadline(session):
    with pytest.raises(errors.DeadlineExceededError, match="Timed out"):
        session.run(blocking_dequeue(), options=config_pb2.RunOptions(timeout_in_ms=50))


def test_the_sessions_own_timeout_holds_for_every_step(graph):
    with (
        Session(graph=graph, config=config_pb2.ConfigProto(operation_timeout_in_ms=50)) as session,
        pytest.raises(errors.DeadlineExceededError),
    ):
        session.run(blocking_dequeue())


# -- the session's life


def test_close_cancels_a_step_that_waits(graph):
    session = Session(graph=graph)
    started = tf.placeholder(tf.float32, [])
    waiting = blocking_dequeue()
    caught: list[BaseException] = []

    def run(handle):
        try:
            session.partial_run(handle, waiting)
        except Exception as error:
            caught.append(error)

    # The first part of a partial run ends when the step has started, so that there is nothing to sleep for.
    handle = session.partial_run_setup([tf.identity(started), waiting], [started])
    thread = threading.Thread(target=run, args=(handle,))
    thread.start()
    session.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(caught[0], (errors.OpError, RuntimeError))


def test_close_tells_a_waiting_step_why(graph):
    session = Session(graph=graph)
    session.run(tf.constant(0.0))
    inner = session._master._master._sessions[session._handle]
    waiting = blocking_dequeue()
    add_step, started = inner.add_step, threading.Event()

    def add_and_tell(step):
        add_step(step)
        started.set()

    inner.add_step = add_and_tell
    caught: list[errors.OpError] = []

    def run():
        try:
            session.run(waiting)
        except errors.OpError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(10)
    session.close()
    thread.join(10)
    assert isinstance(caught[0], errors.CancelledError)
    assert "Session::Close()" in caught[0].message


def test_a_closed_session_refuses_to_run(graph):
    session = Session(graph=graph)
    c = tf.constant(1.0)
    session.run(c)
    session.close()
    session.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        session.run(c)


def test_a_graph_may_grow_between_runs(session):
    a = tf.constant(1.0)
    assert session.run(a) == 1.0
    b = a + 1.0
    assert session.run(b) == 2.0
    assert session.run([a, b]) == [1.0, 2.0]


def test_the_context_manager_makes_session_and_graph_the_default_and_closes():
    graph = tf.Graph()
    with graph.as_default():
        c = tf.constant(4.0)
    with Session(graph=graph) as session:
        assert tf.get_default_session() is session
        assert tf.get_default_graph() is graph
        assert c.eval() == 4.0
        c.op.run()
    assert tf.get_default_session() is None
    with pytest.raises(RuntimeError):
        session.run(c)


def test_as_default_does_not_close(graph):
    session = Session(graph=graph)
    c = tf.constant(4.0)
    with session.as_default():
        assert c.eval() == 4.0
    assert session.run(c) == 4.0
    session.close()


def test_an_interactive_session_is_the_default_until_it_is_closed(graph):
    session = InteractiveSession()
    assert tf.constant(2.0).eval() == 2.0
    session.close()
    assert tf.get_default_session() is None


def test_two_local_sessions_have_variables_of_their_own(graph):
    v = tf.Variable(1.0)
    with Session() as first, Session() as second:
        first.run(v.initializer)
        with pytest.raises(errors.FailedPreconditionError):
            second.run(v)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"graph": 1}, TypeError, "graph must be a tf.Graph"),
        ({"target": 1}, TypeError, "target must be a string"),
        ({"config": {}}, TypeError, "config must be a tf.ConfigProto"),
        ({"target": "nonsense"}, errors.NotFoundError, "nonsense"),
        ({"target": "grpc://host"}, errors.InvalidArgumentError, "host:port"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        Session(**arguments)


def test_a_local_session_needs_no_grpc():
    program = "import dtf as tf, sys; tf.Session().run(tf.constant(1.0)); sys.exit('grpc' in sys.modules)"
    path = str(Path(tf.__file__).parent.parent)
    assert subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}).returncode == 0


# -- the other ways to run


def test_a_callable_takes_its_feeds_by_position(session):
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    add = session.make_callable([x + y], [x, y])
    assert add(1.0, 2.0) == [3.0]
    with pytest.raises(TypeError, match="takes 2 feed values"):
        add(1.0)


def test_a_callable_may_take_options(session):
    metadata = config_pb2.RunMetadata()
    run = session.make_callable(tf.constant(1.0) + 2.0, accept_options=True)
    assert run(options=config_pb2.RunOptions(trace_level=3), run_metadata=metadata) == 3.0
    assert metadata.step_stats.dev_stats


def test_a_callable_from_options_returns_its_fetches_in_order(session):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.add(x, 1.0, name="y")
    run = session._make_callable_from_options(config_pb2.CallableOptions(feed=[x.name], fetch=[y.name]))
    assert run(1.0) == [2.0]


def test_metadata_names_the_nodes_that_ran(session):
    metadata = config_pb2.RunMetadata()
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE, output_partition_graphs=True)
    x = tf.placeholder(tf.float32, [])
    session.run(tf.square(x, name="squared"), {x: 2.0}, options=options, run_metadata=metadata)
    assert "squared" in {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
    assert "squared" in {node.name for node in metadata.partition_graphs[0].node}


def test_a_partial_run_is_fed_and_fetched_bit_by_bit(session):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    first = a + 1.0
    second = first * b
    handle = session.partial_run_setup([first, second], [a, b])
    assert session.partial_run(handle, first, {a: 1.0}) == 2.0
    assert session.partial_run(handle, second, {b: 10.0}) == 20.0
    with pytest.raises(errors.InvalidArgumentError):
        session.partial_run(handle, second, {b: 10.0})


def test_a_partial_run_that_fails_before_it_begins_at_a_task_says_why(session, monkeypatch):
    start_apart = MasterStep.start_apart

    def start_stopped(step):
        step.cancel(errors.InvalidArgumentError.of("another task has failed"))
        start_apart(step)

    monkeypatch.setattr(MasterStep, "start_apart", start_stopped)
    a = tf.placeholder(tf.float32)
    first, second = tf.identity(a + 1), tf.identity(a + 2)
    handle = session.partial_run_setup([first, second], [a])
    with pytest.raises(errors.InvalidArgumentError, match="another task has failed"):
        session.partial_run(handle, first, {a: 1.0})
    assert session.run(first, {a: 1.0}) == 2.0


def test_a_partial_fetch_whose_feeds_are_missing_is_an_error_and_not_a_wait(session):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [], name="b")
    second = (a + 1.0) * b
    handle = session.partial_run_setup([second], [a, b])
    with pytest.raises(errors.InvalidArgumentError, match="needs b:0"):
        session.partial_run(handle, second, {a: 1.0})


def test_the_devices_are_those_of_this_process(session):
    assert [device.name for device in session.list_devices()] == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    with Session(config=config_pb2.ConfigProto(device_count={"CPU": 2})) as two:
        assert len(two.list_devices()) == 2


def test_many_threads_may_run_at_once(session):
    x = tf.placeholder(tf.float32, [])
    y = tf.square(x)
    wrong: list[int] = []

    def run(number: int) -> None:
        for _ in range(20):
            if session.run(y, {x: float(number)}) != number**2:
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_error_shows_where_the_program_made_the_op():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="inputs")
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(x)
    frames = [(frame.name, frame.line) for frame in caught.value.op.traceback]
    assert frames[-1] == (
        "test_an_error_shows_where_the_program_made_the_op",
        'x = tf.placeholder(tf.float32, name="inputs")',
    )
    assert "Original stack trace for 'inputs'" in str(caught.value) and "test_session.py" in str(caught.value)


def test_a_tuple_of_keys_is_fed_leaf_by_leaf(session):
    first, second = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    state = tf.nn.rnn_cell.LSTMStateTuple(first, second)
    total = first + 10 * second
    assert session.run(total, {(first, second): (1.0, 2.0)}) == 21
    assert session.run(total, {(state,): ((np.float32(3), np.float32(4)),)}) == 43
    with pytest.raises(ValueError, match="Key had 2 elements, but value had 3 elements"):
        session.run(total, {(first, second): (1.0, 2.0, 3.0)})
