"""tf.distribute.cluster_resolver: clusters as given, of TF_CONFIG, of several resolvers, of a job step of Slurm."""

import json

import pytest

import dtf as tf
from dtf.distribute import cluster_resolver

resolvers = tf.distribute.cluster_resolver
CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


def _simple(cluster, *args, **kwargs):
    return resolvers.SimpleClusterResolver(tf.train.ClusterSpec(cluster), *args, **kwargs)


def test_a_given_cluster_has_the_given_master_or_that_of_the_task_asked_for():
    given = _simple(CLUSTER, "m:1", "worker", 1, "cloud", {"GPU": 2}, "grpc")
    assert given.cluster_spec().as_dict() == CLUSTER
    assert (given.master(), given.master("ps", 0), given.master("ps", 0, "x")) == ("grpc://m:1", "grpc://a:1", "x://a:1")
    assert (given.task_type, given.task_id, given.environment) == ("worker", 1, "cloud")
    assert given.num_accelerators() == {"GPU": 2}
    with pytest.raises(ValueError, match="No task with index 7"):
        given.master("ps", 7)
    with pytest.raises(TypeError, match=r"must be a `tf.train.ClusterSpec`"):
        resolvers.SimpleClusterResolver(CLUSTER)


def test_resolvers_together_keep_the_order_of_lists_and_the_numbers_of_others():
    first = _simple(CLUSTER, rpc_layer="grpc")
    both = resolvers.UnionResolver(first, _simple({"worker": ["d:1", "b:1"]}))
    assert both.cluster_spec().as_dict() == {"ps": ["a:1"], "worker": ["b:1", "c:1", "d:1", "b:1"]}
    assert (both.master(), both.master("worker", 2), both.rpc_layer) == ("grpc://", "grpc://d:1", "grpc")
    numbered = resolvers.UnionResolver(first, _simple({"worker": {5: "e:1"}}))
    assert numbered.cluster_spec().as_dict()["worker"] == {0: "b:1", 1: "c:1", 5: "e:1"}
    with pytest.raises(KeyError, match="Duplicate keys detected"):
        resolvers.UnionResolver(first, _simple({"worker": {1: "e:1"}})).cluster_spec()
    with pytest.raises(ValueError, match="At least one ClusterResolver"):
        resolvers.UnionResolver()
    with pytest.raises(TypeError, match="must be a sub-class of `ClusterResolver.`"):
        resolvers.UnionResolver(3)


@pytest.mark.parametrize(
    ("config", "place", "master"),
    [
        ({}, (None, None, None), ""),
        ({"cluster": CLUSTER}, (None, None, None), ""),
        ({"cluster": CLUSTER, "task": {"type": "ps", "index": "0"}, "rpc_layer": "x"}, ("ps", 0, "x"), "x://a:1"),
        ({"cluster": CLUSTER, "session_master": "m:1"}, (None, None, None), "m:1"),
    ],
)
def test_tf_config_is_read_at_each_call(monkeypatch, config, place, master):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    found = resolvers.TFConfigClusterResolver()
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert found.cluster_spec().as_dict() == config.get("cluster", {})
    assert (found.task_type, found.task_id, found.rpc_layer) == place and found.master() == master


def test_what_the_program_says_comes_before_tf_config(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "ps", "index": 0}}))
    found = resolvers.TFConfigClusterResolver("worker", 0, "grpc")
    assert found.master() == "grpc://b:1" and found.master("ps", 0) == "grpc://a:1"
    found.task_id, found.rpc_layer = 1, "x"
    assert found.master() == "x://c:1"


@pytest.fixture
def step(monkeypatch):
    for name, value in {
        "SLURM_PROCID": "3", "SLURM_STEP_NODELIST": "t02n[13,41],t02n44", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
        "CUDA_VISIBLE_DEVICES": "9",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SLURM_GPUS_ON_NODE", raising=False)
    return monkeypatch


def test_the_tasks_of_a_job_step_are_shared_out_host_by_host(step):
    found = resolvers.SlurmClusterResolver({"ps": 1, "worker": 4}, gpus_per_node=2, gpus_per_task=1)
    assert found.cluster_spec().as_dict() == {
        "ps": ["t02n13:8888"],
        "worker": ["t02n13:8889", "t02n41:8888", "t02n41:8889", "t02n44:8888"],
    }
    assert found.get_task_info() == ("worker", 2) == (found.task_type, found.task_id)
    assert found.master() == "grpc://t02n41:8889" and found.master("ps", 0) == "grpc://t02n13:8888"
    assert cluster_resolver.os.environ["CUDA_VISIBLE_DEVICES"] == "1"


def test_without_jobs_all_are_workers_and_without_gpus_none_is_chosen(step):
    found = resolvers.SlurmClusterResolver(port_base=5000)
    assert len(found.cluster_spec().as_dict()["worker"]) == 5 and found.get_task_info() == ("worker", 3)
    assert cluster_resolver.os.environ["CUDA_VISIBLE_DEVICES"] == "9"


def test_a_step_with_other_tasks_than_the_jobs_is_refused(step):
    with pytest.raises(RuntimeError, match="Requested 6 tasks but only 5 were assigned"):
        resolvers.SlurmClusterResolver({"ps": 1, "worker": 5})
    with pytest.raises(RuntimeError, match="more GPUs per node than available"):
        resolvers.SlurmClusterResolver(gpus_per_node=1, gpus_per_task=1)
    step.setenv("SLURM_STEP_TASKS_PER_NODE", "two")
    with pytest.raises(ValueError, match="does not say the tasks of each host"):
        resolvers.SlurmClusterResolver()


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-2],m5,o[3-4,6,7-9]", ["n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"]),
        ("n[08-11]x", ["n08x", "n09x", "n10x", "n11x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("", []),
    ],
)
def test_lists_of_hosts_are_expanded(text, hosts):
    assert cluster_resolver.expand_hostlist(text) == hosts


def test_counts_of_tasks_are_expanded_and_nonsense_is_named():
    assert cluster_resolver.expand_tasks_per_node("3(x2),4,1") == [3, 3, 4, 1]
    with pytest.raises(ValueError, match="'x' is no range"):
        cluster_resolver.expand_hostlist("n[x]")


def test_strategies_say_what_to_use():
    with pytest.raises(AttributeError, match=r"tf.distribute.MirroredStrategy: distribution strategies are not supp"):
        tf.distribute.MirroredStrategy()
