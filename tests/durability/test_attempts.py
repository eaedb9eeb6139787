"""Steps that are sent again to a durable task, run by the real executor in one thread: each change counts once.

A restart is a copy of the task's folder, which a new task opens; a copy is taken after each record.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import dtf as tf
from dtf.build.defun import Defun
from dtf.run.durability import journal
from dtf.wire.pb import attr_value_pb2
from tests.durability.tasks import Graphs, Task


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(journal, "_RECORDS_BYTES", 4096)


def graphs_of(build) -> Graphs:
    with tf.Graph().as_default() as graph:
        return Graphs(graph, build())


def copies_after_each_record(folder: Path, monkeypatch) -> list[Path]:
    """Where copies of the folder go from now on."""
    copies: list[Path] = []
    append = journal.Journal.append

    def copying(self, text):
        append(self, text)
        copies.append(folder.with_name(f"copy-{len(copies)}"))
        shutil.copytree(folder, copies[-1])

    monkeypatch.setattr(journal.Journal, "append", copying)
    return copies


def test_of_two_attempts_at_one_queue_the_newer_gets_the_element_and_the_older_takes_none(tmp_path):
    def build():
        queue = tf.FIFOQueue(5, tf.int64, shapes=[[]], shared_name="q")
        number = tf.placeholder(tf.int64, [], name="number")
        return {"take": queue.dequeue(), "add": queue.enqueue(number), "size": queue.size()}

    task = Task(tmp_path / "state", graphs_of(build))
    first = task.start("take", slot=0, number=1, attempt=0)
    second = task.start("take", slot=0, number=1, attempt=1)
    assert first.error.error_code == tf.errors.ABORTED
    assert not second.is_over
    for number in (7, 8):
        task.run("add", {"number:0": np.int64(number)}, slot=1, number=number)
    assert second.values == [7]
    assert task.run("size", slot=1, number=9) == [1]
    assert task.run("take", slot=0, number=1, attempt=2) == [7]
    task.close()


def assign_add_by_name(name: str, value: tf.Tensor) -> tf.Operation:
    graph, text = tf.get_default_graph(), name.encode()
    attrs = {
        "dtype": attr_value_pb2.AttrValue(type=value.dtype.as_datatype_enum),
        "shape": attr_value_pb2.AttrValue(shape=value.shape.as_proto()),
        "shared_name": attr_value_pb2.AttrValue(s=text),
    }
    handle = graph.create_op("VarHandleOp", [], [tf.resource], attrs=attrs, name="handle").outputs[0]
    return graph.create_op("AssignAddVariableOp", [handle, value], [], attrs={"dtype": attrs["dtype"]}, name="add")


def functional_while(body) -> tf.Tensor:
    """A While node that counts from 0 to 4, and calls `body` as a function."""
    few = Defun(tf.int32, func_name="few")(lambda number: number < 4)
    turn = Defun(tf.int32, func_name="turn")(body)
    zero = tf.constant(0)
    few(zero), turn(zero)
    graph = tf.get_default_graph()
    attrs = {"T": attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=[tf.int32.as_datatype_enum]))}
    for name, function_name in (("cond", "few"), ("body", "turn")):
        attrs[name] = attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name=function_name))
    return graph.create_op("While", [zero], [tf.int32], attrs=attrs, name="while").outputs[0]


@pytest.mark.parametrize("kind", ["a loop", "a While", "a function"])
def test_changes_in_loops_and_functions_count_once_whenever_the_task_is_killed(tmp_path, monkeypatch, kind):
    def build():
        variable = tf.get_variable("v", [3], initializer=tf.zeros_initializer(), use_resource=True)
        queue = tf.FIFOQueue(50, tf.float32, shapes=[[]], shared_name="q")

        def body(number):
            if kind == "a While":  # whose functions cannot capture: they name both anew
                inside = tf.FIFOQueue(50, tf.float32, shapes=[[]], shared_name="q")
                add = assign_add_by_name("v", tf.ones([3]))
            else:
                inside, add = queue, variable.assign_add(tf.ones([3]))
            with tf.control_dependencies([add, inside.enqueue(tf.to_float(number))]):
                return number + 1

        if kind == "a loop":
            run = tf.while_loop(lambda number: number < 4, body, [0])
        elif kind == "a While":
            run = functional_while(body)
        else:
            twice = Defun(tf.int32)(lambda number: body(body(number)))
            run = twice(twice(0))
        return {"init": variable.initializer, "train": run, "value": variable.read_value(), "size": queue.size()}

    graphs = graphs_of(build)
    task = Task(tmp_path / "state", graphs)
    task.run("init", slot=0, number=1)
    copies = copies_after_each_record(tmp_path / "state", monkeypatch)
    assert task.run("train", slot=0, number=2) == [4]
    task.close()
    assert copies
    monkeypatch.undo()
    for copy in copies:
        again = Task(copy, graphs)
        assert again.run("train", slot=0, number=2, attempt=1) == [4]
        np.testing.assert_array_equal(again.run("value", slot=0, number=3)[0], np.full(3, 4.0))
        assert again.run("size", slot=0, number=4) == [4]
        again.close()


def test_a_step_that_waits_behind_a_draw_draws_the_same_numbers_after_a_restart(tmp_path):
    """Whatever the draws have of large values and generators, the stream goes on as in a session without kills."""

    def build():
        queue = tf.FIFOQueue(9, tf.int64, shapes=[[]], shared_name="q")
        number = tf.placeholder(tf.int64, [], name="number")
        drawn = [
            tf.random_uniform([2000], seed=1), tf.random_poisson([3.0, 500.0], [4], seed=2),
            tf.random_shuffle(tf.range(50), seed=3), tf.random_gamma([2], 0.3, seed=4), tf.random_normal([3], seed=5),
            tf.multinomial(tf.zeros([1, 9]), 20, seed=6),
        ]  # fmt: skip
        numbers = tf.concat([tf.cast(tf.reshape(each, [-1]), tf.float32) for each in drawn], 0)
        with tf.control_dependencies([numbers]):
            element = queue.dequeue()
        with tf.control_dependencies([element]):
            waited = tf.identity(numbers)
        return {"draw": waited, "add": queue.enqueue(number)}

    graphs = graphs_of(build)
    folder = tmp_path / "undisturbed"
    task = Task(folder, graphs)
    for number in range(3):
        task.run("add", {"number:0": np.int64(number)}, slot=1, number=number)
    expected = [task.run("draw", slot=0, number=number)[0] for number in range(3)]
    task.close()

    folder = tmp_path / "killed"
    for number in range(3):
        for attempt in range(3):  # each of them draws, waits, and is killed
            task = Task(folder, graphs)
            assert not task.start("draw", slot=0, number=number, attempt=attempt).is_over
            folder = shutil.copytree(folder, tmp_path / f"copy-{number}-{attempt}")
            task.close()
        task = Task(folder, graphs)
        last = task.start("draw", slot=0, number=number, attempt=3)
        task.run("add", {"number:0": np.int64(number)}, slot=1, number=number)
        np.testing.assert_array_equal(last.values[0], expected[number])
        folder = shutil.copytree(folder, tmp_path / f"copy-{number}")
        task.close()
