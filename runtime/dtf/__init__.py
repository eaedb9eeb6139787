"""TensorFlow 1.x's graph API and distributed runtime in Python, numpy and gRPC.

    import dtf as tf

The public names are those of TensorFlow 1.x: the ones of this module, and the namespaces tf.train, tf.nn,
tf.summary, tf.errors, tf.app, tf.flags, tf.logging, tf.gfile and so on beside it. `dtf.compat.v1` is this same
namespace. How the package is built is told in runtime/README.md.

Everything is imported when it is first used, so that the import costs little: what makes graphs all at once
(`graph_names`), what runs them and the namespaces one by one (`_LAZY`, `_NAMESPACES`).
"""

from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING

from dtf import late as _late

if _TYPE_CHECKING:
    from dtf.graph_names import *

__version__ = "0.1.0"

# The threads of numpy's BLAS library spin when they have nothing to do, also right after it is loaded: by default for
# 27 ms at every core, a third of what the start of a task costs. A power of two of clock cycles: 0.4 ms.
_os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

#: Public names -> the modules that have them, imported at their first use.
_LAZY = {
    **dict.fromkeys(("foldl", "foldr", "map_fn", "scan"), "dtf.build.ops.functional"),
    "custom_gradient": "dtf.build.custom_gradient",
    "hessians": "dtf.build.hessians",
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
        "app audio bitwise compat contrib data debugging estimator feature_column flags gfile graph_util image io "
        "keras layers linalg logging lookup losses manip math metrics nn python_io quantization random raw_ops "
        "saved_model sets signal sparse spectral strings summary test testing train"
    ).split()
}

__getattr__, __dir__ = _late.names(globals(), _LAZY, _NAMESPACES, rest="dtf.graph_names")
