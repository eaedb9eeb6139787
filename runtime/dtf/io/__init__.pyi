"""Made by `python -m tests.public`: where each public name of this package is defined."""

from dtf.build.ops.io import matching_files as matching_files
from dtf.build.ops.io import parse_tensor as parse_tensor
from dtf.build.ops.io import read_file as read_file
from dtf.build.ops.io import serialize_tensor as serialize_tensor
from dtf.build.ops.io import write_file as write_file
from dtf.build.ops.parsing import FixedLenFeature as FixedLenFeature
from dtf.build.ops.parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from dtf.build.ops.parsing import SparseFeature as SparseFeature
from dtf.build.ops.parsing import VarLenFeature as VarLenFeature
from dtf.build.ops.parsing import decode_json_example as decode_json_example
from dtf.build.ops.parsing import parse_example as parse_example
from dtf.build.ops.parsing import parse_sequence_example as parse_sequence_example
from dtf.build.ops.parsing import parse_single_example as parse_single_example
from dtf.build.ops.parsing import parse_single_sequence_example as parse_single_sequence_example
from dtf.build.ops.string import decode_base64 as decode_base64
from dtf.build.ops.string import decode_compressed as decode_compressed
from dtf.build.ops.string import decode_csv as decode_csv
from dtf.build.ops.string import decode_raw as decode_raw
from dtf.build.ops.string import encode_base64 as encode_base64
from dtf.io import gfile as gfile
from dtf.python_io import TFRecordCompressionType as TFRecordCompressionType
from dtf.python_io import TFRecordOptions as TFRecordOptions
from dtf.python_io import TFRecordWriter as TFRecordWriter
from dtf.python_io import tf_record_iterator as tf_record_iterator
from dtf.train.graph_io import write_graph as write_graph
from typing import Any as Any
