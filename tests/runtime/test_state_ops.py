"""The functions that change variables, held by reference and by handle."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor import executor
from dtf.run.state.resources import ResourceManager

START = np.arange(6, dtype=np.float32).reshape(3, 2) + 1
ROWS = np.array([2, 0], np.int32)
UPDATES = np.array([[2, 4], [0.5, 8]], np.float32)


class Held:
    """A variable in a graph of its own, initialised to START."""

    def __init__(self, use_resource: bool, start: np.ndarray = START) -> None:
        self.graph = tf.Graph()
        self._resources = ResourceManager()
        with self.graph.as_default():
            self.variable = tf.Variable(start, use_resource=use_resource)
        self._run([], [self.variable.initializer.name])

    def _run(self, fetches, targets):
        return executor.run_graph_def(self.graph.as_graph_def(), fetches, targets=targets, resources=self._resources)

    def fetch(self, tensor):
        return self._run([tensor.name], [])[0]

    def value(self):
        with self.graph.as_default():
            return self.fetch(self.variable.read_value())


def rows(function) -> np.ndarray:
    result = START.copy()
    result[ROWS] = function(result[ROWS], UPDATES)
    return result


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda v: tf.assign(v, START * 2), START * 2),
        (lambda v: tf.assign_add(v, START), START * 2),
        (lambda v: tf.assign_sub(v, START * 3), START * -2),
        (lambda v: tf.scatter_update(v, ROWS, UPDATES), rows(lambda old, new: new)),
        (lambda v: tf.scatter_add(v, ROWS, UPDATES), rows(np.add)),
        (lambda v: tf.scatter_sub(v, ROWS, UPDATES), rows(np.subtract)),
        (lambda v: tf.scatter_mul(v, ROWS, UPDATES), rows(np.multiply)),
        (lambda v: tf.scatter_div(v, ROWS, UPDATES), rows(np.divide)),
        (lambda v: tf.scatter_min(v, ROWS, UPDATES), rows(np.minimum)),
        (lambda v: tf.scatter_max(v, ROWS, UPDATES), rows(np.maximum)),
        (lambda v: tf.scatter_nd_update(v, ROWS[:, None], UPDATES), rows(lambda old, new: new)),
        (lambda v: tf.scatter_nd_add(v, ROWS[:, None], UPDATES), rows(np.add)),
        (lambda v: tf.scatter_nd_sub(v, ROWS[:, None], UPDATES), rows(np.subtract)),
        (
            lambda v: tf.batch_scatter_update(v, np.int32([[1], [0], [1]]), np.float32([[7], [8], [9]])),
            [[1, 7], [8, 4], [5, 9]],
        ),
    ],
)
def test_a_change_gives_the_variable_after_it(use_resource, change, expected):
    held = Held(use_resource)
    with held.graph.as_default():
        changed = tf.convert_to_tensor(change(held.variable))
    assert changed.shape.as_list() == [3, 2]
    np.testing.assert_allclose(held.fetch(changed), expected)
    np.testing.assert_allclose(held.value(), expected)


@pytest.mark.parametrize("use_resource", [False, True])
def test_counting_gives_the_value_before(use_resource):
    held = Held(use_resource, np.array(4, np.int64))
    with held.graph.as_default():
        counted = tf.count_up_to(held.variable, 5)
    assert held.fetch(counted) == 4
    with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 5"):
        held.fetch(counted)


def test_a_variable_may_change_its_shape_when_that_is_not_checked():
    held = Held(False)
    with held.graph.as_default():
        changed = tf.assign(held.variable, np.float32([1, 2]), validate_shape=False)
    assert changed.shape.as_list() == [2]
    assert held.fetch(changed).tolist() == [1, 2]
    assert held.value().tolist() == [1, 2]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda v: tf.assign(v, np.float32([1])),
        lambda v: tf.assign_add(v, np.zeros((3, 3), np.float32)),
        lambda v: tf.scatter_add(v, ROWS, np.zeros((3, 2), np.float32)),
        lambda v: tf.scatter_nd_add(v, np.int32([[0, 0, 0]]), np.float32([1])),
    ],
)
def test_shapes_that_do_not_fit_are_refused_when_the_graph_is_made(use_resource, change):
    held = Held(use_resource)
    with held.graph.as_default(), pytest.raises(ValueError, match=r"shape|fit"):
        change(held.variable)


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_gradient_of_a_lookup_stays_rows(use_resource):
    held = Held(use_resource)
    with held.graph.as_default():
        looked_up = held.variable.sparse_read(ROWS)
        assert looked_up.shape.as_list() == [2, 2]
        (grad,) = tf.gradients(tf.reduce_sum(looked_up * UPDATES), [held.variable])
        assert isinstance(grad, tf.IndexedSlices)
    np.testing.assert_allclose(held.fetch(grad.values), UPDATES)
    assert held.fetch(grad.indices).tolist() == ROWS.tolist()
    assert held.fetch(grad.dense_shape).tolist() == [3, 2]
