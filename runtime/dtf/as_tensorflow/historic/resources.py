"""tensorflow.python.ops.resources: resources, other than variables, that need initialization. dtf has no such
resources."""

from __future__ import annotations

from typing import Any

from dtf.build.graph import Operation
from dtf.build.ops.ordering import group

__all__ = ["initialize_resources", "local_resources", "shared_resources"]


def shared_resources() -> list[Any]:
    """Empty: tables and variables have initializers of their own."""
    return []


local_resources = shared_resources


def initialize_resources(resource_list: list[Any], name: str = "init") -> Operation:
    """An op that does nothing."""
    return group(name=name)
