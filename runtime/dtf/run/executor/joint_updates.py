"""Joint updates: the updates of many small variables by one rule as one call.

An optimizer's update of a bias takes a dozen array operations, whose calls cost far more than their arithmetic. Where
the scalars of several updates are the same values (a learning rate, the powers of Adam's betas), the variables, their
slots and their gradients are joined to long arrays, the rule runs once, and the results are copied back. Rules work
element by element, so the results are the same to the last bit, but for the float32 rules that oneDNN computes for
long arrays.

Owns which instructions are joined, and the function of the joint one. Only updates of one segment are joined: none
waits for another task longer than before. An update that is irregular in any way, by a shape that does not fit or a
variable without a value, is left to the kernels of the single updates, which then run one after another.

The joint instruction stands at the end of the list. The single ones stay in it, after the joint one, for what comes
after them; where a dead value from another task may have arrived, they run instead of it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np

from dtf.run.executor.instructions import MERGES, Instruction, in_running_order, with_node
from dtf.run.executor.segments import asynchronous_ancestors
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Value
from dtf.run.kernels import CPU, DEFAULT, Update, update_of
from dtf.run.state.resources import ResourceHandle, Variable
from dtf.run.value_types import Array
from dtf.wire.tensor_shape import TensorShape

__all__ = ["with_joint_updates"]

_SIZE_MAX = 1 << 13
"""Elements of a variable that is joined: a larger one's arithmetic costs more than its calls."""
_TOTAL_MAX = 1 << 15
"""Elements that are joined: their arrays fit the second cache."""
_GROUPS_MAX = 16
_SWITCHES = MERGES | {"Switch", "RefSwitch"}

_Value = tuple[int, int]


