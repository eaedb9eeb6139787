"""clusters/gpu-digits: a ps without GPUs and a worker for each GPU, on CPUs and on PyTorch's CPU tensors."""

from __future__ import annotations

import os

import pytest

from tests.e2e.example_cluster import ExampleCluster

TORCH = os.environ.get("DTF_TORCH_PYTHON", "")


def trained(folder, options):
    cluster = ExampleCluster(folder, "gpu-digits", "--train_steps=300")
    try:
        assert cluster.run_well(*options) == 0, cluster.printed()
        assert cluster.accuracy() >= 93.0
        return cluster.printed()
    finally:
        cluster.end()


@pytest.mark.slow
def test_without_gpus_the_same_file_must_train_on_cpus(tmp_path):
    printed = trained(tmp_path, ["--set", "environment.DTF_GPU_BACKEND=none"])
    assert "worker:1 computes on /device:CPU:0" in printed


@pytest.mark.slow
@pytest.mark.skipif(not TORCH, reason="PyTorch is not installed; DTF_TORCH_PYTHON names a Python that has it and dtf")
def test_a_worker_with_a_gpu_must_train_variables_of_a_ps_without(tmp_path):
    options = ["--set", "environment.DTF_GPU_BACKEND=torch-cpu:1", "--set", f"python={TORCH}"]
    printed = trained(tmp_path, options)
    assert "worker:0 computes on /device:GPU:0" in printed and "worker:1 computes on /device:GPU:0" in printed
