"""What a session does, told by short programs with TensorFlow's names only, so that either library can be the client.

Each is a function of the module `tf` and of a `Place`, and returns plain JSON: values, or the name of the error that
came. Who runs one behaviour at two places gets the same twice, or one of them is not TensorFlow.

    python -m tests.interop.session_behaviours dtf '[{"worker": ..., "ps": ..., "spare": ..., "behaviours": [...]}]'

prints, for each place, one line of JSON: {"behaviour": result}.
"""

from __future__ import annotations

import collections
import importlib
import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

PS = "/job:ps/task:0"
WORKER = "/job:worker/task:0"
BEHAVIOUR_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Place:
    """A cluster with one ps and one worker; with empty targets it is this process.

    Attributes:
      worker, ps: targets, "grpc://host:port".
      spare: the addresses of two tasks, each in a cluster of its own, for sessions that bring a cluster.
    """

    worker: str
    ps: str
    spare: tuple[str, str] = ("", "")

    @property
    def on_ps(self) -> str | None:
        return PS if self.worker else None

    @property
    def on_worker(self) -> str | None:
        return WORKER if self.worker else None


def plain(value: Any) -> Any:
    """A value as JSON has it, with its dtype where it is an array, and the type's name where it is a structure."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind in "OS":
            return [each.decode() for each in array.reshape(-1).tolist()]
        return [array.dtype.name, array.tolist()]
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "_fields"):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        return [type(value).__name__, {str(key): plain(each) for key, each in value.items()}]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    return value


def outcome(call: Any, *arguments: Any, **keywords: Any) -> Any:
    """What the call returned, as `plain` tells it, or the name of what it raised."""
    try:
        return plain(call(*arguments, **keywords))
    except Exception as error:
        return type(error).__name__


Pair = collections.namedtuple("Pair", "left right")


def fetch_structures(tf, place):
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.multiply(x, 2.0, name="y")
    v = tf.Variable(5.0, name="v")
    r = tf.Variable(6.0, name="r", use_resource=True)
    slices = tf.IndexedSlices(y, tf.constant([3, 1]), tf.constant([9]))
    bare = tf.IndexedSlices(y, tf.constant([3, 1]))
    sparse = tf.SparseTensor([[0, 1], [2, 0]], y, [3, 3])
    words = tf.constant([b"a", b"bc"])
    nothing = tf.no_op(name="nothing")
    feed = {x: [1.0, 2.0]}
    with tf.Session(place.worker) as session:
        session.run(tf.global_variables_initializer())

        def run(fetches, feed_dict=feed):
            return outcome(session.run, fetches, feed_dict)

        return {
            "tensor": run(y),
            "list": run([y, v]),
            "tuple": run((y, v)),
            "dict": run({"a": y, "b": [v, {"c": nothing}]}),
            "ordered": run(collections.OrderedDict([("z", y), ("a", v)])),
            "named tuple": run(Pair(y, [v])),
            "variables": run([v, r]),
            "variable by name": run("v:0"),
            "resource by name": type(run("r:0")).__name__,
            "operation": run(nothing),
            "operations": run([nothing, nothing]),
            "names": run(["y:0", "nothing"]),
            "twice": run([y, y, [y]]),
            "slices": run(slices),
            "bare slices": run(bare),
            "sparse": run(sparse),
            "words": run(words),
            "empty list": run([]),
            "empty dict": run({}),
            "empty tuple": run(()),
            "fed itself": run([x, y]),
            "only fed": run(x),
            "none": run(None),
            "none in list": run([y, None]),
            "number": run(3),
            "unknown name": run("nowhere:0"),
            "name of an operation with colon": run("y:1"),
        }


def feeds(tf, place):
    x = tf.placeholder(tf.float32, [2], name="x")
    n = tf.placeholder(tf.int32, [], name="n")
    word = tf.placeholder(tf.string, [None], name="word")
    c = tf.constant([1.0, 1.0], name="c")
    middle = tf.add(x, c, name="middle")
    top = tf.multiply(middle, 10.0, name="top")
    first, second = tf.split(tf.constant([1, 2, 3, 4]), 2)
    total = tf.add(first, second)
    v = tf.Variable([1.0, 2.0], name="v")
    twice = v * 2.0
    optional = tf.placeholder_with_default([7.0], [None], name="optional")
    sparse = tf.sparse_placeholder(tf.float32, name="sparse")
    dense = tf.sparse_tensor_to_dense(sparse)
    with tf.control_dependencies([middle]):
        after = tf.constant(3.0) + 0.0
    with tf.Session(place.worker) as session:
        session.run(v.initializer)

        def run(fetches, feed_dict=None):
            return outcome(session.run, fetches, feed_dict)

        return {
            "intermediate": run(top, {middle: [1.0, 2.0]}),
            "intermediate in front of a control edge": run(after, {middle: [1.0, 2.0]}),
            "constant": run(middle, {x: [0.0, 0.0], c: [5.0, 6.0]}),
            "one of two outputs": run(total, {first: [100, 200]}),
            "both outputs": run(total, {first: [1, 1], second: [2, 2]}),
            "reference variable": run(twice, {v: [10.0, 20.0]}),
            "default": run(optional),
            "over default": run(optional * 2.0, {optional: [1.0, 2.0]}),
            "by name": run(top, {"x:0": [1.0, 2.0]}),
            "sparse": run(dense, {sparse: tf.SparseTensorValue([[0, 1]], [5.0], [2, 2])}),
            "sparse by parts": run(dense, {sparse: ([[0, 1]], [5.0], [2, 2])}),
            "useless": run(c, {x: [1.0, 2.0]}),
            "words": run(tf.string_join([word, word]), {word: ["a", b"b"]}),
            "unfed": run(top),
            "wrong shape": run(top, {x: [1.0]}),
            "wrong rank": run(top, {x: 1.0}),
            "wrong type": run(top, {x: ["a", "b"]}),
            "too large": run(n + 0, {n: 1 << 40}),
            "fraction for an integer": run(n + 0, {n: 1.5}),
            "integer for a fraction": run(top, {x: [1, 2]}),
            "tensor as value": run(top, {x: c}),
            "unknown key": run(top, {"nowhere:0": 1.0}),
            "operation as key": run(top, {top.op: 1.0}),
            "number as key": run(top, {3: 1.0}),
            "not a dictionary": run(top, [1.0]),
            "scalar array": run(n * 2, {n: np.array(4)}),
            "fetched and fed to another": run([middle, top], {middle: [1.0, 1.0]}),
        }


def unfeedable(tf, place):
    x = tf.constant(1.0)
    y = x + 1.0
    tf.get_default_graph().prevent_feeding(x)
    tf.get_default_graph().prevent_fetching(y.op)
    with tf.Session(place.worker) as session:
        return {
            "fed": outcome(session.run, y + 1.0, {x: 1.0}),
            "fetched": outcome(session.run, y),
        }


def growing_graphs(tf, place):
    found = {}
    with tf.device(place.on_worker):
        v = tf.Variable(1.0, name="v")
    with tf.Session(place.worker) as session, tf.Session(place.worker) as other:
        session.run(v.initializer)
        a = v + 1.0
        found["first"] = outcome(session.run, a)
        b = a * 10.0
        with tf.device(place.on_ps):
            d = b + v
        found["grown"] = outcome(session.run, [a, b, d])
        w = tf.get_variable("w", initializer=3.0)
        found["before its initializer"] = outcome(session.run, w)
        session.run(w.initializer)
        found["new variable"] = outcome(session.run, w * d)
        found["another client"] = outcome(other.run, [a * 2.0])
        found["fetched again"] = outcome(session.run, d)
    return found


def partial_runs(tf, place):
    a = tf.placeholder(tf.float32, [], name="a")
    b = tf.placeholder(tf.float32, [], name="b")
    c = tf.placeholder(tf.float32, [], name="c")
    with tf.device(place.on_ps):
        ab = tf.add(a, b, name="ab")
    with tf.device(place.on_worker):
        abc = tf.multiply(ab, c, name="abc")
        note = tf.Variable(0.0, name="note")
        effect = tf.assign(note, abc).op
    found = {}
    with tf.Session(place.worker) as session:
        session.run(note.initializer)
        handle = session.partial_run_setup([ab, abc], [a, b, c])
        found["stages"] = [
            outcome(session.partial_run, handle, ab, {a: 1.0, b: 2.0}),
            outcome(session.partial_run, handle, abc, {c: 10.0}),
        ]
        found["after its end"] = outcome(session.partial_run, handle, ab, {a: 1.0})
        handle = session.partial_run_setup([ab, abc], [a, b, c])
        found["two at a time"] = [
            outcome(session.partial_run, handle, [], {a: 1.0}),
            outcome(session.partial_run, handle, [ab], {b: 5.0}),
            outcome(session.partial_run, handle, {"x": abc}, {c: 2.0}),
        ]
        handle = session.partial_run_setup([ab, abc], [a, b, c])
        found["without what it needs"] = outcome(session.partial_run, handle, abc, {c: 1.0})
        handle = session.partial_run_setup([ab, abc], [a, b, c])
        session.partial_run(handle, ab, {a: 1.0, b: 1.0})
        found["fed twice"] = outcome(session.partial_run, handle, abc, {a: 1.0, c: 1.0})
        handle = session.partial_run_setup([ab, abc], [a, b, c])
        session.partial_run(handle, ab, {a: 1.0, b: 1.0})
        found["fetched twice"] = outcome(session.partial_run, handle, [ab], {})
        handle = session.partial_run_setup([ab], [a, b])
        found["not set up"] = [
            outcome(session.partial_run, handle, abc, {a: 1.0, b: 1.0}),
        ]
        handle = session.partial_run_setup([ab], [a, b])
        found["feed not set up"] = outcome(session.partial_run, handle, ab, {a: 1.0, b: 1.0, c: 1.0})
        found["unknown handle"] = outcome(session.partial_run, "nowhere", ab, {a: 1.0, b: 1.0})
        handle = session.partial_run_setup([abc, effect], [a, b, c])
        found["target"] = [
            outcome(session.partial_run, handle, [abc], {a: 1.0, b: 1.0}),
        ]
        handle = session.partial_run_setup([ab, effect], [a, b, c])
        found["with an operation"] = [
            outcome(session.partial_run, handle, ab, {a: 1.0, b: 1.0}),
            outcome(session.partial_run, handle, effect, {c: 4.0}),
            outcome(session.run, note),
        ]
        one = session.partial_run_setup([ab], [a, b])
        two = session.partial_run_setup([ab], [a, b])
        found["interleaved"] = [
            outcome(session.partial_run, one, [], {a: 1.0}),
            outcome(session.partial_run, two, [], {a: 10.0}),
            outcome(session.partial_run, two, ab, {b: 20.0}),
            outcome(session.partial_run, one, ab, {b: 2.0}),
        ]
        found["nothing to do"] = outcome(session.partial_run_setup, [], [a])
        found["no feeds"] = type(outcome(session.partial_run_setup, [tf.constant(1.0)])).__name__
        handle = session.partial_run_setup([ab], [a, b])
        found["wrong shape"] = outcome(session.partial_run, handle, ab, {a: [1.0], b: 1.0})
        found["run still works"] = outcome(session.run, abc, {a: 1.0, b: 1.0, c: 1.0})
    return found


def failing_partial_run(tf, place):
    a = tf.placeholder(tf.int32, [], name="a")
    b = tf.placeholder(tf.int32, [], name="b")
    with tf.device(place.on_ps):
        first = tf.floordiv(a, b, name="first")
    second = tf.add(first, 1)
    with tf.Session(place.worker) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        return [
            outcome(session.partial_run, handle, first, {a: 1, b: 0}),
            outcome(session.run, second, {a: 4, b: 2}),
        ]


def callables(tf, place):
    x = tf.placeholder(tf.float32, [None], name="x")
    n = tf.placeholder(tf.float32, [], name="n")
    with tf.device(place.on_ps):
        y = tf.multiply(x, n, name="y")
    v = tf.Variable(0.0, name="v")
    add = tf.assign_add(v, 1.0, name="add")
    found = {}
    with tf.Session(place.worker) as session:
        session.run(v.initializer)
        call = session.make_callable(y, [x, n])
        found["made"] = [outcome(call, [1.0, 2.0], 3.0), outcome(call, [], 1.0)]
        found["structure"] = outcome(session.make_callable({"a": y, "b": [add.op]}, [x, n]), [1.0], 2.0)
        found["single operation"] = outcome(session.make_callable(add.op))
        found["no feeds"] = outcome(session.make_callable([add]))
        found["too few"] = outcome(call, [1.0])
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        call = session.make_callable(y, [x, n], accept_options=True)
        found["options"] = outcome(call, [1.0], 2.0, options=options, run_metadata=metadata)
        found["traced"] = bool(metadata.step_stats.dev_stats)
        found["unfed"] = outcome(session.make_callable(y, [x]), [1.0])
        found["unknown"] = outcome(session.make_callable, "nowhere:0")
        callable_options = type(options)  # the class of CallableOptions is in the same module
        module = importlib.import_module(callable_options.__module__)
        by_proto = module.CallableOptions(feed=["x:0", "n:0"], fetch=["y:0"], target=["add"])
        call = session._make_callable_from_options(by_proto)
        found["from options"] = [outcome(call, np.float32([1.0, 2.0]), np.float32(3.0)) for _ in range(2)]
        by_proto.run_options.trace_level = options.trace_level
        metadata = tf.RunMetadata()
        traced = session._make_callable_from_options(by_proto)
        found["from options, traced"] = outcome(traced, np.float32([1.0]), np.float32(2.0), run_metadata=metadata)
        found["traced nodes"] = bool(metadata.step_stats.dev_stats)
        wrong = module.CallableOptions(feed=["nowhere:0"], fetch=["y:0"])
        found["from wrong options"] = outcome(session._make_callable_from_options, wrong)
        wrong = module.CallableOptions(fetch=["y:7"])
        found["from a wrong output"] = outcome(session._make_callable_from_options, wrong)
        wrong = module.CallableOptions(target=["nowhere"])
        found["from a wrong target"] = outcome(session._make_callable_from_options, wrong)
        found["from nothing"] = type(outcome(session._make_callable_from_options, module.CallableOptions())).__name__
        tied = module.CallableOptions(feed=["n:0"], fetch=["y:0"])
        tied.tensor_connection.add(from_tensor="add:0", to_tensor="n:0")
        found["tied"] = outcome(session._make_callable_from_options, tied)
        found["effects"] = outcome(session.run, v)
    closed = call
    found["closed"] = outcome(closed, np.float32([1.0]), np.float32(3.0))
    return found


def tensor_connections(tf, place):
    x = tf.placeholder(tf.float32, [], name="x")
    c = tf.constant(2.0, name="c")
    d = tf.multiply(c, 1.0, name="d")
    tf.add(x, d, name="y")
    module = importlib.import_module(tf.RunOptions.__module__)

    def tied(pairs, **keywords):
        options = module.CallableOptions(**keywords)
        for source, target in pairs:
            options.tensor_connection.add(from_tensor=source, to_tensor=target)

        def call():
            return session._make_callable_from_options(options)(*[np.float32(1.0)] * len(options.feed))

        return outcome(call)

    with tf.Session(place.worker) as session:
        return {
            "one": tied([("c:0", "x:0")], fetch=["y:0"]),
            "to an output": tied([("c:0", "d:0")], feed=["x:0"], fetch=["y:0"]),
            "unknown source": tied([("nowhere:0", "x:0")], fetch=["y:0"]),
            "unknown target": tied([("c:0", "nowhere:0")], feed=["x:0"], fetch=["y:0"]),
            "cycle": tied([("y:0", "x:0")], fetch=["y:0"]),
            "fed too": tied([("c:0", "x:0")], feed=["x:0"], fetch=["y:0"]),
            "twice": tied([("c:0", "x:0"), ("d:0", "x:0")], fetch=["y:0"]),
        }


def devices(tf, place):
    with tf.Session(place.worker) as session:
        return sorted(
            [device.name, device.device_type, device.memory_limit_bytes, device.incarnation != 0]
            for device in session.list_devices()
        )


def device_filters(tf, place):
    found = {}
    with tf.device(place.on_ps):
        x = tf.constant(1.0) + 1.0
    free = tf.constant(3.0) * 2.0
    for filters in ([], ["/job:ps"], ["/job:worker"], ["/job:worker/task:0"], ["/job:nowhere"], ["/job:ps/task:7"]):
        with tf.Session(place.worker, config=tf.ConfigProto(device_filters=filters)) as session:
            found[str(filters)] = [
                sorted(device.name for device in session.list_devices()),
                outcome(session.run, x),
                outcome(session.run, free),
            ]
    return found


def placement(tf, place):
    def run(device, **options):
        with tf.Graph().as_default():
            with tf.device(device):
                x = tf.add(tf.constant(1.0), 2.0)
            with tf.Session(place.worker, config=tf.ConfigProto(**options)) as session:
                return outcome(session.run, x)

    asked = [
        "",
        "/gpu:0",
        "/device:GPU:3",
        "/cpu:5",
        "/job:ps/cpu:7",
        "/job:ps/gpu:0",
        "/job:nowhere",
        "/job:ps/task:9",
    ]
    asked += ["/job:worker/replica:4", "/job:localhost", "/job:ps/task:0/device:TPU:0", "/device:XYZ:0"]
    return {
        device: [run(device), run(device, allow_soft_placement=True), run(device, log_device_placement=True)]
        for device in asked
    }


def colocation(tf, place):
    found = {}
    with tf.device(place.on_ps):
        v = tf.Variable(1.0, name="v")
    with tf.device(place.on_worker):
        w = tf.Variable(1.0, name="w")
    with tf.device(place.on_worker):
        update = tf.assign(v, 3.0)
    with tf.colocate_with(v.op):
        near = tf.constant(1.0) + 1.0
    with tf.Session(place.worker) as session:
        session.run(tf.global_variables_initializer())
        found["moved"] = outcome(session.run, update)
        found["near"] = outcome(session.run, near)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(output_partition_graphs=True)
        session.run([near, update, w], options=options, run_metadata=metadata)
        found["where"] = sorted(
            [node.name, node.device]
            for graph in metadata.partition_graphs
            for node in graph.node
            if node.op in ("Assign", "VariableV2")
        )
    return found


def containers(tf, place):
    found = {}
    with tf.device(place.on_ps):
        with tf.container("one"):
            a = tf.Variable(1.0, name="a")
            q = tf.FIFOQueue(3, tf.float32, name="q")
        with tf.container("two"):
            b = tf.Variable(2.0, name="b")
            r = tf.get_variable("r", initializer=4.0, use_resource=True)
        c = tf.Variable(3.0, name="c")
    push = q.enqueue(1.0)
    size = q.size()
    session = tf.Session(place.worker)
    session.run([tf.global_variables_initializer(), push])
    found["made"] = outcome(session.run, [a, b, c, r, size])
    tf.Session.reset(place.worker, ["one"])
    found["session after reset"] = outcome(session.run, b)
    found["its close"] = outcome(session.close)
    with tf.Session(place.worker) as session:
        found["after one"] = [outcome(session.run, each) for each in (a, b, c, r, size)]
        tf.Session.reset(place.ps)  # closes the sessions of the ps, not ours
        found["after the other server's reset"] = [outcome(session.run, each) for each in (a, b, c, r, size)]
        session.run(c.initializer)
    for names in (["two", "one", "nowhere"], [], None):
        tf.Session.reset(place.worker, names)
        with tf.Session(place.worker) as session:
            found[f"after {names}"] = [outcome(session.run, each) for each in (a, b, c, r)]
    return found


def sharing(tf, place):
    found = {}
    with tf.device(place.on_ps):
        v = tf.Variable(1.0, name="v")
        r = tf.get_variable("r", initializer=1.0, use_resource=True)
        q = tf.FIFOQueue(3, tf.float32, shared_name="q")
    with tf.Session(place.worker) as first, tf.Session(place.ps) as second:
        found["before"] = [outcome(second.run, v), outcome(second.run, r)]
        first.run(tf.global_variables_initializer())
        found["seen by the other"] = outcome(second.run, [v, r])
        second.run([tf.assign_add(v, 10.0), r.assign_add(5.0), q.enqueue(7.0)])
        found["seen by the first"] = outcome(first.run, [v, r, q.dequeue()])
    with tf.Session(place.worker) as third:
        found["after both have closed"] = outcome(third.run, [v, r])
    with tf.Session(place.worker, config=tf.ConfigProto(isolate_session_state=True)) as alone:
        found["isolated"] = outcome(alone.run, v)
        alone.run(tf.global_variables_initializer())
        alone.run(tf.assign(v, 100.0))
        found["isolated, own"] = outcome(alone.run, [v, r])
    with tf.Session(place.worker) as fourth:
        found["isolation's end"] = outcome(fourth.run, [v, r])
    return found


def session_handles(tf, place):
    found = {}
    with tf.device(place.on_ps):
        a = tf.constant([1.0, 2.0], name="a")
        h = tf.get_session_handle(a * 2.0)
    with tf.device(place.on_worker):
        local = tf.get_session_handle(tf.constant(7, name="seven"))
    with tf.Session(place.worker) as session:
        handle = session.run(h)
        found["type"] = type(handle).__name__
        holder, value = tf.get_session_tensor(handle.handle, tf.float32)
        found["value"] = outcome(session.run, value, {holder: handle.handle})
        found["used"] = outcome(session.run, value * 3.0, {holder: handle.handle})
        found["eval"] = outcome(handle.eval)
        number = session.run(local)
        there, seven = tf.get_session_tensor(number.handle, tf.int32)
        found["other task"] = outcome(session.run, seven + 1, {there: number.handle})
        found["fed as a tensor"] = outcome(session.run, a + 1.0, {a: handle})
        found["pair"] = outcome(session.run, [value, seven], {holder: handle.handle, there: number.handle})
        gone, delete = tf.delete_session_tensor(handle.handle)
        found["delete"] = outcome(session.run, delete, {gone: handle.handle})
        found["deleted"] = outcome(session.run, value, {holder: handle.handle})
        found["deleted twice"] = outcome(session.run, delete, {gone: handle.handle})
        found["rubbish"] = outcome(session.run, value, {holder: "rubbish"})
        found["wrong type"] = outcome(session.run, value, {holder: number.handle})
        number.delete()
        found["deleted by itself"] = outcome(number.eval)
        keep = session.run(h)
        kept = keep.handle
    with tf.Session(place.worker) as other:
        found["another session"] = outcome(other.run, value, {holder: kept})
    return found


def closing(tf, place):
    found = {}
    with tf.device(place.on_ps):
        q = tf.FIFOQueue(3, tf.float32, shared_name="never")
        wait = q.dequeue()
        x = tf.constant(1.0) + 1.0
    session = tf.Session(place.worker)
    found["before"] = outcome(session.run, x)
    waiting = []
    thread = threading.Thread(target=lambda: waiting.append(outcome(session.run, wait)))
    thread.start()
    time.sleep(0.3)
    session.close()
    thread.join(20)
    found["running step"] = waiting
    found["run"] = outcome(session.run, x)
    found["list_devices"] = outcome(session.list_devices)
    found["close again"] = outcome(session.close)
    with tf.Session(place.worker) as session:
        found["goes on"] = outcome(session.run, x)
        found["nothing was taken"] = outcome(session.run, q.size())
    return found


def timeouts(tf, place):
    found = {}
    with tf.device(place.on_ps):
        q = tf.FIFOQueue(3, tf.float32, shared_name="timeouts")
        wait = q.dequeue()
        push = q.enqueue(5.0)
    with tf.Session(place.worker) as session:
        options = tf.RunOptions(timeout_in_ms=300)
        found["step"] = outcome(session.run, wait, options=options)
        found["in time"] = outcome(session.run, push, options=options)
        found["after"] = outcome(session.run, q.size())
        found["taken"] = outcome(session.run, wait, options=options)
        found["again"] = outcome(session.run, wait, options=options)
    with tf.Session(place.worker, config=tf.ConfigProto(operation_timeout_in_ms=300)) as session:
        found["session"] = outcome(session.run, wait)
        session.run(push)
        found["session in time"] = outcome(session.run, wait)
        handle = session.make_callable(wait)
        found["callable"] = outcome(handle)
    with tf.Session(place.worker) as session:
        found["left"] = outcome(session.run, q.size())
    return found


def _nodes(metadata, device):
    """The nodes that a trace has at a device; what the runtime adds by itself is left out."""
    return sorted(
        {
            node.node_name.partition(":")[0]
            for there in metadata.step_stats.dev_stats
            if there.device == device
            for node in there.node_stats
            if not node.node_name.startswith(("_", "RecvTensor", "edge_")) and "/_" not in node.node_name
        }
    )


def traces(tf, place):
    found = {}
    with tf.device(place.on_ps):
        v = tf.Variable([[1.0, 2.0]], name="v")
    with tf.device(place.on_worker):
        x = tf.placeholder(tf.float32, [None, 1], name="x")
        y = tf.matmul(x, v, name="y")
        z = tf.reduce_sum(tf.sqrt(y, name="root"), name="z")
    devices = ["/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"]
    with tf.Session(place.worker) as session:
        session.run(v.initializer)
        for level in ("NO_TRACE", "SOFTWARE_TRACE", "HARDWARE_TRACE", "FULL_TRACE"):
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=getattr(tf.RunOptions, level))
            session.run(z, {x: [[4.0]]}, options=options, run_metadata=metadata)
            expected = {"v", "y", "root", "z"}
            nodes = [set(_nodes(metadata, device)) & expected for device in devices]
            found[level] = {
                "traced": [bool(each) for each in nodes],
                "nodes": sorted(nodes[1]),
                "graphs": len(metadata.partition_graphs),
                "cost": bool(metadata.cost_graph.node),
            }
            times = [
                node
                for there in metadata.step_stats.dev_stats
                if there.device == devices[1]
                for node in there.node_stats
                if node.node_name == "y"
            ]
            found[level]["times"] = [
                [
                    node.all_start_micros > 1_000_000_000_000_000,
                    node.op_end_rel_micros >= node.op_start_rel_micros >= 0,
                    node.all_end_rel_micros >= node.op_end_rel_micros,
                    [str(dim.size) for out in node.output for dim in out.tensor_description.shape.dim],
                    [out.tensor_description.dtype for out in node.output],
                    node.timeline_label.partition("(")[0],
                ]
                for node in times
            ]
        metadata = tf.RunMetadata()
        options = tf.RunOptions(output_partition_graphs=True)
        session.run(z, {x: [[4.0]]}, options=options, run_metadata=metadata)
        found["partition graphs"] = sorted(
            sorted({node.device for node in graph.node} & set(devices)) for graph in metadata.partition_graphs
        )
        found["not traced"] = bool(metadata.step_stats.dev_stats)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(report_tensor_allocations_upon_oom=True)
        found["oom report"] = outcome(session.run, z, {x: [[4.0]]}, options, metadata)
        found["plain"] = outcome(session.run, z, {x: [[4.0]]}, None, metadata)
        found["wrong options"] = outcome(session.run, z, {x: [[4.0]]}, 3)
        found["inter op pool"] = outcome(session.run, z, {x: [[4.0]]}, tf.RunOptions(inter_op_thread_pool=0))
        found["inter op pool 5"] = outcome(session.run, z, {x: [[4.0]]}, tf.RunOptions(inter_op_thread_pool=5))
        found["own thread"] = outcome(session.run, z, {x: [[4.0]]}, tf.RunOptions(inter_op_thread_pool=-1))
    return found


def settings(tf, place):
    module = importlib.import_module(tf.ConfigProto.__module__)

    def run(**options):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [], name="x")
            y = tf.sqrt(x) * tf.add(2.0, 3.0)
            with tf.Session(place.worker, config=tf.ConfigProto(**options)) as session:
                return outcome(session.run, y, {x: 4.0})

    graph_options = tf.GraphOptions()
    found = {
        "threads": run(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1),
        "many threads": run(inter_op_parallelism_threads=100, intra_op_parallelism_threads=100),
        "negative threads": run(inter_op_parallelism_threads=-1),
        "per session threads": run(use_per_session_threads=True),
        "pool": run(session_inter_op_thread_pool=[module.ThreadPoolOptionProto(num_threads=2)]),
        "device count": run(device_count={"CPU": 3, "GPU": 1}),
        "gpu options": run(gpu_options=tf.GPUOptions(allow_growth=True, per_process_gpu_memory_fraction=0.3)),
        "placement period": run(placement_period=3),
        "log": run(log_device_placement=True),
    }
    graph_options.optimizer_options.opt_level = -1
    found["no optimizer"] = run(graph_options=graph_options)
    graph_options = tf.GraphOptions(build_cost_model=1, infer_shapes=True, place_pruned_graph=True)
    graph_options.rewrite_options.disable_meta_optimizer = True
    found["rewrites"] = run(graph_options=graph_options)
    graph_options = tf.GraphOptions(enable_bfloat16_sendrecv=False, enable_recv_scheduling=True, timeline_step=2)
    graph_options.rewrite_options.constant_folding = 3
    found["rewrites on"] = run(graph_options=graph_options)
    found["experimental"] = run(
        experimental=module.ConfigProto.Experimental(share_session_state_in_clusterspec_propagation=True)
    )
    found["rpc options"] = run(rpc_options={"use_rpc_for_inprocess_master": True, "cache_rpc_response": True})
    found["timeout"] = run(operation_timeout_in_ms=20000)
    return found


def fetched_beside_an_update(tf, place):
    """What a fetch gives that races with an update, as far as TensorFlow always gives the same.

    A reference that is fetched from the master's own task shows what it holds when the step has ended.
    """
    found = {}

    def run(name, fetch):
        with tf.Graph().as_default():
            with tf.device(place.on_worker):
                step = tf.get_variable("step", initializer=np.int64(0), trainable=False)
                w = tf.get_variable("w", initializer=[1.0])
                loss = tf.reduce_sum(tf.square(w))
                train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
                value = fetch(step)
            with tf.Session(place.worker) as session:
                session.run(tf.global_variables_initializer())
                found[name] = [int(session.run([train, value])[1]) for _ in range(4)]

    run("reference", lambda variable: variable)
    run("read", lambda variable: variable.value())
    run("through identities", lambda variable: tf.identity(tf.identity(variable)))
    return found


def own_cluster(tf, place):
    """A session that brings its cluster (ClusterSpec propagation)."""
    found = {}
    first, second = place.spare
    cluster = tf.train.ClusterSpec({"other": {0: first, 3: second}})
    config = tf.ConfigProto(cluster_def=cluster.as_cluster_def())
    with tf.device("/job:other/task:3"):
        v = tf.Variable(2.0, name="own_v")
        y = v * 3.0
    with tf.device("/job:other/task:0"):
        z = y + 1.0
    with tf.Session(f"grpc://{first}", config=config) as session:
        found["devices"] = sorted(device.name for device in session.list_devices())
        found["initialize"] = outcome(session.run, v.initializer)
        found["run"] = outcome(session.run, [y, z])
        metadata = tf.RunMetadata()
        session.run(z, options=tf.RunOptions(trace_level=3, output_partition_graphs=True), run_metadata=metadata)
        found["where"] = sorted({there.device for there in metadata.step_stats.dev_stats if there.node_stats})
        found["handle"] = outcome(lambda: session.run(tf.get_session_handle(z)).eval())
    with tf.Session(f"grpc://{first}", config=config) as session:
        found["another session's state"] = outcome(session.run, v)
    with tf.Session(f"grpc://{first}") as session:
        found["without it"] = outcome(session.run, z)
    lonely = tf.train.ClusterSpec({"elsewhere": ["127.0.0.1:1"]})
    with tf.Session(
        f"grpc://{first}", config=tf.ConfigProto(cluster_def=lonely.as_cluster_def(), operation_timeout_in_ms=2000)
    ) as session:
        found["not a member"] = outcome(session.run, tf.constant(1.0))
    return found


BEHAVIOURS = {
    function.__name__: function
    for function in (
        fetch_structures, feeds, unfeedable, growing_graphs, partial_runs, failing_partial_run, callables,
        tensor_connections, devices, device_filters, placement, colocation, containers, sharing, session_handles,
        closing, timeouts, traces, settings, fetched_beside_an_update, own_cluster,
    )
}  # fmt: skip

AT_ONE_KIND = ["fetch_structures", "feeds", "unfeedable", "tensor_connections", "placement", "settings"]
"""What is the master's alone, so that a cluster of both kinds shows nothing new."""

