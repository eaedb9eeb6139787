"""tf.train: optimizers, sessions that survive the loss of a task, checkpoints, hooks, and servers.

Only re-exports names: `names` holds the list and is imported at the first use of one of them. Names that a serving
task needs are imported here directly, without the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtf import late

if TYPE_CHECKING:
    from dtf.train.names import *

_SERVING = {"ClusterSpec": "dtf.wire.cluster", "Server": "dtf.server"}
__getattr__, __dir__ = late.names(globals(), _SERVING, rest="dtf.train.names")
