"""Processes forked from one that has used the runtime: new sessions work there, inherited ones say that they do not."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import dtf as tf

_PRELUDE = """
import multiprocessing, os, signal, sys, threading
import numpy as np
import dtf as tf

def child(work):
    '''Prints in a forked process what `work` gives, or its error.'''
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        try:
            print(work(), flush=True)
        except Exception as error:
            print(type(error).__name__, "before this process was forked" in str(error), flush=True)
        os._exit(0)
    _, status = os.waitpid(process, 0)
    assert status == 0, status

def variables(target=""):
    with tf.Graph().as_default(), tf.Session(target) as session:
        v = tf.Variable(np.ones(3, np.float32), name="v")
        session.run(v.initializer)
        return [int(session.run(tf.reduce_sum(v.assign_add([1., 1., 1.])))) for _ in range(3)]

def pipeline():
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.data.Dataset.range(8).map(lambda x: x * 2, num_parallel_calls=4).prefetch(3).batch(4)
        following = numbers.make_one_shot_iterator().get_next()
        return [int(session.run(following).sum()) for _ in range(2)]

def queue():
    with tf.Graph().as_default():
        words = tf.train.batch([tf.train.string_input_producer(["a", "b", "c"], num_epochs=2).dequeue()], 2)
        count = 0
        with tf.train.MonitoredSession() as session:
            while not session.should_stop():
                session.run(words)
                count += 1
        return count

def convolution():
    with tf.Graph().as_default(), tf.Session() as session:
        image, window = tf.ones([4, 8, 8, 2]), tf.ones([3, 3, 2, 4])
        return float(session.run(tf.reduce_sum(tf.nn.conv2d(image, window, [1, 1, 1, 1], "VALID"))))

def product():
    with tf.Graph().as_default(), tf.Session() as session:
        return int(session.run(tf.matmul(tf.ones([300, 300]), tf.ones([300, 300])))[0, 0])

def everything():
    return [variables(), pipeline(), queue(), convolution(), product()]
