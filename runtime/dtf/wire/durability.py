"""The words by which a task says that its state outlives its process, in the description of its devices.

Owns the words. TensorFlow shows them as it shows the model of a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["described", "lineage_of"]

_WORDS = "durability: process "


def described(lineage: str) -> str:
    """The description of the devices of a durable task."""
    return f"{_WORDS}{lineage}"


def lineage_of(descriptions: Iterable[str]) -> str:
    """The lineage of the state of the task whose devices say this; "": its state does not outlive its process."""
    for description in descriptions:
        if description.startswith(_WORDS):
            return description[len(_WORDS) :]
    return ""
