"""tensorflow.python.client.device_lib: the devices of this machine."""

from __future__ import annotations

from typing import Any

from dtf.wire.pb.device_attributes_pb2 import DeviceAttributes

__all__ = ["list_local_devices"]


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """The devices that a session in this process has, with their names as TensorFlow gives them.

    Args:
      session_config: a ConfigProto, for the number of devices.
    """
    from dtf.session import Session

    with Session(config=session_config) as session:
        devices = session.list_devices()
    return [
        DeviceAttributes(
            name=device.name.removeprefix("/job:localhost/replica:0/task:0"),
            device_type=device.device_type,
            memory_limit=device.memory_limit_bytes,
            incarnation=device.incarnation & (2**63 - 1),
        )
        for device in devices
    ]
