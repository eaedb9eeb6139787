"""The namespace tf.sysconfig: dtf has no compiled parts, so its compiler flags are empty."""

from __future__ import annotations

import os

__all__ = [
    "CXX11_ABI_FLAG", "CXX_VERSION", "MONOLITHIC_BUILD", "get_build_info", "get_compile_flags", "get_include",
    "get_lib", "get_link_flags",
]  # fmt: skip

CXX11_ABI_FLAG = 0
CXX_VERSION = 0
MONOLITHIC_BUILD = 0


def get_build_info() -> dict[str, object]:
    """How the package was built: without CUDA, ROCm and TensorRT."""
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


def get_compile_flags() -> list[str]:
    """An empty list: there are no headers."""
    return []


def get_link_flags() -> list[str]:
    """An empty list: there is no library."""
    return []


def get_include() -> str:
    """The folder where headers would be."""
    return os.path.join(get_lib(), "include")


def get_lib() -> str:
    """The folder of the package."""
    return os.path.dirname(os.path.abspath(__file__))