"""


def printed(program):
    """The lines that a program prints."""
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PRELUDE + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout.splitlines()


pytestmark = pytest.mark.timeout(240)


def test_a_child_works_after_each_kind_of_use():
    lines = printed("""
        for work in (variables, pipeline, queue, convolution, product):
            work()
            child(work)
        child(everything)
        child(lambda: child(everything))  # a grandchild
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.starmap(everything, [()] * 2) == [everything()] * 2)
        print(everything())
    """)
    each = ["[6, 9, 12]", "[12, 44]", "3", "10368.0", "300"]
    alike = "[[6, 9, 12], [12, 44], 3, 10368.0, 300]"
    assert lines == [*each, alike, alike, "None", "True", alike]


@pytest.mark.slow
def test_a_child_works_while_threads_of_its_parent_are_at_work():
    lines = printed("""
        variables(), pipeline()  # a child cannot import what another thread was importing at the fork
        over = threading.Event()

        def busy():
            while not over.is_set():
                variables(), pipeline()

        for _ in range(2):
            threading.Thread(target=busy, daemon=True).start()
        for _ in range(6):
            child(lambda: [variables(), pipeline()])
        over.set()
    """)
    assert lines == ["[[6, 9, 12], [12, 44]]"] * 6


def test_a_child_reaches_servers_anew_and_leaves_its_parents_sessions_alone():
    lines = printed("""
        server = tf.train.Server.create_local_server()
        other = tf.train.Server.create_local_server()
        variables(server.target)
        v = tf.Variable(5.)
        local = tf.Session()
        remote = tf.Session(server.target)
        for session in (local, remote):
            session.run(v.initializer)
        child(lambda: variables(server.target))
        child(lambda: variables(tf.train.Server.create_local_server().target))
        child(everything)
        child(lambda: remote.run(v))
        child(remote.close)
        child(server.stop)
        child(server.join)
        child(lambda: [variables(server.target), variables(other.target)])
        print(remote.run(v), local.run(v), variables(other.target))
    """)
    alike = "[[6, 9, 12], [12, 44], 3, 10368.0, 300]"
    assert lines == [
        "[6, 9, 12]", "[6, 9, 12]", alike, "FailedPreconditionError True", "None", "None",
        "FailedPreconditionError False", "[[6, 9, 12], [6, 9, 12]]", "5.0 5.0 [6, 9, 12]",
    ]  # fmt: skip


@pytest.mark.slow
def test_sessions_of_another_process_are_left_alone():
    lines = printed("""
        import subprocess
        serve = "import dtf as tf, sys; s = tf.train.Server.create_local_server(); print(s.target, flush=True)"
        serve += "; sys.stdin.read()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", serve], **pipes)
        target = process.stdout.readline().strip()
        v = tf.Variable(5., name="parents")
        remote = tf.Session(target)
        remote.run(v.initializer)
        print([float(remote.run(v)) for _ in range(4)])
        child(lambda: remote.run(v))
        child(remote.close)
        child(lambda: variables(target))
        print(remote.run(v))
        process.kill()
    """)
    assert lines == ["[5.0, 5.0, 5.0, 5.0]", "FailedPreconditionError True", "None", "[6, 9, 12]", "5.0"]


def test_a_copy_of_a_quiet_local_session_works_and_one_that_is_in_use_does_not():
    lines = printed("""
        v = tf.Variable(5.)
        session = tf.Session()
        session.run(v.initializer)
        child(lambda: session.run(v))
        child(session.close)
        thread = threading.Thread(target=session.run, args=(tf.FIFOQueue(1, [tf.int32]).dequeue(),), daemon=True)
        thread.start()
        child(lambda: session.run(v))
        print(session.run(v))
    """)
    assert lines == ["5.0", "None", "FailedPreconditionError True", "5.0"]


def test_events_are_written_once_and_sigterm_ends_a_child(tmp_path):
    lines = printed(f"""
        folder = {str(tmp_path)!r}
        writer = tf.summary.FileWriter(folder + "/a", flush_secs=1000)
        summary = tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1.)])
        writer.add_summary(summary, 1)
        def new():
            with tf.summary.FileWriter(folder + "/b") as other:
                other.add_summary(summary, 2)
            return "written"
        child(new)
        child(lambda: writer.add_summary(summary, 3))
        child(writer.close)
        process = os.fork()
        if process == 0:
            sys.exit(0)  # closes all files
        os.waitpid(process, 0)
        writer.close()
        for name in "ab":
            path = os.path.join(folder, name, os.listdir(os.path.join(folder, name))[0])
            print([event.step for event in tf.train.summary_iterator(path)])
        with tf.train.MonitoredSession():
            process = os.fork()
            if process == 0:
                signal.alarm(60)
                while True:
                    signal.pause()
            os.kill(process, signal.SIGTERM)
            print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGTERM)
    """)
    assert lines == ["written", "FailedPreconditionError True", "None", "[0, 1]", "[0, 2]", "True"]


def test_a_child_never_waits_for_a_lock_that_a_thread_of_its_parent_held():
    lines = printed("""
        import tempfile
        from dtf.wire import forks
        graph, coordinator = tf.Graph(), tf.train.Coordinator()
        with graph.as_default():
            v = tf.Variable(1.0)
            saver = tf.train.Saver()
            runner = tf.train.QueueRunner(tf.FIFOQueue(1, [tf.float32]), [tf.no_op()])
        folder = tempfile.TemporaryDirectory()
        writer = tf.summary.FileWriter(folder.name)
        held, over = threading.Semaphore(0), threading.Event()

        def hold(lock):
            with lock:
                held.release()
                over.wait()

        locks = [graph._lock, graph._names._lock, coordinator._lock, saver._turn, runner._lock, writer._lock,
                 coordinator._stop_event._cond, tf.summary.FileWriterCache._lock]
        for lock in locks:
            threading.Thread(target=hold, args=(lock,), daemon=True).start()
            held.acquire()

        def work():
            with graph.as_default(), tf.Session() as session:
                tf.constant(1.0, name="more")
                session.run(v.initializer)
                saver.save(session, os.path.join(folder.name, "model"))
                runner.create_threads(session)
            coordinator.request_stop()
            tf.summary.FileWriterCache.clear()
            return coordinator.should_stop()

        child(work)
        over.set()
    """)
    assert lines == ["True"]


def test_a_module_with_locks_must_say_what_becomes_of_them_in_a_child():
    """Beside the runtime's inside: sessions there are the parent's, or nobody was in it."""
    root = Path(tf.__file__).parent
    inside = {root / name for name in ("run", "rpc", "channel", "pb")}
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not inside & {*path.parents} and re.search(r"= threading\.(R?Lock|Condition)\(\)", text):
            assert re.search(r"forks\.(renew_in_child|in_child)\(", text), path
