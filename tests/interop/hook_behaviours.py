"""At which steps the hooks of a training act, told by short programs with TensorFlow's names only.

Each function of `BEHAVIOURS` takes the module `tf` and returns plain JSON. The test runs them under both runtimes.

    python -m tests.interop.hook_behaviours dtf

prints one line of JSON: {"behaviour": result}.
"""

from __future__ import annotations

import glob
import os
import re
import tempfile
from typing import Any

import numpy as np

from tests.interop.behaviours import outcome, run_all


class Writer:
    """Stands for a FileWriter: notes what is written and at which step."""

    def __init__(self, tf: Any) -> None:
        self.steps: list[int] = []
        self.logs: list[Any] = []
        self.tags: set[str] = set()
        self._summary = tf.Summary

    def add_summary(self, summary: Any, step: int) -> None:
        message = self._summary.FromString(summary) if isinstance(summary, bytes) else summary
        self.tags |= {value.tag for value in message.value}
        self.steps.append(int(step))

    def add_session_log(self, log: Any, step: int) -> None:
        self.logs.append([int(log.status), int(step)])

    def flush(self) -> None:
        pass


def train_ops(tf: Any, kind: str, per_run: int = 1) -> Any:
    """A global step of a kind, and an operation that counts it up."""
    if kind == "ref":
        step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step", use_resource=False)
    elif kind == "resource":
        step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step", use_resource=True)
    elif kind == "int32":
        step = tf.Variable(0, trainable=False, name="global_step", use_resource=False)
    else:
        step = tf.train.get_or_create_global_step()
    if kind in ("ref", "resource", "int32"):
        tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
    # Hooks fetch this tensor. In a model of any size it is read before the update; here an edge sees to it.
    tf.train.StepCounterHook().begin()
    read = tf.get_default_graph().get_tensor_by_name("global_step/add:0")
    weight = tf.get_variable("w", initializer=1.0)
    with tf.control_dependencies([read]):
        update = tf.train.GradientDescentOptimizer(0.01).minimize(tf.identity(weight) * weight, global_step=step)
    if per_run > 1:
        with tf.control_dependencies([update]):
            update = tf.assign_add(step, per_run - 1).op
    return update


STEP_KINDS = ["created", "ref", "resource", "int32"]


def _run(tf: Any, hooks: list[Any], fetches: Any, most: int = 30, each: Any = None) -> list[Any]:
    values = []
    with tf.train.SingularMonitoredSession(hooks=hooks) as session:
        while not session.should_stop() and len(values) < most:
            if each is not None:
                each(len(values))
            values.append(session.run(fetches))
    return values


def summary_saver(tf: Any) -> Any:
    found = {}
    for kind in STEP_KINDS:
        for per_run in (1, 3):
            for every in (1, 2, 8):
                with tf.Graph().as_default():
                    train = train_ops(tf, kind, per_run)
                    writer = Writer(tf)
                    summary = tf.summary.scalar("loss", tf.constant(1.0))
                    hook = tf.train.SummarySaverHook(save_steps=every, summary_writer=writer, summary_op=summary)
                    _run(tf, [hook], train)
                    found[f"{kind} {per_run} a run, every {every}"] = [writer.steps, writer.logs]
    return found


def summary_saver_without_training(tf: Any) -> Any:
    """Runs that do not count the step."""
    tf.train.get_or_create_global_step()
    writer = Writer(tf)
    value = tf.constant(2.0)
    hook = tf.train.SummarySaverHook(save_steps=2, summary_writer=writer, summary_op=[tf.summary.scalar("x", value)])
    _run(tf, [hook], value, most=6)
    return [writer.steps, writer.logs]


def summary_saver_mixed_runs(tf: Any) -> Any:
    """Every third run counts, the others only evaluate."""
    train = train_ops(tf, "created")
    writer = Writer(tf)
    value = tf.constant(2.0)
    hook = tf.train.SummarySaverHook(save_steps=2, summary_writer=writer, summary_op=tf.summary.scalar("x", value))
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        for turn in range(18):
            session.run(train if turn % 3 == 0 else value)
    return [writer.steps, writer.logs]


def profiler(tf: Any) -> Any:
    found = {}
    for kind in STEP_KINDS:
        for per_run, every in ((1, 1), (1, 8), (3, 8)):
            with tf.Graph().as_default():
                train = train_ops(tf, kind, per_run)
                folder = tempfile.mkdtemp()
                _run(tf, [tf.train.ProfilerHook(save_steps=every, output_dir=folder)], train)
                numbers = [int(re.findall(r"timeline-(\d+)", path)[0]) for path in glob.glob(folder + "/timeline*")]
                found[f"{kind} {per_run} a run, every {every}"] = sorted(numbers)
    return found


