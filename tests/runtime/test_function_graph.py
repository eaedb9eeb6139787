"""A traced function must compute what its Python function says, wherever it is called from."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.build.function_graph import trace
from dtf.wire.functions import instantiate

SCALAR = (tf.float32, tf.TensorShape([]))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_call_computes_what_the_python_function_says():
    function = trace(lambda x, y: [x * y, x + y], [SCALAR, SCALAR], "both")
    results = function.call([3.0, 4.0])
    with tf.Session() as session:
        assert session.run(results) == [12.0, 7.0]


def test_tensors_of_the_surrounding_graph_become_arguments(graph):
    factor = tf.placeholder(tf.float32, [2], name="factor")
    function = trace(lambda x: x * factor + factor[0], [SCALAR], "scale")
    assert function.captured == (factor,)
    (result,) = function.call([3.0])
    assert result.shape.as_list() == [2]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(result, {factor: [1, 2]}), [4, 7])


def test_a_function_in_a_function_takes_what_it_needs_from_both():
    outside = tf.constant(2.0)

    def outer(x):
        inner = trace(lambda y: y * x + outside, [SCALAR], "inner")
        return inner.call([10.0])

    function = trace(outer, [SCALAR], "outer")
    assert function.captured == (outside,)
    with tf.Session() as session:
        assert session.run(function.call([3.0])) == [32.0]


def test_by_value_nodes_are_copied_and_nothing_is_captured():
    constant = tf.constant([1.0, 2.0]) * 3.0
    function = trace(lambda: tf.reduce_sum(constant), [], "total", by_value=True)
    assert function.captured == ()
    with tf.Session() as session:
        assert session.run(function.call([])) == [9.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.placeholder(tf.float32, []), "placeholder"),
        (lambda: tf.get_variable("v", [], use_resource=True), "stateful node"),
    ],
)
def test_by_value_what_has_no_value_yet_is_refused(make, message):
    captured = make()
    with pytest.raises(ValueError, match=f"Cannot capture a {message}"):
        trace(lambda: captured + 1.0, [], "total", by_value=True)


def test_control_flow_works_in_a_function():
    def steps(x):
        doubled = tf.while_loop(lambda y: y < 100.0, lambda y: y * 2.0, [x])
        return tf.cond(doubled > 120.0, lambda: doubled, lambda: -doubled)

    function = trace(steps, [SCALAR], "steps")
    with tf.Session() as session:
        assert session.run(function.call([3.0]) + function.call([7.0])) == [192.0, -112.0]


def test_a_call_has_the_gradient_of_its_body():
    x = tf.constant(3.0)
    factor = tf.constant(5.0)
    (result,) = trace(lambda y: y * y * factor, [SCALAR], "square").call([x])
    with tf.Session() as session:
        assert session.run(tf.gradients(result, [x, factor])) == [30.0, 9.0]


def test_a_variable_is_read_when_the_function_is_called():
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    (result,) = trace(lambda: variable * 2.0, [], "read").call([])
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(variable.assign(4.0))
        assert session.run(result) == 8.0


def test_what_has_an_effect_runs_although_no_result_needs_it():
    counter = tf.get_variable("counter", initializer=0, use_resource=True, dtype=tf.int32)

    def count(x):
        counter.assign_add(1)
        return x

    function = trace(count, [SCALAR], "count")
    assert function.is_stateful
    with tf.Session() as session:
        session.run(counter.initializer)
        session.run(function.call([1.0]))
        assert session.run(counter) == 1


def test_names_are_unique_and_the_library_is_the_graphs(graph):
    first, second = (trace(lambda x: x, [SCALAR], "same") for _ in range(2))
    assert first.name != second.name
    library = {each.signature.name: each for each in graph.as_graph_def().library.function}
    assert set(library) == {first.name, second.name}
    assert [node.op for node in instantiate(library[first.name], {}, library).node] == ["_Arg", "_Retval"]


def test_names_of_arguments_do_not_clash_with_those_of_nodes():
    outside = tf.constant(4.0)
    function = trace(lambda x: tf.identity(x, name="captured_0") + outside, [SCALAR], "clash")
    with tf.Session() as session:
        assert session.run(function.call([1.0])) == [5.0]


def test_an_error_in_the_python_function_leaves_the_graph_as_it_was(graph):
    def broken(x):
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        trace(broken, [SCALAR], "broken")
    assert not graph.as_graph_def().library.function
    assert tf.get_default_graph() is graph
