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

_TREES = "boosted trees and forests are not supported; use tf.estimator.DNNClassifier or LinearClassifier"
_SOURCES = "read this source with tf.data.Dataset.from_generator"
_CODEC = "this image format is not read; convert the files to PNG or JPEG"
_SERVICE = "the tf.data service is not supported; each task reads its part with Dataset.shard"
_DATASETS = "use the method or function of tf.data that stands for it; serialized iterators come from dtf alone"
_EAGER_OP = "the op serves eager execution; use the op without Anonymous, Dummy or Delete in its name"
_GPU_OP = "the op exists on NVIDIA's libraries only; use tf.contrib.cudnn_rnn, or tf.train.AllReduceOptimizer"

_RAW_TPU = (
    "AllToAll Collate CollectivePermute ConfigureDistributedTPU ConfigureTPU ConvertTo CrossReplicaSum "
    "DynamicEnqueueTPU EnqueueTPU GetMinibatch GetStatsFromList GlobalIterId Infeed IsTPU LoadTPU Outfeed Prelinearize "
    "RecvTPU RetrieveTPU SendTPU ShutdownDistributedTPU SortListOf StoreMinibatch TPU WorkerHeartbeat Xla "
    "AssignVariableXla ReadVariableXla"
)
_RAW_QUANTIZED = (
    "QuantizedAdd QuantizedBatchNorm QuantizedConv2D QuantizedDepthwise QuantizedInstance QuantizedMatMulWith "
    "QuantizedMul QuantizedResize RequantizationRangePer RequantizePer Uniform"
)
_RAW_TREES = "BoostedTrees IsBoostedTrees"
_RAW_DATASETS = (
    "AssertNext AssertPrev AutoShard BytesProduced CSVDataset CacheDatasetV2 ChooseFastest ComputeBatchSize "
    "DatasetFingerprint DatasetFromGraph DatasetToGraph DenseToSparseBatch Experimental FilterByLast GetElementAt "
    "GlobalShuffle GroupByReducer IndexFlatMap IteratorGet LatencyStats ListDataset ListSnapshot LoadDataset MapDefun "
    "MatchingFiles MaxIntraOp NonSerializable OptimizeDatasetV2 ParallelBatch ParallelFilter ParseExampleDataset "
    "PrivateThreadPool RandomDatasetV2 Rebatch SamplingDataset SaveDataset SetStatsAggregator ShuffleAndRepeat "
    "ShuffleDataset SleepDataset SlidingWindow Snapshot StatsAggregator TFRecordDatasetV2 ThreadPool UnwrapDataset "
    "WeightedFlatMap WindowOp WrapDataset GetOptions CompressElement UncompressElement InitializeTableFromDataset"
)
_RAW_EAGER = "Anonymous Delete Dummy EagerPyFunc SyncDevice CheckPinned DeviceIndex"
_RAW_SERVICE = "DataService RegisterDataset DistributedSave"
_RAW_CUDNN = "Cudnn Nccl"
_RAW_SDCA = "Sdca"

