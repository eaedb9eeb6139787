"""Device names: `DeviceSpec`, merging and canonical forms.

A name is a path of parts, and each part may be missing: "/job:ps/replica:0/task:1/device:CPU:0". The short forms
"/cpu:0" and "/gpu:*" are read, the long ones written. This module owns the words; where ops go is decided by the
graph's device stack (build) and the placer (run).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.wire.text_cache import cached_by_text

_KNOWN_TYPES = ("CPU", "GPU", "TPU")


class DeviceSpec:
    """A device name in parts; a part that is None may be anything.

    Attributes:
      job: a name ("ps").
      replica, task, device_index: numbers.
      device_type: "CPU", "GPU" ..., kept in capitals where it is a known type.
    """

    __slots__ = ("_device_type", "device_index", "job", "replica", "task")

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = None if job is None else str(job)
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = device_type
        self.device_index = None if device_index is None else int(device_index)

    @staticmethod
    def from_string(spec: str) -> DeviceSpec:
        """The spec of a name, full, partial or empty; a ValueError when it is none."""
        return DeviceSpec(*_parse(spec))

    @property
    def device_type(self) -> str | None:
        return self._device_type

    @device_type.setter
    def device_type(self, device_type: str | None) -> None:
        capitals = None if device_type is None else str(device_type).upper()
        self._device_type = capitals if capitals in _KNOWN_TYPES else device_type

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Sets this spec to the parts of the name `spec`; returns it."""
        self.job, self.replica, self.task, self.device_type, self.device_index = _parse(spec)
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Replaces every part of this spec that `dev` has; `dev` comes first."""
        merged = self.make_merged_spec(dev)
        self.job, self.replica, self.task, self.device_type, self.device_index = merged._parts()

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A new spec: each part of `dev`, or of this one where `dev` has none."""
        theirs = zip(dev._parts(), self._parts(), strict=True)
        return DeviceSpec(*(mine if other is None else other for other, mine in theirs))

    def replace(self, **parts: Any) -> DeviceSpec:
        """A new spec with some parts replaced: `spec.replace(task=3)`."""
        names = ("job", "replica", "task", "device_type", "device_index")
        return DeviceSpec(**(dict(zip(names, self._parts(), strict=True)) | parts))

    def covers(self, other: DeviceSpec) -> bool:
        """True when every part of this spec is in `other` too: "/job:ps" covers "/job:ps/task:0"."""
        return all(mine is None or mine == theirs for mine, theirs in zip(self._parts(), other._parts(), strict=True))

    def to_string(self) -> str:
        """The name: "/job:ps/task:0/device:CPU:0"; "*" stands for an index that is not given."""
        return _format(*self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.job, self.replica, self.task, self._device_type, self.device_index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return (
            f"<DeviceSpec(job={self.job}, replica={self.replica}, task={self.task}, "
            f"device_type={self.device_type}, device_index={self.device_index})>"
        )


def canonical_name(device: str | DeviceSpec | None) -> str:
    """The long form of a name: "/cpu:0" -> "/device:CPU:0"; None -> ""."""
    if device is None:
        return ""
    return device.to_string() if isinstance(device, DeviceSpec) else _format(*_parse(device))


@cached_by_text(4096)
def merge_devices(outer: str, inner: str) -> str:
    """The name with each part of `inner`, or of `outer` where `inner` has none."""
    return DeviceSpec.from_string(outer).make_merged_spec(DeviceSpec.from_string(inner)).to_string()


def merge_device(spec: str | DeviceSpec | None) -> Callable[[Any], str]:
    """A device function for `tf.device`: gives an op (or NodeDef) the parts of `spec` that it does not have yet."""
    outer = canonical_name(spec)

    def device_function(op: Any) -> str:
        return merge_devices(outer, op.device or "")

    return device_function


@cached_by_text(4096)
def task_of(device: str) -> str:
    """The task of a full device name: "/job:ps/replica:0/task:0/device:CPU:0" -> "/job:ps/replica:0/task:0"; ""
    when it names none.
    """
    parts = [part for part in device.split("/") if part.startswith(("job:", "replica:", "task:"))]
    return "/" + "/".join(parts) if parts else ""


def task_name(job: str, task: int, replica: int = 0) -> str:
    """ "/job:ps/replica:0/task:1"."""
    return f"/job:{job}/replica:{replica}/task:{task}"


@cached_by_text(4096)
def _parse(spec: str) -> tuple[str | None, int | None, int | None, str | None, int | None]:
    job = replica = task = device_type = device_index = None
    seen_type = False
    for part in spec.split("/"):
        if not part:
            continue
        words = part.split(":")
        if words[0] == "job" and len(words) == 2:
            job = words[1]
        elif words[0] == "replica" and len(words) == 2:
            replica = _number(words[1], part, spec)
        elif words[0] == "task" and len(words) == 2:
            task = _number(words[1], part, spec)
        else:
            if words[0] == "device" and len(words) == 3:
                words = words[1:]
            elif words[0].upper() not in _KNOWN_TYPES or len(words) > 2:
                raise ValueError(
                    f"Unknown attribute {words[0]!r} is encountered while parsing the device spec: {spec!r}."
                )
            if seen_type:
                raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {spec}.")
            seen_type = True
            device_type = words[0].upper() if words[0].upper() in _KNOWN_TYPES else words[0]
            if len(words) > 1 and words[1] != "*":
                device_index = _number(words[1], part, spec)
    return job, replica, task, device_type, device_index


def _number(text: str, part: str, spec: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number in the part {part!r} of the device spec {spec!r}.")
    return int(text)


def _format(
    job: str | None, replica: int | None, task: int | None, device_type: str | None, device_index: int | None
) -> str:
    name = "" if job is None else f"/job:{job}"
    if replica is not None:
        name += f"/replica:{replica}"
    if task is not None:
        name += f"/task:{task}"
    if device_type is not None:
        name += f"/device:{device_type}:{'*' if device_index is None else device_index}"
    return name
