"""The namespace tf.test: unit tests of programs with graphs. Owns what the machine and this build are said to have.

    class SquareTest(tf.test.TestCase):
        def test_square(self):
            with self.session():
                self.assertAllEqual(tf.square([2, 3]).eval(), [4, 9])

    if __name__ == "__main__":
        tf.test.main()

Clusters whose tasks are processes, which can be killed, are in tf.testing.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test
"""

from __future__ import annotations

from typing import Any

from dtf import late as _late
from dtf.test.clusters import create_local_cluster
from dtf.test.gradient_checker import compute_gradient, compute_gradient_error
from dtf.test.graph_defs import assert_equal_graph_def
from dtf.test.test_case import TestCase, get_temp_dir, main

__all__ = [
    "TestCase",
    "assert_equal_graph_def",
    "compute_gradient",
    "compute_gradient_error",
    "create_local_cluster",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
    "main",
]


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether a session of this process has a device of the type GPU. False: dtf has no CUDA support.

    Args:
      cuda_only: a CUDA device is requested.
      min_cuda_compute_capability: not looked at.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/is_gpu_available
    """
    return not cuda_only and bool(gpu_device_name())


def gpu_device_name() -> str:
    """The name of the first GPU device, such as "/device:GPU:0"; "" without a GPU.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/gpu_device_name
    """
    from dtf.client.device_lib import list_local_devices

    return next((device.name for device in list_local_devices() if device.device_type == "GPU"), "")


def is_built_with_cuda() -> bool:
    """False."""
    return False


def is_built_with_rocm() -> bool:
    """False."""
    return False


def is_built_with_gpu_support() -> bool:
    """False."""
    return False


def is_built_with_xla() -> bool:
    """False."""
    return False


__getattr__ = _late.refusals(__name__)