ABSENT = {
    "ragged.cross": "use tf.sparse.cross on to_sparse(), then tf.RaggedTensor.from_sparse",
    "ragged.cross_hashed": "use tf.sparse.cross_hashed on to_sparse(), then tf.RaggedTensor.from_sparse",
    "Module": "use tf.layers.Layer or tf.make_template",
    "LMDBReader": "LMDB files are not read; convert them to TFRecords and use tf.TFRecordReader",
    "random.experimental.index_shuffle": "use tf.random.experimental.stateless_shuffle of tf.range(max_index + 1)",
    "random_index_shuffle": "use tf.random.experimental.stateless_shuffle of tf.range(max_index + 1)",
    "strings.unicode_script": "the table of scripts is not included; use tf.py_func with the package regex",
    "autograph": "Python code is not converted; use tf.cond, tf.while_loop and tf.case",
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
    "contrib.boosted_trees": _TREES,
    "contrib.tensor_forest": _TREES,
    "contrib.cloud": "file systems come through fsspec; install the package of their scheme",
    "contrib.ffmpeg": "decode sound and video outside of the graph, in tf.py_func; tf.audio reads WAV files",
    "contrib.lite": "models for phones are not written; save with tf.saved_model",
    "contrib.tensorrt": "TensorRT is not supported; the graph runs as it is",
    "contrib.mpi_collectives": "use tf.train.AllReduceOptimizer",
    "contrib.gdr": "connections are TCP, or shared memory between tasks of one host",
    "contrib.verbs": "connections are TCP, or shared memory between tasks of one host",
    "contrib.autograph": "Python code is not converted; use tf.cond, tf.while_loop and tf.case",
    "contrib.ignite": _SOURCES,
    "contrib.kafka": _SOURCES,
    "contrib.kinesis": _SOURCES,
    "contrib.bigtable": _SOURCES,
    "contrib.hadoop": _SOURCES,
    "contrib.libsvm": _SOURCES,
    "contrib.quantize": _QUANTIZED,
    "experimental.": _V2,
    "autograph.": "Python code is not converted; use tf.cond, tf.while_loop and tf.case",
    "distribute.": _STRATEGY,
    "config.": "devices of a session are configured with tf.ConfigProto",
    "debugging.": _V2,
    "keras.applications.": "build the network from tf.keras.layers, or use tf.contrib.slim.nets",
    "layers.experimental.": "Keras's scopes are not supported; layers take variable scopes",
    "profiler.": "use tf.profiler.profile; advice of tfprof is not given",
    "image.decode_webp": _CODEC,
    "image.decode_jxl": _CODEC,
    "io.decode_webp": _CODEC,
    "io.decode_jxl": _CODEC,
    "test.with_eager_op_as_function": _EAGER,
    "saved_model.load_v2": "use tf.saved_model.load with a session, or tf.saved_model.loader.load",
    "saved_model.save": "use tf.saved_model.simple_save or tf.saved_model.Builder",
    "saved_model.SaveOptions": _V2,
    "saved_model.Asset": _V2,
    "approx_top_k": "use tf.math.top_k, which is exact",
    "math.approx_.": "use tf.math.top_k, which is exact",
    "nn.approx_.": "use tf.math.top_k, which is exact",
    "check_pinned": _V2,
    "nn.compute_average_loss": _STRATEGY,
    "nn.scale_regularization_loss": _STRATEGY,
    "data.NumpyIterator": "run the elements of an iterator with tf.Session",
    "data.experimental.ServiceOptions": _SERVICE,
    "data.experimental.distributed_save": _SERVICE,
    "data.experimental.enable_debug_mode": _EAGER,
    "data.experimental.get_model_proto": "the tuning of pipelines is not recorded",
    "summary.all_v2_summary_ops": "use tf.summary.merge_all",
    "train.CheckpointOptions": _V2,
    "train.experimental.": "tf.train.Saver and tf.train.Checkpoint write checkpoints, without parts of users' own",
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_TPU.split()), _TPU),
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_QUANTIZED.split()), _QUANTIZED),
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_TREES.split()), _TREES),
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_DATASETS.split()), _DATASETS),
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_EAGER.split()), _EAGER_OP),
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_SERVICE.split()), _SERVICE),
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_CUDNN.split()), _GPU_OP),
    **dict.fromkeys((f"raw_ops.{each}." for each in _RAW_SDCA.split()), "use tf.train.FtrlOptimizer"),
    **dict.fromkeys(("raw_ops.LMDB.",), "LMDB files are not read; convert them to TFRecords"),
    **dict.fromkeys(("raw_ops.DecodeJxl", "raw_ops.DecodeWebP"), _CODEC),
    **dict.fromkeys(("raw_ops.Send", "raw_ops.Recv"), "values move between tasks by themselves; use tf.device"),
}


def reason(name: str) -> str:
    """Why `name` (without "tf.") is absent and its substitute, or "" where nothing is known of it."""
    if name in ABSENT:
        return ABSENT[name]
    return next((text for key, text in ABSENT.items() if key.endswith(".") and name.startswith(key[:-1])), "")
