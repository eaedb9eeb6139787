"""The GPUs that sessions of this process have."""

from __future__ import annotations

from typing import Any


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
