"""Sums of products: an AddN of matrix products becomes one product of their joined matrices.

The gradient of weights that a loop over time uses at every position is such a sum: A1 B1 + A2 B2 + ... is
[A1 A2 ...] [B1; B2; ...]. One product of a large inner dimension is faster than many of a small one, which each write
and read back a matrix of the result's size.

Owns which instructions are merged, and the function of a merged one. A product is merged where only the sum wants it,
and where it reads no variable by reference: when it runs is then of no consequence, so an instruction that a control
edge puts after it comes after its inputs instead. Whether joining pays is decided by the
shapes of each step; else, and where shapes do not fit, the kernels run one after another as in the graph.
`DTF_KERNELS=numpy` merges nothing.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from dtf.run.executor.instructions import ALIASES, Instruction, with_node
from dtf.run.interfaces import Value
from dtf.run.kernels import CPU, DEFAULT, KernelNode
from dtf.run.kernels.arguments import room
from dtf.run.lib import onednn
from dtf.run.value_types import Array, ArrayFunction
from dtf.wire import dtypes

__all__ = ["with_sums_of_products"]

_Value = tuple[int, int]


def with_sums_of_products(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions, numbered anew, with sums of products merged; the same list where nothing is merged."""
    if onednn.is_switched_off():
        return instructions
    sums = [each for each in instructions if each.op == "AddN" and len(each.inputs) > 1 and _is_float32(each)]
    if not sums:
        return instructions
    uses = Counter(value for each in instructions for value in each.inputs)
    merged: dict[int, Instruction] = {}
    absorbed: set[int] = set()
    for total in sums:
        found = _merged(instructions, total, uses)
        if found is not None:
            merged[total.index], gone = found
            absorbed.update(gone)
    if not merged:
        return instructions
    return _numbered_anew([merged.get(each.index, each) for each in instructions], absorbed)


def _merged(
    instructions: Sequence[Instruction], total: Instruction, uses: Counter[_Value]
) -> tuple[Instruction, list[int]] | None:
    """A sum with its products, and the indices of all that it absorbs; None where fewer than two can be merged."""
    ways: dict[tuple[bool, bool], dict[_Value, list[Instruction]]] = {}
    for value in total.inputs:
        way = _way_to_product(instructions, value, uses)
        if way and way[-1].node.device == total.node.device:
            sides = way[-1].node.attr("transpose_a"), way[-1].node.attr("transpose_b")
            ways.setdefault(sides, {})[value] = way
    chosen = max(ways.values(), key=len, default={})
    if len(chosen) < 2:
        return None
    gone = [each for way in chosen.values() for each in way]
    products = [way[-1] for way in chosen.values()]
    others = [value for value in total.inputs if value not in chosen]
    inputs = (*(value for product in products for value in product.inputs), *others)
    merged = dataclasses.replace(
        total,
        function=_sum_of_products(products, total),
        inputs=inputs,
        controls=tuple(dict.fromkeys((*total.controls, *(source for each in gone for source in each.controls)))),
        dereferences=(False,) * len(inputs),
        absorbed=tuple(each.node for each in gone),
    )
    return merged, [each.index for each in gone]


def _way_to_product(
    instructions: Sequence[Instruction], value: _Value, uses: Counter[_Value]
) -> list[Instruction]:
    """Copies of a product, from `value` back, and the product, if nothing else wants any of them; else nothing."""
    way: list[Instruction] = []
    while uses[value] == 1:
        maker = instructions[value[0]]
        if not _is_float32(maker):
            break
        way.append(maker)
        if maker.op == "MatMul":
            return way
        if maker.op not in ALIASES:
            break
        value = maker.inputs[0]
    return []


def _numbered_anew(instructions: Sequence[Instruction], absorbed: set[int]) -> list[Instruction]:
    """The instructions without the absorbed ones. What came after one of these comes after all that it came after."""
    before: dict[int, list[int]] = {}

    def sources(index: int) -> list[int]:
        found = before.get(index)
        if found is None:
            pending = [index]
            seen: dict[int, None] = {}
            while pending:
                for source in sorted(instructions[pending.pop()].sources()):
                    if source in absorbed:
                        pending.append(source)
                    else:
                        seen[source] = None
            found = before[index] = list(seen)
        return found

    kept = [each for each in instructions if each.index not in absorbed]
    place = {each.index: number for number, each in enumerate(kept)}
    result = []
    for number, each in enumerate(kept):
        own = {source for source, _ in each.inputs}
        controls: dict[int, None] = {}
        for control in each.controls:
            for source in sources(control) if control in absorbed else [control]:
                if control not in absorbed or (source not in own and source != each.index):
                    controls[place[source]] = None
        inputs = tuple((place[source], output) for source, output in each.inputs)
        result.append(dataclasses.replace(each, index=number, inputs=inputs, controls=tuple(controls)))
    return result


def _is_float32(instruction: Instruction) -> bool:
    return (
        instruction.node.attrs.get("T") == dtypes.float32
        and instruction.kernel.device_type in (CPU, DEFAULT)
        and not any(instruction.dereferences)
    )


def _sum_of_products(products: Sequence[Instruction], total: Instruction) -> Callable[..., Value]:
    """The function of a merged sum: of both matrices of each product, then of what else is added."""
    nodes = [product.node for product in products]
    multiply = cast(Sequence[ArrayFunction], [product.function for product in products])
    add = cast(ArrayFunction, total.function)
    left_axis = 0 if nodes[0].attr("transpose_a") else 1
    right_axis = 1 if nodes[0].attr("transpose_b") else 0
    count = 2 * len(products)

    def compute(*values: Array) -> Value:
        lefts, rights, others = values[:count:2], values[1:count:2], values[count:]
        if _pays(lefts, rights, left_axis, right_axis):
            left = _joined(lefts, left_axis)
            made = multiply[0](left, _joined(rights, right_axis))
            return add(made, *others) if others else made
        made_one_by_one = [
            _of_node(node, function, left, right)
            for node, function, left, right in zip(nodes, multiply, lefts, rights, strict=True)
        ]
        return add(*made_one_by_one, *others)

    return compute


def _pays(lefts: Sequence[Array], rights: Sequence[Array], left_axis: int, right_axis: int) -> bool:
    """Whether the products fit together, and joining copies fewer elements than the products have."""
    left, right = lefts[0], rights[0]
    if left.ndim != 2 or right.ndim != 2:
        return False
    rows, columns = left.shape[1 - left_axis], right.shape[1 - right_axis]
    for one, other in zip(lefts, rights, strict=True):
        if one.ndim != 2 or other.ndim != 2 or one.shape[left_axis] != other.shape[right_axis]:
            return False
        if one.shape[1 - left_axis] != rows or other.shape[1 - right_axis] != columns:
            return False
    inner = sum(one.shape[left_axis] for one in lefts)
    return bool(0 < inner * (rows + columns) <= len(lefts) * rows * columns)


def _joined(values: Sequence[Array], axis: int) -> Array:
    shape = list(values[0].shape)
    shape[axis] = sum(value.shape[axis] for value in values)
    return np.concatenate(values, axis=axis, out=np.empty(room(shape, np.float32), np.float32))


def _of_node(node: KernelNode, function: ArrayFunction, left: Array, right: Array) -> Array:
    try:
        return function(left, right)
    except Exception as error:
        raise with_node(error, node) from error
