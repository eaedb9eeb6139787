"""Names of TensorFlow 1.x that dtf omits on purpose, each with a substitute. Owns the table only."""

from __future__ import annotations

__all__ = ["INTERNAL", "REASONS", "reason"]

INTERNAL = frozenset(
    "as_tensorflow behavior build channel check client fetches graph_names late rpc run serve server session "
    "session_handles testing wire".split()
)
"""Parts of the package dtf that are not TensorFlow names."""

_EAGER = "there are only graphs here: build one and run it in a tf.Session"
_DISTRIBUTE = (
    "strategies are not supported: use tf.train.replica_device_setter with a ClusterSpec, "
    "or tf.estimator.train_and_evaluate"
)
_TPU = "TPUs are not supported: use tf.estimator.Estimator and tf.train optimizers"
_COMPILER = "no other compiler or format of models is supported: save a SavedModel with tf.saved_model"

REASONS = {
    "enable_eager_execution": _EAGER,
    "contrib.eager": _EAGER,
    "contrib.distribute": _DISTRIBUTE,
    "python.distribute": _DISTRIBUTE,
    "tpu": _TPU,
    "lite": _COMPILER,
    "contrib.lite": _COMPILER,
    "contrib.tensorrt": _COMPILER,
    "xla": _COMPILER,
    "autograph": "Python statements are not translated: write tf.cond and tf.while_loop",
    "contrib.autograph": "Python statements are not translated: write tf.cond and tf.while_loop",
    "load_op_library": "libraries of compiled ops are TensorFlow's own: use tf.py_func",
    "contrib.quantize": "quantised types have no kernels: use tf.quantization.fake_quant_with_min_max_vars",
    "contrib.graph_editor": "graphs are not rewired: import a changed GraphDef with tf.import_graph_def",
    "contrib.tensor_forest": "forests are not supported: use tf.estimator.DNNClassifier, or another library",
    "contrib.memory_stats": "memory is not counted by devices: use resource.getrusage in tf.py_func",
    "tools": "TensorFlow's tools are programs of their own: use tensorflow.python.tools.freeze_graph",
    "contrib.all_reduce": "use tf.train.AllReduceOptimizer, which dtf has beside TensorFlow's names",
    "python.ops.gen_xla_ops": _COMPILER,
    "contrib.hadoop": "readers of other file systems are not here: convert the data to TFRecord files",
    "contrib.kafka": "readers of other systems are not here: use tf.data.Dataset.from_generator",
    "contrib.bigtable": "readers of other systems are not here: use tf.data.Dataset.from_generator",
}


def reason(path: str) -> str:
    """Why dtf omits `path` (without `tensorflow.`) or its module; "" if not on purpose."""
    path = path.removeprefix("compat.v1.").removeprefix("_api.v1.")
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        found = REASONS.get(".".join(parts[:length]))
        if found is not None:
            return found
    return ""
