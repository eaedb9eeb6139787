"""Wiring: a partition whose endpoints are connected to a direct step, without a rendezvous.

When a compiled step runs directly (see `direct`), it is known beforehand which of its _Send and _Recv nodes stand for
the client's feeds and fetches and which for which number at which task. So a feed becomes a look at the step's
arguments, a fetch an entry of its results, a _Send to another task an entry of the outbox, and a _Recv a slot that is
filled when the value arrives. The master has marked the values that come together (`passes.arrivals`): what they make
ready waits for all of them at once.

Owns the replacement of the instructions. Runs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from dtf.run.exchange.rendezvous import make_key
from dtf.run.executor.instructions import RECVS, SENDS, Instruction
from dtf.run.kernels import Kernel
from dtf.run.state.resources import Variable

__all__ = ["COMES_WITH", "RIDES", "Push", "Wiring", "arrivals_of", "wired"]

COMES_WITH = "_comes_with"
"""An attribute of a _Recv and of its _Send: the same number stands at all whose values one segment there sends."""

RIDES = "_rides"
"""An attribute of a _Send: all that its value is for waits also for a later value from the same task."""


class Wiring(NamedTuple):
    """What the rendezvous keys of a partition stand for.

    Attributes:
      feeds, fetches: place among the step's arguments or results.
      outgoing: (task, number) of what is pushed to another task.
      incoming: (source, number) of what is pushed by another one.
    """

    feeds: Mapping[str, int]
    fetches: Mapping[str, int]
    outgoing: Mapping[str, tuple[str, int]]
    incoming: Mapping[str, tuple[int, int]]


def wired(
    instructions: Sequence[Instruction], wiring: Wiring, comes_with: Mapping[str, int], rides: Collection[str]
) -> list[Instruction] | None:
    """The instructions with their endpoints replaced; None when there is one that the wiring does not know.

    `comes_with`: COMES_WITH of the nodes that have it, by name. `rides`: the names of those that have RIDES.
    """
    result: list[Instruction] = []
    groups: dict[Any, int] = {}
    for instruction in instructions:
        if instruction.op in SENDS:
            key = _key(instruction)
            if key in wiring.fetches:
                instruction = _replaced(instruction, _fetch(wiring.fetches[key]))
            elif key in wiring.outgoing:
                name = instruction.name
                way = "ride" if name in rides else "gather" if name in comes_with else "add"
                instruction = _replaced(instruction, Push(*wiring.outgoing[key], way))
            else:
                return None
        elif instruction.op in RECVS:
            key = _key(instruction)
            if key in wiring.feeds:
                instruction = _replaced(instruction, _feed(wiring.feeds[key]))
            elif key in wiring.incoming and not instruction.controls:
                source, _ = wiring.incoming[key]
                mark = comes_with.get(instruction.name)
                together = ("alone", key) if mark is None else (source, mark)
                instruction = dataclasses.replace(instruction, group=groups.setdefault(together, len(groups)))
            else:
                return None
        result.append(instruction)
    return result


def arrivals_of(instructions: Sequence[Instruction], wiring: Wiring, sources: int) -> list[dict[int, int]]:
    """For each source: number -> index of the instruction whose value it is."""
    arrivals: list[dict[int, int]] = [{} for _ in range(sources)]
    for instruction in instructions:
        if instruction.group is not None:
            source, number = wiring.incoming[_key(instruction)]
            arrivals[source][number] = instruction.index
    return arrivals


def _replaced(instruction: Instruction, function: Callable[..., Any]) -> Instruction:
    kernel = instruction.kernel._replace(stateful=True, asynchronous=False)
    assert isinstance(kernel, Kernel)
    return dataclasses.replace(instruction, kernel=kernel, function=function)


def _feed(place: int) -> Callable[..., Any]:
    return lambda step: step.arguments[place]


def _fetch(place: int) -> Callable[..., Any]:
    def fetch(step: Any, value: Any) -> None:
        if type(value) is Variable:  # it is read when the step has ended
            value.read()  # one without a value is told of here
        step.results[place] = value

    return fetch


WAYS = frozenset({"add", "gather", "ride"})
"""The methods of an outbox that take a value."""


class Push:
    """Puts a value into the outbox; a segment does so without a call of this (see `segment_source`). `way` names the
    method of the outbox.
    """

    __slots__ = ("number", "task", "way")

    def __init__(self, task: str, number: int, way: str) -> None:
        self.task = task
        self.number = number
        self.way = way

    def __call__(self, step: Any, value: Any) -> None:
        getattr(step.rendezvous, self.way)(self.task, self.number, value)


def _key(instruction: Instruction) -> str:
    attrs = instruction.node.attrs
    return make_key(
        attrs["send_device"].decode(),
        attrs["send_device_incarnation"],
        attrs["recv_device"].decode(),
        attrs["tensor_name"].decode(),
    )
