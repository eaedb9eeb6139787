from __future__ import annotations

import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_all_calls_of_a_template_share_their_variables():
    template = tf.make_template("t", lambda x, scale: tf.get_variable("w", []) * x * scale, scale=2.0)
    template(1.0)
    template(2.0)
    assert [variable.name for variable in tf.global_variables()] == ["t/w:0"]


def test_two_templates_of_one_name_have_variables_of_their_own():
    for _ in range(2):
        tf.make_template("t", lambda: tf.get_variable("w", []))()
    assert [variable.name for variable in tf.global_variables()] == ["t/w:0", "t_1/w:0"]


def test_a_later_call_may_not_make_a_variable():
    template = tf.make_template("t", lambda name: tf.get_variable(name, []), create_scope_now_=True)
    template("v")
    with pytest.raises(ValueError, match="t/w"):
        template("w")
