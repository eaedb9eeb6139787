"""tensorflow.python.framework.versions: the version of TensorFlow that dtf's names are of."""

from __future__ import annotations

from dtf.as_tensorflow.modules import VERSION
from dtf.build.graph import GRAPH_PRODUCER_VERSION

__all__ = [
    "COMPILER_VERSION", "CXX11_ABI_FLAG", "GIT_VERSION", "GRAPH_DEF_VERSION", "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER", "MONOLITHIC_BUILD", "VERSION", "__compiler_version__", "__git_version__",
    "__version__", "is_cuda_build",
]  # fmt: skip

__version__ = VERSION
__git_version__ = "dtf"
GRAPH_DEF_VERSION = GRAPH_PRODUCER_VERSION
GRAPH_DEF_VERSION_MIN_CONSUMER = GRAPH_DEF_VERSION_MIN_PRODUCER = 0
GIT_VERSION = __git_version__
COMPILER_VERSION = __compiler_version__ = "dtf"
CXX11_ABI_FLAG = __cxx11_abi_flag__ = MONOLITHIC_BUILD = __monolithic_build__ = 0
is_cuda_build = False
