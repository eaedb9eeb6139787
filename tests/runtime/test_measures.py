"""Counts of a process, and traces of its steps that its supervisor asks for."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import dtf as tf
from dtf.testing import LocalCluster
from dtf.wire import measures as measuring
from dtf.wire.measures import CALLERS, NAMES_MAX, OTHERS, RECEIVED, SENT, Measures, measures
from dtf.wire.step_traces import STEPS_MAX, StepTraces, Wish, step_traces
from dtf.wire.trace_pace import WAIT_MAX_NS, TracePace
from tests.waiting import wait_until


def test_a_peer_is_named_as_its_task():
    found = Measures()
    found.traffic("/job:ps/replica:0/task:3 at host:2222", "tcp", SENT).bytes += 5
    found.traffic("/job:ps/replica:0/task:3 at host:9999", "tcp", SENT).bytes += 6
    assert found.report()["traffic"] == [["ps:3", "tcp", SENT, 0, 11]]


def test_the_number_of_names_is_bounded():
    found = Measures()
    for number in range(NAMES_MAX + 10):
        found.traffic(f"peer-{number}", "tcp", SENT).messages += 1
        found.calls(f"/s/Method{number}").add(0.1)
    report = found.report()
    assert len(report["traffic"]) <= NAMES_MAX + 1 and len(report["calls"]) <= NAMES_MAX + 1
    assert [OTHERS, "tcp", SENT, 10, 0] in report["traffic"]


def test_times_are_counted_in_classes():
    found = Measures()
    for seconds in (0.00005, 0.003, 0.003, 99.0):
        found.runs.add(seconds)
    total_s, counts = found.report()["runs"]
    assert (round(total_s, 3), sum(counts), counts[0], counts[-1]) == (99.006, 4, 1, 1)


def test_a_count_that_lost_an_addition_is_not_reported_as_smaller():
    found = Measures()
    traffic = found.traffic("x", "tcp", SENT)
    traffic.messages = 7
    found.report()
    traffic.messages = 6
    assert found.report()["traffic"] == [["x", "tcp", SENT, 7, 0]]


def test_a_table_that_changes_while_it_is_asked_is_left_out():
    def values():
        raise RuntimeError("dictionary changed size during iteration")

    found = Measures()
    found.ask("queue_elements", values)
    found.ask("many", lambda: [(str(number), number) for number in range(measuring.REPORTED_MAX + 5)])
    report = found.report()["values"]
    assert report["queue_elements"] == {}
    assert len(report["many"]) == measuring.REPORTED_MAX and min(report["many"].values()) == 5


def test_messages_between_processes_are_counted_at_both_ends():
    def sent_and_received():
        rows = [row for row in measures.report()["traffic"] if row[0] != CALLERS]
        return sum(row[4] for row in rows if row[2] == SENT), sum(row[4] for row in rows if row[2] == RECEIVED)

    with LocalCluster({"worker": 1}, processes=True) as cluster, tf.Graph().as_default():
        big = tf.placeholder(tf.float32, [None])
        with tf.device("/job:worker/task:0"):
            doubled = big * 2.0
        with tf.Session(cluster.target("worker")) as session:
            session.run(doubled, {big: np.ones(1)})
            before = sent_and_received()
            session.run(doubled, {big: np.ones(250_000)})
            after = sent_and_received()
    assert [now - then >= 1_000_000 for now, then in zip(after, before, strict=True)] == [True, True]


def test_queues_and_variables_are_reported_while_they_are_there():
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, tf.int32, shared_name="numbers")
        variable = tf.get_variable("weights_of_report", initializer=np.zeros(100, np.float32))
        with tf.Session() as session:
            session.run([variable.initializer, queue.enqueue_many([[1, 2, 3]])])
            values = measures.report()["values"]
            assert values["queue_elements"]["numbers"] == 3
            assert values["variable_bytes"]["weights_of_report"] == 400


def test_an_operation_that_waits_for_an_element_is_reported_until_it_has_one():
    def waits():
        return measures.report()["values"]["queue_waits_s"]

    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, tf.int32, [[]], shared_name="awaited")
        taken, put = queue.dequeue(), queue.enqueue([7])
        with tf.Session() as session:
            found = []
            taker = threading.Thread(target=lambda: found.append(session.run(taken)))
            taker.start()
            wait_until(lambda: "awaited" in waits(), "the wait")
            assert 0 <= waits()["awaited"] < 60
            session.run(put)
            taker.join(60)
            assert found == [7] and "awaited" not in waits()


def test_what_hooks_run_is_no_step_of_the_training():
    class Curious(tf.train.SessionRunHook):
        def before_run(self, run_context):
            run_context.session.run("v:0")

        def after_run(self, run_context, run_values):
            run_context.session.run("v:0")

    with tf.Graph().as_default():
        value = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        with tf.train.MonitoredSession(hooks=[Curious()]) as session:
            before = sum(measures.runs.counts)
            for _ in range(3):
                session.run(value)
            assert sum(measures.runs.counts) - before == 3


def test_a_saved_checkpoint_and_a_stale_update_are_counted(tmp_path):
    before = measures.report()
    with tf.Graph().as_default():
        tf.get_variable("v", [2])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, str(tmp_path / "model"))
    after = measures.report()
    assert sum(after["saves"][1]) == sum(before["saves"][1]) + 1
    assert after["saved_at"] > before["saved_at"]


@pytest.fixture
def wished():
    yield step_traces
    step_traces.wish = None


def a_session_of_two_fetches():
    a = tf.random_uniform([])  # a constant would be folded
    return tf.multiply(a, 3.0, name="product"), tf.add(a, 1.0, name="sum")


def test_runs_are_traced_only_during_a_request(wished):
    with tf.Graph().as_default():
        product, total = a_session_of_two_fetches()
        with tf.Session() as session:
            session.run(product)
            wished.ask(5, 2, 0)
            for _ in range(4):
                session.run(product)
                session.run(total)
            found = wished.found(5, forget=False)
            assert found["is_fulfilled"]
            assert wished.found(4, forget=False) is None
            (plan,) = [plan for plan in found["plans"] if plan["fetches"] == ["product:0"]]
            assert plan["is_main"] and len(plan["runs"]) == 2
            nodes = [node for device in plan["runs"][0]["devices"] for node in device["nodes"]]
            assert any(node[0] == "product" and node[1] == "Mul" for node in nodes)
            assert plan["runs"][0]["start_us"] <= plan["runs"][1]["start_us"]
            wished.found(5, forget=True)
            assert wished.wish is None


def test_a_wish_is_not_fulfilled_by_threads_beside_the_training(wished):
    wished.ask(6, 1, 0)
    with tf.Graph().as_default():
        product, total = a_session_of_two_fetches()
        with tf.Session() as session:
            session.run(total)  # the first run of the main thread
            wished.ask(7, 1, 0)
            session.run(total)  # it prepares the next ones
            thread = threading.Thread(target=lambda: [session.run(product) for _ in range(3)])
            thread.start()
            thread.join()
            assert not wished.found(7, forget=False)["is_fulfilled"]
            session.run(total)
            assert wished.found(7, forget=False)["is_fulfilled"]


class NoNodes:
    dev_stats = ()


def test_tracing_takes_a_few_percent_of_the_time_from_one_wish_to_the_next():
    traces, now_ns, was_traced = StepTraces(), time.time_ns(), []
    usual_ns, cost_ns, waited = 1_000_000, 0, 0
    for number in range(1, 4):
        traces.ask(number, 4, 2)
        while not traces.wish.is_fulfilled:
            is_traced = traces.wish.begin(("train",))
            is_first_after = bool(was_traced) and was_traced[-1]
            # The first traced run of a wish prepares the others; the run after a traced one is slower too.
            took_ns = usual_ns + 2_000_000 * is_traced + 1_000_000 * is_first_after
            traces.wish.ran(("train",), now_ns, now_ns + took_ns, NoNodes if is_traced else None)
            was_traced.append(is_traced)
            cost_ns, now_ns, waited = cost_ns + took_ns - usual_ns, now_ns + took_ns, waited + 1
            assert waited < 10_000
        assert cost_ns / (waited * usual_ns) < 0.05 + 0.08 / number, "the last cost of a wish is paid by the next"
        (plan,) = traces.found(number, forget=True)["plans"]
        assert len(plan["runs"]) == 4
        assert plan["untraced_s"] == pytest.approx(plan["untraced_runs"] * usual_ns / 1e9, rel=0.01)
    assert was_traced[:4] == [False, False, True, False], "the usual time comes first, then the first traced run"


def test_a_wish_is_fulfilled_by_the_runs_that_take_most_of_the_time():
    wish, now_ns, traced = Wish(1, 2, 1), 0, {("train",): 0, ("step",): 0}
    for _ in range(1000):
        for fetches, took_ns in ((("train",), 5_000_000), (("step",), 100_000)):
            is_traced = wish.begin(fetches)
            traced[fetches] += is_traced
            took_ns += 1_000_000 * is_traced * (fetches == ("train",))
            wish.ran(fetches, now_ns, now_ns + took_ns, NoNodes if is_traced else None)
            now_ns += took_ns
            assert not wish.is_fulfilled or traced["train",] == 3, "the first one prepares the others"
    assert wish.is_fulfilled


def test_one_slow_run_does_not_put_off_the_next_trace_for_ever():
    pace = TracePace()
    pace.ran(0, 1_000_000, False)
    assert pace.allows
    pace.ran(1_000_000, 60_000_000_000, True)
    assert not pace.allows
    now_ns = 60_000_000_000
    while not pace.allows:
        pace.ran(now_ns, now_ns + 1_000_000, False)
        now_ns += 1_000_000
    assert now_ns == 60_000_000_000 + WAIT_MAX_NS


def test_the_size_of_a_wish_is_bounded():
    traces = StepTraces()
    traces.ask(1, 10**9, 10**9)
    assert traces.wish is not None and traces.wish.steps == STEPS_MAX
    for strange in (None, "1", -1, 0, 1 << 70, True):
        traces.ask(strange, 1, 1)
    assert traces.wish.number == 1
    wish = Wish(1, 1, 0)
    assert [wish.begin((str(number),)) for number in range(20)] == [True] * 16 + [False] * 4, "sets of fetches"


def test_rows_that_sparse_updates_change_are_counted_by_variable():
    with tf.Graph().as_default(), LocalCluster({"ps": 1, "worker": 1}) as cluster:
        with tf.device("/job:ps/task:0"):
            table = tf.get_variable("table_of_rows", [10, 2], initializer=tf.zeros_initializer())
            dense = tf.get_variable("dense_of_rows", [3], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 4, 4])) + tf.reduce_sum(dense)
        train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(2):
                session.run(train)
            rows = measures.report()["values"]["rows_touched"]
    assert rows["table_of_rows"] in (4, 6) and "dense_of_rows" not in rows


def test_callers_are_one_peer():
    assert measures.traffic(CALLERS, "grpc", SENT) is measures.traffic(CALLERS, "grpc", SENT)
