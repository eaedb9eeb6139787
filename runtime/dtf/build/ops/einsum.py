"""Contractions over named axes: einsum, its parser and its shape rule.

`tf.tensordot` is in `linalg`. Gradients are in `linalg_grad`, kernels in `dtf.run.kernels.linalg`.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/einsum
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, NamedTuple

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape, unknown_shape

__all__ = ["einsum"]


class Contraction(NamedTuple):
    """An einsum equation without ellipses: one letter per axis."""

    inputs: tuple[str, ...]
    output: str

    def __str__(self) -> str:
        return f"{','.join(self.inputs)}->{self.output}"


def einsum(equation: str, *inputs: Any, name: str | None = None) -> Tensor:
    """Sums of products over named axes: einsum("ij,jk->ik", a, b) is the matrix product.

    Letters name the axes of each input; letters missing from the output are summed. Without "->" the output has,
    sorted, the letters that occur once. "..." means axes that broadcast. Several inputs are contracted from left to
    right.

    Args:
      equation: the letters of each input, separated by commas, then "->" and the letters of the output.
      *inputs: the tensors, of one dtype.
      name: the name of the operation.

    Returns:
      A Tensor with the output's axes.

    Raises:
      ValueError: the equation is malformed or does not fit the inputs.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/einsum
    """
    with name_scope(name, "einsum", inputs) as name:
        dtype = next((each.dtype.base_dtype for each in inputs if isinstance(each, Tensor)), None)
        tensors = [convert_to_tensor(each, preferred_dtype=dtype) for each in inputs]
        contraction = parse_einsum(equation, [tensor.shape for tensor in tensors])
        labels = list(contraction.inputs)
        while len(tensors) > 2:
            later = "".join(labels[2:]) + contraction.output
            kept = "".join(dict.fromkeys(letter for letter in labels[0] + labels[1] if letter in later))
            step = Contraction((labels[0], labels[1]), kept)
            tensors[:2] = [apply_op("Einsum", inputs=tensors[:2], equation=str(step))]
            labels[:2] = [kept]
        last = Contraction(tuple(labels), contraction.output)
        return apply_op("Einsum", name, inputs=tensors, equation=str(last))


def parse_einsum(equation: str, shapes: Sequence[TensorShape]) -> Contraction:
    """The equation with the implied output written out and ellipses replaced by letters.

    Raises:
      ValueError: the equation is malformed, does not fit the number or the ranks of `shapes`, or has an ellipsis for an
        input of unknown rank.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"einsum equation {equation!r} has {len(terms)} inputs, got {len(shapes)}")
    used = set(equation)
    spare = [letter for letter in string.ascii_letters if letter not in used]
    ellipsis_ranks = [_ellipsis_rank(equation, term, shape) for term, shape in zip(terms, shapes, strict=True)]
    longest = max(ellipsis_ranks, default=0)
    dots = "".join(spare[:longest])
    inputs = tuple(
        term.replace("...", dots[longest - rank :]) for term, rank in zip(terms, ellipsis_ranks, strict=True)
    )
    for term in (*inputs, right.replace("...", "")):
        if term and not term.isalpha():
            raise ValueError(f"einsum equation {equation!r} is malformed at {term!r}")
    if arrow:
        output = right.replace("...", dots)
    else:
        letters = left.replace("...", "").replace(",", "")
        output = dots + "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if len(set(output)) < len(output) or not set(output) <= set("".join(inputs)):
        raise ValueError(f"einsum equation {equation!r}: each letter of the output must come once, and in an input")
    return Contraction(inputs, output)


def _ellipsis_rank(equation: str, term: str, shape: TensorShape) -> int:
    """How many axes the "..." of an input covers."""
    letters = len(term.replace("...", ""))
    if "..." not in term:
        if shape.ndims is not None and shape.ndims != letters:
            raise ValueError(f"einsum equation {equation!r}: {term!r} does not fit a tensor of shape {shape}")
        return 0
    if shape.ndims is None:
        raise ValueError(f"einsum equation {equation!r}: the rank of an input with an ellipsis must be known")
    if shape.ndims < letters:
        raise ValueError(f"einsum equation {equation!r}: {term!r} does not fit a tensor of shape {shape}")
    return shape.ndims - letters


@shape_rule("Einsum")
def _einsum_shape(op: Operation) -> list[TensorShape]:
    equation = op.get_attr("equation")
    try:
        contraction = parse_einsum(
            equation.decode() if isinstance(equation, bytes) else equation, [tensor.shape for tensor in op.inputs]
        )
    except ValueError:
        if any(tensor.shape.ndims is None for tensor in op.inputs):
            return [unknown_shape()]
        raise
    sizes: dict[str, int | None] = {}
    for labels, tensor in zip(contraction.inputs, op.inputs, strict=True):
        if tensor.shape.ndims is None:
            continue
        for label, size in zip(labels, tensor.shape.as_list(), strict=True):
            known = sizes.get(label)
            if known not in (None, 1) and size not in (None, 1, known):
                raise ValueError(f"Axis {label!r} has size {known} and size {size}")
            sizes[label] = size if known in (None, 1) and size is not None else known
    return [TensorShape([sizes.get(label) for label in contraction.output])]
