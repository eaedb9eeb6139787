"""tf.io: files, records and serialized messages by the names that TensorFlow gave them last.

Only re-exports functions of `ops/io`, `ops/parsing`, `ops/string`, `gfile` and `python_io`. Parsing and decoding
functions of `tf` and `tf.image` are looked up there at first use.
"""

from __future__ import annotations

import importlib
from typing import Any

from dtf import late
from dtf.build.ops.io import matching_files, parse_tensor, read_file, serialize_tensor, write_file
from dtf.build.ops.parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    decode_json_example,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from dtf.build.ops.string import decode_base64, decode_compressed, decode_csv, decode_raw, encode_base64
from dtf.io import gfile
from dtf.python_io import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator
from dtf.train.graph_io import write_graph

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "SparseFeature", "VarLenFeature", "decode_json_example",
    "parse_example", "parse_sequence_example", "parse_single_example", "parse_single_sequence_example",
    "TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "decode_base64", "decode_compressed", "decode_csv",
    "decode_raw", "encode_base64", "gfile", "matching_files", "parse_tensor", "read_file", "serialize_tensor",
    "tf_record_iterator", "write_file", "write_graph",
]  # fmt: skip

_ELSEWHERE = dict.fromkeys(
    (
        "FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue "
        "SparseFeature VarLenFeature decode_json_example deserialize_many_sparse parse_example parse_sequence_example "
        "parse_single_example parse_single_sequence_example serialize_many_sparse serialize_sparse"
    ).split(),
    "dtf",
) | dict.fromkeys(
    (
        "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png "
        "extract_jpeg_shape is_jpeg"
    ).split(),
    "dtf.image",
)


_ELSEWHERE["match_filenames_once"] = "dtf.train"


def __dir__() -> list[str]:
    return sorted({*__all__, *_ELSEWHERE})


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise late.missing("dtf.io", name)
    return getattr(importlib.import_module(_ELSEWHERE[name]), name)
