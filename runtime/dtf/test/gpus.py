"""The GPUs that sessions of this process have."""

from __future__ import annotations

import re


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """Whether a session of this process has a device of the type GPU.

    Args:
      cuda_only: it must be CUDA's; GPUs made of CPU tensors (`DTF_GPU_BACKEND=torch-cpu:1`) and fake ones are not.
      min_cuda_compute_capability: (major, minor) that CUDA's device must have at least.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/is_gpu_available
    """
    from dtf.client.device_lib import list_local_devices

    for device in list_local_devices():
        if device.device_type == "GPU":
            found = re.search(r"compute capability: (\d+)\.(\d+)", device.physical_device_desc)
            capability = (int(found[1]), int(found[2])) if found else None
            is_enough = min_cuda_compute_capability is None or (
                capability is None and not cuda_only or capability is not None
                and capability >= tuple(min_cuda_compute_capability)
            )
            if is_enough and (capability is not None or not cuda_only):
                return True
    return False


def gpu_device_name() -> str:
    """The name of the first GPU device, such as "/device:GPU:0"; "" without a GPU.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/gpu_device_name
    """
    from dtf.client.device_lib import list_local_devices

    return next((device.name for device in list_local_devices() if device.device_type == "GPU"), "")
