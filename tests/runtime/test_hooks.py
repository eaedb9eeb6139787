"""The standard hooks, each on a plain session and a clock that a test moves."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import dtf as tf
from dtf import train
from dtf.train import basic_session_run_hooks as hooks
from dtf.train.summary_writer import FileWriter, FileWriterCache
from dtf.wire.pb import summary_pb2


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class RecordingWriter:
    """Stands for a FileWriter."""

    def __init__(self):
        self.scalars = []
        self.logs = []

    def add_summary(self, summary, step):
        message = summary if isinstance(summary, summary_pb2.Summary) else summary_pb2.Summary.FromString(summary)
        self.scalars += [(value.tag, value.simple_value, step) for value in message.value]

    def add_session_log(self, log, step):
        self.logs.append((log.status, step))

    def flush(self):
        pass


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph
    FileWriterCache.clear()


@pytest.fixture
def add():
    """An op that adds one to the global step."""
    return tf.assign_add(train.get_or_create_global_step(), 1)


def run_until_stop(hook_list, fetches, most=50):
    """Returns what the runs gave."""
    values = []
    with train.SingularMonitoredSession(hooks=hook_list) as session:
        while not session.should_stop() and len(values) < most:
            values.append(session.run(fetches))
    return values


def test_a_timer_of_steps_is_due_every_so_many():
    timer = hooks.SecondOrStepTimer(every_steps=3)
    due = []
    for step in range(1, 9):
        if timer.should_trigger_for_step(step):
            due.append(step)
            timer.update_last_triggered_step(step)
            assert not timer.should_trigger_for_step(step)
    assert due == [1, 4, 7]
    assert timer.last_triggered_step() == 7


def test_a_timer_of_seconds_is_due_when_they_have_passed():
    clock = Clock()
    timer = hooks.SecondOrStepTimer(every_secs=2.0, clock=clock)
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    clock.now += 1.0
    assert not timer.should_trigger_for_step(2)
    clock.now += 1.5
    assert timer.should_trigger_for_step(5)
    assert timer.update_last_triggered_step(5) == (2.5, 4)
    timer.reset()
    assert timer.should_trigger_for_step(5)


def test_a_timer_has_one_interval():
    for arguments in ({}, {"every_secs": 1.0, "every_steps": 1}):
        with pytest.raises(ValueError, match="every_secs"):
            hooks.SecondOrStepTimer(**arguments)


def test_training_stops_at_the_last_step_and_not_before(add):
    assert len(run_until_stop([train.StopAtStepHook(last_step=4)], add)) == 4


def test_training_stops_after_so_many_steps_counted_from_the_start(add, tmp_path):
    for _ in range(2):
        with train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), hooks=[train.StopAtStepHook(num_steps=3)], log_step_count_steps=None
        ) as session:
            while not session.should_stop():
                last = session.run(add)
    assert last == 6


def test_a_stop_hook_has_one_bound_and_needs_a_global_step():
    with pytest.raises(ValueError, match="One of"):
        train.StopAtStepHook()
    with pytest.raises(ValueError, match="Only one of"):
        train.StopAtStepHook(num_steps=1, last_step=1)
    with pytest.raises(RuntimeError, match="Global step should be created to use StopAtStepHook"):
        train.StopAtStepHook(last_step=1).begin()


def test_checkpoints_are_saved_at_the_start_at_the_interval_and_at_the_end(add, tmp_path):
    saved = []

    class Listener(train.CheckpointSaverListener):
        def begin(self):
            saved.append("begin")

        def before_save(self, session, global_step_value):
            saved.append(f"before {global_step_value}")

        def after_save(self, session, global_step_value):
            saved.append(f"after {global_step_value}")

        def end(self, session, global_step_value):
            saved.append(f"end {global_step_value}")

    hook = train.CheckpointSaverHook(str(tmp_path), save_steps=3, saver=train.Saver(), listeners=[Listener()])
    run_until_stop([hook, train.StopAtStepHook(last_step=5)], add)
    steps = [0, 3, 5]
    expected = [text for step in steps for text in (f"before {step}", f"after {step}")]
    assert saved == ["begin", *expected, "end 5"]
    assert train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-5")
    assert (tmp_path / "graph.pbtxt").exists()


class SlowSaver:
    """A Saver whose saves in the background wait until `may_go_on` is set; `events` has what happened in order."""

    def __init__(self, error=None):
        self.saver, self.error, self.events = train.Saver(), error, []
        self.saver_def = self.saver.saver_def
        self.may_go_on = threading.Event()

    def save(self, *arguments, global_step, **options):
        if threading.current_thread() is not threading.main_thread():
            assert self.may_go_on.wait(60)
            if self.error is not None:
                raise self.error
        self.saver.save(*arguments, global_step=global_step, **options)
        self.events.append(f"saved {global_step}")


def test_a_background_save_lets_its_worker_train_on(add, tmp_path):
    saver = SlowSaver()

    class Listener(train.CheckpointSaverListener):
        def before_save(self, session, global_step_value):
            saver.events.append(f"before {global_step_value}")

        def after_save(self, session, global_step_value):
            assert threading.current_thread() is threading.main_thread()
            saver.events.append(f"after {global_step_value}")

    hook = train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, saver=saver, listeners=[Listener()], in_background=True
    )
    with train.SingularMonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            step = session.run(add)
        saver.events.append(f"step {step}")
        saver.may_go_on.set()
    assert saver.events == [
        *(
            "before 0",
            "saved 0",
            "after 0",
            "before 2",
            "step 5",
            "saved 2",
            "after 2",
            "before 5",
            "saved 5",
            "after 5",
        )
    ]
    assert train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-5")


def test_the_error_of_a_background_save_comes_with_the_next_step(add, tmp_path):
    saver = SlowSaver(tf.errors.ResourceExhaustedError(None, None, "model.ckpt-2; No space left on device"))
    hook = train.CheckpointSaverHook(str(tmp_path), save_steps=2, saver=saver, in_background=True)
    full = pytest.raises(tf.errors.ResourceExhaustedError, match="No space left")
    with full, train.SingularMonitoredSession(hooks=[hook]) as session:
        session.run(add)
        session.run(add)
        saver.may_go_on.set()
        hook._running.wait()
        session.run(add)


def test_a_listener_may_end_the_training(add, tmp_path):
    class Listener(train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            return global_step_value >= 2

    hook = train.CheckpointSaverHook(str(tmp_path), save_steps=1, saver=train.Saver(), listeners=[Listener()])
    assert len(run_until_stop([hook], add)) == 2


def test_a_checkpoint_hook_finds_the_one_saver_of_the_graph(add, tmp_path):
    with pytest.raises(RuntimeError, match="No items in collection savers"):
        hooks.CheckpointSaverHook(str(tmp_path), save_steps=1)._get_saver()
    tf.add_to_collection(tf.GraphKeys.SAVERS, train.Saver())
    run_until_stop([train.CheckpointSaverHook(str(tmp_path), save_steps=1), train.StopAtStepHook(last_step=1)], add)
    assert train.latest_checkpoint(str(tmp_path))


def test_the_step_rate_is_logged_and_summarised(add, caplog):
    caplog.set_level("INFO", "dtf")
    writer = RecordingWriter()
    hook = train.StepCounterHook(every_n_steps=2, summary_writer=writer)
    clock = Clock()
    hook._timer = hooks.SecondOrStepTimer(every_steps=2, clock=clock)

    class Pass(train.SessionRunHook):
        def before_run(self, run_context):
            clock.now += 0.25

    run_until_stop([Pass(), hook, train.StopAtStepHook(last_step=7)], add)
    assert {(tag, value) for tag, value, _ in writer.scalars} == {("global_step/sec", 4.0)}
    assert len(writer.scalars) == 3
    assert "global_step/sec: 4" in caplog.text


def test_tensors_are_logged_at_the_interval_and_at_the_end(caplog):
    caplog.set_level("INFO", "dtf")
    x = tf.constant(2.0, name="x")
    hook = train.LoggingTensorHook({"value": x}, every_n_iter=2, at_end=True)
    run_until_stop([hook], x, most=3)
    lines = [record.getMessage().split(" (")[0] for record in caplog.records if "value" in record.getMessage()]
    assert lines == ["value = 2.0"] * 3
    caplog.clear()
    formatted = train.LoggingTensorHook(["x:0"], every_n_iter=10, formatter=lambda values: f"<{values['x:0']}>")
    run_until_stop([formatted], x, most=1)
    assert "<2.0>" in caplog.text


def test_a_loss_that_is_not_a_number_stops_or_fails():
    loss = tf.constant(np.float32("nan"))
    assert len(run_until_stop([train.NanTensorHook(loss, fail_on_nan_loss=False)], loss)) == 1
    with pytest.raises(train.NanLossDuringTrainingError, match="NaN loss during training. Const:0 is NaN; the newest"):
        run_until_stop([train.NanTensorHook(loss)], loss)


def test_a_loss_that_becomes_nan_is_told_with_its_step_and_saved_nowhere(add, tmp_path):
    loss = tf.log(tf.cast(3 - add, tf.float32) - 0.5, name="loss")
    with (
        pytest.raises(train.NanLossDuringTrainingError, match="loss:0 is NaN at global step 3;"),
        train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), hooks=[train.NanTensorHook(loss)]) as session,
    ):
        while not session.should_stop():
            session.run(loss)
    assert train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-0")


def test_summaries_are_saved_at_the_interval(add):
    writer = RecordingWriter()
    summary = tf.constant(summary_pb2.Summary(value=[{"tag": "loss", "simple_value": 0.5}]).SerializeToString())
    hook = train.SummarySaverHook(save_steps=2, summary_writer=writer, summary_op=summary)
    run_until_stop([hook, train.StopAtStepHook(last_step=5)], add)
    assert writer.scalars == [("loss", 0.5, 1), ("loss", 0.5, 3), ("loss", 0.5, 5)]
    assert writer.logs == [(1, 1)]
    with pytest.raises(ValueError, match="Exactly one"):
        train.SummarySaverHook(save_steps=1)


def test_a_replica_waits_for_its_step(add, monkeypatch):
    hook = train.GlobalStepWaiterHook(wait_until_step=3)
    looked = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        monkeypatch.setattr(hooks.time, "sleep", lambda _: looked.append(int(session.run(add))))
        hook.begin()
        context = train.SessionRunContext(train.SessionRunArgs(add), session)
        hook.before_run(context)
        hook.before_run(context)
    assert looked == [1, 2, 3]


def test_final_ops_are_evaluated_at_the_end(add):
    x = tf.placeholder(tf.int64, [])
    hook = train.FinalOpsHook({"sum": x + train.get_global_step()}, {x: 10})
    run_until_stop([hook, train.StopAtStepHook(last_step=2)], add)
    assert hook.final_ops_values == {"sum": 12}


def test_feeds_come_from_a_function():
    x = tf.placeholder(tf.float32, [])
    values = iter([1.0, 2.0])
    assert run_until_stop([train.FeedFnHook(lambda: {x: next(values)})], x * 2.0, most=2) == [2.0, 4.0]


def test_timelines_are_written(add, tmp_path):
    hook = train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    run_until_stop([hook, train.StopAtStepHook(last_step=4)], add)
    traces = sorted(path.name for path in tmp_path.glob("timeline-*.json"))
    assert traces == ["timeline-2.json", "timeline-4.json"]
    events = json.loads((tmp_path / traces[0]).read_text())["traceEvents"]
    assert any(event["ph"] == "X" for event in events)


def test_two_hooks_share_one_event_file(add, tmp_path):
    with train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), hooks=[train.StopAtStepHook(last_step=3)], log_step_count_steps=1
    ) as session:
        while not session.should_stop():
            session.run(add)
    assert isinstance(FileWriterCache.get(str(tmp_path)), FileWriter)
    FileWriterCache.clear()
    (path,) = tmp_path.glob("events.out.tfevents.*")
    events = list(train.summary_iterator(str(path)))
    kinds = [event.WhichOneof("what") for event in events]
    assert kinds[0] == "file_version"
    assert {"graph_def", "meta_graph_def", "session_log", "summary"} <= set(kinds)
    summaries = [event for event in events if event.WhichOneof("what") == "summary"]
    assert [event.step for event in summaries if event.summary.value[0].tag == "global_step/sec"] == [2, 3]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("per_run", [1, 3])
def test_hooks_count_from_the_step_before_the_run(tmp_path, use_resource, per_run):
    step = tf.Variable(0, dtype=tf.int64, name="global_step", trainable=False, use_resource=use_resource)
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
    writer, counts = RecordingWriter(), RecordingWriter()
    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=8, saver=train.Saver(max_to_keep=None))
    run_until_stop(
        [
            train.SummarySaverHook(save_steps=8, summary_writer=writer, summary_op=tf.summary.scalar("x", 1.0)),
            train.StepCounterHook(every_n_steps=8, summary_writer=counts),
            train.ProfilerHook(save_steps=8, output_dir=str(tmp_path)),
            saver,
        ],
        tf.assign_add(step, per_run),
        most=27,
    )
    steps = {int(path.name[9:-5]) for path in tmp_path.glob("timeline-*.json")}
    saved = {int(path.name[11:-6]) for path in tmp_path.glob("model.ckpt-*.index")}
    if per_run == 1:
        assert [step for _, _, step in writer.scalars] == [1, 9, 17, 25]
        assert [step for _, _, step in counts.scalars] == [9, 17, 25]
        assert steps == {8, 16, 24}
        assert saved == {0, 8, 16, 24, 27}
    else:
        assert [step for _, _, step in writer.scalars] == [3, 15, 27, 39, 51, 63, 75]
        assert [step for _, _, step in counts.scalars] == [15, 27, 39, 51, 63, 75]
        assert steps == {12, 24, 36, 48, 60, 72}
        assert saved == {0, 9, 18, 27, 36, 45, 54, 63, 72, 81}


@pytest.mark.parametrize("failure", [tf.errors.OutOfRangeError(None, None, "empty"), StopIteration()])
def test_an_input_that_ended_fails_the_final_ops(failure):
    class Session:
        def run(self, *_, **__):
            raise failure

    with pytest.raises(type(failure)):
        train.FinalOpsHook(tf.constant(1)).end(Session())
