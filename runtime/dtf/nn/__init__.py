"""The namespace tf.nn. Owns the recurrent networks (rnn_cell, rnn_loops, rnn_unrolled); the rest is of `build.ops`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.activations import *
from dtf.build.ops.activations import swish as silu
from dtf.build.ops.candidate_sampling import *
from dtf.build.ops.conv import *
from dtf.build.ops.convolution import *
from dtf.build.ops.cross_entropy import *
from dtf.build.ops.ctc_dense import *
from dtf.build.ops.embedding import *
from dtf.build.ops.fractional_pooling import *
from dtf.build.ops.math import sigmoid, tanh
from dtf.build.ops.nn import *
from dtf.build.ops.normalization import *
from dtf.build.ops.pools import *
from dtf.build.ops.quantization import quantized_avg_pool, quantized_conv2d, quantized_max_pool, quantized_relu_x
from dtf.build.ops.rearranging import depth_to_space, space_to_batch, space_to_depth
from dtf.build.ops.sequence import *
from dtf.build.ops.volume import *

__getattr__, __dir__ = _late.names(
    globals(),
    {
        **dict.fromkeys(("bidirectional_dynamic_rnn", "dynamic_rnn", "raw_rnn"), "dtf.nn.rnn_loops"),
        **dict.fromkeys(
            ("static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn"), "dtf.nn.rnn_unrolled"
        ),
    },
    {"rnn_cell": "dtf.nn.rnn_cell"},
)