def checkpoint_saver(tf: Any) -> Any:
    found = {}

    class Listener(tf.train.CheckpointSaverListener):
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def begin(self) -> None:
            self.heard.append("begin")

        def before_save(self, session: Any, step: int) -> None:
            self.heard.append(["before", int(step)])

        def after_save(self, session: Any, step: int) -> Any:
            self.heard.append(["after", int(step)])
            return step >= 21

        def end(self, session: Any, step: int) -> None:
            self.heard.append(["end", int(step)])

    for kind in STEP_KINDS:
        for per_run, every in ((1, 1), (1, 8), (3, 8), (5, 3)):
            with tf.Graph().as_default():
                train = train_ops(tf, kind, per_run)
                folder = tempfile.mkdtemp()
                saver = tf.train.Saver(max_to_keep=100)
                listener = Listener()
                hook = tf.train.CheckpointSaverHook(folder, save_steps=every, saver=saver, listeners=[listener])
                _run(tf, [hook], train)
                paths = tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths
                found[f"{kind} {per_run} a run, every {every}"] = [
                    [int(path.rpartition("-")[2]) for path in paths], listener.heard
                ]
    return found


def checkpoint_saver_that_only_listens(tf: Any) -> Any:
    train = train_ops(tf, "created")
    folder = tempfile.mkdtemp()
    hook = tf.train.CheckpointSaverHook(folder, save_steps=4, saver=tf.train.Saver(), save_graph_def=False)
    _run(tf, [hook], train, most=6)
    return sorted(re.sub(r"events.*", "events", name) for name in os.listdir(folder))


def step_counter(tf: Any) -> Any:
    found = {}
    for kind in STEP_KINDS:
        for per_run, every in ((1, 1), (1, 10), (3, 8)):
            with tf.Graph().as_default():
                train = train_ops(tf, kind, per_run)
                writer = Writer(tf)
                _run(tf, [tf.train.StepCounterHook(every_n_steps=every, summary_writer=writer)], train)
                found[f"{kind} {per_run} a run, every {every}"] = [writer.steps, sorted(writer.tags)]
    return found


def logging_tensor(tf: Any) -> Any:
    found = {}
    for keywords in ({"every_n_iter": 1}, {"every_n_iter": 4}, {"every_n_iter": 4, "at_end": True}, {"at_end": True}):
        for per_run in (1, 3):
            with tf.Graph().as_default():
                train = train_ops(tf, "created", per_run)
                step = tf.train.get_global_step()
                seen: list[Any] = []
                hook = tf.train.LoggingTensorHook(
                    {"three": tf.constant(3)}, formatter=lambda values, seen=seen: str(seen.append(sorted(values))),
                    **keywords,
                )
                marks: list[int] = []
                _run(tf, [hook], train, most=10, each=lambda turn, seen=seen, marks=marks: marks.append(len(seen)))
                found[f"{keywords} {per_run}"] = [marks, len(seen), step is not None]
    for keywords in ({}, {"every_n_iter": 0}, {"every_n_iter": 1, "every_n_secs": 1}, {"every_n_iter": -1}):
        found[f"wrong {keywords}"] = outcome(tf.train.LoggingTensorHook, [], **keywords) is None
    return found


def stop_at_step(tf: Any) -> Any:
    found = {}
    for kind in STEP_KINDS:
        for per_run in (1, 4):
            for keywords in ({"last_step": 10}, {"num_steps": 10}, {"last_step": 1}, {"num_steps": 1}):
                with tf.Graph().as_default():
                    train = train_ops(tf, kind, per_run)
                    runs = len(_run(tf, [tf.train.StopAtStepHook(**keywords)], train))
                    found[f"{kind} {per_run} {keywords}"] = runs
    found["none"] = outcome(tf.train.StopAtStepHook)
    found["both"] = outcome(tf.train.StopAtStepHook, 1, 2)
    return found


def stop_at_step_that_is_past(tf: Any) -> Any:
    found = []
    for last in (0, 3, 5):
        with tf.Graph().as_default():
            step = tf.Variable(5, dtype=tf.int64, trainable=False, name="global_step")
            tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
            found.append(len(_run(tf, [tf.train.StopAtStepHook(last_step=last)], tf.assign_add(step, 1))))
    return found


def nan_tensor(tf: Any) -> Any:
    found = {}
    for fail in (True, False):
        with tf.Graph().as_default():
            train = train_ops(tf, "created")
            step = tf.train.get_global_step()
            loss = tf.where(tf.equal(step, 3), np.nan, 1.0)
            hook = tf.train.NanTensorHook(loss, fail_on_nan_loss=fail)
            found[str(fail)] = outcome(lambda hook=hook, train=train: len(_run(tf, [hook], train)))
    with tf.Graph().as_default():
        train_ops(tf, "created")
        hook = tf.train.NanTensorHook(tf.constant([1.0, 2.0]))
        found["vector"] = outcome(lambda: len(_run(tf, [hook], tf.constant(1), most=2)))
    return found


def feed_fn(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [])
    fed = iter(range(100))
    hook = tf.train.FeedFnHook(lambda: {x: next(fed)})
    return [float(value) for value in _run(tf, [hook], x * 2.0, most=4)]


