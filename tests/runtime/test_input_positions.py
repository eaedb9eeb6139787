"""An iterator that is restored from a checkpoint must go on as if nothing had happened."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import dtf as tf

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def lines(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n{name}3\n")
    return [str(tmp_path / name) for name in "ab"]


def rest(session, following):
    taken = []
    while True:
        try:
            taken.append(np.asarray(session.run(following)).tolist())
        except tf.errors.OutOfRangeError:
            return taken


def numbers(transform):
    return lambda lines: transform(Dataset.range(11))


PIPELINES = {
    "range": numbers(lambda d: d),
    "texts": lambda lines: tf.data.TextLineDataset(lines),
    "texts_in_turns": lambda lines: tf.data.TextLineDataset(lines, num_parallel_reads=2),
    "take_and_skip": numbers(lambda d: d.skip(2).take(7)),
    "shard": numbers(lambda d: d.shard(2, 1)),
    "repeat": numbers(lambda d: d.take(3).repeat(3)),
    "concatenate": numbers(lambda d: d.take(2).concatenate(d.skip(5))),
    "zip": numbers(lambda d: Dataset.zip((d, d.skip(1))).map(lambda a, b: a * b)),
    "batch": numbers(lambda d: d.batch(2)),
    "unbatch": numbers(lambda d: d.batch(4).unbatch()),
    "unbatched_texts": lambda lines: tf.data.TextLineDataset(lines).batch(4).unbatch(),
    "flat_map": numbers(lambda d: d.flat_map(lambda x: Dataset.range(x))),
    "interleave": numbers(lambda d: d.interleave(lambda x: Dataset.range(x), 3, 2)),
    "parallel_interleave": numbers(lambda d: d.interleave(lambda x: Dataset.range(x), 3, 2, num_parallel_calls=2)),
    "shuffle": numbers(lambda d: d.shuffle(4, seed=1).repeat(3)),
    "shuffle_without_a_seed": numbers(lambda d: d.shuffle(3).map(lambda x: x * 0)),
    "shuffle_and_repeat": numbers(lambda d: d.apply(tf.data.experimental.shuffle_and_repeat(4, 2, seed=1))),
    "windows_of_a_key": numbers(
        lambda d: d.apply(tf.data.experimental.group_by_window(lambda x: x % 3, lambda _, w: w.map(lambda x: x), 3))
    ),
    "choices": numbers(lambda d: tf.data.experimental.choose_from_datasets([d, d.skip(7)], d.map(lambda x: x % 2))),
    "unique": numbers(lambda d: d.map(lambda x: x // 2).apply(tf.data.experimental.unique())),
    "counter": numbers(lambda d: tf.data.experimental.Counter(2, 3).take(9)),
    "cache": numbers(lambda d: d.cache().repeat(2)),
    "prefetch": numbers(lambda d: d.prefetch(3)),
    "map": numbers(lambda d: d.map(lambda x: x * x).filter(lambda x: x > 3)),
    "parallel_map": numbers(lambda d: d.map(lambda x: x * x, num_parallel_calls=3).prefetch(2)),
    "take_while": numbers(lambda d: d.take_while(lambda x: x < 8)),
}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("taken", [0, 2, 5])
def test_a_restored_iterator_gives_the_rest(name, taken, lines, tmp_path):
    iterator = PIPELINES[name](lines).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    path = str(tmp_path / "position")
    with tf.Session() as session:
        session.run(iterator.initializer)
        for _ in range(taken):
            session.run(following)
        saver.save(session, path, write_meta_graph=False)
        wanted = rest(session, following)
    with tf.Session() as session:
        session.run(iterator.initializer)
        saver.restore(session, path)
        assert rest(session, following) == wanted
        # Also from the very end, and again from where it was.
        saver.restore(session, path)
        assert rest(session, following) == wanted


def test_the_position_of_the_end_is_the_end(tmp_path):
    iterator = Dataset.range(2).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        session.run(iterator.initializer)
        rest(session, following)
        saver.save(session, str(tmp_path / "end"), write_meta_graph=False)
    with tf.Session() as session:
        session.run(iterator.initializer)
        saver.restore(session, str(tmp_path / "end"))
        assert rest(session, following) == []


def test_what_has_no_position_says_so(tmp_path):
    iterator = Dataset.from_generator(lambda: iter(range(3)), tf.int64).make_initializable_iterator()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    following = iterator.get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            saver.save(session, str(tmp_path / "none"))
        session.run(iterator.initializer)
        session.run(following)
        with pytest.raises(tf.errors.FailedPreconditionError, match="Python generator"):
            saver.save(session, str(tmp_path / "none"))


def test_a_position_of_another_dataset_is_refused(tmp_path):
    iterator = tf.data.Iterator.from_structure(tf.int64, [])
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    path = str(tmp_path / "position")
    first = iterator.make_initializer(Dataset.range(5).shuffle(2))
    second = iterator.make_initializer(Dataset.range(5).repeat(2))
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="must be initialized|has not been initialized"):
            saver.save(session, path)
        session.run(first)
        saver.save(session, path, write_meta_graph=False)
        session.run(second)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not one of the dataset"):
            saver.restore(session, path)
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="must be initialized"):
        saver.restore(session, path)


def test_a_policy_that_is_none_is_refused():
    iterator = Dataset.range(2).make_initializable_iterator()
    with pytest.raises(ValueError, match="external_state_policy"):
        tf.data.experimental.make_saveable_from_iterator(iterator, "perhaps")


def test_a_job_that_was_stopped_goes_on_in_its_input(tmp_path):
    """The hook saves the position every two steps and at the end; the second run begins behind the first."""
    config = SimpleNamespace(
        save_checkpoints_secs=None, save_checkpoints_steps=2, num_worker_replicas=1, task_type="worker", task_id=0
    )
    seen = []
    for steps in (3, 100):
        with tf.Graph().as_default():
            iterator = Dataset.range(7).make_initializable_iterator()
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            following = iterator.get_next()
            step = tf.train.get_or_create_global_step()
            count = step.assign_add(1)
            estimator = SimpleNamespace(model_dir=str(tmp_path), config=config)
            hook = tf.data.experimental.CheckpointInputPipelineHook(estimator)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, save_summaries_steps=None,
                save_summaries_secs=None, hooks=[hook, tf.train.StopAtStepHook(num_steps=steps)],
                log_step_count_steps=None,
            ) as session:  # fmt: skip
                while not session.should_stop():
                    seen.append(int(session.run([following, count])[0]))
    assert seen == [0, 1, 2, 3, 4, 5, 6]
    assert (tmp_path / "checkpoint_input").exists()
