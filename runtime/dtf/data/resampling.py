"""tf.data.experimental: groups reduced to one element each, other shares of classes, dense batches made sparse.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.build.ops import data_structure as structure
from dtf.build.ops.data import Dataset
from dtf.build.tensor import Tensor
from dtf.build.tensor_spec import RaggedTensorSpec, TensorSpec
from dtf.data.grouping import group_by_window, scan

__all__ = [
    "Reducer", "dense_to_ragged_batch", "dense_to_sparse_batch", "from_list", "group_by_reducer", "rejection_resample",
]  # fmt: skip

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


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = tf.int64
) -> _Transformation:
    """Batches of tensors of one rank whose sizes differ: RaggedTensors; tensors of known shape are batched as they are.

    Args:
      batch_size: how many elements a batch has.
      drop_remainder: leave out a last batch that is smaller.
      row_splits_dtype: int32 or int64.
    """

    def apply(dataset: Dataset) -> Dataset:
        spec = dataset.element_spec

        def kind(leaf: Any) -> Any:
            ragged = _unknown_sizes(leaf)
            return RaggedTensorSpec(leaf.shape, leaf.dtype, ragged[-1], row_splits_dtype) if ragged else leaf

        def encoded(*parts: Any) -> tuple[Tensor, ...]:
            leaves = structure.flatten(parts if type(spec) is tuple else parts[0])
            return tuple(
                _variant(leaf, ragged[-1], row_splits_dtype) if (ragged := _unknown_sizes(each))
                else structure.flat_tensors(leaf)[0]
                for leaf, each in zip(leaves, structure.flatten(spec), strict=True)
            )  # fmt: skip

        kinds = structure.map_structure(kind, spec)
        made = Dataset(dataset.map(encoded)._variant_tensor, kinds, dataset.options())
        return made.batch(batch_size, drop_remainder)

    return apply


def _unknown_sizes(spec: Any) -> list[int]:
    """The dimensions of a dense tensor of known rank whose sizes are not known."""
    if not isinstance(spec, TensorSpec) or spec.shape.ndims is None:
        return []
    return [axis for axis, size in enumerate(spec.shape.as_list()) if size is None]


def _variant(value: Tensor, ragged_rank: int, row_splits_dtype: Any) -> Tensor:
    """The variant of a dense tensor with this many ragged dimensions."""
    if ragged_rank:
        ragged = tf.RaggedTensor.from_tensor(value, ragged_rank=ragged_rank, row_splits_dtype=row_splits_dtype)
        return structure.flat_tensors(ragged)[0]
    return apply_op(
        "RaggedTensorToVariant", None, rt_nested_splits=[], rt_dense_values=value, batched_input=False,
        Tsplits=row_splits_dtype,
    )  # fmt: skip


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """A dataset of the elements of a list, which have one structure.

    Raises:
      ValueError: the list is empty.
    """
    if not elements:
        raise ValueError("Invalid `elements`. `elements` should not be empty.")
    converted = [structure.converted(each) for each in elements]
    spec = structure.spec_of(converted[0])
    for each in converted[1:]:
        spec = structure.merged(spec, structure.spec_of(each))
    leaves = zip(*(structure.flatten(each) for each in converted), strict=True)
    return Dataset.from_tensor_slices(structure.pack(spec, [tf.stack(column) for column in leaves]))
