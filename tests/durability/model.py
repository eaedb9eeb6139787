"""A model of durable parameter servers, and the search of all its interleavings (runtime/durability.md).

The model has clients that run steps in slots, parameter servers that apply two updates for each step, and a journal
per server. The search delivers messages in any order, twice or never, kills servers at any point, and cuts connections
of servers that live. It checks the invariants of the page in every state that it reaches.

    python -m tests.durability.model                   the depth of the default tests, seconds
    python -m tests.durability.model --steps 2 --kills 2 --cuts 2      deeper: minutes to hours

Each rule of the protocol can be broken by its name (`--without RULE`); the search then finds a counterexample.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["RULES", "Counterexample", "Limits", "search"]

RULES = {
    "journal first": "a server answers only after the journal has the update",
    "once": "the journal names the updates of a step, and a retry does not apply them again",
    "one lock": "nothing else of a server runs between an update and its record in the journal",
    "old steps refused": "a server refuses a message of a step that its slot has left behind",
    "one owner": "a server that starts waits until its former process has released the lock of the folder",
}

_PARTS = 2
"""Updates of one step at one server; the process may die between them."""

Update = tuple[int, int, int]
"""Client, number of its step, part."""


class Limits(NamedTuple):
    """The size of the world."""

    clients: int = 2
    servers: int = 1
    steps: int = 2
    kills: int = 1
    cuts: int = 1
    states: int = 2_000_000


class Run(NamedTuple):
    """A message: run your part of a step."""

    client: int
    server: int
    incarnation: int
    step: int
    attempt: int


class Done(NamedTuple):
    """A message: the part is done."""

    client: int
    server: int
    step: int
    attempt: int


class Journal(NamedTuple):
    """What outlives the process. `value`: how often each update is in the variable. `slots`: for each client, the
    last step and the parts of it that are applied."""

    value: tuple[tuple[Update, int], ...] = ()
    slots: tuple[tuple[int, int, tuple[int, ...]], ...] = ()


class Running(NamedTuple):
    """A partition of a step in a process. `made`: the update is in memory but not in the journal."""

    run: Run
    part: int = 0
    made: bool = False


class Process(NamedTuple):
    """One process of a server: its memory, and what runs."""

    incarnation: int
    memory: Journal
    running: tuple[Running, ...] = ()


class Client(NamedTuple):
    """The step that a client runs, its attempt, and the servers that have answered."""

    step: int = 0
    attempt: int = 0
    answered: tuple[int, ...] = ()
    confirmed: tuple[int, ...] = ()


class State(NamedTuple):
    clients: tuple[Client, ...]
    journals: tuple[Journal, ...]
    processes: tuple[tuple[Process, ...], ...]
    messages: frozenset[Run | Done]
    kills: int
    cuts: int


@dataclass(frozen=True)
class Counterexample:
    """A broken invariant and the events that lead to it."""

    what: str
    events: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"  {number}. {event}" for number, event in enumerate(self.events, 1))])


def search(limits: Limits, without: str | None = None) -> tuple[int, Counterexample | None]:
    """Searches breadth first, without the rule `without`.

    Returns:
      the number of states, and the shortest counterexample, if there is one.

    Raises:
      ValueError: there is no such rule.
      MemoryError: there are more states than `limits.states`.
    """
    if without is not None and without not in RULES:
        raise ValueError(f"there is no rule {without!r}; the rules are {', '.join(RULES)}")
    first = _first(limits)
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        broken = _broken(state)
        if broken is not None:
            return len(came_from), Counterexample(broken, _events(state, came_from))
        for event, following in _moves(state, limits, without):
            if following not in came_from:
                came_from[following] = state, event
                waiting.append(following)
        if len(came_from) > limits.states:
            raise MemoryError(f"more than {limits.states} states; raise --states, or make the world smaller")
    return len(came_from), None


def _events(state: State, came_from: dict[State, tuple[State, str] | None]) -> tuple[str, ...]:
    found: list[str] = []
    before = came_from[state]
    while before is not None:
        found.append(before[1])
        before = came_from[before[0]]
    return tuple(reversed(found))


def _first(limits: Limits) -> State:
    return State(
        tuple(Client() for _ in range(limits.clients)),
        tuple(Journal() for _ in range(limits.servers)),
        tuple((Process(1, Journal()),) for _ in range(limits.servers)),
        frozenset(),
        limits.kills,
        limits.cuts,
    )


def _broken(state: State) -> str | None:
    """The first invariant that does not hold."""
    for server, journal in enumerate(state.journals):
        value = dict(journal.value)
        for update, count in value.items():
            if count > 1:
                return f"ps:{server} has applied {_named(update)} {count} times"
        for number, client in enumerate(state.clients):
            for step in client.confirmed:
                for part in range(_PARTS):
                    if not value.get((number, step, part)):
                        return f"ps:{server} has lost {_named((number, step, part))}, which was confirmed"
    return None


def _named(update: Update) -> str:
    client, step, part = update
    return f"update {part} of step {step} of client {client}"


def _moves(state: State, limits: Limits, without: str | None) -> Iterator[tuple[str, State]]:
    for number, client in enumerate(state.clients):
        yield from _client_moves(state, number, client, limits)
    for message in state.messages:
        yield from _deliveries(state, message, without)
    for server, processes in enumerate(state.processes):
        for place, process in enumerate(processes):
            for at in range(len(process.running)):
                yield from _advances(state, server, place, at, without)
        yield from _deaths(state, server, without)


def _client_moves(state: State, number: int, client: Client, limits: Limits) -> Iterator[tuple[str, State]]:
    """A client starts a step, or sends it again after the connection to a server was lost."""
    if client.step >= limits.steps:
        return
    if client.attempt == 0:
        yield f"client {number} starts step {client.step}", _sent(state, number, client._replace(attempt=1))
    elif client.attempt <= limits.kills + limits.cuts:
        lost = [s for s in range(len(state.processes)) if s not in client.answered and _is_lost(state, number, s)]
        if lost:
            again = client._replace(attempt=client.attempt + 1, answered=())
            event = f"client {number} sends step {client.step} again, attempt {again.attempt}"
            yield event, _sent(state, number, again)
        elif state.cuts:
            again = client._replace(attempt=client.attempt + 1, answered=())
            event = f"client {number} loses a connection and sends step {client.step} again"
            yield event, _sent(state._replace(cuts=state.cuts - 1), number, again)


def _is_lost(state: State, number: int, server: int) -> bool:
    """Whether the process that has the client's last message is gone."""
    client = state.clients[number]
    alive = {process.incarnation for process in state.processes[server]}
    sent = {
        message.incarnation
        for message in state.messages
        if isinstance(message, Run)
        and (message.client, message.server, message.step) == (number, server, client.step)
        and message.attempt == client.attempt
    }
    return bool(alive) and not sent & alive


