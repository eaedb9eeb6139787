"""tensorflow.python.training.input: dictionaries of tensors as lists, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["_as_original_type", "_as_tensor_list", "_flatten"]


def _as_tensor_list(tensors: Any) -> list[Any]:
    """The tensors; those of a dictionary in the order of its keys."""
    return [tensors[key] for key in sorted(tensors)] if isinstance(tensors, dict) else list(tensors)


def _as_original_type(original_tensors: Any, tensor_list: Any) -> Any:
    """A list in the form of the original: a dictionary with its keys, or one tensor for an original of one."""
    if not isinstance(original_tensors, dict):
        return tensor_list
    values = tensor_list if isinstance(tensor_list, list | tuple) else [tensor_list]
    return dict(zip(sorted(original_tensors), values, strict=True))


def _flatten(tensor_list_list: Sequence[Sequence[Any]]) -> list[Any]:
    """The tensors of all lists."""
    return [tensor for tensors in tensor_list_list for tensor in tensors]
