"""tf.data.experimental: transformations for `Dataset.apply`, and iterators' positions in checkpoints.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental
"""

# ruff: noqa: F822 - names that are found late
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf import late as _late
from dtf.build.ops import data_structure as structure
from dtf.build.ops.data import AUTOTUNE, Dataset, _int64, _static
from dtf.build.ops.random import get_seed
from dtf.train.input_checkpoint import CheckpointInputPipelineHook, make_saveable_from_iterator

__all__ = [
    "AUTOTUNE", "AutoShardPolicy", "AutotuneAlgorithm", "AutotuneOptions", "CheckpointInputPipelineHook", "Counter",
    "CsvDataset", "DatasetStructure", "DistributeOptions", "ExternalStatePolicy", "INFINITE_CARDINALITY",
    "MapVectorizationOptions", "OptimizationOptions", "Optional", "OptionalStructure", "RaggedTensorStructure",
    "RandomDataset", "Reducer", "SHARD_HINT", "SparseTensorStructure", "SqlDataset", "StatsAggregator", "StatsOptions",
    "Structure", "TFRecordWriter", "TensorArrayStructure", "TensorStructure", "ThreadingOptions",
    "UNKNOWN_CARDINALITY", "assert_cardinality", "bucket_by_sequence_length", "bytes_produced_stats", "cardinality",
    "choose_from_datasets", "copy_to_device", "dense_to_ragged_batch", "dense_to_sparse_batch", "enumerate_dataset",
    "from_list", "from_variant", "get_next_as_optional", "get_single_element", "get_structure", "group_by_reducer",
    "group_by_window", "ignore_errors", "latency_stats", "make_batched_features_dataset", "make_csv_dataset",
    "make_saveable_from_iterator", "map_and_batch", "map_and_batch_with_legacy_function", "parallel_interleave",
    "parse_example_dataset", "prefetch_to_device", "rejection_resample", "sample_from_datasets", "scan",
    "shuffle_and_repeat", "snapshot", "take_while", "to_variant", "unbatch", "unique",
]  # fmt: skip

_Transformation = Callable[[Dataset], Dataset]


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: int | None = None) -> _Transformation:
    """`count` passes (without end if None), each in a new order; the buffer remains full from pass to pass."""

    def apply(dataset: Dataset) -> Dataset:
        first, second = (each or 0 for each in get_seed(seed))
        return dataset._with(
            "ShuffleAndRepeatDataset",
            buffer_size=_int64(buffer_size),
            seed=_int64(first),
            seed2=_int64(second),
            count=_int64(-1 if count is None else count),
        )

    return apply


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> _Transformation:
    """`map` in parallel, then `batch`.

    Raises:
      ValueError: both numbers of parallel calls are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("`map_and_batch` allows only one of `num_parallel_batches` and `num_parallel_calls` to be set")
    calls = num_parallel_calls
    if calls is None:
        calls = batch_size * (num_parallel_batches or 1)

    def apply(dataset: Dataset) -> Dataset:
        function, spec = dataset._traced(map_func, "tf_data_experimental_map_and_batch")
        return dataset._calling(
            "MapAndBatchDataset",
            function,
            structure.batched(spec, _static(batch_size) if _static(drop_remainder) else None),
            batch_size=_int64(batch_size),
            num_parallel_calls=_int64(calls),
            drop_remainder=drop_remainder,
            preserve_cardinality=True,
        )

    return apply


map_and_batch_with_legacy_function = map_and_batch


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool | None = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> _Transformation:
    """`Dataset.interleave` with a thread for each of the datasets; `sloppy` may keep the order, and here does."""

    def apply(dataset: Dataset) -> Dataset:
        function, spec = dataset._traced_dataset(map_func, "tf_data_experimental_parallel_interleave")
        return dataset._calling(
            "LegacyParallelInterleaveDatasetV2",
            function,
            spec,
            cycle_length=_int64(cycle_length),
            block_length=_int64(block_length),
            buffer_output_elements=_int64(AUTOTUNE if buffer_output_elements is None else buffer_output_elements),
            prefetch_input_elements=_int64(AUTOTUNE if prefetch_input_elements is None else prefetch_input_elements),
            deterministic="default" if sloppy is None else str(not sloppy).lower(),
        )

    return apply


def ignore_errors(log_warning: bool = False) -> _Transformation:
    """Without the elements that could not be made."""
    return lambda dataset: dataset._with("IgnoreErrorsDataset", log_warning=log_warning)


def unbatch() -> _Transformation:
    """`Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start: Any = 0) -> _Transformation:
    """`Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def take_while(predicate: Callable[..., Any]) -> _Transformation:
    """`Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
SHARD_HINT = -1

_GROUPING = (
    "Counter bucket_by_sequence_length cardinality choose_from_datasets copy_to_device get_single_element "
    "get_structure group_by_window parse_example_dataset prefetch_to_device sample_from_datasets scan unique"
)
_FILES = "CsvDataset make_batched_features_dataset make_csv_dataset"
_RESAMPLING = "Reducer dense_to_ragged_batch dense_to_sparse_batch from_list group_by_reducer rejection_resample"
_OPTIONS = (
    "AutoShardPolicy AutotuneAlgorithm AutotuneOptions DistributeOptions ExternalStatePolicy MapVectorizationOptions "
    "OptimizationOptions StatsOptions ThreadingOptions"
)
_SOURCES = (
    "RandomDataset SqlDataset StatsAggregator TFRecordWriter assert_cardinality bytes_produced_stats from_variant "
    "latency_stats snapshot to_variant"
)
_STRUCTURES = (
    "DatasetStructure OptionalStructure RaggedTensorStructure SparseTensorStructure Structure TensorArrayStructure "
    "TensorStructure"
)
_OPTIONALS = "Optional get_next_as_optional"
_PLACES = {
    "dtf.data.grouping": _GROUPING, "dtf.data.files": _FILES, "dtf.data.resampling": _RESAMPLING,
    "dtf.data.optionals": _OPTIONALS, "dtf.data.sources": _SOURCES, "dtf.data.structures": _STRUCTURES,
    "dtf.build.ops.data_options": _OPTIONS,
}  # fmt: skip
__getattr__, __dir__ = _late.names(
    globals(), {name: module for module, names in _PLACES.items() for name in names.split()}
)
