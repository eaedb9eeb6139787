"""tf.data.experimental's transformations that sort elements: windows of one key, buckets of lengths, choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.build.ops import data_structure as structure
from dtf.build.ops.data import Dataset, _made, _traced
from dtf.build.tensor import Tensor
from dtf.build.tensor_spec import TensorSpec

__all__ = [
    "Counter", "bucket_by_sequence_length", "cardinality", "choose_from_datasets",
    "copy_to_device", "get_single_element", "get_structure", "group_by_window", "parse_example_dataset",
    "prefetch_to_device", "sample_from_datasets", "scan", "unique",
]  # fmt: skip

_Transformation = Callable[[Dataset], Dataset]
_KEY = TensorSpec(tf.TensorShape([]), tf.int64)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Tensor, Dataset], Dataset],
    window_size: Any = None,
    window_size_func: Callable[[Tensor], Any] | None = None,
) -> _Transformation:
    """The elements of `reduce_func(key, window)`, for windows of consecutive elements that have one key.

    Args:
      key_func: element -> its key, a scalar int64.
      window_size: how many elements a window has at most.
      window_size_func: key -> the window's size, where sizes differ.

    Raises:
      ValueError: not exactly one of `window_size` and `window_size_func` is given; or `key_func` or
        `window_size_func` gives no scalar int64.
      TypeError: `reduce_func` does not return a dataset.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Must pass either window_size or window_size_func, but not both.")

    def size_of(key: Tensor) -> Tensor:
        return tf.convert_to_tensor(window_size if window_size_func is None else window_size_func(key), tf.int64)

    def apply(dataset: Dataset) -> Dataset:
        spec = dataset.element_spec
        keys, key_spec = _traced(key_func, spec, "group_by_window_key")
        sizes, size_spec = _traced(size_of, _KEY, "group_by_window_size")
        for name, each in (("key_func", key_spec), ("window_size_func", size_spec)):
            if not isinstance(each, TensorSpec) or not each.is_compatible_with(_KEY):
                raise ValueError(f"Invalid `{name}`. `{name}` must return a single `tf.int64` scalar, but got {each}.")
        windows, result = _traced(reduce_func, (_KEY, structure.DatasetSpec(spec)), "group_by_window_reduce")
        if not isinstance(result, structure.DatasetSpec):
            raise TypeError(f"Invalid `reduce_func`. `reduce_func` must return a `Dataset` object, but got {result}.")
        return dataset._with(
            "GroupByWindowDataset",
            result.element_spec,
            key_func=keys.reference,
            reduce_func=windows.reference,
            window_size_func=sizes.reference,
            key_func_other_arguments=list(keys.captured),
            reduce_func_other_arguments=list(windows.captured),
            window_size_func_other_arguments=list(sizes.captured),
        )

    return apply


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> _Transformation:
    """Padded batches of elements of about one length.

    Args:
      element_length_func: element -> its length, a scalar int32.
      bucket_boundaries: n ascending upper limits, each outside of its bucket.
      bucket_batch_sizes: the batch sizes of the n + 1 buckets.
      pad_to_bucket_boundary: pads to one less than the boundary; longer elements are errors.
      no_padding: batches elements that have one shape.

    Raises:
      ValueError: there is not one batch size more than boundaries.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("`len(bucket_batch_sizes)` must equal `len(bucket_boundaries)` + 1 but "
                         f"`len(bucket_batch_sizes)={len(bucket_batch_sizes)}` and "
                         f"`len(bucket_boundaries)={len(bucket_boundaries)}`.")  # fmt: skip
    limits = np.asarray(bucket_boundaries, np.int32)
    batch_sizes = np.asarray(bucket_batch_sizes, np.int64)
    upper = [*bucket_boundaries, np.iinfo(np.int32).max]

    def bucket_of(*element: Any) -> Tensor:
        length = tf.cast(element_length_func(*element), tf.int32)
        return tf.reduce_sum(tf.cast(length >= limits, tf.int64))

    def size_of(bucket: Tensor) -> Tensor:
        return tf.gather(batch_sizes, bucket)

    def batch_of(bucket: Tensor, window: Dataset) -> Dataset:
        size = size_of(bucket)
        if no_padding:
            return window.batch(size, drop_remainder=drop_remainder)
        legacy_shapes = window.output_shapes
        shapes = legacy_shapes if padded_shapes is None else padded_shapes
        if pad_to_bucket_boundary:
            check = tf.assert_less(
                bucket, np.int64(len(upper) - 1), message="When pad_to_bucket_boundary=True, elements must have "
                "length < max(bucket_boundaries).",
            )  # fmt: skip
            with tf.control_dependencies([check]):
                boundary = tf.gather(np.asarray(upper, np.int64), bucket) - 1
            shapes = structure.map_structure(lambda shape: _up_to(tf.TensorShape(shape), boundary), shapes)
        return window.padded_batch(size, shapes, padding_values, drop_remainder=drop_remainder)

    return group_by_window(bucket_of, batch_of, window_size_func=size_of)


def _up_to(shape: tf.TensorShape, boundary: Tensor) -> Any:
    sizes = [boundary if size is None else np.int64(size) for size in shape.as_list()]
    return tf.stack(sizes) if any(isinstance(size, Tensor) for size in sizes) else shape


def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """For each number of `choice_dataset` the next element of the dataset with this number.

    Raises:
      TypeError: `choice_dataset` has other elements than scalar int64.
      ValueError: there are no datasets.
    """
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    choice = choice_dataset.element_spec
    if not isinstance(choice, TensorSpec) or not choice.is_compatible_with(_KEY):
        raise TypeError(f"`choice_dataset` must have elements of a scalar `tf.int64` tensor, but got {choice}.")
    spec = datasets[0].element_spec
    for each in datasets[1:]:
        spec = structure.merged(spec, each.element_spec)
    return _made(
        "DirectedInterleaveDataset",
        spec,
        None,
        choice_dataset.options(),
        selector_input_dataset=choice_dataset._variant_tensor,
        data_input_datasets=[each._variant_tensor for each in datasets],
        stop_on_empty_dataset=stop_on_empty_dataset,
    )


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Elements of datasets that are drawn at random.

    Args:
      weights: how probable each dataset is: numbers, a tensor, or a dataset of such lists; None: all alike.

    Raises:
      ValueError: there is not one weight for each dataset.
    """
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    if isinstance(weights, Dataset):
        all_weights = weights
    else:
        given = tf.convert_to_tensor([1.0] * len(datasets) if weights is None else weights)
        if not given.dtype.is_floating:
            given = tf.cast(given, tf.float32)
        if not given.shape.is_compatible_with([len(datasets)]):
            raise ValueError(f"Invalid `weights`. The shape of `weights` should be compatible with [{len(datasets)}] "
                             f"but is {given.shape}.")  # fmt: skip
        all_weights = Dataset.from_tensors(given).repeat()
    largest = np.iinfo(np.int64).max
    seeds = Dataset.from_tensors(0).map(lambda _: tf.random_uniform([2], maxval=largest, dtype=tf.int64, seed=seed))

    def draws(first: Tensor) -> Dataset:
        return Dataset.zip((Counter(), all_weights)).map(lambda step, some: _draw(first, step, some))

    return choose_from_datasets(datasets, seeds.flat_map(draws), stop_on_empty_dataset)


