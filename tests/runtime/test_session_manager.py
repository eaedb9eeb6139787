"""Session managers: restore, initialise, or wait, and the words when that fails."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf import train


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


class FakeTime:
    """A clock that only sleeping moves; `on_sleep` is called each time."""

    def __init__(self, on_sleep=lambda: None):
        self.now = 0.0
        self.sleeps = []
        self.on_sleep = on_sleep

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.sleeps.append(seconds)
        self.now += seconds
        self.on_sleep()


def manager(time=None, **arguments):
    time = time or FakeTime()
    arguments.setdefault("ready_op", tf.report_uninitialized_variables())
    return train.SessionManager(clock=time.clock, sleep=time.sleep, **arguments)


def saved(folder, value=3.0):
    """Leaves a checkpoint of `v` in a folder."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=tf.constant(value))
        session.run(v.initializer)
        return train.Saver().save(session, str(folder / "model"))


def test_a_model_without_a_checkpoint_is_initialised(tmp_path):
    v = tf.get_variable("v", initializer=tf.constant(1.0))
    called = []
    with manager().prepare_session(
        "",
        init_op=v.initializer,
        saver=train.Saver(),
        checkpoint_dir=str(tmp_path),
        init_fn=lambda session: called.append(session.run(v)),
    ) as session:
        assert session.run(v) == 1.0
    assert called == [1.0]


def test_a_model_with_a_checkpoint_is_restored_and_not_initialised(tmp_path, caplog):
    path = saved(tmp_path)
    caplog.set_level("INFO", "dtf")
    v = tf.get_variable("v", initializer=tf.constant(1.0))
    saver = train.Saver()
    with manager().prepare_session("", init_op=v.initializer, saver=saver, checkpoint_dir=str(tmp_path)) as session:
        assert session.run(v) == 3.0
    assert saver.last_checkpoints == [path]
    assert f"Restoring parameters from {path}" in caplog.text


def test_a_state_file_that_came_with_a_model_lets_no_other_models_checkpoints_be_removed(tmp_path):
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    mine, theirs = saved(tmp_path / "mine"), saved(tmp_path / "theirs")
    state = tmp_path / "theirs" / "checkpoint"
    hostile = [mine, "../mine/model", f"{tmp_path}/theirs/../mine/model"]
    state.write_text(state.read_text() + "".join(f'all_model_checkpoint_paths: "{path}"\n' for path in hostile))
    v = tf.get_variable("v", initializer=tf.constant(1.0))
    saver = train.Saver(max_to_keep=1)
    folder = str(tmp_path / "theirs")
    with manager().prepare_session("", init_op=v.initializer, saver=saver, checkpoint_dir=folder) as session:
        assert saver.last_checkpoints == [theirs]
        for step in range(3):
            saver.save(session, f"{folder}/model", global_step=step)
    assert train.checkpoint_exists(mine) and not train.checkpoint_exists(theirs)


def test_a_checkpoint_may_be_given_by_its_path(tmp_path):
    path = saved(tmp_path)
    v = tf.get_variable("v", initializer=tf.constant(1.0))
    saver = train.Saver()
    with manager().prepare_session("", saver=saver, checkpoint_filename_with_path=path) as session:
        assert session.run(v) == 3.0
    with pytest.raises(ValueError, match="Can not provide both"):
        manager().prepare_session("", saver=saver, checkpoint_filename_with_path=path, checkpoint_dir=str(tmp_path))


def test_a_feed_reaches_the_init_op():
    x = tf.placeholder(tf.float32, [])
    v = tf.get_variable("v", initializer=x)
    with manager().prepare_session("", init_op=v.initializer, init_feed_dict={x: 4.0}) as session:
        assert session.run(v) == 4.0


def test_no_way_to_initialise_is_an_error():
    tf.get_variable("v", initializer=tf.constant(1.0))
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op was given"):
        manager().prepare_session("")


def test_what_the_init_op_left_out_is_named():
    v = tf.get_variable("v", initializer=tf.constant(1.0))
    tf.get_variable("forgotten", initializer=tf.constant(1.0))
    with pytest.raises(RuntimeError, match="did not make model ready.*Variables not initialized: forgotten"):
        manager().prepare_session("", init_op=v.initializer)


def test_the_local_init_op_waits_for_what_it_needs():
    v = tf.get_variable("v", initializer=tf.constant(1.0))
    local = tf.Variable(v.initialized_value() * 2.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    made = manager(local_init_op=local.initializer, ready_for_local_init_op=tf.report_uninitialized_variables([v]))
    with made.prepare_session("", init_op=v.initializer) as session:
        assert session.run(local) == 2.0
    with pytest.raises(RuntimeError, match="did not make model ready for local_init.*v"):
        made.prepare_session("", init_op=tf.no_op())
    with pytest.raises(ValueError, match="must also pass a local_init_op"):
        manager(ready_for_local_init_op=local)


def test_recovery_says_whether_there_was_something_to_restore(tmp_path):
    tf.get_variable("v", initializer=tf.constant(1.0))
    saver = train.Saver()
    made = manager()
    session, restored = made.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    session.close()
    assert not restored
    saved(tmp_path)
    session, restored = made.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    session.close()
    assert restored


def test_recovery_may_wait_for_a_checkpoint(tmp_path):
    v = tf.get_variable("v", initializer=tf.constant(1.0))
    time = FakeTime()
    time.on_sleep = lambda: saved(tmp_path) if len(time.sleeps) == 3 else None
    session, restored = manager(time).recover_session(
        "", saver=train.Saver(), checkpoint_dir=str(tmp_path), wait_for_checkpoint=True, max_wait_secs=100
    )
    with session:
        assert restored and session.run(v) == 3.0
    assert len(time.sleeps) == 3


def test_a_worker_waits_for_the_chief_in_one_session():
    with train.Server.create_local_server() as server:
        v = tf.get_variable("v", initializer=tf.constant(1.0))
        chief = tf.Session(server.target)
        time = FakeTime()
        time.on_sleep = lambda: chief.run(v.initializer) if len(time.sleeps) == 2 else None
        with manager(time).wait_for_session(server.target) as session:
            assert session.run(v) == 1.0
        chief.close()
    assert time.sleeps == [0.05, 0.05], "the default pause is short"


def test_a_wait_that_is_too_long_ends_and_says_what_is_missing():
    with train.Server.create_local_server() as server:
        tf.get_variable("v", initializer=tf.constant(1.0))
        with pytest.raises(tf.errors.DeadlineExceededError, match="after waiting 1 secs: .*not initialized: v"):
            manager().wait_for_session(server.target, max_wait_secs=1)
