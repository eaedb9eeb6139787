"""tensorflow.python.ops.resources: resources, other than variables, that need initialization. A program registers its
own; those of dtf have initializers of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dtf.build.constant import constant
from dtf.build.default_graph import add_to_collection, get_collection
from dtf.build.graph import Operation, Tensor
from dtf.build.graph_keys import GraphKeys
from dtf.build.ops.joining import stack
from dtf.build.ops.math import logical_not
from dtf.build.ops.ordering import group
from dtf.build.ops.slicing import boolean_mask
from dtf.wire import dtypes

__all__ = [
    "initialize_resources", "local_resources", "register_resource", "report_uninitialized_resources",
    "shared_resources",
]  # fmt: skip


class _Resource(NamedTuple):
    handle: Tensor
    create: Operation
    is_initialized: Tensor


def register_resource(handle: Tensor, create_op: Operation, is_initialized_op: Tensor, is_shared: bool = True) -> None:
    """Adds a resource to the graph's collection, for `initialize_resources` and `report_uninitialized_resources`."""
    key = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    add_to_collection(key, _Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Any]:
    """The registered resources that tasks share."""
    return get_collection(GraphKeys.RESOURCES)


def local_resources() -> list[Any]:
    """The registered resources of this task."""
    return get_collection(GraphKeys.LOCAL_RESOURCES)


def initialize_resources(resource_list: Iterable[Any], name: str = "init") -> Operation:
    """An op that creates the resources."""
    return group(*(each.create for each in resource_list), name=name)


def report_uninitialized_resources(
    resource_list: Iterable[Any] | None = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """The names of the resources that do not exist yet: string[n]. By default of all that are registered."""
    resources = [*shared_resources(), *local_resources()] if resource_list is None else list(resource_list)
    if not resources:
        return constant([], dtype=dtypes.string, name=name)
    missing = logical_not(stack([each.is_initialized for each in resources]))
    return boolean_mask(constant([each.handle.name for each in resources]), missing, name=name)
