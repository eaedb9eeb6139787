"""pandas_input_fn: a feature for each column of a table, and labels with the same index."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


class Column(np.ndarray):
    """A column as pandas gives it: an array with an index."""

    index: Index


class Index(list):
    def equals(self, other):
        return list(self) == list(other)


class Table(dict):
    """The part of a DataFrame that the function uses."""

    @property
    def columns(self):
        return list(self)

    @property
    def index(self):
        return Index(range(len(next(iter(self.values())))))


def labels(values, index):
    column = np.asarray(values).view(Column)
    column.index = Index(index)
    return column


def test_columns_become_features():
    table = Table(age=np.arange(4.0), name=np.array(["a", "b", "c", "d"], object))
    function = tf.estimator.inputs.pandas_input_fn(table, labels([0, 1, 0, 1], range(4)), 2, 1, shuffle=False)
    with tf.Graph().as_default():
        features, wanted = function()
        with tf.train.MonitoredSession() as session:
            found = session.run([features, wanted])
    assert found[0]["age"].tolist() == [0, 1] and found[0]["name"].tolist() == [b"a", b"b"]
    assert found[1].tolist() == [0, 1]


def test_other_tables_are_refused():
    make = tf.estimator.inputs.pandas_input_fn
    with pytest.raises(TypeError, match="must be a pandas DataFrame, not list"):
        make([1], shuffle=False)
    with pytest.raises(ValueError, match="mismatched"):
        make(Table(x=np.arange(2)), labels([0, 1], [5, 6]), shuffle=False)
