"""The public names of `dtf` that make graphs.

Only re-exports names. `dtf` imports this module when one of these names is first used. A task that only serves
(a ps) thus never loads the graph-building half.
"""

# ruff: noqa: F401, F403
from __future__ import annotations

from dtf.behavior import *
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor, register_tensor_conversion_function
from dtf.build.default_graph import *
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
from dtf.build.ops.decompositions import *
from dtf.build.ops.diagonals import *
from dtf.build.ops.einsum import *
from dtf.build.ops.filling import *
from dtf.build.ops.gathering import *
from dtf.build.ops.io import *
from dtf.build.ops.joining import *
from dtf.build.ops.linalg import *
from dtf.build.ops.logging_ops import *
from dtf.build.ops.lookup import *
from dtf.build.ops.math import *
from dtf.build.ops.ordering import *
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
from dtf.build.variable_collections import *
from dtf.build.variable_scope import *
from dtf.build.variable_store import *
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
