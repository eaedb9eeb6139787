"""tf.contrib.tensorboard: files in a log folder for TensorBoard's plugins."""

from __future__ import annotations

from dtf import late

_NAMESPACES = {"plugins": "dtf.contrib.tensorboard", "projector": "dtf.contrib.tensorboard.projector"}
__getattr__, __dir__ = late.names(globals(), {}, _NAMESPACES)
