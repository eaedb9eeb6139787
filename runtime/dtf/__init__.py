"""TensorFlow 1.x's graph API and distributed runtime in Python, numpy and gRPC.

    import dtf as tf

The public names are those of TensorFlow 1.x: names of this module, and namespaces such as tf.train, tf.nn,
tf.summary and tf.errors. `dtf.compat.v1` is this same namespace. runtime/README.md describes how the
package is built.

Names are imported at their first use, which keeps the import cheap. Names that make graphs come all at once
(`graph_names`), names that run graphs and namespaces one by one (`_LAZY`, `_NAMESPACES`).
"""

from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING

from dtf import blas_environment as _blas_environment
from dtf import late as _late

if _TYPE_CHECKING:
    from dtf.graph_names import *

__version__ = "0.1.0"

_blas_environment.set_defaults(_os.environ)  # before numpy is loaded

#: Public names -> their modules, imported at first use.
_LAZY = {
    **dict.fromkeys(("foldl", "foldr", "map_fn", "scan"), "dtf.build.ops.functional"),
    "custom_gradient": "dtf.build.custom_gradient",
    "hessians": "dtf.build.hessians",
    "confusion_matrix": "dtf.build.ops.confusion_matrix",
    **dict.fromkeys(
        ("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"), "dtf.build.ops.spectral"
    ),
    "lbeta": "dtf.build.ops.special",
    "CriticalSection": "dtf.build.ops.critical_section",
    "GradientTape": "dtf.build.tape",
    **dict.fromkeys(
        (
            "fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient", "fake_quant_with_min_max_vars",
            "fake_quant_with_min_max_vars_gradient", "fake_quant_with_min_max_vars_per_channel",
            "fake_quant_with_min_max_vars_per_channel_gradient",
        ),
        "dtf.build.ops.fake_quant",
    ),
    **dict.fromkeys(("dequantize", "quantize", "quantize_v2", "quantized_concat"), "dtf.build.ops.quantization"),
    **dict.fromkeys(
        ("function", "grad_pass_through", "print", "py_function", "recompute_grad", "vectorized_map"),
        "dtf.build.ops.python_functions",
    ),
    **dict.fromkeys(
        (
            "assert_all_finite", "control_flow_v2_enabled", "convert_to_tensor_or_indexed_slices",
            "create_partitioned_variables", "dimension_at_index", "dimension_value",
            "executing_eagerly_outside_functions", "extract_volume_patches", "fingerprint", "get_static_value",
            "is_symbolic_tensor", "is_tensor", "repeat", "sparse_merge", "switch_case", "tensor_scatter_nd_add",
            "tensor_scatter_nd_max", "tensor_scatter_nd_min", "tensor_scatter_nd_sub", "tensor_scatter_nd_update",
            "verify_tensor_all_finite",
        ),
        "dtf.build.ops.newer_names",
    ),
    **dict.fromkeys(
        ("COMPILER_VERSION", "GIT_VERSION", "GRAPH_DEF_VERSION", "GRAPH_DEF_VERSION_MIN_CONSUMER",
         "GRAPH_DEF_VERSION_MIN_PRODUCER", "VERSION"),
        "dtf.version",
    ),
    **dict.fromkeys(("CXX11_ABI_FLAG", "CXX_VERSION", "MONOLITHIC_BUILD"), "dtf.sysconfig"),
    "QUANTIZED_DTYPES": "dtf.wire.dtypes",
    "get_logger": "dtf.logging",
    **dict.fromkeys(
        (
            "IndexedSlicesSpec", "NoneTensorSpec", "OptionalSpec", "RaggedTensorSpec", "SparseTensorSpec",
            "TensorArraySpec", "TensorSpec", "TypeSpec", "type_spec_from_value",
        ),
        "dtf.build.tensor_spec",
    ),
    "RaggedTensor": "dtf.build.ops.ragged_functions",
    "load_ipython_extension": "dtf.notebook",  # %load_ext dtf
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
    "nest": "dtf.build.nest",
} | {
    name: f"dtf.{name}"
    for name in (
        "app audio bitwise compat config contrib data debugging distribute distributions dtypes estimator "
        "feature_column flags gfile graph_util image initializers io keras layers linalg logging lookup "
        "losses manip math metrics nn profiler python_io quantization queue ragged random raw_ops "
        "resource_loader saved_model sets signal sparse spectral strings summary sysconfig test testing train "
        "version"
    ).split()
}

__getattr__, __dir__ = _late.names(globals(), _LAZY, _NAMESPACES, rest="dtf.graph_names")
