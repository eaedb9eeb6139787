"""tf.data: datasets and iterators over them.

Only re-exports names of modules of `build.ops`.
"""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.data import AUTOTUNE, Dataset
from dtf.build.ops.data_files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from dtf.build.ops.data_iterators import (
    Iterator,
    get_output_classes,
    get_output_shapes,
    get_output_types,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from dtf.build.ops.data_options import Options, ThreadingOptions
from dtf.build.ops.data_structure import DatasetSpec
from dtf.data import experimental

__all__ = [
    "AUTOTUNE", "Dataset", "DatasetSpec", "FixedLengthRecordDataset", "INFINITE_CARDINALITY", "Iterator", "Options",
    "TFRecordDataset", "TextLineDataset", "ThreadingOptions", "UNKNOWN_CARDINALITY",
    "experimental", "get_output_classes", "get_output_shapes", "get_output_types", "make_initializable_iterator",
    "make_one_shot_iterator",
]  # fmt: skip

INFINITE_CARDINALITY = experimental.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY = experimental.UNKNOWN_CARDINALITY

__getattr__ = _late.refusals(__name__)
