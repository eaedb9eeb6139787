"""tensorflow.python.pywrap_tensorflow: the readers of files."""

from __future__ import annotations

from dtf.python_io import tf_record_iterator
from dtf.train.checkpoint_utils import CheckpointReader, NewCheckpointReader
from dtf.wire.errors import OpError

__all__ = ["CheckpointReader", "NewCheckpointReader", "OpError", "tf_record_iterator"]
