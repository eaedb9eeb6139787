"""RunConfig: what TF_CONFIG tells, what is a mistake in it, and the other settings."""

from __future__ import annotations

import json

import pytest

import dtf as tf

CLUSTER = {"chief": ["c:1"], "ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1", "w2:1"]}


@pytest.fixture
def configured(monkeypatch):
    """Makes a RunConfig in an environment with this TF_CONFIG."""

    def make(config, **arguments):
        text = config if isinstance(config, str) else json.dumps(config)
        monkeypatch.setenv("TF_CONFIG", text)
        return tf.estimator.RunConfig(**arguments)

    return make


def task(job, index, cluster=CLUSTER, **more):
    return {"cluster": cluster, "task": {"type": job, "index": index}, **more}


def test_without_a_cluster_one_process_does_it_all(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    config = tf.estimator.RunConfig()
    assert (config.task_type, config.task_id, config.is_chief, config.master) == ("worker", 0, True, "")
    assert (config.num_ps_replicas, config.num_worker_replicas, config.global_id_in_cluster) == (0, 1, 0)
    assert not config.cluster_spec and config.evaluation_master == "" and config.service is None
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == (600, None)
    assert (config.save_summary_steps, config.log_step_count_steps, config.keep_checkpoint_max) == (100, 100, 5)
    assert not config.session_config.device_filters


@pytest.mark.parametrize(
    "job, index, number, filters",
    [
        ("chief", 0, 0, ["/job:ps", "/job:chief"]),
        ("worker", 0, 1, ["/job:ps", "/job:worker/task:0"]),
        ("worker", 2, 3, ["/job:ps", "/job:worker/task:2"]),
        ("ps", 0, 4, []),
        ("ps", 1, 5, []),
    ],
)
def test_each_task_knows_its_place(configured, job, index, number, filters):
    config = configured(task(job, index, service={"key": 1}, eval_session_master="grpc://e:1", model_dir="/there"))
    assert (config.task_type, config.task_id, config.is_chief) == (job, index, job == "chief")
    assert config.master == "grpc://" + CLUSTER[job][index]
    assert (config.num_ps_replicas, config.num_worker_replicas, config.global_id_in_cluster) == (2, 4, number)
    assert config.cluster_spec == tf.train.ClusterSpec(CLUSTER)
    assert list(config.session_config.device_filters) == filters
    assert (config.service, config.evaluation_master, config.model_dir) == ({"key": 1}, "grpc://e:1", "/there")


def test_the_evaluator_stands_beside_the_cluster(configured):
    for cluster in (CLUSTER, {**CLUSTER, "evaluator": ["e:1"]}, {}):
        config = configured(task("evaluator", 0, cluster))
        assert (config.task_type, config.is_chief, config.master) == ("evaluator", False, "")
        assert (config.num_ps_replicas, config.num_worker_replicas, config.global_id_in_cluster) == (0, 0, None)
        assert not config.cluster_spec
    chief = configured(task("chief", 0, {**CLUSTER, "evaluator": ["e:1"]}))
    assert chief.cluster_spec.jobs == ["chief", "ps", "worker"]


def test_a_master_is_a_chief_and_a_chief_alone_needs_no_server(configured):
    config = configured(task("master", 0, {"master": ["m:1"], "ps": ["p:1"]}))
    assert config.is_chief and config.master == "grpc://m:1" and config.num_worker_replicas == 1
    assert configured(task("chief", 0, {"chief": ["c:1"]})).master == ""


def test_a_sparse_cluster_has_texts_as_indices(configured):
    cluster = {"chief": ["c:1"], "ps": ["p:1"], "worker": {"3": "w3:1"}}
    config = configured(task("worker", "3", cluster))
    assert (config.task_id, config.master, config.global_id_in_cluster) == (3, "grpc://w3:1", 1)


@pytest.mark.parametrize(
    "config, words",
    [
        ("{", "must be JSON"),
        ("[1]", "must be a JSON object"),
        ({"cluster": CLUSTER}, "must name this task"),
        (task("worker", 3), "worker 3, which its \"cluster\" lacks"),
        (task("trainer", 0), "trainer 0, which its \"cluster\" lacks"),
        (task("worker", -1), "must be a number from 0; found -1"),
        (task("worker", "first"), "must be a number from 0; found 'first'"),
        (task("worker", 0, {"worker": ["w:1"]}), "exactly one \"chief\" task"),
        (task("chief", 0, {"chief": ["c:1", "d:1"]}), "exactly one \"chief\" task"),
        (task("chief", 0, {"chief": ["c:1"], "master": ["m:1"]}), "exactly one \"chief\" task"),
        (task("chief", 0, {"chief": [1]}), "\"cluster\" in TF_CONFIG is wrong"),
        (task("evaluator", 1), "only one evaluator"),
        ({"task": {"type": "ps", "index": 0}}, "Without a \"cluster\""),
    ],
)
def test_a_mistake_in_tf_config_is_named(configured, config, words):
    with pytest.raises(ValueError, match=words):
        configured(config)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"save_checkpoints_steps": 1, "save_checkpoints_secs": 1}, "not both"),
        ({"save_summary_steps": -1}, "save_summary_steps should be >= 0, but is -1"),
        ({"keep_checkpoint_max": -1}, "keep_checkpoint_max"),
        ({"experimental_max_worker_delay_secs": -1}, "experimental_max_worker_delay_secs"),
        ({"tf_random_seed": 1.5}, "tf_random_seed must be an integer"),
        ({"session_config": {}}, "must be a ConfigProto"),
        ({"protocol": "carrier pigeon"}, "protocol must be one of"),
        ({"device_fn": lambda node: ""}, "exactly one argument \"op\""),
    ],
)
def test_values_out_of_range_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        tf.estimator.RunConfig(**arguments)


def test_strategies_are_not_supported():
    with pytest.raises(NotImplementedError, match="train_distribute"):
        tf.estimator.RunConfig(train_distribute=object())


def test_replace_keeps_the_place_and_one_interval(configured, monkeypatch):
    config = configured(task("worker", 1), save_checkpoints_steps=5, model_dir="/a")
    monkeypatch.delenv("TF_CONFIG")
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == (None, 5)
    other = config.replace(save_checkpoints_secs=7, keep_checkpoint_max=1)
    assert (other.save_checkpoints_secs, other.save_checkpoints_steps, other.keep_checkpoint_max) == (7, None, 1)
    assert (other.task_id, other.model_dir, config.keep_checkpoint_max) == (1, "/a", 5)
    assert config.replace(save_checkpoints_secs=None, save_checkpoints_steps=None).save_checkpoints_steps is None
    with pytest.raises(ValueError, match="Replacing master is not supported"):
        config.replace(master="grpc://x:1")


def test_the_folder_is_given_once(configured):
    with pytest.raises(ValueError, match="give it once"):
        configured({"model_dir": "/a"}, model_dir="/b")
    assert configured({"model_dir": "/a"}, model_dir="/a").model_dir == "/a"
