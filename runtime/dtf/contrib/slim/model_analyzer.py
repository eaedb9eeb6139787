"""slim.model_analyzer: the sizes of a model's variables and tensors, printed."""

from __future__ import annotations

from typing import Any

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]


def tensor_description(var: Any) -> str:
    """The dtype and the shape, such as (float32_ref 3x3)."""
    shape = var.get_shape()
    sizes = "x".join("?" if size is None else str(size) for size in shape.as_list()) if shape.ndims is not None else "?"
    return f"({var.dtype.name}{' ' if sizes else ''}{sizes})"


def analyze_vars(variables: Any, print_info: bool = False) -> tuple[int, int]:
    """(the number of elements of variables, their bytes)."""
    elements = size = 0
    for var in variables:
        count = var.get_shape().num_elements() or 0
        elements += count
        size += count * var.dtype.size
        if print_info:
            print(var.name, tensor_description(var), f"[{count}, bytes: {count * var.dtype.size}]")
    if print_info:
        print("Total size of variables:", elements)
        print("Total bytes of variables:", size)
    return elements, size


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """The number of elements of all tensors of a graph whose shapes are known."""
    elements = 0
    for op in graph.get_operations():
        count = sum(output.get_shape().num_elements() or 0 for output in op.outputs)
        elements += count
        if print_info:
            print(op.name, "->", ", ".join(tensor_description(output) for output in op.outputs), f"[{count}]")
    return elements
