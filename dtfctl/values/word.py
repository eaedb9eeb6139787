"""Words that mean something to both ends: verbs of requests, of actions, of changes."""

from __future__ import annotations

from enum import Enum


class Word(str, Enum):
    """enum.StrEnum, which Python 3.10 does not have: a member is its text, printed and in JSON."""

    def __str__(self) -> str:
        return str.__str__(self)
