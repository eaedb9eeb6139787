"""The words by which a task says that its state outlives its process, in the description of its devices.

Owns the words. TensorFlow shows them as it shows the model of a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable

from dtf.run.interfaces import Device

__all__ = ["described", "lineage_of"]

_WORDS = "durability: process "


def described(lineage: str) -> str:
    """The description of the devices of a durable task."""
    return f"{_WORDS}{lineage}"


def lineage_of(devices: Iterable[Device]) -> str:
    """The lineage of the state of the task with these devices; "": its state does not outlive its process."""
    for device in devices:
        if device.description.startswith(_WORDS):
            return device.description[len(_WORDS) :]
    return ""
