"""tf.train: optimizers, sessions that survive the loss of a task, checkpoints, hooks, and servers.

Owns nothing: the names are in `names`, which is imported with the first of them. What a task needs that only serves is
here by itself, and loads none of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtf import late

if TYPE_CHECKING:
    from dtf.train.names import *

_SERVING = {"ClusterSpec": "dtf.wire.cluster", "Server": "dtf.server"}
__getattr__, __dir__ = late.names(globals(), _SERVING, rest="dtf.train.names")
