"""dtf.client.device_lib: the devices of this process, as programs look for them in tensorflow.python.client."""

from __future__ import annotations

from typing import Any

from dtf.run.devices.listing import devices_of_task
from dtf.wire.pb import config_pb2, device_attributes_pb2

__all__ = ["list_local_devices"]


def list_local_devices(session_config: Any = None) -> list[device_attributes_pb2.DeviceAttributes]:
    """The devices that a session of this process would have.

    Args:
      session_config: a ConfigProto, whose `device_count` counts; None: the default one.

    Returns:
      their names ("/device:GPU:0"), types, memory limits in bytes, incarnations and descriptions.

    Source: tensorflow/python/client/device_lib.py
    """
    config = session_config if session_config is not None else config_pb2.ConfigProto()
    return [
        device_attributes_pb2.DeviceAttributes(
            name=device.name,
            device_type=device.device_type,
            memory_limit=device.memory_limit,
            incarnation=device.incarnation,
            locality=device_attributes_pb2.DeviceLocality(),
            physical_device_desc=device.description,
        )
        for device in devices_of_task("", config)
    ]
