"""Threads that build one graph together."""

from __future__ import annotations

import threading

import pytest

import dtf as tf


def in_thread(work):
    """What `work` returns in another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    return found[0]


def made(graph):
    """How an operation and a variable look that are made here and now."""
    with graph.as_default():
        op = tf.constant(2.0, name="c").op
        variable = tf.get_variable(f"v{len(graph.get_operations())}", [1])
        waits_for = [each.name for each in op.control_inputs]
        return op.name, variable.name.rstrip("0123456789:"), op.device, waits_for, op.colocation_groups()


@pytest.mark.parametrize("is_switched", [False, True])
def test_each_thread_has_scopes_of_its_own_and_blocks_after_the_switch(is_switched):
    with tf.Graph().as_default() as graph:
        first = tf.constant(1.0, name="a")
        if is_switched:
            graph.switch_to_thread_local()
        with tf.variable_scope("scope"), tf.device("/job:w"), tf.control_dependencies([first]):
            name, variable, device, waits_for, _ = in_thread(lambda: made(graph))
            assert (name, variable) == ("c", "v")
            assert (device, waits_for) == (("", []) if is_switched else ("/job:w", ["a"]))
            with tf.colocate_with(first):
                groups = in_thread(lambda: made(graph))[-1]
            assert groups == ([b"loc:@c_1"] if is_switched else [b"loc:@a"])
            assert made(graph)[:4] == ("scope/c", "scope/v", "/job:w", ["a"])


def test_a_switch_inside_of_blocks_keeps_those_for_all():
    with tf.Graph().as_default() as graph, tf.device("/job:w"):
        graph.switch_to_thread_local()
        with tf.device("/job:x"):
            assert in_thread(lambda: made(graph))[2] == "/job:w"
        assert made(graph)[2] == "/job:w"


def test_threads_lose_no_node_and_make_no_name_twice_while_a_session_runs():
    threads, each = 6, 60
    with tf.Graph().as_default() as graph:
        total = tf.constant(0, name="total")
        made_by: dict[int, list[tf.Tensor]] = {}

        def build(number):
            with graph.as_default(), tf.name_scope("part"):
                made_by[number] = [tf.add(total, number, name="sum") for _ in range(each)]

        workers = [threading.Thread(target=build, args=(number,), daemon=True) for number in range(threads)]
        with tf.Session() as session:
            for worker in workers:
                worker.start()
            while any(worker.is_alive() for worker in workers):
                assert session.run(total) == 0
            for worker in workers:
                worker.join(60)
            names = [op.name for op in graph.get_operations()]
            assert len(names) == len(set(names)) == len({name.lower() for name in names})
            assert sum("/sum" in name and not name.endswith("/y") for name in names) == threads * each
            assert {number: set(session.run(sums)) for number, sums in made_by.items()} == {
                number: {number} for number in range(threads)
            }
