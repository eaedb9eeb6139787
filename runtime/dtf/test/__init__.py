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
from dtf.test.gpus import gpu_device_name, is_gpu_available
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
