"""Groups of collective operations as CompleteGroup carries them, in TensorFlow's messages.

Owns how dtf tasks agree on a group. Rings with TensorFlow tasks are not supported and fail at once: TensorFlow moves
tensors by RecvBuf and agrees on step ids first.
"""

from __future__ import annotations

from dtf.run.interfaces import Device, Membership
from dtf.wire import errors
from dtf.wire.pb import device_attributes_pb2, worker_pb2

NO_MIXED_RINGS = (
    "A task of dtf and one of TensorFlow cannot be members of the same collective group: their rings do not speak the "
    "same protocol. Let all workers run one of them, or exchange gradients through parameter servers."
)
_MARK = "dtf"
_EPOCH_MARK = b"dtf:"


def attributes(device: Device) -> device_attributes_pb2.DeviceAttributes:
    """A member as it presents itself."""
    return device_attributes_pb2.DeviceAttributes(
        name=device.name,
        device_type=device.device_type,
        incarnation=device.incarnation,
        physical_device_desc=_MARK,
    )


def member(request: worker_pb2.CompleteGroupRequest) -> Device:
    """The asking member and its request. Raises UnimplementedError for a task of TensorFlow's."""
    told = request.device_attributes
    if told.physical_device_desc != _MARK:
        raise errors.UnimplementedError.of(NO_MIXED_RINGS)
    return Device(told.name, told.device_type, incarnation=told.incarnation)


def response(request: worker_pb2.CompleteGroupRequest, found: Membership) -> worker_pb2.CompleteGroupResponse:
    """The answer to a member."""
    return worker_pb2.CompleteGroupResponse(
        group_key=request.group_key,
        group_size=request.group_size,
        device_type=request.device_type,
        num_tasks=len(found.members),
        communicator_key=_EPOCH_MARK + str(found.epoch).encode(),
        device_attributes=map(attributes, found.members),
    )


def membership(answer: worker_pb2.CompleteGroupResponse) -> Membership:
    """The leader's answer. Raises UnimplementedError when it is a task of TensorFlow's."""
    mark, _, epoch = answer.communicator_key.rpartition(_EPOCH_MARK)
    if mark or not epoch.isdigit() or not answer.communicator_key.startswith(_EPOCH_MARK):
        raise errors.UnimplementedError.of(NO_MIXED_RINGS)
    members = tuple(
        Device(each.name, each.device_type, incarnation=each.incarnation) for each in answer.device_attributes
    )
    return Membership(int(epoch), members)
