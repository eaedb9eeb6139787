"""The devices of a task: CPUs as many as its configuration says, and those of the backends.

Owns names, memory limits and incarnations. What a backend's devices are is the backend's business.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from dtf.run.devices.backends import CPU, DeviceBackend, backends, number_devices
from dtf.run.interfaces import Device
from dtf.wire import errors
from dtf.wire.pb import config_pb2

__all__ = ["devices_of_task"]

_CPU_MEMORY_BYTES = 256 << 20
"""What TensorFlow's CPU devices say; it bounds nothing."""


def devices_of_task(task: str, config: config_pb2.ConfigProto) -> list[Device]:
    """All devices of a task, its CPUs first.

    Args:
      task: "/job:worker/replica:0/task:0", or "" for names as programs write them.
      config: `device_count` says how many CPUs there are, and bounds how many devices of other types are used;
        `gpu_options.per_process_gpu_memory_fraction` how much of their memory, and `gpu_options.visible_device_list`
        which GPUs, in which order ("1,0").

    Raises:
      InvalidArgumentError: the list of visible devices names one that does not exist, or one twice.
      AlreadyExistsError: another task of this process has made another choice.
    """
    count = max(1, config.device_count.get(CPU, 1))
    found = [
        Device(f"{task}/device:{CPU}:{index}", CPU, _CPU_MEMORY_BYTES, _incarnation()) for index in range(count)
    ]
    for backend in backends():
        found += _of_backend(task, config, backend)
    return found


def _of_backend(task: str, config: config_pb2.ConfigProto, backend: DeviceBackend) -> list[Device]:
    kind = backend.device_type
    physical = list(backend.list_devices())
    numbers = _visible(config.gpu_options.visible_device_list, len(physical)) if kind == "GPU" else range(len(physical))
    if kind in config.device_count:
        numbers = numbers[: max(0, config.device_count[kind])]
    number_devices(kind, numbers)
    fraction = config.gpu_options.per_process_gpu_memory_fraction or 1.0
    if not 0 < fraction <= 1:
        raise errors.InvalidArgumentError.of(f"per_process_gpu_memory_fraction is {fraction}; it must be in (0, 1]")
    if fraction < 1:
        for number in numbers:
            backend.limit_memory(number, fraction)
    return [
        Device(
            f"{task}/device:{kind}:{index}", kind, int(each.memory_bytes * fraction), _incarnation(), each.description
        )
        for index, each in enumerate(physical[number] for number in numbers)
    ]


def _visible(text: str, count: int) -> Sequence[int]:
    """The numbers in a `visible_device_list`; "" stands for all."""
    if not text:
        return range(count)
    numbers: list[int] = []
    for word in text.split(","):
        number = int(word) if word.strip().isdecimal() else -1
        if not 0 <= number < count:
            raise errors.InvalidArgumentError.of(
                f"visible_device_list is '{text}', but '{word}' is not the number of one of the {count} GPUs"
            )
        if number in numbers:
            raise errors.InvalidArgumentError.of(f"visible_device_list is '{text}': it names device {number} twice")
        numbers.append(number)
    return numbers


def _incarnation() -> int:
    return secrets.randbits(64) or 1
