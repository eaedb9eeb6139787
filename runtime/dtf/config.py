"""The namespace tf.config: the devices of this machine, and settings that a ConfigProto makes in TensorFlow 1.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/config
"""

from __future__ import annotations

from typing import NamedTuple

from dtf import late as _late

__all__ = [
    "LogicalDevice", "PhysicalDevice", "get_soft_device_placement", "get_visible_devices", "list_logical_devices",
    "list_physical_devices", "set_soft_device_placement",
]  # fmt: skip


class PhysicalDevice(NamedTuple):
    """A device of this machine.

    Attributes:
      name: "/physical_device:CPU:0".
      device_type: "CPU" or another type.
    """

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as graphs name it.

    Attributes:
      name: "/device:CPU:0".
      device_type: "CPU" or another type.
    """

    name: str
    device_type: str


_settings = {"soft_device_placement": False}


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, of one type or all."""
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    return [each for each in found if device_type in (None, each.device_type)]


get_visible_devices = list_physical_devices


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices of this process as graphs name them, of one type or all."""
    return [LogicalDevice(f"/device:{kind}:0", kind) for _, kind in list_physical_devices(device_type)]


def get_soft_device_placement() -> bool:
    """The value that `set_soft_device_placement` set."""
    return _settings["soft_device_placement"]


def set_soft_device_placement(enabled: bool) -> None:
    """Kept only: a session takes tf.ConfigProto(allow_soft_placement=True)."""
    _settings["soft_device_placement"] = bool(enabled)

__getattr__ = _late.refusals(__name__)
