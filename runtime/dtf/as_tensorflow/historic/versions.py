"""tensorflow.python.framework.versions: the version of TensorFlow that dtf's names are of."""

from __future__ import annotations

from dtf.as_tensorflow.modules import VERSION
from dtf.build.graph import GRAPH_PRODUCER_VERSION

__all__ = ["GRAPH_DEF_VERSION", "VERSION", "__git_version__", "__version__", "is_cuda_build"]

__version__ = VERSION
__git_version__ = "dtf"
GRAPH_DEF_VERSION = GRAPH_PRODUCER_VERSION
is_cuda_build = False
