"""tf.distribute: where the tasks of a cluster are. Strategies are absent on purpose; their names say what to use."""

from __future__ import annotations

from dtf import late

__getattr__, __dir__ = late.names(globals(), {}, {"cluster_resolver": "dtf.distribute.cluster_resolver"})