LOCAL = [
    "fetch_structures", "feeds", "unfeedable", "growing_graphs", "partial_runs", "failing_partial_run", "callables",
    "tensor_connections", "session_handles", "closing", "timeouts", "settings", "fetched_beside_an_update",
]  # fmt: skip
"""What makes sense in a session without a target."""


def observe(tf: Any, place: Place, names: list[str]) -> dict[str, Any]:
    """What the behaviours give at a place; one that raises gives the error, one that does not end says so."""
    found = dict.fromkeys(names, "did not end")

    def run(name: str) -> None:
        with tf.Graph().as_default():
            try:
                if place.worker:
                    tf.Session.reset(place.worker)  # what the one before has left behind
                found[name] = BEHAVIOURS[name](tf, place)
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"[:400]

    for name in found:
        thread = threading.Thread(target=run, args=(name,), daemon=True)
        thread.start()
        thread.join(BEHAVIOUR_TIMEOUT_S)
    return json.loads(json.dumps(found))


def main(module: str, places: str) -> None:
    tf = importlib.import_module(module)
    if module.startswith("tensorflow"):
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.FATAL)
    for place in json.loads(places):
        here = Place(place["worker"], place["ps"], tuple(place["spare"]))
        print(json.dumps(observe(tf, here, place["behaviours"])), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # whatever a behaviour that did not end has left running
