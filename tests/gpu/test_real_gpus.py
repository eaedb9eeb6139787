"""The tests of GPUs once more, on this machine's real ones: `pytest -m gpu tests/gpu`.

They are skipped, in plain words, where no CUDA device can be used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'dtf[gpu]'")

import torch

import dtf as tf
from dtf.run import kernels
from dtf.run.devices import backends
from dtf.run.devices.pytorch.backend import TorchBackend, why_not_cuda
from dtf.run.devices.pytorch.setting import Setting
from tests.runtime import test_torch_gpus as on_cpu_tensors

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason=f"no real GPU is tested: {why_not_cuda().partition(': ')[2]}"
    ),
]


@pytest.fixture
def gpus() -> Iterator[TorchBackend]:
    backend = TorchBackend(Setting())
    backends.register_backend(backend)
    try:
        yield backend
    finally:
        backends.unregister_backend("GPU")
        kernels.forget("GPU")


everything_on_a_gpu = on_cpu_tensors.everything_on_a_gpu
test_an_op_computes_the_same = on_cpu_tensors.test_an_op_computes_the_same_on_a_gpu
test_a_net = on_cpu_tensors.test_a_net_on_a_gpu_learns_what_it_learns_on_the_cpu
test_a_recurrent_net = on_cpu_tensors.test_a_recurrent_net_on_a_gpu_learns_what_it_learns_on_the_cpu
test_an_embedding = on_cpu_tensors.test_an_embedding_on_a_gpu_gets_sparse_updates
test_random_numbers = on_cpu_tensors.test_random_numbers_of_a_gpu_are_those_of_the_cpu
test_updates_in_place = on_cpu_tensors.test_a_variable_is_updated_in_place_unless_its_value_is_in_use
test_views = on_cpu_tensors.test_a_view_of_a_variable_keeps_its_values_when_the_variable_changes
test_wrong_arguments = on_cpu_tensors.test_arguments_of_a_wrong_shape_are_refused_in_tensorflows_words
test_mixed_precision = on_cpu_tensors.test_a_net_learns_in_mixed_precision


def test_programs_see_a_cuda_device(gpus: TorchBackend):
    assert tf.test.is_gpu_available(cuda_only=True)
    (first, *_) = [each for each in tf.Session().list_devices() if each.device_type == "GPU"]
    assert first.memory_limit_bytes > 1 << 30


def test_towers_on_all_gpus_learn_what_towers_on_cpus_learn(gpus: TorchBackend):
    count = min(2, len(gpus.list_devices()))
    optimizer: Any = on_cpu_tensors.OPTIMIZERS["momentum"]
    losses, _ = on_cpu_tensors.trained([f"/gpu:{number}" for number in range(count)], optimizer())
    expected, _ = on_cpu_tensors.trained(["/cpu:0"] * count, optimizer())
    np.testing.assert_allclose(losses, expected, rtol=1e-3)


def test_a_tensor_that_is_larger_than_the_device_is_refused(gpus: TorchBackend):
    with tf.Graph().as_default(), tf.Session() as session, tf.device("/gpu:0"):
        size = tf.placeholder(tf.int32, [2])
        filled = tf.reduce_sum(tf.fill(size, 1.0))
        with pytest.raises(tf.errors.ResourceExhaustedError, match="OOM when allocating tensor"):
            session.run(filled, {size: [256, (1 << 31) - 1]})
