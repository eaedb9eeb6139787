"""function.Defun: Python functions as functions of the graph's library, with gradients of their own."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf.build.defun import Declare, Defun


def test_a_function_is_called_by_its_name_and_arguments():
    @Defun(tf.float32, tf.float32, func_name="APlus2B")
    def a_plus_2b(a, b):
        return a + b * 2

    with tf.Graph().as_default() as graph, tf.Session() as session:
        found = a_plus_2b([1.0], [2.0], name="call")
        assert session.run(found) == [5.0]
        assert found.name == "call:0" and a_plus_2b.name == "APlus2B"
        assert [each.name for each in a_plus_2b.definition.signature.input_arg] == ["a", "b"]
        assert [each.signature.name for each in graph.as_graph_def().library.function] == ["APlus2B"]
        declared = Declare("APlus2B", [("a", tf.float32), ("b", tf.float32)], [("c", tf.float32)])
        assert session.run(declared(1.0, 1.0)) == 3
        with pytest.raises(ValueError, match="Expected number of arguments: 2, received: 1"):
            a_plus_2b(1.0)


def test_the_gradient_is_that_of_the_body_unless_the_declaration_says_otherwise():
    @Defun(tf.float32)
    def plain(x):
        return x * x

    @Defun(tf.float32, python_grad_func=lambda op, grad: grad * 7)
    def by_operation(x):
        return x * x

    @Defun(tf.float32, grad_func=Defun(tf.float32, tf.float32)(lambda x, grad: x * grad * 11))
    def by_function(x):
        return x * x

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(3.0)
        found = [tf.gradients(each(x), x)[0] for each in (plain, by_operation, by_function)]
        assert session.run(found) == [6, 7, 33]


def test_declarations_that_do_not_fit_the_function_are_refused():
    with pytest.raises(ValueError, match="takes 1 arguments, but the number of specified input types is 2"):
        Defun(tf.float32, tf.float32)(lambda x: x)
    with pytest.raises(ValueError, match="argument defaults"):
        Defun(tf.float32)(lambda x=1: x)


def test_a_function_is_declared_before_it_is_defined():
    declared = Declare("Later", [("x", tf.float32)], [("y", tf.float32)])
    caller = Defun(tf.float32)(lambda x: declared(x) + 1)
    later = Defun(tf.float32, func_name="Later", out_names=["y"])(lambda x: x * x)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        later.add_to_graph(graph)
        assert session.run([declared(3.0), caller(3.0)]) == [9, 10]


def test_two_functions_of_one_name_are_refused_unless_they_are_equal():
    first, same, other = (
        Defun(tf.float32, func_name="Name")(body) for body in (lambda x: x, lambda x: x, lambda x: x + 1)
    )
    with tf.Graph().as_default() as graph:
        first(1.0)
        same(1.0)
        assert len(graph.as_graph_def().library.function) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="different function with the same name"):
            other(1.0)


def test_variables_of_a_body_belong_to_the_graph_around_it():
    @Defun(tf.float32)
    def times(x):
        return x * tf.get_variable("w", initializer=2.0, use_resource=True)

    with tf.Graph().as_default(), tf.Session() as session, tf.variable_scope("scope"):
        y = times(3.0)
        assert [each.name for each in tf.global_variables()] == ["scope/w:0"]
        session.run(tf.global_variables_initializer())
        assert session.run(y) == 6
