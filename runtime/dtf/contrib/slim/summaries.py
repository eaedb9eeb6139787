"""slim.summaries: summaries of tensors under their own names."""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = [
    "add_histogram_summaries", "add_histogram_summary", "add_image_summaries", "add_image_summary",
    "add_scalar_summaries", "add_scalar_summary", "add_zero_fraction_summaries", "add_zero_fraction_summary",
]  # fmt: skip


def _name(tensor: Any, name: str | None, prefix: str | None) -> str:
    found = name or tensor.op.name
    return f"{prefix}/{found}" if prefix else found


def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Any:
    """`tf.summary.histogram`."""
    return tf.summary.histogram(_name(tensor, name, prefix), tensor)


def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """`tf.summary.scalar`, which `print_summary` makes print its value too."""
    label = _name(tensor, name, prefix)
    summary = tf.summary.scalar(label, tensor, collections=[] if print_summary else None)
    if print_summary:
        summary = tf.Print(summary, [tensor], label)
        tf.add_to_collection(tf.GraphKeys.SUMMARIES, summary)
    return summary


def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """`tf.summary.image`."""
    return tf.summary.image(_name(tensor, name, prefix), tensor)


def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """How many elements are zero, as a scalar."""
    return add_scalar_summary(tf.nn.zero_fraction(tensor), name or tensor.op.name, prefix or "Fraction_of_Zero_Values")


def add_histogram_summaries(tensors: Any, prefix: str | None = None) -> list[Any]:
    """Of several tensors."""
    return [add_histogram_summary(tensor, prefix=prefix) for tensor in tensors]


def add_image_summaries(tensors: Any, prefix: str | None = None) -> list[Any]:
    """Of several tensors."""
    return [add_image_summary(tensor, prefix=prefix) for tensor in tensors]


def add_scalar_summaries(tensors: Any, prefix: str | None = None, print_summary: bool = False) -> list[Any]:
    """Of several tensors."""
    return [add_scalar_summary(tensor, prefix=prefix, print_summary=print_summary) for tensor in tensors]


def add_zero_fraction_summaries(tensors: Any, prefix: str | None = None) -> list[Any]:
    """Of several tensors."""
    return [add_zero_fraction_summary(tensor, prefix=prefix) for tensor in tensors]