def with_joint_updates(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions with a joint one for each group of small updates; the same list where nothing is joined."""
    candidates = [each for each in instructions if _is_small(each, instructions)]
    if len(candidates) < 2 or any(each.op in _SWITCHES for each in instructions):
        return instructions
    used = {value[0] for each in instructions for value in each.inputs}
    order = in_running_order(instructions)
    ancestors = asynchronous_ancestors(instructions, order)
    groups: dict[tuple[object, ...], list[Instruction]] = defaultdict(list)
    for each in candidates:
        if each.index not in used:
            groups[_key(each, instructions, ancestors[each.index])].append(each)
    for group in itertools.islice((group for group in groups.values() if len(group) > 1), _GROUPS_MAX):
        for parts in _in_portions(_independent(group, instructions), instructions):
            instructions = _joined(instructions, parts)
    return instructions


def _is_small(instruction: Instruction, instructions: Sequence[Instruction]) -> bool:
    """Whether this is an update of a variable of at most `_SIZE_MAX` elements, as far as the graph says."""
    update = update_of(instruction.function)
    if update is None or instruction.keeps or instruction.kernel.device_type not in (CPU, DEFAULT):
        return False
    return 0 < _size(instruction, instructions) <= _SIZE_MAX


def _size(instruction: Instruction, instructions: Sequence[Instruction]) -> int:
    """The number of elements of the variable that an instruction updates; 0 where the graph does not say it."""
    shape = instructions[instruction.inputs[0][0]].node.attrs.get("shape")
    return (shape.num_elements() or 0) if isinstance(shape, TensorShape) else 0


def _key(instruction: Instruction, instructions: Sequence[Instruction], ancestors: int) -> tuple[object, ...]:
    """What updates must agree in to be joined."""
    update, node = update_of(instruction.function), instruction.node
    assert update is not None
    scalars = tuple(_origin(instruction.inputs[place], instructions) for place in update.scalars_at)
    attrs = tuple(sorted((name, repr(value)) for name, value in node.attrs.items() if not name.startswith("_")))
    return node.op, node.device, attrs, scalars, ancestors


def _origin(value: _Value, instructions: Sequence[Instruction]) -> tuple[object, ...]:
    """Where a scalar comes from: two updates may each have read the same variable. Steps compare the values then."""
    way: list[object] = []
    while (source := instructions[value[0]]).op in _READS:
        way.append((source.op, source.node.attrs.get("DstT")))
        value = source.inputs[0]
    return *way, value


_READS = frozenset({"Cast", "Identity", "ReadVariableOp"})


def _independent(group: Sequence[Instruction], instructions: list[Instruction]) -> list[Instruction]:
    """Those of a group that come after no other of it, each of other variables than the others."""
    members, after = {each.index for each in group}, set[int]()
    for index in in_running_order(instructions):
        if any(source in after or source in members for source in instructions[index].sources()):
            after.add(index)
    chosen, variables = [], set[_Value]()
    for each in group:
        update = update_of(each.function)
        assert update is not None
        own = each.inputs[: update.variables]
        if each.index not in after and variables.isdisjoint(own) and len(set(own)) == len(own):
            chosen.append(each)
            variables.update(own)
    return chosen


def _in_portions(
    group: Iterable[Instruction], instructions: Sequence[Instruction]
) -> list[list[Instruction]]:
    """A group in portions of at most `_TOTAL_MAX` elements, without those of a single update."""
    portions: list[list[Instruction]] = []
    total = _TOTAL_MAX
    for each in group:
        size = _size(each, instructions)
        if total + size > _TOTAL_MAX:
            portions.append([])
            total = 0
        portions[-1].append(each)
        total += size
    return [portion for portion in portions if len(portion) > 1]


def _joined(instructions: list[Instruction], parts: Sequence[Instruction]) -> list[Instruction]:
    """The instructions with a joint one for `parts`."""
    first, index = parts[0], len(instructions)
    update = update_of(first.function)
    assert update is not None
    own = [place for place in range(len(first.inputs)) if place not in update.scalars_at]
    of_parts = [(part, place) for part in parts for place in own]
    scalars = [(first, place) for place in update.scalars_at]
    others = [
        (number, place)
        for number, part in enumerate(parts)
        for place in update.scalars_at
        if part.inputs[place] != first.inputs[place]
    ]
    places = [*of_parts, *scalars, *((parts[number], place) for number, place in others)]
    function = _Together(parts, update, others)
    joint = dataclasses.replace(
        first,
        index=index,
        function=function.of_handles if first.kernel.stateful else function.of_references,
        inputs=tuple(part.inputs[place] for part, place in places),
        dereferences=tuple(part.dereferences[place] for part, place in places),
        controls=tuple(dict.fromkeys(source for part in parts for source in part.controls)),
        absorbed=tuple(part.node for part in parts[1:]),
        joins=True,
    )
    result = list(instructions)
    for part in parts:
        result[part.index] = dataclasses.replace(part, controls=(*part.controls, index), joined_to=index)
    result.append(joint)
    return result


class _Together:
    """The function of a joint update: of the variables and the gradient of each part, then the first one's scalars,
    then `others`: the scalars that another part, by number, has read by itself.
    """

    def __init__(self, parts: Sequence[Instruction], update: Update, others: Sequence[tuple[int, int]]) -> None:
        self._parts = [(part.node, part.function) for part in parts]
        self._update = update
        self._width = update.variables + 1
        self._scalars_from = len(parts) * self._width
        self._others_from = self._scalars_from + len(update.scalars_at)
        self._others = others
        self._rule = update.rule

    def of_references(self, *values: Value) -> None:
        self._apply(cast("Sequence[Variable]", self._variables(values)), values, ())

    def of_handles(self, step: StepContext, *values: Value) -> None:
        handles = cast("Sequence[ResourceHandle]", self._variables(values))
        self._apply([step.resources.get(handle, Variable) for handle in handles], values, (step,))

    def _variables(self, values: Sequence[Value]) -> list[Value]:
        count, width = self._update.variables, self._width
        return [each for start in range(0, self._scalars_from, width) for each in values[start : start + count]]

    def _apply(self, variables: Sequence[Variable], values: Sequence[Value], context: tuple[StepContext, ...]) -> None:
        gradients = cast("Sequence[Array]", values[self._width - 1 : self._scalars_from : self._width])
        scalars = cast("Sequence[Array]", values[self._scalars_from : self._others_from])
        if not self._have_one_value(scalars, values) or not self._is_applied(variables, gradients, scalars):
            self._one_by_one(values, context)

    def _have_one_value(self, scalars: Sequence[Array], values: Sequence[Value]) -> bool:
        if not self._others:
            return True
        expected = dict(zip(self._update.scalars_at, scalars, strict=True))
        others = cast("Sequence[Array]", values[self._others_from :])
        return all(
            other is expected[place] or (not np.ndim(other) and bool(other == expected[place]))
            for (_, place), other in zip(self._others, others, strict=True)
        )

    def _is_applied(self, variables: Sequence[Variable], gradients: Sequence[Array], scalars: Sequence[Array]) -> bool:
        """Applies the update, unless anything about it is irregular."""
        if any(np.ndim(scalar) for scalar in scalars) or len(set(map(id, variables))) != len(variables):
            return False
        taken = sorted(variables, key=id)  # in one order for all, so that no two steps wait for each other
        for variable in taken:
            variable.lock.acquire()
        try:
            return self._is_applied_to(variables, gradients, scalars)
        finally:
            for variable in taken:
                variable.lock.release()

    def _is_applied_to(
        self, variables: Sequence[Variable], gradients: Sequence[Array], scalars: Sequence[Array]
    ) -> bool:
        """`_is_applied` while the locks of the variables are held."""
        if not all(variable.is_initialized for variable in variables):
            return False
        count = self._update.variables
        arrays = [variable.writable() for variable in variables]
        shapes = [np.shape(gradient) for gradient in gradients for _ in range(count)]
        for array, shape in zip(arrays, shapes, strict=True):
            if type(array) is not np.ndarray or array.shape != shape:
                return False
        joined = [np.concatenate(arrays[place::count], axis=None) for place in range(count)]
        self._rule(*joined, np.concatenate(gradients, axis=None), *scalars)
        start = 0
        for number, gradient in enumerate(gradients):
            end = start + gradient.size
            for place, flat in enumerate(joined):
                array = arrays[number * count + place]
                array[...] = flat[start:end].reshape(array.shape)
            start = end
        return True

    def _one_by_one(self, values: Sequence[Value], context: tuple[StepContext, ...]) -> None:
        places = self._update.scalars_at
        common = dict(zip(places, values[self._scalars_from : self._others_from], strict=True))
        others = dict(zip(self._others, values[self._others_from :], strict=True))
        for number, (node, function) in enumerate(self._parts):
            scalars = {place: others.get((number, place), common[place]) for place in places}
            own = iter(values[number * self._width : (number + 1) * self._width])
            inputs = [scalars[place] if place in scalars else next(own) for place in range(self._width + len(places))]
            try:
                function(*context, *inputs)
            except Exception as error:
                raise with_node(error, node) from error