def feed_fn_twice(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [])
    hook = tf.train.FeedFnHook(lambda: {x: 1.0})
    found = [outcome(_run, tf, [hook, tf.train.FeedFnHook(lambda: {x: 2.0})], x, 1)]
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        found.append(outcome(session.run, x, feed_dict={x: 3.0}))
    return found


def global_step_waiter(tf: Any) -> Any:
    train = train_ops(tf, "created")
    hook = tf.train.GlobalStepWaiterHook(wait_until_step=0)
    return len(_run(tf, [hook], train, most=3))


def final_ops(tf: Any) -> Any:
    train_ops(tf, "created")
    x = tf.placeholder(tf.float32, [])
    hook = tf.train.FinalOpsHook({"a": x * 2.0}, final_ops_feed_dict={x: 4.0})
    before = hook.final_ops_values
    _run(tf, [hook], tf.constant(1), most=2)
    found = [before, float(hook.final_ops_values["a"])]
    for ends in (tf.errors.OutOfRangeError(None, None, "x"), StopIteration("x"), ValueError("x")):
        def fail(ends: Any = ends) -> Any:
            raise ends

        class Session:
            run = staticmethod(lambda *a, fail=fail, **k: fail())

        hook = tf.train.FinalOpsHook(x)
        found.append(outcome(hook.end, Session()))
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(3, [tf.float32])
        close = queue.close()
        get = queue.dequeue()
        hook = tf.train.FinalOpsHook(get)
        found.append(outcome(_run, tf, [hook], close, 1))
    return found


def timers(tf: Any) -> Any:
    found: dict[str, Any] = {}
    for every in (1, 3):
        timer = tf.train.SecondOrStepTimer(every_steps=every)
        lines = []
        for step in (0, 0, 1, 2, 3, 3, 5, 9, 2, 12):
            due = timer.should_trigger_for_step(step)
            if due:
                passed = timer.update_last_triggered_step(step)
                lines.append([step, passed[0] is None, passed[1], timer.last_triggered_step()])
        found[str(every)] = lines
    timer = tf.train.SecondOrStepTimer(every_steps=4)
    timer.update_last_triggered_step(3)
    timer.reset()
    found["reset"] = [timer.should_trigger_for_step(3), timer.last_triggered_step()]
    found["none"] = outcome(tf.train.SecondOrStepTimer)
    found["both"] = outcome(tf.train.SecondOrStepTimer, 1.0, 1)
    timer = tf.train.SecondOrStepTimer(every_secs=1000.0)
    found["seconds"] = [timer.should_trigger_for_step(1)]
    timer.update_last_triggered_step(1)
    found["seconds"] += [timer.should_trigger_for_step(1), timer.should_trigger_for_step(2)]
    return found


def training_session(tf: Any) -> Any:
    """All that MonitoredTrainingSession adds of itself, twice over one folder."""
    folder = tempfile.mkdtemp()
    found: list[Any] = []
    for last in (10, 17):
        with tf.Graph().as_default():
            train = train_ops(tf, "created")
            tf.summary.scalar("loss", tf.constant(1.0))
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=folder, hooks=[tf.train.StopAtStepHook(last_step=last)], save_summaries_steps=4,
                save_checkpoint_steps=6, log_step_count_steps=5,
            ) as session:
                runs = 0
                while not session.should_stop():
                    session.run(train)
                    runs += 1
            paths = tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths
            found.append([runs, [int(path.rpartition("-")[2]) for path in paths]])
    for path in sorted(glob.glob(folder + "/events*")):
        for event in tf.train.summary_iterator(path):
            found += [[int(event.step), value.tag] for value in event.summary.value]
            if event.HasField("session_log"):
                found.append([int(event.step), int(event.session_log.status)])
    return sorted(map(str, found))


def missing_global_step(tf: Any) -> Any:
    folder = tempfile.mkdtemp()
    makers = {
        "stop": lambda: tf.train.StopAtStepHook(last_step=1),
        "checkpoint": lambda: tf.train.CheckpointSaverHook(folder, save_steps=1),
        "counter": lambda: tf.train.StepCounterHook(output_dir=folder),
        "summary": lambda: tf.train.SummarySaverHook(save_steps=1, summary_op=tf.constant("")),
        "waiter": lambda: tf.train.GlobalStepWaiterHook(3),
        "profiler": lambda: tf.train.ProfilerHook(save_steps=1, output_dir=folder),
        "logging": lambda: tf.train.LoggingTensorHook([], every_n_iter=1),
    }
    return {name: outcome(lambda make=make: make().begin()) for name, make in makers.items()}


BEHAVIOURS = [
    summary_saver, summary_saver_without_training, summary_saver_mixed_runs,
    profiler, checkpoint_saver, checkpoint_saver_that_only_listens, step_counter, logging_tensor, stop_at_step,
    stop_at_step_that_is_past, nan_tensor, feed_fn, feed_fn_twice, global_step_waiter, final_ops, timers,
    training_session, missing_global_step,
]  # fmt: skip

if __name__ == "__main__":
    run_all(BEHAVIOURS)
