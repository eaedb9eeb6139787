"""tf.contrib: the parts of it that programs use, each imported when it is first used. Only re-exports names.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib (the READMEs and documentation)
"""

from __future__ import annotations

from dtf import late

_PARTS = (
    "checkpoint cluster_resolver compiler crf cudnn_rnn data deprecated distributions estimator factorization "
    "feature_column framework gan image integrate layers learn legacy_seq2seq linalg lookup losses metrics "
    "mixed_precision nccl nn opt predictor resampler rnn saved_model seq2seq session_bundle signal slim solvers "
    "sparsemax staging stateless summary tensorboard tfprof tpu training util"
)
_NAMESPACES = {name: f"dtf.contrib.{name}" for name in _PARTS.split()} | {"keras": "dtf.keras"}
__getattr__, __dir__ = late.names(globals(), {}, _NAMESPACES)