def _sent(state: State, number: int, client: Client) -> State:
    messages = set(state.messages)
    for server, processes in enumerate(state.processes):
        if processes:
            messages.add(Run(number, server, processes[-1].incarnation, client.step, client.attempt))
    clients = _with(state.clients, number, client)
    return state._replace(clients=clients, messages=frozenset(messages))


def _deliveries(state: State, message: Run | Done, without: str | None) -> Iterator[tuple[str, State]]:
    """A message arrives. It stays in the network: it may arrive again, and late."""
    if isinstance(message, Done):
        client = state.clients[message.client]
        is_current = (message.step, message.attempt) == (client.step, client.attempt)
        if not is_current or message.server in client.answered:
            return
        answered = tuple(sorted((*client.answered, message.server)))
        changed = client._replace(answered=answered)
        event = f"client {message.client} hears that ps:{message.server} has done step {message.step}"
        if len(answered) == len(state.processes):
            changed = Client(client.step + 1, 0, (), (*client.confirmed, client.step))
            event += ": confirmed"
        yield event, state._replace(clients=_with(state.clients, message.client, changed))
        return
    for place, process in enumerate(state.processes[message.server]):
        if process.incarnation != message.incarnation or any(each.run == message for each in process.running):
            continue
        slots = {client: (step, parts) for client, step, parts in process.memory.slots}
        step, _ = slots.get(message.client, (-1, ()))
        if message.step < step and without != "old steps refused":
            continue
        if message.step != step:
            slots[message.client] = message.step, ()
        memory = process.memory._replace(slots=_slots(slots))
        changed_process = process._replace(memory=memory, running=tuple(sorted((*process.running, Running(message)))))
        event = f"ps:{message.server} begins step {message.step} of client {message.client}"
        yield event, _with_process(state, message.server, place, changed_process)


