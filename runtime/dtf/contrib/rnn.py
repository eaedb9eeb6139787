"""tf.contrib.rnn: the cells and networks of tf.nn under their older names, and further cells.

Only re-exports names. Grid, time-frequency, multiplicative and sparsely normalised cells are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/rnn
"""

from __future__ import annotations

from dtf import late

_SOURCES = {
    "nn.rnn_cell": (
        "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell "
        "ResidualWrapper"
    ),
    "nn.rnn_unrolled": "static_bidirectional_rnn static_rnn static_state_saving_rnn",
    "contrib.rnn_cells": (
        "CoupledInputForgetGateLSTMCell GRUBlockCell GRUBlockCellV2 IndRNNCell IntersectionRNNCell LSTMBlockCell "
        "LayerNormBasicLSTMCell NASCell PhasedLSTMCell SRUCell UGRNNCell"
    ),
    "contrib.rnn_wrappers": (
        "AttentionCellWrapper CompiledWrapper Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell "
        "EmbeddingWrapper HighwayWrapper InputProjectionWrapper OutputProjectionWrapper"
    ),
    "contrib.rnn_networks": (
        "FusedRNNCell FusedRNNCellAdaptor LSTMBlockFusedCell LSTMBlockWrapper TimeReversedFusedRNN "
        "best_effort_input_batch_size stack_bidirectional_dynamic_rnn stack_bidirectional_rnn transpose_batch_time"
    ),
}
_NAMES = {name: f"dtf.{module}" for module, names in _SOURCES.items() for name in names.split()}
__getattr__, __dir__ = late.names(globals(), _NAMES, {})
