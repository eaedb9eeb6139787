"""tf.data: datasets and iterators over them.

Only re-exports names of modules of `build.ops`.
"""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.data import AUTOTUNE, Dataset, Options
from dtf.build.ops.data_files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from dtf.build.ops.data_iterators import (
    Iterator,
    get_output_classes,
    get_output_shapes,
    get_output_types,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from dtf.data import experimental

__all__ = [
    "AUTOTUNE", "Dataset", "FixedLengthRecordDataset", "Iterator", "Options", "TFRecordDataset", "TextLineDataset",
    "experimental", "get_output_classes", "get_output_shapes", "get_output_types", "make_initializable_iterator",
    "make_one_shot_iterator",
]  # fmt: skip

__getattr__ = _late.refusals(__name__)
