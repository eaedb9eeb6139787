"""Tensors that stay in the session between steps."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import dtf as tf
from dtf import session_handles
from dtf.wire import errors


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_a_kept_tensor_is_evaluated_fed_and_read(session):
    x = tf.placeholder(tf.float32, [2])
    handle = session.run(tf.get_session_handle(tf.constant([1.0, 2.0]) * 2.0))
    assert isinstance(handle, session_handles.TensorHandle)
    assert handle.dtype == tf.float32
    np.testing.assert_array_equal(handle.eval(), [2.0, 4.0])
    np.testing.assert_array_equal(session.run(x + 1.0, {x: handle}), [3.0, 5.0])
    holder, value = tf.get_session_tensor(handle.handle, tf.float32)
    np.testing.assert_array_equal(session.run(value, {holder: handle}), [2.0, 4.0])


def test_a_deleted_tensor_is_gone(session):
    handle = session.run(tf.get_session_handle(tf.constant(1)))
    holder, value = tf.get_session_tensor(handle.handle, tf.int32)
    name = handle.handle
    handle.delete()
    with pytest.raises(TypeError, match="deleted"):
        handle.eval()
    with pytest.raises(errors.InvalidArgumentError, match="not in the session store"):
        session.run(value, {holder: name})


def test_tensors_whose_handles_are_gone_are_deleted_sometime(session):
    make = tf.get_session_handle(tf.constant(1))
    kept = session.run(make)
    names = [session.run(make).handle for _ in range(12)]
    gc.collect()
    assert kept.eval() == 1  # a run, which tidies up
    holder, value = tf.get_session_tensor(kept.handle, tf.int32)
    for name in names[:5]:
        with pytest.raises(errors.InvalidArgumentError):
            session.run(value, {holder: name})


def test_a_tensor_of_another_dtype_is_told_apart(session):
    handle = session.run(tf.get_session_handle(tf.constant(1)))
    holder, value = tf.get_session_tensor(handle.handle, tf.float32)
    with pytest.raises(errors.InternalError, match="int32"):
        session.run(value, {holder: handle})


def test_what_is_no_handle_is_refused(session):
    with pytest.raises(ValueError, match="not the handle"):
        tf.get_session_tensor("rubbish", tf.float32)
