"""Endpoint binding: the endpoints of a partition tied to a pushed step.

When the values of a compiled step are pushed (see `push`), it is known beforehand which of its _Send and _Recv nodes
stand for the client's feeds and fetches, and which for which number at which task. So a feed becomes a look at the
step's arguments, and a fetch an entry of its results. A _Send to another task pushes under its number. A _Recv is a
slot that is filled when the value arrives, together with the others of its group (see `piggyback`).

A partition with loops makes a value once in each iteration, and no slot or number stands for those: its _Recv nodes ask
the step's exchange by key, and its _Send nodes in loops send under keys.

Owns the replacement of the instructions. Runs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dtf.run.exchange.piggyback import SEND_METHODS, Marks
from dtf.run.exchange.rendezvous import OUTSIDE, key_maker
from dtf.run.executor.instructions import RECVS, SENDS, Instruction
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Value
from dtf.run.state.resources import Variable
from dtf.wire import errors

__all__ = ["EndpointBinding", "Push", "arrivals_of", "bind", "bind_loops"]


class EndpointBinding(NamedTuple):
    """The meaning of the rendezvous keys of a partition.

    Attributes:
      feeds, fetches: place among the step's arguments or results.
      outgoing: (task, number) of each value that is pushed to another task.
      incoming: (source, number) of each value that another task pushes.
      sources: how many tasks take part.
    """

    feeds: Mapping[str, int]
    fetches: Mapping[str, int]
    outgoing: Mapping[str, tuple[str, int]]
    incoming: Mapping[str, tuple[int, int]]
    sources: int


def bind(instructions: Sequence[Instruction], binding: EndpointBinding, marks: Marks) -> list[Instruction]:
    """The instructions of a partition without loops, with their endpoints replaced.

    Raises:
      UnimplementedError: an endpoint that the binding does not know.
    """
    result: list[Instruction] = []
    groups: dict[tuple[int, int] | str, int] = {}
    for instruction in instructions:
        key = _key(instruction)
        if key is None:
            result.append(instruction)
        elif instruction.op in SENDS and key in binding.outgoing:
            result.append(_replaced(instruction, Push(*binding.outgoing[key], marks.send_method(instruction.name))))
        elif instruction.op in RECVS and key in binding.incoming and not instruction.controls:
            source, _ = binding.incoming[key]
            mark = marks.groups.get(instruction.name)
            together = key if mark is None else (source, mark)
            result.append(dataclasses.replace(instruction, group=groups.setdefault(together, len(groups))))
        else:
            result.append(_bound_to_client(instruction, key, binding))
    return result


def bind_loops(instructions: Sequence[Instruction], binding: EndpointBinding) -> list[Instruction]:
    """As `bind`, of a partition that has loops."""
    result: list[Instruction] = []
    for instruction in instructions:
        key = _key(instruction)
        if key is None or (instruction.op in RECVS and key in binding.incoming):
            result.append(instruction)
        elif instruction.op in SENDS and key in binding.outgoing:
            result.append(_replaced(instruction, _push_in_loops(instruction, *binding.outgoing[key])))
        else:
            result.append(_bound_to_client(instruction, key, binding))
    return result


def arrivals_of(instructions: Sequence[Instruction], binding: EndpointBinding) -> list[dict[int, int]]:
    """For each source: number -> index of the instruction whose value it is."""
    arrivals: list[dict[int, int]] = [{} for _ in range(binding.sources)]
    for instruction in instructions:
        if instruction.group is not None:
            key = _key(instruction)
            assert key is not None
            source, number = binding.incoming[key]
            arrivals[source][number] = instruction.index
    return arrivals


class Push:
    """Sends a value to another task; a segment does so without a call of this (see `source`). `method` names the method
    of the step's exchange.
    """

    __slots__ = ("method", "number", "task")

    def __init__(self, task: str, number: int, method: str) -> None:
        assert method in SEND_METHODS
        self.task = task
        self.number = number
        self.method = method

    def __call__(self, step: StepContext, value: Value) -> None:
        getattr(step.exchange, self.method)(self.number, value, self.task)

    def source(self, task: str, value: str) -> str:
        """The call as Python source, of two names."""
        return f"step.exchange.{self.method}({int(self.number)}, {value}, {task})"


def _push_in_loops(instruction: Instruction, task: str, number: int) -> Callable[[StepContext, Value], None]:
    key_of = key_maker(instruction.node.attrs)

    def push(step: StepContext, value: Value) -> None:
        frame_iteration = step.frame_iteration
        step.exchange.send(number if frame_iteration == OUTSIDE else key_of(frame_iteration), value, task)

    return push


def _bound_to_client(instruction: Instruction, key: str, binding: EndpointBinding) -> Instruction:
    """The endpoint of a feed or fetch."""
    if instruction.op in SENDS and key in binding.fetches:
        return _replaced(instruction, _fetch(binding.fetches[key]))
    if instruction.op in RECVS and key in binding.feeds:
        return _replaced(instruction, _feed(binding.feeds[key]))
    raise errors.UnimplementedError.of(f"Node '{instruction.name}' is an endpoint of no value that is pushed")


def _replaced(instruction: Instruction, function: Callable[..., Value]) -> Instruction:
    kernel = instruction.kernel._replace(stateful=True, asynchronous=False)
    return dataclasses.replace(instruction, kernel=kernel, function=function)


def _feed(place: int) -> Callable[[StepContext], Value]:
    return lambda step: step.arguments[place]


def _fetch(place: int) -> Callable[[StepContext, Value], None]:
    def fetch(step: StepContext, value: Value) -> None:
        if isinstance(value, Variable):  # it is read when the step has ended
            value.read()  # a variable without a value is reported here
        assert step.results is not None
        step.results[place] = value

    return fetch


def _key(instruction: Instruction) -> str | None:
    """The rendezvous key of an endpoint, outside of loops; None for another node."""
    if instruction.op in SENDS or instruction.op in RECVS:
        return key_maker(instruction.node.attrs)(OUTSIDE)
    return None
