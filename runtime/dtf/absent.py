"""Names of TensorFlow that dtf leaves out on purpose, and the names to use instead.

Owns the message for each missing name. The error is an AttributeError, so `hasattr` and version checks work as
for any absent name. Keys are full names below `tf`; a key that ends in "." stands for all names with this
beginning.
"""

from __future__ import annotations

__all__ = ["ABSENT", "reason"]

_EAGER = "dtf builds graphs only; remove the call and run tensors with tf.Session or tensor.eval()"
_QUANTIZED = (
    "quantised types have no kernels; simulate them with tf.quantization.fake_quant_with_min_max_vars, or use float32"
)
_STRATEGY = (
    "distribution strategies are not supported; use tf.train.replica_device_setter with parameter servers, "
    "tf.train.SyncReplicasOptimizer, or tf.train.AllReduceOptimizer"
)
_LIBRARY = "libraries of compiled ops cannot be loaded; use tf.py_func, or add a kernel (runtime/README.md)"
_V2 = "TensorFlow 2's behavior is not supported; use the names of TensorFlow 1.x"
_TPU = "TPUs are not supported; place operations on CPUs or GPUs with tf.device"

ABSENT = {
    "ragged.cross": "use tf.sparse.cross on to_sparse(), then tf.RaggedTensor.from_sparse",
    "ragged.cross_hashed": "use tf.sparse.cross_hashed on to_sparse(), then tf.RaggedTensor.from_sparse",
    "Module": "use tf.layers.Layer or tf.make_template",
    "LMDBReader": "LMDB files are not read; convert them to TFRecords and use tf.TFRecordReader",
    "random.experimental.index_shuffle": "use tf.random.experimental.stateless_shuffle of tf.range(max_index + 1)",
    "random_index_shuffle": "use tf.random.experimental.stateless_shuffle of tf.range(max_index + 1)",
    "strings.unicode_script": "the table of scripts is not included; use tf.py_func with the package regex",
    "autograph": "Python code is not converted; use tf.cond, tf.while_loop and tf.case",
    "distribute": _STRATEGY,
    "tpu": _TPU,
    "enable_eager_execution": _EAGER,
    "enable_v2_behavior": _V2,
    "enable_control_flow_v2": _V2,
    "enable_tensor_equality": _V2,
    "enable_v2_tensorshape": _V2,
    "load_op_library": _LIBRARY,
    "load_library": _LIBRARY,
    "load_file_system_library": "file systems come through fsspec; install the package of its scheme",
    "nondifferentiable_batch_function": "calls are not batched; batch the requests before session.run",
    "wrap_function": "use tf.import_graph_def, or call the function while the graph is built",
    "nn.rnn": "its name since TensorFlow 1.0 is tf.nn.static_rnn",
    "nn.bidirectional_rnn": "its name since TensorFlow 1.0 is tf.nn.static_bidirectional_rnn",
    "nn.seq2seq": "its name since TensorFlow 1.0 is tf.contrib.legacy_seq2seq",
    "nn.deconv2d": "its name since TensorFlow 0.8 is tf.nn.conv2d_transpose",
    "train.SummaryWriter": "its name since TensorFlow 1.0 is tf.summary.FileWriter",
    "train.export_meta_graph_def": "its name is tf.train.export_meta_graph",
    "image.per_image_whitening": "its name since TensorFlow 1.0 is tf.image.per_image_standardization",
    "image.random_crop": "its name since TensorFlow 0.8 is tf.random_crop",
    "image.resize_image": "its name is tf.image.resize_images",
    "mixed_precision": "use tf.train.experimental.enable_mixed_precision_graph_rewrite",
    "train.sdca_optimizer": "use tf.train.FtrlOptimizer",
    "train.sdca_fprint": "use tf.train.FtrlOptimizer",
    "train.sdca_shrink_l1": "use tf.train.FtrlOptimizer",
    "train.do_quantize_training_on_graphdef": _QUANTIZED,
    "test.StubOutForTesting": "use unittest.mock",
    "contrib.distribute": _STRATEGY,
    "keras.applications": "build the network from tf.keras.layers, or use tf.contrib.slim.nets",
    "contrib.eager": _EAGER,
}


def reason(name: str) -> str:
    """Why `name` (without "tf.") is absent and its substitute, or "" where nothing is known of it."""
    if name in ABSENT:
        return ABSENT[name]
    return next((text for key, text in ABSENT.items() if key.endswith(".") and name.startswith(key[:-1])), "")
