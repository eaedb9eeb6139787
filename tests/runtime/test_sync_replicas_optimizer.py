"""Synchronous replicas: as good as one worker with the mean gradient, from the first step to a clean end."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtf as tf
from dtf.build.apply import apply_op
from dtf.testing import LocalCluster
from tests.interop.synchronous import Replica, alone, data, joined, model, together

STEPS = 6


def replica(cluster, index, batch=None, use_resource=False, workers=2):
    target = cluster.target("worker", index)
    return Replica(tf, target, cluster.cluster_spec, index, batch or data(3), use_resource, workers)


@pytest.fixture
def cluster():
    with LocalCluster({"ps": 2, "worker": 2}) as made:
        yield made


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_two_workers_train_as_one_with_both_batches(cluster, use_resource):
    batches = [data(3), data(4)]
    replicas = [replica(cluster, index, batch, use_resource) for index, batch in enumerate(batches)]
    for each in replicas:
        each.start(num_tokens=0)
    # In step with each other and with no tokens to start with, each gives one gradient to each update.
    for _ in range(STEPS):
        together(*(each.step for each in replicas))
    for each in replicas:
        each.end()
    assert [each.tokens for each in replicas] == [list(range(1, STEPS + 1))] * 2
    mean = np.mean([each.losses for each in replicas], 0)
    np.testing.assert_allclose(mean, alone(tf, joined(batches), use_resource, STEPS), rtol=1e-5)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_workers_gives_the_losses_of_the_whole_batch(workers):
    batches = [data(seed) for seed in range(3, 7)]
    share = len(batches) // workers
    with LocalCluster({"ps": 2, "worker": workers}) as cluster:
        replicas = [
            replica(cluster, index, joined(batches[index * share : (index + 1) * share]), workers=workers)
            for index in range(workers)
        ]
        # By themselves, each as fast as it can: the tokens alone keep them in step.
        together(*(lambda each=each: each.run(num_tokens=0, last_step=30) for each in replicas))
    mean = np.mean([each.losses[:30] for each in replicas], 0)
    np.testing.assert_allclose(mean, alone(tf, joined(batches), False, 30), rtol=1e-5)


def test_workers_start_and_end_by_themselves_with_the_tokens_of_the_start(cluster):
    replicas = [replica(cluster, index) for index in range(2)]
    together(*(lambda each=each: each.run(last_step=20) for each in replicas))
    for each in replicas:
        assert each.losses[-1] < replicas[0].losses[0] / 2  # the other may join when most is done
        assert each.tokens == sorted(each.tokens)


def test_a_worker_that_leaves_gives_its_token_back_and_the_chief_trains_on(cluster):
    chief, worker = (replica(cluster, index) for index in range(2))
    together(lambda: chief.run(last_step=12), lambda: worker.run(last_step=3))
    assert chief.tokens[-1] >= 11


def test_the_chiefs_end_ends_a_worker_that_waits(cluster):
    chief, worker = (replica(cluster, index) for index in range(2))
    together(lambda: chief.run(last_step=4), lambda: worker.run(last_step=1000))
    assert worker.tokens[-1] <= 4


def test_a_worker_that_was_killed_and_one_that_came_instead_do_not_stop_the_others(cluster):
    chief, first, second = replica(cluster, 0), replica(cluster, 1), replica(cluster, 1)
    gone = threading.Event()

    def killed():
        first.start()
        first.step()
        # Without the hook's end: its token is lost with it.
        first.session._creator.abandon()
        gone.set()

    def replacement():
        gone.wait(30)
        second.run(last_step=15)

    together(lambda: chief.run(last_step=15), killed, replacement)
    assert chief.losses[-1] < chief.losses[0] / 2


def test_a_chief_that_comes_back_takes_over_from_the_checkpoint(cluster, tmp_path):
    first, second, worker = replica(cluster, 0), replica(cluster, 0), replica(cluster, 1)
    gone = threading.Event()
    options = {"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 1, "save_summaries_steps": None}

    def killed():
        first.start(**options)
        for _ in range(6):
            first.step()
        first.session._creator.abandon()
        gone.set()

    def replacement():
        gone.wait(30)
        second.run(last_step=15, **options)

    together(killed, replacement, lambda: worker.run(last_step=15))
    assert second.losses[-1] < worker.losses[0] / 2
    assert int(tf.train.latest_checkpoint(str(tmp_path)).rpartition("-")[2]) >= 15


def test_a_chief_that_dies_within_an_update_frees_the_others_when_it_returns(cluster, tmp_path):
    first, second, worker = replica(cluster, 0), replica(cluster, 0), replica(cluster, 1)
    options = {"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 1, "save_summaries_steps": None}
    operations = first.graph.get_operations()
    first.start(num_tokens=0, **options)
    worker.start(num_tokens=0)
    together(first.step, worker.step)
    first.session._creator.abandon()

    def killed():
        # The gradients of an update are taken, and it never gives the tokens for the next.
        hand_in = [each for each in operations if each.type.endswith("AccumulatorApplyGradient")]
        take = [each.outputs[0] for each in operations if each.type.endswith("AccumulatorTakeGradient")]
        with tf.Session(cluster.target("worker", 0), first.graph) as session:
            session.run([hand_in, take], first.feed)
        second.run(num_tokens=0, last_step=8, **options)

    together(killed, worker.train_on)
    assert second.losses[-1] < worker.losses[0]


@pytest.mark.parametrize("num_tokens", [-1, 0])
def test_a_chief_that_returns_to_a_training_that_is_over_ends_at_once(cluster, tmp_path, num_tokens):
    first, second, worker = replica(cluster, 0), replica(cluster, 0), replica(cluster, 1)
    options = {"checkpoint_dir": str(tmp_path), "save_summaries_steps": None, "num_tokens": num_tokens, "last_step": 4}
    together(lambda: first.run(**options), lambda: worker.run(last_step=4))
    second.run(**options)
    assert not second.losses


def test_the_averages_move_after_each_update(cluster):
    with tf.Graph().as_default():
        setter = tf.train.replica_device_setter(
            cluster=cluster.cluster_spec, worker_device="/job:worker/task:0"
        )
        with tf.device(setter):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=4.0)
            averages = tf.train.ExponentialMovingAverage(0.5)
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(1.0), 1, variable_averages=averages, variables_to_average=[v]
            )
            train = optimizer.minimize(v * 2.0, step)
        hook = optimizer.make_session_run_hook(True, num_tokens=0)
        with tf.train.MonitoredTrainingSession(
            cluster.target("worker"), hooks=[hook, tf.train.StopAtStepHook(2)], log_step_count_steps=None
        ) as session:
            session.run(train)
            # The chief's thread makes the next updates only when gradients are there.
            assert session.run_step_fn(lambda step_context: step_context.session.run(v)) == 2.0
            moved = session.run_step_fn(lambda step_context: _until(step_context.session, averages.average(v), 3.0))
            assert moved == 3.0


def _until(session, tensor, wanted):
    """The value of a tensor, once it is that or for long enough not."""
    for _ in range(200):
        value = session.run(tensor)
        if value == wanted:
            break
    return value


def test_a_stale_gradient_is_dropped(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target("worker")) as session:
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=4.0)
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 1)
        loss = v * tf.placeholder_with_default(1.0, [])
        train = optimizer.minimize(loss, step)
        hand_in = tf.get_default_graph().get_operation_by_name("sync_replicas/ResourceAccumulatorApplyGradient")
        update = optimizer.get_chief_queue_runner().enqueue_ops[0]
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        session.run(optimizer.chief_init_op)
        session.run(hand_in)
        session.run(update)
        # The local step is 0 still, the global step 1.
        session.run(hand_in)
        handle = tf.get_default_graph().get_tensor_by_name("sync_replicas/conditional_accumulator:0")
        assert session.run(apply_op("ResourceAccumulatorNumAccumulated", handle=handle)) == 0
        assert session.run(train) == 1
        assert session.run([v, step]) == [3.0, 1]


def test_the_shared_names_are_tensorflows():
    with tf.Graph().as_default() as graph:
        with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
            loss, _ = model(tf, True)
            step = tf.train.get_or_create_global_step()
            tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 2, 3).minimize(loss, step)
        shared = {
            node.op: (node.attr["shared_name"].s.decode(), node.device)
            for node in graph.as_graph_def().node
            if node.op in ("ResourceConditionalAccumulator", "SparseConditionalAccumulator", "FIFOQueueV2")
        }
        device = graph.get_tensor_by_name("sync_rep_local_step:0").device
    assert shared == {
        "ResourceConditionalAccumulator": ("model/w:0/grad_accum", "/job:ps/task:0"),
        "SparseConditionalAccumulator": ("model/table:0/grad_accum", "/job:ps/task:1"),
        "FIFOQueueV2": ("sync_token_q", "/job:ps/task:0"),
    }
    assert device == "/job:worker/task:0"


def built(count=2, total=None):
    v = tf.get_variable("v", initializer=tf.ones([2]))
    step = tf.train.get_or_create_global_step()
    return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), count, total), v, step


def test_what_comes_too_early_or_is_missing_is_refused():
    with tf.Graph().as_default():
        optimizer, v, step = built()
        with pytest.raises(ValueError, match=r"after apply_gradients\(\)"):
            optimizer.get_chief_queue_runner()
        with pytest.raises(ValueError, match=r"after apply_gradients\(\)"):
            optimizer.get_init_tokens_op()
        with pytest.raises(ValueError, match="before using the hook"):
            optimizer.make_session_run_hook(False).begin()
        with pytest.raises(ValueError, match="at least one variable"):
            optimizer.apply_gradients([], step)
        with pytest.raises(ValueError, match="Global step is required"):
            optimizer.apply_gradients([(tf.ones([2]), v)])
        with pytest.raises(ValueError, match="neither a Tensor nor IndexedSlices"):
            optimizer.apply_gradients([("gradient", v)], step)


def test_too_few_tokens_for_the_first_update_are_refused():
    with tf.Graph().as_default():
        optimizer, v, step = built(5, 2)
        optimizer.minimize(tf.reduce_sum(v), step)
        with pytest.raises(ValueError, match="Too few tokens to finish the first step: 2"):
            optimizer.get_init_tokens_op(2)
        assert optimizer.get_init_tokens_op(3).type == "QueueEnqueueManyV2"
