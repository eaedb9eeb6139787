"""tf.estimator.inputs: input functions of arrays in memory.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/inputs/numpy_input_fn
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from dtf.build.default_graph import add_to_collection, get_default_graph
from dtf.build.graph import GraphKeys
from dtf.build.ops.data import Dataset
from dtf.wire import dtypes

__all__ = ["numpy_input_fn", "pandas_input_fn"]


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """`numpy_input_fn` for a pandas DataFrame: a feature for each column.

    Args:
      x: a DataFrame.
      y: a Series or a DataFrame of labels with the same index, or None.
      target_column: accepted; the labels of a Series are one tensor.

    Raises:
      TypeError: `x` is not a DataFrame.
      ValueError: `shuffle` is missing, or the index of `y` differs.
    """
    if not hasattr(x, "columns"):
        raise TypeError(f"x must be a pandas DataFrame, not {type(x).__name__}")
    if y is not None and not x.index.equals(y.index):
        raise ValueError("Index for x and y are mismatched; give y the index of x")
    columns = {name: _column(x[name]) for name in x.columns}
    labels = y
    if y is not None:
        labels = {name: _column(y[name]) for name in y.columns} if hasattr(y, "columns") else _column(y)
    return numpy_input_fn(columns, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def _column(series: Any) -> np.ndarray:
    array = np.asarray(series)
    return array if array.dtype.kind in "biufcS" else np.asarray([str(each) for each in array], object)


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """A function that returns the tensors of the next batch: features, or (features, labels).

    Args:
      x: an array, or a dict of arrays, with the same number of rows.
      y: labels in the same form, or None.
      batch_size: rows of a batch; the last one has fewer if they do not go up.
      num_epochs: how many epochs; None: without end.
      shuffle: whether to shuffle each epoch, with the graph's seed if it has one; required.
      queue_capacity, num_threads: accepted; all rows are shuffled, and one thread is enough.

    Raises:
      ValueError: `shuffle` is missing, `x` is empty, or numbers of rows differ.
      TypeError: a value is not an array.
    """
    if not isinstance(shuffle, bool):
        raise ValueError(f"shuffle must be provided and explicitly set as boolean; got {shuffle}")
    features = _arrays(x, "x")
    labels = {} if y is None else _arrays(y, "y")
    rows = {name: len(array) for name, array in {**features, **labels}.items()}
    if len(set(rows.values())) != 1:
        raise ValueError(f"Length of tensors in x and y is mismatched: {rows}")
    count = next(iter(rows.values()))

    def batches(seed: int | None) -> Any:
        """Yields tuples of arrays, epoch after epoch; a batch may contain rows of two epochs."""
        random = np.random.RandomState(seed)
        left: list[np.ndarray] = []
        epoch = 0
        while num_epochs is None or epoch < num_epochs:
            epoch += 1
            left.append(random.permutation(count) if shuffle else np.arange(count))
            order = np.concatenate(left)
            full = len(order) // batch_size * batch_size
            for start in range(0, full, batch_size):
                yield _taken(order[start : start + batch_size])
            left = [order[full:]]
        if left and len(left[0]):
            yield _taken(left[0])

    columns = [*features.values(), *labels.values()]

    def _taken(indices: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(column[indices] for column in columns)

    def input_fn() -> Any:
        types = tuple(dtypes.as_dtype(column.dtype) for column in columns)
        shapes = tuple([None, *column.shape[1:]] for column in columns)
        seed = get_default_graph().seed
        data = Dataset.from_generator(partial(batches, seed), types, shapes).prefetch(2)
        iterator = data.make_initializable_iterator()
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        tensors = iterator.get_next()
        of_features = _unpacked(x, dict(zip(features, tensors, strict=False)))
        if y is None:
            return of_features
        return of_features, _unpacked(y, dict(zip(labels, tensors[len(features) :], strict=True)))

    return input_fn


def _arrays(value: Any, what: str) -> dict[str, np.ndarray]:
    """The arrays by unique names, in the order of their keys."""
    if not isinstance(value, Mapping):
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{what} must be a dict or array; got {type(value).__name__}")
        return {what: value}
    if not value:
        raise ValueError(f"{what} cannot be empty")
    for name, array in value.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{what}[{name!r}] must be an array; got {type(array).__name__}")
    return {f"{what}[{name!r}]": value[name] for name in sorted(value)}


def _unpacked(value: Any, tensors: dict[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        return next(iter(tensors.values()))
    return dict(zip(sorted(value), tensors.values(), strict=True))
