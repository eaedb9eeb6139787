"""Feeding of dtfctl.spark without Spark: partitions are threads, nodes are queues."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dtfctl.launchers.spark.words import reason_in
from dtfctl.spark import feed
from dtfctl.spark.feed import Feeder, FeedError, FeedServer, Manager
from dtfctl.spark.registry import Registry, ask
from dtfctl.spark.TFCluster import cluster_file, jobs_of
from dtfctl.spark.TFNode import Context, DataFeed, hdfs_path

KEY = b"key"


class Nodes:
    """`managers` of as many workers, and a feeder to them."""

    def __init__(self, count: int, timeout_s: float = 60.0) -> None:
        self.tasks = tuple(f"worker:{index}" for index in range(count))
        self.registry = Registry("127.0.0.1", KEY, {"job": 1}, self.tasks)
        self.managers = [Manager() for _ in self.tasks]
        self.servers = [FeedServer(manager, "127.0.0.1", KEY) for manager in self.managers]
        for task, server in zip(self.tasks, self.servers, strict=True):
            ask(self.registry.address, KEY, "join", task, server.address)
        self.feeder = Feeder(self.registry.address, KEY, self.tasks, timeout_s)


@contextmanager
def nodes(count: int = 1, timeout_s: float = 60.0) -> Iterator[Nodes]:
    found = Nodes(count, timeout_s)
    try:
        yield found
    finally:
        for server in (found.registry, *found.servers):
            server.close()


@contextmanager
def at_work(function, *arguments):
    """A thread, with its result in a list of one; an exception is its result, too."""
    result: list[object] = []

    def run() -> None:
        try:
            result.append(function(*arguments))
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield result
    thread.join(60)
    assert not thread.is_alive()


def test_partitions_go_round_the_workers_and_all_rows_arrive():
    with nodes(2) as there:
        rows = [list(range(300)), list(range(300, 500))]
        with at_work(there.feeder.train, 0, rows[0]) as one, at_work(there.feeder.train, 1, rows[1]) as two:
            for manager, expected in zip(there.managers, rows, strict=True):
                taken = DataFeed(manager)
                assert [row for _ in range(len(expected) // 50) for row in taken.next_batch(50)] == expected
        assert (one, two) == ([None], [None])


def test_a_slow_worker_must_hold_its_feeders_up(monkeypatch):
    with nodes() as there:
        taken: list[int] = []

        def rows():
            for number in range(10 * feed.QUEUE_ROWS_MAX):
                taken.append(number)
                yield number

        with at_work(there.feeder.train, 0, rows()):
            node = DataFeed(there.managers[0])
            node.next_batch(1)
            target = there.managers[0].get_queue("input")
            assert target.maxsize == feed.QUEUE_ROWS_MAX
            assert len(taken) <= feed.QUEUE_ROWS_MAX + 2 * feed.BLOCK_ROWS
            node.terminate()
        assert len(taken) < 10 * feed.QUEUE_ROWS_MAX, "after terminate nothing more is sent"


def test_inference_must_give_one_result_for_each_row_in_order():
    with nodes() as there:

        def work() -> None:
            node = DataFeed(there.managers[0], train_mode=False)
            while not node.should_stop():
                node.batch_results([row * 2 for row in node.next_batch(64)])

        with at_work(work):
            for size in (0, 1, 500):
                assert list(there.feeder.infer(0, range(size))) == [2 * row for row in range(size)]
            there.managers[0].get_queue("input").put(None)


def test_too_many_or_too_few_results_must_be_told():
    with nodes(timeout_s=0.2) as there:

        def work(results) -> None:
            node = DataFeed(there.managers[0], train_mode=False)
            node.next_batch(3)
            node.batch_results(results)

        with at_work(work, [1, 2]), pytest.raises(FeedError, match="gave 2 results for 3 rows"):
            list(there.feeder.infer(0, [1, 2, 3]))


def test_a_batch_for_inference_ends_with_its_partition_and_one_of_training_does_not():
    manager = Manager()
    for row in (1, feed.EndPartition(), 2, 3, None):
        manager.get_queue("input").put(row)
    node = DataFeed(manager, train_mode=False)
    assert [node.next_batch(2), node.next_batch(2), node.next_batch(2), node.should_stop()] == [[1], [2, 3], [], True]


def test_columns_are_named_by_the_mapping():
    manager = Manager()
    for row in ((1, "a"), (2, "b"), None):
        manager.get_queue("input").put(row)
    node = DataFeed(manager, input_mapping={"b": "y", "a": "x"})
    assert node.next_batch(10) == {"x": [1, 2], "y": ["a", "b"]}


def test_an_error_of_map_fun_must_reach_the_feeders_in_words():
    with nodes() as there:
        ask(there.registry.address, KEY, "ended", "worker:0", "ValueError: no")
        with pytest.raises(FeedError, match="worker:0: ValueError: no"):
            there.feeder.train(0, [1])
        assert not there.registry.wait_for_nodes(0) or there.registry.failure


def test_rows_of_workers_that_have_ended_go_to_the_others_or_are_dropped():
    with nodes(2) as there:
        ask(there.registry.address, KEY, "ended", "worker:0", "")
        with at_work(there.feeder.train, 0, [7]):
            assert DataFeed(there.managers[1]).next_batch(1) == [7]
        ask(there.registry.address, KEY, "ended", "worker:1", "")
        there.feeder.train(0, [8])
        with pytest.raises(FeedError, match="all workers have ended"):
            there.feeder.infer(0, [8])


def test_a_worker_that_takes_nothing_must_be_told_after_the_time_limit():
    with nodes(timeout_s=0.1) as there, pytest.raises(FeedError, match="worker:0: .*0.1s"):
        there.feeder.train(0, range(3 * feed.QUEUE_ROWS_MAX))


def test_who_does_not_know_the_key_gets_nothing():
    from multiprocessing import AuthenticationError

    with nodes() as there, pytest.raises((AuthenticationError, OSError, EOFError)):
        ask(there.registry.address, b"other", "job")


def test_a_node_that_comes_after_the_end_of_the_feed_gets_no_rows():
    with nodes() as there:
        assert there.registry.end_feed() == [there.servers[0].address]
        assert ask(there.registry.address, KEY, "join", "worker:0", there.servers[0].address)


def test_jobs_are_numbered_as_tensorflow_on_spark_numbers_them():
    assert jobs_of(3, 1, None, False) == {"ps": 1, "worker": 2}
    assert jobs_of(4, 1, "chief", True) == {"ps": 1, "chief": 1, "worker": 1, "evaluator": 1}
    assert jobs_of(1, 0, "master", False) == {"master": 1}
    for wrong in ((1, 1, None, False), (2, 1, None, True), (2, -1, None, False)):
        with pytest.raises(ValueError, match="leaves no node to train"):
            jobs_of(*wrong)


def test_the_cluster_file_of_a_function_must_be_one_of_dtfctl(tmp_path, monkeypatch):
    import json

    from dtfctl import config

    monkeypatch.setenv("DTFCTL_SPARK_KEY", "00")
    text = json.dumps(cluster_file("app-1", jobs_of(4, 1, "chief", True), "127.0.0.1:1", None, 60.0))
    plan = config.parse(text, "cluster.yaml", tmp_path)
    assert sorted(task.name for task in plan.tasks()) == ["chief:0", "evaluator:0", "ps:0", "worker:0"]
    assert len({task.host.name for task in plan.tasks()}) == 4, "each on a host of its own"
    assert (plan.success, plan.success_rule) == (("chief", "worker"), "all")


@pytest.mark.parametrize(
    ("file_system", "path", "expected"),
    [
        ("hdfs://namenode:9000", "/a", "hdfs://namenode:9000/a"),
        ("hdfs://namenode:9000", "a", "hdfs://namenode:9000/user/me/a"),
        ("file://", "/a", "file:///a"),
        ("file://", "a", "file:///home/me/a"),
        ("file://", "s3a://bucket/a", "s3a://bucket/a"),
    ],
)
def test_paths_are_of_the_default_file_system(monkeypatch, file_system, path, expected):
    monkeypatch.setattr("getpass.getuser", lambda: "me")
    ctx = Context(defaultFS=file_system, working_dir="/home/me")
    assert ctx.absolute_path(path) == hdfs_path(ctx, path) == expected


def test_of_sparks_words_the_reason_is_shown():
    words = "An error occurred while calling x.\n: org.apache.spark.SparkException: Job aborted due to stage failure\n"
    words += "  File x\ndtfctl.spark.feed.FeedError: worker:0: no rows\n"
    assert reason_in(Exception(words)) == "worker:0: no rows"
    assert reason_in(Exception("plain")) == "plain"


def test_queues_are_bounded_but_for_results():
    manager = Manager(("input", "output", "more"))
    assert {name: manager.get_queue(name).maxsize > 0 for name in ("input", "output", "more")} == {
        "input": True,
        "output": False,
        "more": True,
    }
    with pytest.raises(KeyError):
        manager.get_queue("other")
    assert isinstance(manager.get_queue("input"), queue.Queue)
