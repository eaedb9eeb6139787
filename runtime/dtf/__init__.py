"""TensorFlow 1.x's graph API and distributed runtime in Python, numpy and gRPC.

    import dtf as tf

The public names are those of TensorFlow 1.x: the ones of this module, and the namespaces tf.train, tf.nn,
tf.summary, tf.errors, tf.app, tf.flags, tf.logging, tf.gfile and so on beside it. `dtf.compat.v1` is this same
namespace. How the package is built is told in runtime/README.md.
"""

from __future__ import annotations

import importlib
import importlib.util

from dtf import errors
from dtf.apply import apply_op
from dtf.cluster import ClusterSpec
from dtf.constant import constant
from dtf.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.device import DeviceSpec
from dtf.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    bool_ref,
    complex128,
    complex128_ref,
    complex64,
    complex64_ref,
    double,
    double_ref,
    float16,
    float32,
    float32_ref,
    float64,
    float64_ref,
    half,
    int16,
    int16_ref,
    int32,
    int32_ref,
    int64,
    int64_ref,
    int8,
    int8_ref,
    qint16,
    qint32,
    qint8,
    quint16,
    quint8,
    resource,
    string,
    string_ref,
    uint16,
    uint16_ref,
    uint32,
    uint64,
    uint8,
    uint8_ref,
    variant,
)
from dtf.gradients import *
from dtf.graph import *
from dtf.sparse import IndexedSlices, SparseTensor, SparseTensorValue
from dtf.tensor_shape import Dimension, TensorShape

for _name in (
    "ops.array ops.math ops.linalg ops.nn ops.random ops.state ops.control_flow ops.data_flow ops.io ops.string "
    "ops.lookup ops.sparse ops.logging_ops ops.check_ops ops.functional ops.tensor_array ops.clip ops.embedding "
    "operators variables variable_scope initializers partitioned importer random_seed session server"
).split():
    if importlib.util.find_spec(f"dtf.{_name}"):
        try:
            _module = importlib.import_module(f"dtf.{_name}")
        except ImportError:
            continue
        globals().update({_public: getattr(_module, _public) for _public in getattr(_module, "__all__", ())})
