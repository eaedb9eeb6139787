"""tensorflow.python.framework.device: devices as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.wire.device import DeviceSpec, merge_devices

__all__ = ["DeviceSpec", "MergeDevice", "canonical_name", "check_valid", "is_device_spec", "merge_device"]


def is_device_spec(obj: Any) -> bool:
    """Whether it is a DeviceSpec."""
    return isinstance(obj, DeviceSpec)


def canonical_name(device: Any) -> str:
    """The device in its full form, "" for None."""
    if device is None:
        return ""
    return (device if isinstance(device, DeviceSpec) else DeviceSpec.from_string(device)).to_string()


def check_valid(spec: str) -> None:
    """Raises:
    ValueError: `spec` is not the name of a device.
    """
    DeviceSpec.from_string(spec)


def merge_device(spec: Any) -> Callable[[Any], str]:
    """A function of a node: its own device, with `spec` for the parts that it leaves open."""
    outer = canonical_name(spec)
    return lambda op: merge_devices(outer, op.device or "")


MergeDevice = merge_device
