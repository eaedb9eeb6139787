"""TensorFlow 1.x's graph API and distributed runtime in Python, numpy and gRPC.

    import dtf as tf

The public names are those of TensorFlow 1.x: the ones of this module, and the namespaces tf.train, tf.nn,
tf.summary, tf.errors, tf.app, tf.flags, tf.logging, tf.gfile and so on beside it. `dtf.compat.v1` is this same
namespace. How the package is built is told in runtime/README.md.

What makes graphs is imported here; what runs them, and the namespaces, when they are first used (`_LAZY`,
`_NAMESPACES`), so that the import costs little.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from dtf.behavior import *
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.gradients import *
from dtf.build.graph import *
from dtf.build.importer import *
from dtf.build.ops.array import *
from dtf.build.ops.array_rare import *
from dtf.build.ops.check_ops import *
from dtf.build.ops.clip import *
from dtf.build.ops.control_flow import *
from dtf.build.ops.counting import *
from dtf.build.ops.data_flow import *
from dtf.build.ops.diagonals import *
from dtf.build.ops.gathering import *
from dtf.build.ops.io import *
from dtf.build.ops.joining import *
from dtf.build.ops.linalg import *
from dtf.build.ops.logging_ops import *
from dtf.build.ops.lookup import *
from dtf.build.ops.math import *
from dtf.build.ops.parsing import *
from dtf.build.ops.random import *
from dtf.build.ops.readers import *
from dtf.build.ops.rearranging import *
from dtf.build.ops.reductions import *
from dtf.build.ops.searching import *
from dtf.build.ops.segment import *
from dtf.build.ops.slicing import *
from dtf.build.ops.sparse import *
from dtf.build.ops.sparse_arithmetic import *
from dtf.build.ops.sparse_messages import *
from dtf.build.ops.state import *
from dtf.build.ops.string import *
from dtf.build.ops.tensor_array import *
from dtf.build.partitioned import *
from dtf.build.sparse import (
    IndexedSlices,
    SparseTensor,
    SparseTensorValue,
    convert_to_tensor_or_sparse_tensor,
)
from dtf.build.variable_scope import *
from dtf.build.variables import *
from dtf.wire import errors
from dtf.wire.cluster import ClusterSpec
from dtf.wire.codec import make_ndarray, make_tensor_proto
from dtf.wire.device import DeviceSpec
from dtf.wire.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    bool_ref,
    complex64,
    complex64_ref,
    complex128,
    complex128_ref,
    double,
    double_ref,
    float16,
    float32,
    float32_ref,
    float64,
    float64_ref,
    half,
    int8,
    int8_ref,
    int16,
    int16_ref,
    int32,
    int32_ref,
    int64,
    int64_ref,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    string_ref,
    uint8,
    uint8_ref,
    uint16,
    uint16_ref,
    uint32,
    uint64,
    variant,
)
from dtf.wire.errors import OpError
from dtf.wire.tensor_shape import Dimension, TensorShape

__version__ = "0.1.0"

#: Public names -> the modules that have them, imported at their first use.
_LAZY = {
    **dict.fromkeys(("foldl", "foldr", "map_fn", "scan"), "dtf.build.ops.functional"),
    "confusion_matrix": "dtf.build.ops.confusion_matrix",
    **dict.fromkeys(
        ("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"), "dtf.build.ops.spectral"
    ),
    "lbeta": "dtf.build.ops.special",
    **dict.fromkeys(("SparseTensorSpec", "TensorSpec"), "dtf.build.tensor_spec"),
    "make_template": "dtf.build.template",
    "matrix_square_root": "dtf.build.ops.matrix_functions",
    **dict.fromkeys(("InteractiveSession", "Session"), "dtf.session"),
    **dict.fromkeys(
        ("ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "RunMetadata", "RunOptions"),
        "dtf.wire.pb.config_pb2",
    ),
    **dict.fromkeys(("AttrValue", "NameAttrList"), "dtf.wire.pb.attr_value_pb2"),
    **dict.fromkeys(("Summary", "SummaryMetadata"), "dtf.wire.pb.summary_pb2"),
    "HistogramProto": "dtf.wire.pb.histogram_pb2",
    **dict.fromkeys(("Event", "LogMessage", "SessionLog"), "dtf.wire.pb.event_pb2"),
    **dict.fromkeys(
        (
            "constant_initializer", "glorot_normal_initializer", "glorot_uniform_initializer",
            "ones_initializer", "orthogonal_initializer", "random_normal_initializer", "random_uniform_initializer",
            "truncated_normal_initializer", "uniform_unit_scaling_initializer", "variance_scaling_initializer",
            "zeros_initializer",
        ),
        "dtf.build.initializers",
    ),
    "GraphDef": "dtf.wire.pb.graph_pb2",
    "MetaGraphDef": "dtf.wire.pb.meta_graph_pb2",
    "NodeDef": "dtf.wire.pb.node_def_pb2",
    "TensorInfo": "dtf.wire.pb.meta_graph_pb2",
}

#: Public namespaces -> their modules, imported at their first use.
_NAMESPACES = {
    "initializers": "dtf.build.initializers",
    "nest": "dtf.build.nest",
} | {
    name: f"dtf.{name}"
    for name in (
        "app audio bitwise compat contrib data debugging flags gfile graph_util image io layers linalg logging "
        "lookup losses manip math metrics nn python_io quantization random raw_ops saved_model sets signal sparse "
        "spectral strings summary testing train"
    ).split()
}


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        value = getattr(_importlib.import_module(_LAZY[name]), name)
    elif name in _NAMESPACES:
        value = _importlib.import_module(_NAMESPACES[name])
    else:
        raise AttributeError(f"module 'dtf' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_NAMESPACES})
