"""ClusterSpec from everything it is made of, the ServerDef of a task, targets and addresses."""

from __future__ import annotations

import pytest

from dtf.wire import errors
from dtf.wire.cluster import ClusterSpec, make_server_def, parse_target, split_address
from dtf.wire.pb import config_pb2

SPARSE = {"ps": ["a:1", "b:2"], "worker": {3: "d:2", 0: "c:1"}}


@pytest.mark.parametrize(
    ("given", "as_dict"),
    [
        (SPARSE, {"ps": ["a:1", "b:2"], "worker": {0: "c:1", 3: "d:2"}}),
        (ClusterSpec(SPARSE), {"ps": ["a:1", "b:2"], "worker": {0: "c:1", 3: "d:2"}}),
        (ClusterSpec(SPARSE).as_cluster_def(), {"ps": ["a:1", "b:2"], "worker": {0: "c:1", 3: "d:2"}}),
        ({"a": ("b:1",)}, {"a": ["b:1"]}),
        ({"a": {0: "b:1", 1: "c:1"}}, {"a": ["b:1", "c:1"]}),
        ({"a": {1: "b:1", 2: "c:1"}}, {"a": {1: "b:1", 2: "c:1"}}),
        ({"a": {"0": b"b:1"}}, {"a": ["b:1"]}),
        ({"a": []}, {"a": {}}),
        ({}, {}),
    ],
    ids=repr,
)
def test_what_a_cluster_is_made_of(given, as_dict):
    cluster = ClusterSpec(given)
    assert cluster.as_dict() == as_dict
    assert cluster == ClusterSpec(cluster.as_cluster_def()) == ClusterSpec(as_dict)
    assert bool(cluster) == bool(as_dict)


def test_questions_about_tasks():
    cluster = ClusterSpec(SPARSE)
    assert cluster.jobs == ["ps", "worker"] and cluster.num_tasks("worker") == 2
    assert cluster.task_indices("worker") == [0, 3]
    assert cluster.task_address("worker", 3) == "d:2"
    assert cluster.job_tasks("worker") == ["c:1", None, None, "d:2"]
    with pytest.raises(ValueError, match="No task with index 1 in job 'worker'"):
        cluster.task_address("worker", 1)
    for question in (cluster.num_tasks, cluster.task_indices, cluster.job_tasks):
        with pytest.raises(ValueError, match="No such job in cluster: 'x'"):
            question("x")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (3, TypeError, "`cluster` must be a dictionary"),
        (None, TypeError, "`cluster` must be a dictionary"),
        ([("a", ["b:1"])], TypeError, "`cluster` must be a dictionary"),
        ({"ps": 3}, TypeError, "The tasks for job 'ps' must be a list or a dictionary"),
        ({"ps": "a:1"}, TypeError, "The tasks for job 'ps' must be a list or a dictionary"),
        ({"ps": [3]}, TypeError, "Task address 3 must be bytes or unicode"),
        ({3: ["a:1"]}, TypeError, "Job name 3 must be bytes or unicode"),
        ({"ps": {"a": "b"}}, ValueError, "'a' of job 'ps' is not a number"),
        ({"ps": {-1: "b"}}, ValueError, "-1 of job 'ps' is negative"),
    ],
    ids=repr,
)
def test_what_is_no_cluster_raises(given, error, words):
    with pytest.raises(error, match=words):
        ClusterSpec(given)


def test_equality_and_text():
    cluster = ClusterSpec({"worker": ["c:1"], "a": ["d:1"]})
    assert cluster == ClusterSpec({"a": {0: "d:1"}, "worker": ["c:1"]}) and cluster != ClusterSpec({}) and cluster != 3
    assert repr(cluster) == str(cluster) == "ClusterSpec({'a': ['d:1'], 'worker': ['c:1']})"
    with pytest.raises(TypeError, match="unhashable"):
        hash(cluster)


def test_the_cluster_def_has_jobs_and_tasks_in_order():
    text = " ".join(str(ClusterSpec({"b": {7: "x:1"}, "a": ["y:2"]}).as_cluster_def()).split())
    assert text == 'job { name: "a" tasks { key: 0 value: "y:2" } } job { name: "b" tasks { key: 7 value: "x:1" } }'


def test_a_server_def_says_which_task():
    config = config_pb2.ConfigProto(allow_soft_placement=True)
    server_def = make_server_def(SPARSE, "worker", 3, config=config)
    assert (server_def.job_name, server_def.task_index, server_def.protocol) == ("worker", 3, "grpc")
    assert ClusterSpec(server_def.cluster) == ClusterSpec(SPARSE)
    assert server_def.default_session_config == config
    assert make_server_def(server_def) == server_def
    other = make_server_def(server_def, "ps", 1, "grpc+dtf")
    assert (other.job_name, other.task_index, other.protocol) == ("ps", 1, "grpc+dtf")


def test_the_only_task_need_not_be_named():
    server_def = make_server_def({"local": ["localhost:0"]})
    assert (server_def.job_name, server_def.task_index) == ("local", 0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((SPARSE,), ValueError, "explicit `job_name`"),
        ((SPARSE, "ps"), ValueError, "explicit `task_index`"),
        ((SPARSE, "ps", 2), ValueError, "No task with index 2"),
        ((SPARSE, "x", 0), ValueError, "No such job"),
        ((3,), TypeError, "`cluster` must be"),
    ],
    ids=repr,
)
def test_a_server_def_of_no_task_raises(arguments, error, words):
    with pytest.raises(error, match=words):
        make_server_def(*arguments)


def test_targets_and_addresses():
    assert parse_target("grpc://host:2222") == "host:2222"
    assert split_address("host:2222") == ("host", 2222)
    assert split_address("[::1]:0") == ("::1", 0)


@pytest.mark.parametrize("address", ["host", "host:", ":1", "host:x", "host:70000", "::1:2", "host:-1"])
def test_what_is_no_address_raises(address):
    with pytest.raises(errors.InvalidArgumentError, match="Could not interpret"):
        split_address(address)
    with pytest.raises(errors.InvalidArgumentError):
        parse_target(f"grpc://{address}")


def test_what_is_no_target_raises():
    for target in ("host:1", "http://host:1", ""):
        with pytest.raises(errors.NotFoundError, match="No session factory registered"):
            parse_target(target)
