"""Building, compiling and running a graph must cost calls in proportion to its size, never to the size's square.

Counts calls of functions, generators and built-in functions with a profiler; times would depend on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import dtf as tf

_SMALL = 40
_TIMES = 3


def _chain(size: int) -> tf.Tensor:
    x = tf.placeholder_with_default(tf.zeros([2]), [2])
    for _ in range(size):
        x = tf.sin(x + 1.0)
    return x


def _fan(size: int) -> tf.Tensor:
    x = tf.placeholder_with_default(tf.zeros([2]), [2])
    return tf.add_n([tf.sin(x) for _ in range(size)])


def _gradients_of_a_chain(size: int) -> tf.Tensor:
    x = start = tf.placeholder_with_default(tf.zeros([2]), [2])
    for _ in range(size):
        x = tf.sin(x)
    return tf.gradients(x, start)[0]


def _group(size: int) -> tf.Operation:
    x = tf.placeholder_with_default(tf.zeros([2]), [2])
    return tf.group(*[tf.sin(x).op for _ in range(size)])


def _waits_for_all_before(size: int) -> tf.Operation:
    last = tf.no_op()
    for _ in range(size):
        with tf.control_dependencies([last]):
            last = tf.no_op()
    return last


def _variables_and_adam(size: int) -> tf.Operation:
    variables = [tf.get_variable(f"v{number}", [2], initializer=tf.zeros_initializer()) for number in range(size // 10)]
    loss = tf.add_n([tf.reduce_sum(tf.square(variable - 1.0)) for variable in variables])
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    averages = [tf.assign(variable, variable * 0.5) for variable in variables]
    with tf.control_dependencies([train]):
        return tf.group(*averages)


def _initializers(size: int) -> tf.Operation:
    for number in range(size // 10):
        tf.get_variable(f"v{number}", [2], initializer=tf.zeros_initializer())
    return tf.global_variables_initializer()


def _names_of_one_scope(size: int) -> tf.Tensor:
    x = tf.placeholder_with_default(tf.zeros([2]), [2])
    for _ in range(size):
        with tf.name_scope("layer"):
            x = tf.identity(x, name="out")
    return x


def _conditions(size: int) -> tf.Tensor:
    x = tf.placeholder_with_default(tf.zeros([]), [])
    for _ in range(size // 10):
        x = tf.cond(x < 1.0, lambda x=x: x + 1.0, lambda x=x: x - 1.0)
    return x


_PROGRAMS: list[Callable[[int], tf.Tensor | tf.Operation]] = [
    _chain, _fan, _gradients_of_a_chain, _group, _waits_for_all_before, _variables_and_adam, _initializers,
    _names_of_one_scope, _conditions,
]  # fmt: skip


@pytest.mark.parametrize("program", _PROGRAMS)
def test_a_graph_costs_calls_in_proportion_to_its_size(program: Callable[[int], tf.Tensor | tf.Operation]) -> None:
    _calls(program, _SMALL)  # loads modules and fills caches
    small, large = _calls(program, 2 * _SMALL), _calls(program, 2 * _TIMES * _SMALL)
    grown = {
        name: (small.get(name, 0), count)
        for name, count in large.items()
        if count > 1.25 * _TIMES * (small.get(name, 0) + _SMALL)
    }
    assert not grown, f"calls at {2 * _SMALL} and at {2 * _TIMES * _SMALL} nodes"
    assert sum(large.values()) < 1.1 * _TIMES * sum(small.values())


def _calls(program: Callable[[int], tf.Tensor | tf.Operation], size: int) -> dict[str, int]:
    """The calls of each function while a graph is built, and runs two steps."""
    counts: dict[str, int] = {}

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            name = f"{code.co_filename}:{code.co_firstlineno} {code.co_name}"
        elif event == "c_call":
            name = getattr(argument, "__qualname__", "?")
        else:
            return
        counts[name] = counts.get(name, 0) + 1

    with tf.Graph().as_default(), tf.Session() as session:
        sys.setprofile(count)
        try:
            fetch = program(size)
            for _ in range(2):
                try:
                    session.run(fetch)
                except tf.errors.FailedPreconditionError:
                    session.run(tf.global_variables_initializer())
        finally:
            sys.setprofile(None)
    return counts


def test_control_dependencies_compare_each_operation_with_few_others(monkeypatch):
    """Comparisons of a list are no calls of functions, so operations that count them stand for those of a graph."""
    compared = []

    class Counting:
        def __init__(self, number: int) -> None:
            self.number = number

        def __eq__(self, other: object) -> bool:
            compared.append(1)
            return self is other

        def __hash__(self) -> int:
            return self.number

    graph = tf.Graph()
    operations = [Counting(number) for number in range(1000)]
    monkeypatch.setattr(graph, "_control_op", lambda entry: operations[entry])
    with graph.control_dependencies(range(500)), graph.control_dependencies([*range(1000), *range(1000)]):
        assert graph._control_dependencies.current() == operations
    assert len(compared) <= 5 * len(operations)
