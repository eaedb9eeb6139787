"""What every op on sparse tensors asks of their three parts, checked once for all of them.

Owns `sparse_kernel`, which registers kernels like `kernel` does, and the checks that only some of them make; no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.interfaces import Outputs
from dtf.run.kernels import Factory, Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, shape_text
from dtf.run.value_types import Array

_SHAPES = ("shape", "shapes", "dense_shape")


def sparse_kernel(*ops: str) -> Callable[[Factory], Factory]:
    """Registers a kernel whose sparse inputs are checked before it runs.

    They are found in the contract: inputs that are called `*indices`, `*values` and `*shape`, with the same prefix.
    Indices must be a matrix with a row per value and a column per dimension, the others vectors.
    """

    def register(factory: Factory) -> Factory:
        @kernel(*ops)
        def checked(node: KernelNode) -> Function | None:
            function, places = factory(node), _places(node)
            if not places or function is None:
                return function

            def run(*inputs: Array) -> Outputs:
                for indices, values, shape in places:
                    _check(inputs[indices], inputs[values], inputs[shape])
                return function(*inputs)

            return run

        return factory

    return register


def check_dimensions(shape: np.ndarray) -> None:
    """Raises InvalidArgumentError for a dense shape with a negative dimension."""
    if len(shape) and shape.min() < 0:
        raise invalid(f"Expected shape dimensions to be non-negative, got {shape.min()}")


def check_inside(indices: np.ndarray, shape: np.ndarray) -> None:
    """Raises InvalidArgumentError for the first row of `indices` that is outside of the dense shape."""
    outside = np.flatnonzero(((indices < 0) | (indices >= shape)).any(axis=1))
    if outside.size:
        at = outside[0]
        raise invalid(f"Sparse index tuple indices[{at}, :] = {shape_text(indices[at])} is out of bounds")


def reduced_axes(axes: np.ndarray | Sequence[int], rank: int) -> set[int]:
    """The axes of a reduction within [0, rank)."""
    if np.ndim(axes) > 1:
        raise invalid(f"Expected reduction_axes to be a scalar or a vector; got shape: {shape_text(np.shape(axes))}")
    for axis in np.ravel(axes).tolist():
        if not -rank <= axis < rank:
            raise invalid(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
    return {axis % rank for axis in np.ravel(axes).tolist()}


def _places(node: KernelNode) -> list[tuple[int, int, int]]:
    """The positions of (indices, values, shape) among the flattened inputs, for each sparse tensor."""
    first: dict[str, int] = {}
    counts: dict[str, int] = {}
    at = 0
    for arg in node.op_def.inputs:
        if arg.type_list_attr is not None:
            return []
        first[arg.name], counts[arg.name] = at, node.attr(arg.number_attr) if arg.number_attr else 1
        at += counts[arg.name]
    places = []
    for name in first:
        prefix = name.removesuffix("indices")
        shape = next((prefix + each for each in _SHAPES if prefix + each in first), None)
        if name.endswith("indices") and prefix + "values" in first and shape is not None:
            columns = (first[name], first[prefix + "values"], first[shape])
            places += [tuple(column + i for column in columns) for i in range(counts[name])]
    return places  # type: ignore[return-value]


def _check(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
    if np.ndim(indices) != 2:
        raise invalid(f"Input indices should be a matrix but received shape {shape_text(np.shape(indices))}")
    if np.ndim(values) != 1:
        raise invalid(f"Input values should be a vector but received shape {shape_text(np.shape(values))}")
    if np.ndim(shape) != 1:
        raise invalid(f"Input shape should be a vector but received shape {shape_text(np.shape(shape))}")
    if len(indices) != len(values):
        raise invalid(f"Number of elements in indices ({len(indices)}) and values ({len(values)}) do not match")
    if indices.shape[1] != len(shape):
        raise invalid(f"Indices have {indices.shape[1]} columns, and the shape has {len(shape)} dimensions")
