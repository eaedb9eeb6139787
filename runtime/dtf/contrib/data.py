"""tf.contrib.data: transformations of data sets under their first names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

_ALIASES = {
    "AUTOTUNE": "AUTOTUNE", "Counter": "Counter", "parallel_interleave": "parallel_interleave",
    "shuffle_and_repeat": "shuffle_and_repeat", "map_and_batch": "map_and_batch", "unbatch": "unbatch",
    "ignore_errors": "ignore_errors", "bucket_by_sequence_length": "bucket_by_sequence_length",
    "group_by_window": "group_by_window", "scan": "scan", "unique": "unique", "enumerate_dataset": "enumerate_dataset",
    "make_saveable_from_iterator": "make_saveable_from_iterator", "prefetch_to_device": "prefetch_to_device",
    "CsvDataset": "CsvDataset", "copy_to_device": "copy_to_device",
    "choose_from_datasets": "choose_from_datasets", "sample_from_datasets": "sample_from_datasets",
    "rejection_resample": "rejection_resample", "make_csv_dataset": "make_csv_dataset",
    "make_batched_features_dataset": "make_batched_features_dataset", "CheckpointInputPipelineHook":
    "CheckpointInputPipelineHook", "assert_element_shape": "assert_element_shape", "get_single_element":
    "get_single_element",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in ("Dataset", "Iterator", "TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset"):
        return getattr(tf.data, name)
    if name in ("batch_and_drop_remainder", "padded_batch_and_drop_remainder"):
        return _dropping if name.startswith("batch") else _padded_dropping
    found = getattr(tf.data.experimental, _ALIASES[name], None) if name in _ALIASES else None
    if found is None:
        raise AttributeError(f"module 'dtf.contrib.data' has no attribute {name!r}")
    return found


Transformation = Callable[[Any], Any]


def _dropping(batch_size: Any) -> Transformation:
    """Batches of that size only."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def _padded_dropping(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """Padded batches of that size only."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def __dir__() -> list[str]:
    given = (name for name, place in _ALIASES.items() if hasattr(tf.data.experimental, place))
    return sorted({*given, "batch_and_drop_remainder", "padded_batch_and_drop_remainder"})
