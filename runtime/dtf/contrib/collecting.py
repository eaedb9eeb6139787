"""Outputs and variables in collections, as contrib's layers put them there. Owns the aliases of outputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import dtf as tf

__all__ = [
    "append_tensor_alias", "collect_named_outputs", "collect_variable", "convert_collection_to_dict",
    "gather_tensors_aliases", "get_tensor_alias", "get_tensor_aliases",
]  # fmt: skip


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """Adds a tensor to collections under an alias. Returns the tensor."""
    if collections:
        append_tensor_alias(outputs, alias)
        for collection in [collections] if isinstance(collections, str) else collections:
            tf.add_to_collection(collection, outputs)
    return outputs


def collect_variable(variable: Any, collections: Any, kind: str) -> None:
    """Adds a variable to collections: a name, several, or {kind: names} with kinds such as weights and biases."""
    found = collections.get(kind) if isinstance(collections, Mapping) else collections
    for collection in [found] if isinstance(found, str) else found or ():
        if not any(variable is each for each in tf.get_collection(collection)):
            tf.add_to_collection(collection, variable)


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Gives a tensor one more alias. Returns the tensor."""
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.removesuffix("/")]
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """A tensor's aliases; by default the name of its operation."""
    return list(getattr(tensor, "aliases", ())) or [tensor.name.removesuffix(":0")]


def get_tensor_alias(tensor: Any) -> str:
    """A tensor's aliases with commas between."""
    return ",".join(get_tensor_aliases(tensor))


def gather_tensors_aliases(tensors: Any) -> list[str]:
    """The aliases of tensors in one list."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> OrderedDict[str, Any]:
    """The tensors of a collection by their aliases, in its order."""
    found = OrderedDict(
        (alias, tensor) for tensor in tf.get_collection(collection) for alias in get_tensor_aliases(tensor)
    )
    if clear_collection:
        del tf.get_collection_ref(collection)[:]
    return found
