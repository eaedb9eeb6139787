"""tf.data.experimental: groups reduced to one element each, other shares of classes, dense batches made sparse.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dtf as tf
from dtf.build.ops.data import Dataset
from dtf.build.tensor import Tensor
from dtf.data.grouping import group_by_window, scan

__all__ = ["Reducer", "dense_to_sparse_batch", "group_by_reducer", "rejection_resample"]

_Transformation = Callable[[Dataset], Dataset]


@dataclass(frozen=True)
class Reducer:
    """Three functions that reduce a group of elements.

    Args:
      init_func: the key -> the first state.
      reduce_func: (state, element) -> the next state.
      finalize_func: the last state -> the element for the group.
    """

    init_func: Callable[[Tensor], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[[Any], Any]


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> _Transformation:
    """One element for each key, in the order of the keys, at the end of the input.

    Args:
      key_func: element -> its key, a scalar int64.
      reducer: a Reducer.
    """

    def reduced(key: Tensor, group: Dataset) -> Dataset:
        state = group.reduce(reducer.init_func(key), reducer.reduce_func)
        return tf.data.Dataset.from_tensors(reducer.finalize_func(state))

    return group_by_window(key_func, reduced, window_size=np.iinfo(np.int64).max)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> _Transformation:
    """(class, element) pairs whose classes have the shares of `target_dist`; elements of frequent classes are dropped.

    Args:
      class_func: element -> its class, a scalar integer.
      target_dist: float [classes], the shares that are wanted.
      initial_dist: float [classes], the shares of the input; counted on the way by default.
      seed: of the choice.
    """

    def apply(dataset: Dataset) -> Dataset:
        target = tf.to_float(tf.convert_to_tensor(target_dist))
        count = target.shape[0].value

        def pair(*element: Any) -> Any:
            return tf.cast(class_func(*element), tf.int64), element[0] if len(element) == 1 else element

        pairs = dataset.map(pair)
        if initial_dist is not None:
            given = tf.to_float(tf.convert_to_tensor(initial_dist))
            shares = pairs.map(lambda kind, element: (kind, element, given))
        else:

            def counted(state: Tensor, item: Any) -> Any:
                kind, element = item
                state = state + tf.one_hot(kind, count, dtype=tf.int64)
                share = tf.to_float(state) / tf.to_float(tf.reduce_sum(state))
                return state, (kind, element, share)

            shares = pairs.apply(scan(np.ones([count], np.int64), counted))

        def kept(kind: Tensor, element: Any, share: Tensor) -> Tensor:
            del element
            wanted = target / tf.maximum(share, np.finfo(np.float32).tiny)
            return tf.random_uniform([], seed=seed) < tf.gather(wanted / tf.reduce_max(wanted), kind)

        return shares.filter(kept).map(lambda kind, element, share: (kind, element))

    return apply


def dense_to_sparse_batch(batch_size: Any, row_shape: Sequence[int]) -> _Transformation:
    """Batches of tensors as SparseTensors of the dense shape [batch, *row_shape].

    Args:
      batch_size: how many elements a batch has.
      row_shape: at least the size of each element.
    """

    def sparse(dense: Tensor) -> Any:
        places = tf.where(tf.ones_like(dense, tf.bool))
        return tf.SparseTensor(places, tf.reshape(dense, [-1]), tf.convert_to_tensor(row_shape, tf.int64))

    return lambda dataset: dataset.map(sparse).batch(batch_size)
