"""Hooks and threads of older trainers: runs of several steps, services of a Supervisor that a program starts itself."""

from __future__ import annotations

import threading

import pytest

import dtf as tf
from dtf.as_tensorflow.historic import error_interpolation, saved_model_utils
from dtf.as_tensorflow.historic.traceable_stack import TraceableObject
from dtf.train.steps_per_run import MultiStepStopAtStepHook, get_or_create_steps_per_run_variable
from dtf.train.supervisor_threads import SVStepCounterThread, SVSummaryThread, SVTimerCheckpointThread


def test_the_last_run_makes_only_the_steps_that_are_left():
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        steps = get_or_create_steps_per_run_variable()
        assert get_or_create_steps_per_run_variable() is steps and steps.name == "hooks/steps_per_run:0"
        train = tf.assign_add(step, tf.cast(steps.read_value(), tf.int64))
        hook, made = MultiStepStopAtStepHook(last_step=8, steps_per_run=3), []
        with tf.train.MonitoredSession(hooks=[hook]) as session:
            while not session.should_stop():
                made.append(int(session.run(train)))
        assert made == [3, 6, 8]


@pytest.mark.parametrize(
    "given, words",
    [({}, "One of"), ({"num_steps": 1, "last_step": 1}, "Only one"), ({"num_steps": 1, "steps_per_run": 0}, "greater")],
)
def test_arguments_that_do_not_fit_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        MultiStepStopAtStepHook(**given)


def test_a_program_starts_the_services_itself(tmp_path):
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        tf.summary.scalar("figure", tf.constant(1.0))
        supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0, save_model_secs=0)
        with supervisor.managed_session() as session:
            done = threading.Event()
            for kind in (SVSummaryThread, SVTimerCheckpointThread, SVStepCounterThread):
                done.clear()
                thread = kind(supervisor, session)
                turn = thread.run_loop

                def once(turn=turn):
                    turn()
                    done.set()

                thread.run_loop = once
                thread.start()
                assert done.wait(30)
            supervisor.request_stop()
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None


def test_messages_name_the_place_of_a_node():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="one")
        assert error_interpolation.interpolate("plain", graph) == "plain"
        assert error_interpolation.interpolate("{{node absent}}!", graph) == "{{node absent}}!"
        found = error_interpolation.interpolate("a{{node one}}b{{function_node f}}c", graph)
        assert found.startswith("anode one (defined at ") and "test_steps_per_run.py:" in found
        assert found.endswith(" bc")
    devices = [TraceableObject("/cpu:0", "a.py", 3)]
    assert error_interpolation._compute_device_summary_from_list("n", devices, "> ") == (
        "> Device assignments active during op 'n' creation:\n>   with tf.device(/cpu:0): <a.py:3>"
    )
    assert "No node-device colocations" in error_interpolation._compute_colocation_summary_from_dict("n", {})


def test_a_folder_without_a_saved_model_is_named(tmp_path):
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        saved_model_utils.read_saved_model(str(tmp_path))
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff")
    with pytest.raises(OSError, match="Cannot parse file"):
        saved_model_utils.read_saved_model(str(tmp_path))
    model = saved_model_utils.saved_model_pb2.SavedModel()
    model.meta_graphs.add().meta_info_def.tags.append("serve")
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    assert saved_model_utils.get_saved_model_tag_sets(str(tmp_path)) == [["serve"]]
    assert saved_model_utils.get_meta_graph_def(str(tmp_path), "serve") == model.meta_graphs[0]
    with pytest.raises(RuntimeError, match="tag-set train could not be found"):
        saved_model_utils.get_meta_graph_def(str(tmp_path), "train")
