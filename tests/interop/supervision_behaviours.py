"""How sessions of a training come to be and end: managers, coordinators, queue runners, Supervisors, global steps.

    python -m tests.interop.supervision_behaviours dtf
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from typing import Any

import numpy as np

from tests.interop.behaviours import outcome, plain, run_all
from tests.interop.training_behaviours import errors_of, report


def recover_session(tf: Any) -> Any:
    """Every pair of ops of a SessionManager, with a checkpoint and without."""
    found: dict[str, Any] = {}
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default():
        tf.Variable(3, name="v")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, os.path.join(folder, "model"))
    for checkpoint in (True, False):
        for ready in ("none", "report"):
            for local in ("none", "init"):
                for ready_local in ("none", "global", "all"):
                    if local == "none" and ready_local != "none":
                        continue
                    with tf.Graph().as_default():
                        v = tf.Variable(1, name="v")
                        w = tf.Variable(v.initialized_value() + 1, name="w", collections=["local_variables"],
                                        trainable=False)
                        names = {
                            "none": None, "report": tf.report_uninitialized_variables(),
                            "global": tf.report_uninitialized_variables(tf.global_variables()),
                            "all": tf.report_uninitialized_variables(),
                        }
                        manager = tf.train.SessionManager(
                            ready_op=names[ready],
                            ready_for_local_init_op=names[ready_local],
                            local_init_op=w.initializer if local == "init" else None,
                        )
                        saver = tf.train.Saver({"v": v})

                        def recover(manager=manager, saver=saver, v=v, w=w, checkpoint=checkpoint) -> Any:
                            session, ready = manager.recover_session(
                                "", saver=saver, checkpoint_dir=folder if checkpoint else folder + "/none")
                            with session:
                                return [ready, outcome(session.run, v), outcome(session.run, w)]

                        key = f"checkpoint {checkpoint}, ready {ready}, local {local}, ready for local {ready_local}"
                        found[key] = outcome(recover)
    return found


def prepare_session(tf: Any) -> Any:
    found: dict[str, Any] = {}
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default():
        tf.Variable(3, name="v")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, os.path.join(folder, "model"))
    for checkpoint in (True, False):
        for init in ("op", "fn", "both", "none", "feed", "wrong"):
            for ready in ("none", "report"):
                for local in ("none", "init", "checked"):
                    with tf.Graph().as_default():
                        x = tf.placeholder(tf.int32, [])
                        v = tf.Variable(x if init == "feed" else 1, name="v", validate_shape=False)
                        other = tf.Variable(7, name="other", collections=[])
                        w = tf.Variable(2, name="w", collections=["local_variables"], trainable=False)
                        names = tf.report_uninitialized_variables()
                        manager = tf.train.SessionManager(
                            ready_op=names if ready == "report" else None,
                            local_init_op=None if local == "none" else w.initializer,
                            ready_for_local_init_op=(
                                tf.report_uninitialized_variables(tf.global_variables()) if local == "checked" else None
                            ),
                        )
                        saver = tf.train.Saver({"v": v})
                        calls: list[Any] = []

                        def init_fn(session: Any, calls=calls, other=other) -> None:
                            calls.append(1)
                            session.run(other.initializer)

                        def prepare(manager=manager, saver=saver, v=v, w=w, other=other, init=init,
                                    checkpoint=checkpoint, init_fn=init_fn, calls=calls, x=x) -> Any:
                            session = manager.prepare_session(
                                "", saver=saver, checkpoint_dir=folder if checkpoint else folder + "/none",
                                init_op={"op": v.initializer, "both": v.initializer, "feed": v.initializer,
                                         "wrong": other.initializer}.get(init),
                                init_fn=init_fn if init in ("fn", "both") else None,
                                init_feed_dict={x: 9} if init == "feed" else None,
                            )
                            with session:
                                return [outcome(session.run, each) for each in (v, w, other)] + [len(calls)]

                        found[f"checkpoint {checkpoint}, {init}, ready {ready}, local {local}"] = outcome(prepare)
    return found


def prepare_session_refusals(tf: Any) -> Any:
    v = tf.Variable(1, name="v")
    saver = tf.train.Saver()
    manager = tf.train.SessionManager()
    found = {
        "both places": outcome(
            manager.prepare_session, "", saver=saver, checkpoint_dir="a", checkpoint_filename_with_path="b"),
        "no such file": outcome(
            manager.prepare_session, "", init_op=v.initializer, saver=saver,
            checkpoint_filename_with_path="/nonexistent/model"),
        "ready for local without local": outcome(
            tf.train.SessionManager, ready_for_local_init_op=tf.report_uninitialized_variables()),
        "recover both": outcome(
            manager.recover_session, "", saver=saver, checkpoint_dir="a", checkpoint_filename_with_path="b"),
    }
    return found


def wait_for_session(tf: Any) -> Any:
    """Waits for a model that nobody makes ready, or that is ready at once; with global steps of all kinds."""
    found: dict[str, Any] = {}
    for dtype in ("int32", "int64", "float32", "float64"):
        for shape in ([], [1]):
            for use_resource in (False, True):
                for named in ("global_step", "other"):
                    with tf.Graph().as_default():
                        step = tf.Variable(np.zeros(shape, dtype), name=named, trainable=False,
                                           use_resource=use_resource)
                        if named == "other":
                            tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
                        never = tf.train.SessionManager(
                            ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.01)
                        at_once = tf.train.SessionManager(
                            ready_op=tf.constant([], tf.string), recovery_wait_secs=0.01,
                            local_init_op=step.initializer)
                        key = f"{dtype} {shape} {use_resource} {named}"
                        found[key] = [
                            outcome(never.wait_for_session, "", max_wait_secs=0.1),
                            outcome(lambda m=at_once, s=step: m.wait_for_session("", max_wait_secs=30).run(s)),
                        ]
    return found


def global_steps_everywhere(tf: Any) -> Any:
    """Who reads a global step of which kind, and who refuses it."""
    found: dict[str, Any] = {}
    for dtype in ("int32", "int64", "float32", "float64"):
        for shape in ([], [1]):
            for use_resource in (False, True):
                with tf.Graph().as_default() as graph:
                    step = tf.Variable(np.full(shape, 3, dtype), name="global_step", trainable=False,
                                       use_resource=use_resource)
                    folder = tempfile.mkdtemp()
                    key = f"{dtype} {shape} {use_resource}"

                    def value(step=step) -> Any:
                        with tf.Session() as session:
                            session.run(step.initializer)
                            return tf.train.global_step(session, step)

                    def save(step=step, folder=folder) -> Any:
                        with tf.Session() as session:
                            session.run(step.initializer)
                            path = tf.train.Saver().save(session, os.path.join(folder, "m"), global_step=step)
                            return os.path.basename(path)

                    def monitored(step=step) -> Any:
                        with tf.train.MonitoredTrainingSession() as session:
                            return session.run(step + 1)

                    def supervised(step=step, folder=folder, **keywords: Any) -> Any:
                        supervisor = tf.train.Supervisor(logdir=folder + "/sup", summary_op=None, **keywords)
                        with supervisor.managed_session("") as session:
                            result = [supervisor.global_step is None, plain(session.run(step))]
                        names = [name for name in os.listdir(folder + "/sup") if name.endswith(".index")]
                        return [result, sorted(names)]

                    # Whether a vector of one number is a number is up to numpy: 2.4 refuses it in TensorFlow.
                    found[key] = {
                        "get": outcome(lambda g=graph: tf.train.get_global_step(g).name),
                        "assert": outcome(tf.train.assert_global_step, step),
                        "value": outcome(value) if not shape else None,
                        "save": outcome(save),
                        "monitored": outcome(monitored),
                        "supervisor": outcome(supervised) if not shape else None,
                        "given to it": outcome(supervised, global_step=step) if not shape else None,
                    }
    return found


def queue_runners(tf: Any) -> Any:
    """Queue runners of a graph in each kind of session: started once, errors told, ended."""
    found: dict[str, Any] = {}
    for kind in ("MonitoredSession", "SingularMonitoredSession", "MonitoredTrainingSession"):
        with tf.Graph().as_default():
            counter = tf.Variable(0, name="counter")
            queue = tf.FIFOQueue(100, [tf.int32], shapes=[[]])
            enqueue = queue.enqueue(counter.assign_add(1))
            runner = tf.train.QueueRunner(queue, [enqueue])
            tf.train.add_queue_runner(runner)
            get = queue.dequeue()
            with getattr(tf.train, kind)() as session:
                first = plain(session.run(get)) > 0
                again = outcome(lambda s=session: len(tf.train.start_queue_runners(s)))
                found[kind] = [first, again]
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
        bad = tf.check_numerics(tf.constant(np.nan, tf.float32), "bad")
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(bad)]))
        get = queue.dequeue()

        def fails() -> Any:
            with tf.train.MonitoredSession() as session:
                while not session.should_stop():
                    session.run(get)
            return "left"

        found["an error in a thread"] = outcome(fails)
    with tf.Graph().as_default():
        source = tf.train.input_producer(tf.constant([1, 2, 3]), num_epochs=1, shuffle=False)
        get = source.dequeue()

        def ends() -> Any:
            seen = []
            with tf.train.MonitoredSession() as session:
                while not session.should_stop():
                    seen.append(plain(session.run(get)))
            return seen

        values = outcome(ends)
        found["an input that ends"] = values
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2)
        with tf.Session() as session:
            coord = tf.train.Coordinator()
            threads = runner.create_threads(session, coord)
            found["threads"] = [len(threads), len(runner.create_threads(session, coord)), threads[0].is_alive()]
            for thread in threads:
                thread.start()
            coord.request_stop()
            coord.join(threads)
            found["again"] = len(runner.create_threads(session, tf.train.Coordinator()))
        found["no session"] = outcome(tf.train.start_queue_runners)
        found["not a session"] = outcome(tf.train.start_queue_runners, 3)
        found["names"] = [runner.name == queue.name, runner.queue is queue, len(runner.enqueue_ops),
                          [kind.__name__ for kind in runner.queue_closed_exception_types]]
        found["nothing"] = [outcome(tf.train.QueueRunner), outcome(tf.train.QueueRunner, queue, [])]
    return found


def coordinators(tf: Any) -> Any:
    found: dict[str, Any] = {}
    for name, error in errors_of(tf).items():
        coord = tf.train.Coordinator()
        report(coord, error)
        found[f"request {name}"] = [
            coord.should_stop(), outcome(coord.raise_requested_exception), outcome(coord.join),
            coord.joined, outcome(report, coord, ValueError("late")), outcome(coord.request_stop),
        ]
        coord = tf.train.Coordinator(clean_stop_exception_types=(ValueError,))
        report(coord, error)
        found[f"clean {name}"] = outcome(coord.join)
        coord = tf.train.Coordinator()

        def block(coord=coord, error=error) -> Any:
            with coord.stop_on_exception():
                raise error

        found[f"block {name}"] = [outcome(block), coord.should_stop(), outcome(coord.join)]
    coord = tf.train.Coordinator()
    report(coord, ValueError("1"))
    report(coord, KeyError("2"))
    found["two errors"] = outcome(coord.join)
    try:
        raise KeyError("x")
    except KeyError:
        coord = tf.train.Coordinator()
        coord.request_stop(sys.exc_info())
    found["exc_info"] = outcome(coord.join)
    coord.clear_stop()
    found["cleared"] = [coord.should_stop(), coord.joined, outcome(coord.join)]
    coord = tf.train.Coordinator()
    coord = tf.train.Coordinator()
    hold = threading.Event()
    thread = threading.Thread(target=hold.wait, daemon=True)
    thread.start()
    coord.request_stop()
    found["alive"] = [outcome(coord.join, [thread], stop_grace_period_secs=0.1),
                      outcome(coord.join, [thread], stop_grace_period_secs=0.1, ignore_live_threads=True)]
    hold.set()
    found["wait"] = [tf.train.Coordinator().wait_for_stop(0.01), coord.wait_for_stop(0.01)]
    coord = tf.train.Coordinator()
    calls: list[int] = []

    def target(a: int, b: int = 0) -> None:
        calls.append(a + b)
        if len(calls) == 3:
            coord.request_stop()

    looper = tf.train.LooperThread.loop(coord, None, target=target, args=(1,), kwargs={"b": 2})
    coord.join([looper])
    found["looper"] = calls
    coord = tf.train.Coordinator()
    coord.register_thread(threading.Thread(target=lambda: None))
    found["a thread that never started"] = outcome(coord.join)
    with tf.train.Coordinator().stop_on_exception():
        pass
    return found


def scaffolds(tf: Any) -> Any:
    v = tf.Variable(1, name="v")
    found: dict[str, Any] = {}
    scaffold = tf.train.Scaffold()
    found["before"] = [getattr(scaffold, name) is None for name in (
        "init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op", "saver", "init_fn",
        "init_feed_dict", "local_init_feed_dict")]
    found["finalize"] = scaffold.finalize() is scaffold
    found["after"] = [getattr(scaffold, name) is None for name in (
        "init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op", "saver", "init_fn",
        "init_feed_dict", "local_init_feed_dict")]
    found["graph finalized"] = tf.get_default_graph().finalized
    found["in collections"] = [
        len(tf.get_collection(key)) for key in ("init_op", "ready_op", "local_init_op", "summary_op", "savers")]
    with tf.Graph().as_default():
        v = tf.Variable(1, name="v")
        called: list[Any] = []
        scaffold = tf.train.Scaffold(init_op=v.initializer, init_fn=lambda scaffold, session: called.append(
            [type(scaffold).__name__, plain(session.run(v))]))
        with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold=scaffold)) as session:
            found["init_fn"] = [called, plain(session.run(v))]
    with tf.Graph().as_default():
        tf.Variable(1, name="v")
        one = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=3))
        two = tf.train.Scaffold(copy_from_scaffold=one)
        found["copied"] = two.saver is one.saver
        found["copied from other"] = outcome(tf.train.Scaffold, copy_from_scaffold=3)
    with tf.Graph().as_default():
        tf.add_to_collection("ready_op", tf.constant(1))
        tf.add_to_collection("ready_op", tf.constant(2))
        found["two in a collection"] = outcome(tf.train.Scaffold().finalize)
    return found


def supervisors(tf: Any) -> Any:
    found: dict[str, Any] = {}
    folder = tempfile.mkdtemp()
    for turn in range(2):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            train = tf.assign_add(step, 1)
            local = tf.Variable(2, collections=["local_variables"], trainable=False)
            supervisor = tf.train.Supervisor(logdir=folder, save_model_secs=0, summary_op=None)
            with supervisor.managed_session("") as session:
                while not supervisor.should_stop():
                    if session.run(train) >= 3 * (turn + 1):
                        supervisor.request_stop()
                supervisor.saver.save(session, supervisor.save_path, global_step=step)
                found[f"turn {turn}"] = [plain(session.run(step)), plain(session.run(local)), supervisor.is_chief]
            found[f"stopped {turn}"] = supervisor.should_stop()
    for name, error in errors_of(tf).items():
        with tf.Graph().as_default():
            tf.train.get_or_create_global_step()
            supervisor = tf.train.Supervisor(logdir=None, summary_op=None)

            def block(supervisor=supervisor, error=error) -> Any:
                with supervisor.managed_session(""):
                    raise error

            found[f"body {name}"] = outcome(block)
        with tf.Graph().as_default():
            tf.train.get_or_create_global_step()
            supervisor = tf.train.Supervisor(logdir=None, summary_op=None)

            def stop(supervisor=supervisor, error=error) -> Any:
                with supervisor.managed_session(""):
                    report(supervisor.coord, error)
                return "left"

            found[f"stop {name}"] = outcome(stop)
    with tf.Graph().as_default():
        tf.Variable(1)
        found["init_op None"] = outcome(
            lambda: tf.train.Supervisor(init_op=None, ready_op=None, saver=None, summary_op=None) and None)
        supervisor = tf.train.Supervisor(is_chief=False, logdir=folder)
        found["worker"] = [supervisor.summary_op is None, supervisor.save_path, supervisor.summary_writer is None,
                           outcome(supervisor.start_standard_services, None),
                           outcome(supervisor.summary_computed, None, None)]
    with tf.Graph().as_default():
        supervisor = tf.train.Supervisor(logdir="")
        found["no logdir"] = [supervisor.save_path is None, supervisor.summary_writer is None]
        found["loop"] = outcome(lambda: type(supervisor.loop(None, lambda: supervisor.request_stop())).__name__)
        found["deprecated"] = [hasattr(supervisor, name) for name in (
            "PrepareSession", "StartQueueRunners", "StartStandardServices", "Stop", "RequestStop", "ShouldStop",
            "StopOnException", "WaitForStop", "SummaryComputed", "Loop", "coord", "init_op", "init_feed_dict",
            "ready_op", "saver", "session_manager", "save_model_secs", "save_summaries_secs", "wait_for_stop",
            "stop_on_exception", "ready_for_local_init_op", "prepare_or_wait_for_session")]
    return found


def worker_creators(tf: Any) -> Any:
    """A WorkerSessionCreator waits for what a chief has made."""
    v = tf.Variable(1, name="v")
    creator = tf.train.WorkerSessionCreator(max_wait_secs=0.1)
    return [outcome(creator.create_session), v.name]


def basic_loop(tf: Any) -> Any:
    found: dict[str, Any] = {}
    for name, error in {**errors_of(tf), "none": None}.items():
        if name == "unavailable":
            continue  # a lost task: made again by dtf
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            train = tf.assign_add(step, 1)
            supervisor = tf.train.Supervisor(logdir=None, summary_op=None)
            calls: list[Any] = []

            def step_fn(session: Any, *args: Any, calls=calls, supervisor=supervisor, train=train, error=error,
                        **keywords: Any) -> None:
                calls.append([list(args), keywords, plain(session.run(train))])
                if len(calls) == 2 and error is not None:
                    raise error
                if len(calls) == 4:
                    supervisor.request_stop()

            found[name] = [outcome(
                tf.train.basic_train_loop, supervisor, step_fn, args=(1,), kwargs={"a": 2}, master=""), calls]
    return found


BEHAVIOURS = [
    recover_session, prepare_session, prepare_session_refusals, wait_for_session, global_steps_everywhere,
    queue_runners, coordinators, scaffolds, supervisors, worker_creators, basic_loop,
]  # fmt: skip

if __name__ == "__main__":
    run_all(BEHAVIOURS)
