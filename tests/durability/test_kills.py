"""Durable parameter servers that are killed while they are trained: each update counts once, and nobody notices."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import dtf as tf
from tests.durability.kills import (
    count_exactly,
    elastic_exactly,
    killer,
    objects_exactly,
    queue_exactly,
    synchronous_exactly,
    train_exactly,
)  # fmt: skip
from tests.durability.servers import Places, Servers


def test_a_ps_is_killed_and_every_update_counts_once_in_the_same_session(folder):
    with Servers(folder) as servers:
        outcome = count_exactly(servers, 2, killer(servers, 1, 1, 0.3))
        assert servers.kills == 1
    assert outcome.wrong == []
    assert outcome.sessions == 1
    assert outcome.steps >= 20


@pytest.mark.slow
def test_both_places_of_a_ps_move_and_move_again_under_a_training_that_knows_the_old_addresses(folder):
    with Places(folder) as servers:
        moves = killer(servers, 3, 7, 0.3)
        moves.kill = lambda _: servers.move(0)
        outcome = count_exactly(servers, 2, moves)
        assert servers.text != servers._listed()
    assert outcome.wrong == []
    assert outcome.sessions == 1
    assert outcome.pause_s < 10


@pytest.mark.slow
def test_two_ps_are_killed_in_turn_and_every_update_counts_once(folder):
    with Servers(folder, count=2) as servers:
        outcome = count_exactly(servers, 3, killer(servers, 8, 2))
    assert outcome.wrong == []
    assert outcome.sessions == 1


@pytest.mark.slow
def test_slots_of_optimizers_must_be_those_of_a_training_without_kills_to_the_last_bit(folder):
    with Servers(folder, count=2) as servers:
        outcome = train_exactly(servers, killer(servers, 6, 3))
    assert outcome.wrong == []
    assert outcome.sessions == 1


@pytest.mark.slow
def test_numbers_in_a_queue_of_a_killed_ps_come_once_and_in_order(folder):
    with Servers(folder) as servers:
        outcome = queue_exactly(servers, killer(servers, 4, 4))
    assert outcome.wrong == []


@pytest.mark.slow
def test_synchronous_replicas_must_count_each_step_once(folder):
    with Servers(folder, count=2, workers=2) as servers:
        outcome = synchronous_exactly(servers, killer(servers, 4, 5))
    assert outcome.wrong == []
    assert outcome.sessions == 1


@pytest.mark.slow
def test_tables_barriers_and_other_queues_of_a_killed_ps_must_go_on_as_without_kills(folder):
    with Servers(folder) as servers:
        outcome = objects_exactly(servers, killer(servers, 4, 6))
    assert outcome.wrong == []


@pytest.mark.slow
def test_each_record_of_a_work_queue_must_count_once_while_workers_and_the_ps_are_killed(folder):
    with Servers(folder, workers=2) as servers:
        outcome = elastic_exactly(servers, killer(servers, 6, 7), 8)
        assert servers.kills >= 3
    assert outcome.wrong == []


@pytest.mark.slow
def test_a_ps_that_comes_back_without_its_state_must_end_the_session_as_a_lost_one(folder):
    with Servers(folder) as servers, tf.train.Server(servers.cluster, "worker", 0) as server, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(np.zeros(2000, np.float32))
            add = variable.assign_add(np.ones(2000, np.float32))
        with tf.Session(server.target) as session:
            session.run(variable.initializer)
            session.run(add)
            servers.kill(0)
            shutil.rmtree(folder / "ps-0")
            servers.start(0)
            with pytest.raises(tf.errors.AbortedError, match="without its durable state"):
                session.run(add)


@pytest.mark.slow
def test_a_seeded_random_generator_must_go_on_where_it_was(folder):
    drawn = []
    for kills in (False, True):
        servers = Servers(folder / str(kills))
        with servers, tf.train.Server(servers.cluster, "worker", 0) as server, tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                numbers = tf.random_uniform([3], seed=5)
            with tf.Session(server.target) as session:
                first = [session.run(numbers) for _ in range(3)]
                if kills:
                    servers.restart(0)
                drawn.append([*first, *(session.run(numbers) for _ in range(3))])
    np.testing.assert_array_equal(*drawn)


@pytest.mark.slow
def test_state_of_other_kinds_is_refused_in_words_and_none_stays_as_it_was(folder):
    for is_durable in (True, False):
        servers = Servers(folder, is_durable=is_durable)
        with servers, tf.train.Server(servers.cluster, "worker", 0) as server, tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                size = tf.TFRecordReader().num_records_produced()
            with tf.Session(server.target) as session:
                if is_durable:
                    with pytest.raises(tf.errors.UnimplementedError, match="state of this kind is not kept"):
                        session.run(size)
                else:
                    assert session.run(size) == 0


@pytest.mark.slow
def test_primaries_and_backups_are_killed_in_turn_and_every_update_counts_once(folder):
    with Places(folder, count=2) as servers:
        outcome = count_exactly(servers, 3, killer(servers, 8, 6, 0.3))
    assert outcome.wrong == []
    assert outcome.sessions == 1


@pytest.mark.slow
def test_a_queue_is_at_the_backup_too_and_each_number_comes_once(folder):
    with Places(folder) as servers:
        outcome = queue_exactly(servers, killer(servers, 4, 7, 0.3))
    assert outcome.wrong == []
