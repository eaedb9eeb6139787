"""tf.contrib.cluster_resolver: the names that moved to tf.distribute.cluster_resolver. Only re-exports names.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/cluster_resolver
"""

from __future__ import annotations

from dtf.distribute.cluster_resolver import (
    ClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
    UnionClusterResolver,
    UnionResolver,
)

__all__ = [
    "ClusterResolver", "SimpleClusterResolver", "SlurmClusterResolver", "TFConfigClusterResolver",
    "UnionClusterResolver", "UnionResolver",
]  # fmt: skip