def _advances(state: State, server: int, place: int, at: int, without: str | None) -> Iterator[tuple[str, State]]:
    """A running partition makes its next update, writes it to the journal, or answers."""
    process = state.processes[server][place]
    running = process.running[at]
    run = running.run
    rest = process.running[:at] + process.running[at + 1 :]
    who = f"ps:{server} (incarnation {process.incarnation})"
    if running.part == _PARTS:
        done = Done(run.client, server, run.step, run.attempt)
        after = _with_process(state, server, place, process._replace(running=rest))
        yield f"{who} answers", after._replace(messages=after.messages | {done})
        return
    update = run.client, run.step, running.part
    if without == "journal first" and running.part == _PARTS - 1 and running.made:
        done = Done(run.client, server, run.step, run.attempt)
        if done not in state.messages:
            yield f"{who} answers before the journal", state._replace(messages=state.messages | {done})
    slots = {client: (step, parts) for client, step, parts in process.memory.slots}
    step, parts = slots.get(run.client, (-1, ()))
    if running.made:
        # The record gives the value of each variable now, and for each step the updates that are applied.
        journal = state.journals[server]
        recorded = {client: (number, names) for client, number, names in journal.slots}
        number, names = recorded.get(run.client, (-1, ()))
        if without != "once":
            base = names if number == run.step else ()
            recorded[run.client] = run.step, tuple(sorted({*base, running.part}))
        written = Journal(process.memory.value, _slots(recorded))
        after = _with_process(
            state, server, place, process._replace(running=tuple(sorted((*rest, Running(run, running.part + 1)))))
        )
        yield f"{who} writes {_named(update)}", after._replace(journals=_with(state.journals, server, written))
        return
    if without != "one lock" and any(each.made for each in process.running):
        return
    if step == run.step and running.part in parts:
        yield (
            f"{who} skips {_named(update)}",
            _with_process(
                state, server, place, process._replace(running=tuple(sorted((*rest, Running(run, running.part + 1)))))
            ),
        )
        return
    if without != "old steps refused" and step != run.step:
        yield f"{who} stops an old attempt", _with_process(state, server, place, process._replace(running=rest))
        return
    value = dict(process.memory.value)
    value[update] = value.get(update, 0) + 1
    if without != "once":
        slots[run.client] = run.step, tuple(sorted({*(parts if step == run.step else ()), running.part}))
    memory = Journal(tuple(sorted(value.items())), _slots(slots))
    made = process._replace(memory=memory, running=tuple(sorted((*rest, running._replace(made=True)))))
    yield f"{who} makes {_named(update)}", _with_process(state, server, place, made)


def _deaths(state: State, server: int, without: str | None) -> Iterator[tuple[str, State]]:
    """A process is killed, or a new one is started. Without the owner's lock, also beside one that lives."""
    processes = state.processes[server]
    if processes and state.kills:
        killed = _with(state.processes, server, processes[1:])
        yield f"ps:{server} is killed", state._replace(processes=killed, kills=state.kills - 1)
    if not processes or (without == "one owner" and len(processes) == 1 and state.kills):
        incarnation = 1 + max(
            [0, *(each.incarnation for each in processes)]
            + [each.incarnation for each in state.messages if isinstance(each, Run) and each.server == server]
            + [1]
        )
        started = Process(incarnation, state.journals[server])
        kills = state.kills - bool(processes)
        after = _with(state.processes, server, (*processes, started))
        yield f"ps:{server} starts as incarnation {incarnation}", state._replace(processes=after, kills=kills)


def _slots(slots: dict[int, tuple[int, tuple[int, ...]]]) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    return tuple((client, step, parts) for client, (step, parts) in sorted(slots.items()))


def _with_process(state: State, server: int, place: int, process: Process) -> State:
    processes = _with(state.processes[server], place, process)
    return state._replace(processes=_with(state.processes, server, processes))


def _with(values: tuple, place: int, value: object) -> tuple:
    return (*values[:place], value, *values[place + 1 :])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability.model", description=__doc__.split("\n")[0])
    for name, default in Limits()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--without", choices=list(RULES), help="leave out a rule of the protocol")
    chosen = parser.parse_args(arguments)
    limits = Limits(*(getattr(chosen, name) for name in Limits._fields))
    states, found = search(limits, chosen.without)
    print(f"{states:,} states: {'no invariant is broken' if found is None else found}")
    return found is not None


if __name__ == "__main__":
    sys.exit(main())
