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