def _draw(first: Tensor, step: Tensor, weights: Tensor) -> Tensor:
    seed = tf.stack([first[0], tf.bitwise.bitwise_xor(first[1], step)])
    drawn = tf.random.stateless_multinomial(tf.log(weights)[tf.newaxis], 1, seed=seed, output_dtype=tf.int64)
    return tf.reshape(drawn, [])


def scan(initial_state: Any, scan_func: Callable[..., Any], use_default_device: bool | None = None) -> _Transformation:
    """What scan_func(state, element) = (next state, output) gives, one output an element.

    Raises:
      TypeError: it returns something else than a pair, or a state of another type.
    """
    state = structure.converted(initial_state)

    def apply(dataset: Dataset) -> Dataset:
        function, spec = _traced(scan_func, (structure.spec_of(state), dataset.element_spec), "scan")
        if not isinstance(spec, tuple) or len(spec) != 2:
            raise TypeError("Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the "
                            "output value.")  # fmt: skip
        if structure.flat_types(spec[0]) != structure.flat_types(structure.spec_of(state)):
            raise TypeError(f"Invalid `scan_func`. The element types for the new state must match the initial state. "
                            f"Expected {structure.flat_types(structure.spec_of(state))}; got "
                            f"{structure.flat_types(spec[0])}.")  # fmt: skip
        return dataset._calling(
            "ScanDataset", function, spec[1], initial_state=structure.flat_tensors(state), preserve_cardinality=True
        )

    return apply


def unique() -> _Transformation:
    """Without the elements that came before."""
    return lambda dataset: dataset._with("UniqueDataset")


def Counter(start: Any = 0, step: Any = 1, dtype: Any = tf.int64) -> Dataset:  # noqa: N802
    """The numbers from `start` on, without end."""
    with tf.name_scope("counter"):
        first, by = tf.convert_to_tensor(start, dtype), tf.convert_to_tensor(step, dtype)
        return Dataset.from_tensors(0).repeat().apply(scan(first, lambda state, _: (state + by, state)))


def get_single_element(dataset: Dataset) -> Any:
    """The only element of a dataset. A step raises InvalidArgumentError unless there is exactly one."""
    spec = dataset.element_spec
    tensors = apply_op(
        "DatasetToSingleElement",
        None,
        dataset=dataset._variant_tensor,
        output_types=structure.flat_types(spec),
        output_shapes=structure.flat_shapes(spec),
    )
    return structure.packed(spec, tensors if isinstance(tensors, list) else [tensors])


def get_structure(dataset_or_iterator: Any) -> Any:
    """The element spec of a dataset or iterator.

    Raises:
      TypeError: it is neither.
    """
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        kind = type(dataset_or_iterator)
        raise TypeError(f"Invalid `dataset_or_iterator`. It must be a dataset or iterator, got {kind}.") from None


def cardinality(dataset: Dataset) -> Tensor:
    """How many elements a dataset has, a scalar int64: -1 for endless ones, -2 if that is unknown."""
    return apply_op("DatasetCardinality", None, input_dataset=dataset._variant_tensor)


def prefetch_to_device(device: str, buffer_size: Any = None) -> _Transformation:
    """`Dataset.prefetch`; elements lie in the host's memory whatever the device is."""
    del device
    return lambda dataset: dataset.prefetch(2 if buffer_size is None else buffer_size)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> _Transformation:
    """The dataset as it is; elements lie in the host's memory."""
    del target_device, source_device
    return lambda dataset: dataset


def parse_example_dataset(features: Any, num_parallel_calls: int = 1, deterministic: Any = None) -> _Transformation:
    """Batches of serialised Examples become dictionaries of tensors; `features` as in `tf.parse_example`.

    Raises:
      ValueError: there are no features.
    """
    if features is None:
        raise ValueError("Argument `features` is required, but not specified.")
    return lambda dataset: dataset.map(
        lambda records: tf.parse_example(records, features), num_parallel_calls, deterministic
    )
