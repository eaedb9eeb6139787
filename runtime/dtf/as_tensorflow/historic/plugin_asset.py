"""tensorflow.python.summary.plugin_asset: files of TensorBoard's plugins that a graph carries."""

from __future__ import annotations

import abc
from typing import Any

from dtf.build.default_graph import get_default_graph

__all__ = ["PluginAsset", "get_all_plugin_assets", "get_plugin_asset"]

_PREFIX = "_plugin_asset_"


class PluginAsset(abc.ABC):
    """Files of one plugin. A subclass has a `plugin_name`."""

    plugin_name: str | None = None

    @abc.abstractmethod
    def assets(self) -> dict[str, Any]:
        """Names of files -> their content."""


def get_plugin_asset(plugin_asset_cls: Any, graph: Any = None) -> Any:
    """The graph's asset of a class, which is made at the first call.

    Raises:
      ValueError: the class has no name, or another class has it.
    """
    graph = graph or get_default_graph()
    name = plugin_asset_cls.plugin_name
    if not name:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    container = graph.get_collection_ref(_PREFIX + name)
    if not container:
        container.append(plugin_asset_cls())
        names = graph.get_collection_ref(_PREFIX)
        names.append(name)
    found = container[0]
    if not isinstance(found, plugin_asset_cls):
        raise ValueError(f"Plugin name collision: {name} belongs to {found!r} and to {plugin_asset_cls}")
    return found


def get_all_plugin_assets(graph: Any = None) -> list[Any]:
    """The assets of all classes.

    Raises:
      ValueError: a collection has several assets of one name.
    """
    graph = graph or get_default_graph()
    found = []
    for name in graph.get_collection(_PREFIX):
        collection = graph.get_collection(_PREFIX + name)
        if len(collection) != 1:
            raise ValueError(f"Collection for {name} had {len(collection)} items, expected 1")
        found.append(collection[0])
    return found
