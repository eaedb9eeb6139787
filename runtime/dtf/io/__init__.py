"""tf.io: files, records and serialized tensors by the names that TensorFlow gave them last.

Owns nothing: the functions are those of `ops/io`, `ops/string`, `gfile` and `python_io`.
"""

from __future__ import annotations

from dtf.build.ops.io import matching_files, parse_tensor, read_file, serialize_tensor, write_file
from dtf.build.ops.string import decode_base64, decode_compressed, decode_csv, decode_raw, encode_base64
from dtf.io import gfile
from dtf.python_io import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator
from dtf.train.graph_io import write_graph

__all__ = [
    "TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "decode_base64", "decode_compressed", "decode_csv",
    "decode_raw", "encode_base64", "gfile", "matching_files", "parse_tensor", "read_file", "serialize_tensor",
    "tf_record_iterator", "write_file", "write_graph",
]  # fmt: skip
