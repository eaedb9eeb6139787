"""The namespace tf.nn.rnn_cell: the steps of recurrent networks. Only re-exports the cells of its modules.

    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(64) for _ in range(2)])
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
"""

from __future__ import annotations

from dtf.nn.rnn_cell.base import RNNCell
from dtf.nn.rnn_cell.cells import *
from dtf.nn.rnn_cell.wrappers import *
