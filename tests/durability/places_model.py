"""A model of the two places of a durable task, and the search of all its interleavings (runtime/durability.md, `host`).

The model has two places with a process and a folder each, connections between them whose frames arrive in order, late
or not at all, questions that arrive late or twice, and a supervisor whose orders arrive late. The search kills
processes, starts them again, and cuts connections of processes that live. A step that only reads, too, must see every
update that was confirmed before it began.

    python -m tests.durability.places_model                   the depth of the default tests, seconds
    python -m tests.durability.places_model --kills 3 --cuts 2 --asks 5      deeper: minutes to hours

Each rule of the protocol can be broken by its name (`--without RULE`); the search then finds a counterexample.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tests.durability.model import Counterexample

__all__ = ["RULES", "Limits", "search"]

RULES = {
    "acknowledged first": "a primary in mode pair confirms only what its backup has acknowledged",
    "reads are acknowledged": "a step that only reads has a frame acknowledged that was sent after it read",
    "one right": "a backup that has begun the next term acknowledges nothing of the old one",
    "right in memory": "a process that is started again holds no right",
    "no time limit": "a paused primary goes on alone only when no process holds the right",
    "turns": "a primary accepts a question only in the turn in which it was asked",
    "orders name the term": "an order that comes late finds another term, and is refused",
    "folder is read": "a supervisor orders alone when the folder of the dead process has no later term",
    "question begins a term": "a primary that accepts a question begins a new term, in mode alone too",
    "mode first": "the primary writes mode pair before its backup gets the right",
    "revoke is answered": "a primary goes on alone only when its backup has answered that the right is given back",
}

ALONE, PAIR = "alone", "pair"
WAITS, BACKUP, PRIMARY = "waits", "backup", "primary"
Updates = frozenset[int]


class Limits(NamedTuple):
    """The size of the world. `reads`: steps that only read; `asks`: how often a place asks to be the backup; `orders`:
    of the supervisor.
    """

    updates: int = 1
    reads: int = 1
    kills: int = 1
    cuts: int = 1
    asks: int = 2
    orders: int = 1
    revokes: int = 1
    states: int = 4_000_000


class Folder(NamedTuple):
    """What outlives the process. `owner`: which place is the primary of the last term."""

    log: Updates
    terms: tuple[int, ...]
    mode: str
    owner: int
    is_complete: bool = True


class Link(NamedTuple):
    """A connection: the frames on their way, and which ends are open. A frame is ("base", folder), ("record", update),
    ("filled", terms), ("ping",) or ("revoke",); what comes back is "acknowledged" or "revoked".
    """

    primary: int
    backup: int
    to_backup: tuple[tuple, ...]
    to_primary: tuple[str, ...] = ()
    is_open: tuple[bool, bool] = (True, True)
    is_cut: bool = False


class Step(NamedTuple):
    """A step that waits for the acknowledgement of a frame: its update (-1: it only reads), what was confirmed when it
    began, and what it has seen.
    """

    frame: int
    update: int
    confirmed: Updates
    seen: Updates


class Process(NamedTuple):
    """A process. `link`: its connection, by number; `sent`, `heard`: frames of it, and acknowledgements; `asking`: the
    question that it waits with.
    """

    incarnation: int
    role: str
    right: bool = False
    link: int = -1
    sent: int = 0
    heard: int = 0
    waits: tuple[Step, ...] = ()
    is_filling: bool = False
    turn: int = 0
    asking: tuple[int, int] | None = None
    is_released: bool = False


class Ask(NamedTuple):
    """A message: let me be your backup."""

    sender: int
    sender_incarnation: int
    receiver: int
    turn: tuple[int, int]


class Order(NamedTuple):
    """A message of the supervisor: go on alone, in this term."""

    receiver: int
    term: int


class State(NamedTuple):
    folders: tuple[Folder, ...]
    processes: tuple[Process | None, ...]
    links: tuple[Link, ...]
    messages: frozenset[Ask | Order]
    confirmed: Updates
    lost: str
    next_term: int
    left: Limits


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
        if state.lost:
            events: list[str] = []
            before = came_from[state]
            while before is not None:
                events.append(before[1])
                before = came_from[before[0]]
            return len(came_from), Counterexample(state.lost, tuple(reversed(events)))
        for event, following in _moves(state, without):
            following = _tidy(following)
            if following not in came_from:
                came_from[following] = state, event
                waiting.append(following)
        if len(came_from) > limits.states:
            raise MemoryError(f"more than {limits.states} states; raise --states, or make the world smaller")
    return len(came_from), None


def _first(limits: Limits) -> State:
    """Place 0 is the primary, place 1 its backup in sync."""
    folder = Folder(frozenset(), (1,), PAIR, 0)
    return State(
        (folder, folder),
        (Process(1, PRIMARY, link=0), Process(1, BACKUP, right=True, link=0)),
        (Link(0, 1, ()),),
        frozenset(),
        frozenset(),
        "",
        2,
        limits,
    )


def _answered(state: State, place: int, step: Step) -> State:
    """The program has the answer of a step."""
    missing = step.confirmed - step.seen
    if missing:
        lost = ", ".join(map(str, sorted(missing)))
        return state._replace(lost=f"a step at place {place} does not see update {lost}, confirmed before it began")
    return state if step.update < 0 else state._replace(confirmed=state.confirmed | {step.update})


def _begun(state: State, place: int, step: Step, frame: tuple, without: str | None) -> State:
    """A step at a primary has run: it is answered at once, or waits for an acknowledgement."""
    process = state.processes[place]
    assert process is not None
    after = _sent(state, place, frame)
    if state.folders[place].mode == ALONE or (without == "acknowledged first" and step.update >= 0):
        return _answered(after, place, step)
    if process.link < 0:
        return after  # paused: the step fails, and is sent again
    process = after.processes[place]
    assert process is not None
    if without == "reads are acknowledged" and step.update < 0 and process.heard >= process.sent - 1:
        return _answered(state, place, step)
    waits = (*process.waits, step._replace(frame=process.sent))
    return _with_process(after, place, process._replace(waits=waits))


def _moves(state: State, without: str | None) -> Iterator[tuple[str, State]]:
    for place, process in enumerate(state.processes):
        if process is None:
            yield f"place {place} starts again", _started(state, place)
            continue
        yield from _of_primary(state, place, process, without)
        yield from _of_backup(state, place, process, without)
        if state.left.kills:
            left = state.left._replace(kills=state.left.kills - 1)
            yield f"place {place} is killed", _ended(state, place)._replace(left=left)
    for number, link in enumerate(state.links):
        yield from _of_link(state, number, link, without)
    for message in state.messages:
        if isinstance(message, Ask):
            yield from _asked(state, message, without)
        else:
            yield from _ordered(state, message, without)
    yield from _supervisor(state, without)


def _of_primary(state: State, place: int, process: Process, without: str | None) -> Iterator[tuple[str, State]]:
    if process.role != PRIMARY:
        return
    folder = state.folders[place]
    for update in range(state.left.updates):
        if update not in folder.log:
            log = folder.log | {update}
            after = _with_folder(state, place, folder._replace(log=log))
            step = Step(0, update, state.confirmed, log)
            yield f"place {place} makes update {update}", _begun(after, place, step, ("record", update), without)
        elif update not in state.confirmed and all(step.update != update for step in process.waits):
            step = Step(0, update, state.confirmed, folder.log)
            again = _begun(state, place, step, ("ping",), without)
            if again != state:
                yield f"place {place} gets update {update} again, and has its result", again
    if state.left.reads:
        step = Step(0, -1, state.confirmed, folder.log)
        after = state._replace(left=state.left._replace(reads=state.left.reads - 1))
        yield f"a step reads at place {place}", _begun(after, place, step, ("ping",), without)
    if process.is_filling and process.link >= 0:
        after = _with_process(state, place, process._replace(is_filling=False))
        if without != "mode first":
            after = _with_folder(after, place, folder._replace(mode=PAIR))
        yield f"place {place} has filled its backup", _sent(after, place, ("filled", folder.terms))
    is_paused = folder.mode == PAIR and process.link < 0
    other = state.processes[1 - place]
    later = state.folders[1 - place].terms[:-1]
    if is_paused and other is not None and other.role == PRIMARY and folder.terms[-1] in later:
        yield f"place {place} finds a later primary and starts anew", _started(_ended(state, place), place)
    if is_paused and without == "no time limit":
        yield f"place {place} goes on alone after a while", _alone(state, place)
    if folder.mode == PAIR and process.link >= 0 and state.left.revokes:
        after = state._replace(left=state.left._replace(revokes=state.left.revokes - 1))
        if without == "revoke is answered":
            yield f"place {place} revokes the right and goes on", _alone(_sent(after, place, ("revoke",)), place)
        else:
            yield f"place {place} revokes the right", _sent(after, place, ("revoke",))


def _of_backup(state: State, place: int, process: Process, without: str | None) -> Iterator[tuple[str, State]]:
    folder, other = state.folders[place], state.processes[1 - place]
    if process.role == BACKUP and process.right and state.left.orders:
        link = state.links[process.link]
        after = _led(state, place)._replace(left=state.left._replace(orders=state.left.orders - 1))
        if without != "one right":
            after = _with_link(after, process.link, link._replace(is_open=(link.is_open[0], False)))
        yield f"the supervisor promotes place {place}", after
    if process.role == PRIMARY or process.link >= 0:
        return
    if without == "right in memory" and folder.is_complete and folder.owner != place:
        yield f"place {place} begins a term with its folder alone", _led(state, place)
    if process.is_released or not state.left.asks or other is None:
        return
    if other.role == PRIMARY or _was_primary(state, 1 - place):
        turn = other.incarnation, other.turn
        asked = _with_process(state, place, process._replace(asking=turn))
        yield (
            f"place {place} asks place {1 - place}",
            asked._replace(
                messages=state.messages | {Ask(place, process.incarnation, 1 - place, turn)},
                left=state.left._replace(asks=state.left.asks - 1),
            ),
        )


def _was_primary(state: State, place: int) -> bool:
    process, folder = state.processes[place], state.folders[place]
    return process is not None and process.role == WAITS and (folder.mode, folder.owner) == (PAIR, place)


def _asked(state: State, ask: Ask, without: str | None) -> Iterator[tuple[str, State]]:
    """A question arrives. It stays in the network: it may arrive again, and late."""
    place = ask.receiver
    process, sender = state.processes[place], state.processes[ask.sender]
    if process is None or not (process.role == PRIMARY or _was_primary(state, place)):
        return
    if process.asking is not None:
        return
    if ask.turn != (process.incarnation, process.turn) and without != "turns":
        return
    folder, theirs = state.folders[place], state.folders[ask.sender]
    if theirs.is_complete and theirs.terms[-1] not in folder.terms:
        return
    is_here = (
        sender is not None and sender.incarnation == ask.sender_incarnation and sender.asking == ask.turn
        and sender.role == WAITS
    )  # fmt: skip
    after = _closed(state, place)
    if folder.mode == PAIR or without != "question begins a term":
        after = _alone(after, place)
    number = len(after.links)
    base = after.folders[place]._replace(is_complete=False)
    made = Link(place, ask.sender, (("base", base),), (), (True, is_here))
    after = after._replace(links=(*after.links, made))
    leads = after.processes[place]
    assert leads is not None
    after = _with_process(
        after, place, leads._replace(link=number, sent=1, heard=0, waits=(), is_filling=True, turn=process.turn + 1)
    )
    if is_here:
        assert sender is not None
        after = _with_process(after, ask.sender, sender._replace(role=BACKUP, link=number, asking=None, right=False))
    yield f"place {place} accepts place {ask.sender}, asked in turn {ask.turn}", after


def _of_link(state: State, number: int, link: Link, without: str | None) -> Iterator[tuple[str, State]]:
    if link.is_open[1]:
        if link.to_backup:
            yield from _frame(state, number, link)
        if link.is_cut or not link.is_open[0]:
            yield from _backup_sees_loss(state, number, link, without)
    if link.is_open[0]:
        if link.to_primary:
            yield from _answer(state, number, link)
        if link.is_cut or not link.is_open[1]:
            yield f"place {link.primary} sees that its backup is lost", _closed(state, link.primary)
    if all(link.is_open) and not link.is_cut and state.left.cuts:
        left = state.left._replace(cuts=state.left.cuts - 1)
        yield f"link {number} is cut", _with_link(state, number, link._replace(is_cut=True))._replace(left=left)


def _backup_sees_loss(state: State, number: int, link: Link, without: str | None) -> Iterator[tuple[str, State]]:
    place = link.backup
    process = state.processes[place]
    if process is None or process.link != number:
        return
    if process.right:
        after = _with_link(_led(state, place), number, link._replace(is_open=(link.is_open[0], False)))
        yield f"place {place} loses the primary and begins a term", after
    else:
        after = _with_link(state, number, link._replace(is_open=(link.is_open[0], False)))
        yield f"place {place} loses the primary", _with_process(after, place, process._replace(role=WAITS, link=-1))


def _frame(state: State, number: int, link: Link) -> Iterator[tuple[str, State]]:
    place = link.backup
    process, folder = state.processes[place], state.folders[place]
    if process is None or (process.link != number and process.role != PRIMARY):
        return
    (kind, *what), rest = link.to_backup[0], link.to_backup[1:]
    if process.role == PRIMARY:  # only without the rule "one right"
        left = link._replace(to_backup=rest, to_primary=(*link.to_primary, "acknowledged"))
        yield f"place {place} acknowledges a record of the old term", _with_link(state, number, left)
        return
    match kind:
        case "base":
            folder = what[0]
        case "record":
            folder = folder._replace(log=folder.log | {what[0]})
        case "filled":
            folder = folder._replace(mode=PAIR, is_complete=True)
            process = process._replace(right=True)
        case "revoke":
            process = process._replace(right=False, is_released=True)
    answer = "revoked" if kind == "revoke" else "acknowledged"
    left = link._replace(to_backup=rest, to_primary=(*link.to_primary, answer))
    after = _with_folder(_with_process(_with_link(state, number, left), place, process), place, folder)
    yield f"place {place} takes '{kind}'", after


def _answer(state: State, number: int, link: Link) -> Iterator[tuple[str, State]]:
    place = link.primary
    process = state.processes[place]
    if process is None or process.link != number:
        return
    answer = link.to_primary[0]
    after = _with_link(state, number, link._replace(to_primary=link.to_primary[1:]))
    if answer == "revoked":
        yield f"place {place} hears that the right is given back", _closed(_alone(after, place), place)
    else:
        heard = process.heard + 1
        after = _with_process(
            after,
            place,
            process._replace(heard=heard, waits=tuple(step for step in process.waits if step.frame > heard)),
        )
        for step in process.waits:
            if step.frame <= heard:
                after = _answered(after, place, step)
        yield f"place {place} hears an acknowledgement", after


def _supervisor(state: State, without: str | None) -> Iterator[tuple[str, State]]:
    """It has seen the exit of the other place's process, and orders a primary to go on alone."""
    if not state.left.orders:
        return
    for place, process in enumerate(state.processes):
        if process is None or state.processes[1 - place] is not None:
            continue
        is_later = state.folders[1 - place].terms[-1] not in state.folders[place].terms
        if is_later and without != "folder is read":
            continue
        if process.role == PRIMARY or _was_primary(state, place):
            order = Order(place, state.folders[place].terms[-1])
            left = state.left._replace(orders=state.left.orders - 1)
            yield f"the supervisor orders place {place} alone", state._replace(
                messages=state.messages | {order}, left=left
            )


def _ordered(state: State, order: Order, without: str | None) -> Iterator[tuple[str, State]]:
    place = order.receiver
    process, folder = state.processes[place], state.folders[place]
    if process is None or not (process.role == PRIMARY or _was_primary(state, place)):
        return
    if folder.mode == ALONE or (order.term != folder.terms[-1] and without != "orders name the term"):
        return
    yield f"place {place} obeys the order of term {order.term}", _closed(_alone(state, place), place)


# -- changes


def _started(state: State, place: int) -> State:
    folder = state.folders[place]
    role = PRIMARY if (folder.mode, folder.owner, folder.is_complete) == (ALONE, place, True) else WAITS
    incarnation = 1 + max(
        [1, *(each.turn[0] for each in state.messages if isinstance(each, Ask) and each.receiver == place)]
        + [each.sender_incarnation for each in state.messages if isinstance(each, Ask) and each.sender == place]
    )
    return _with_process(state, place, Process(incarnation, role))


def _ended(state: State, place: int) -> State:
    links = tuple(
        link._replace(is_open=(link.is_open[0] and link.primary != place, link.is_open[1] and link.backup != place))
        for link in state.links
    )
    return _with_process(state._replace(links=links), place, None)


def _closed(state: State, place: int) -> State:
    """The primary closes its connection."""
    process = state.processes[place]
    assert process is not None
    if process.link < 0:
        return state
    link = state.links[process.link]
    after = _with_link(state, process.link, link._replace(is_open=(False, link.is_open[1])))
    return _with_process(after, place, process._replace(link=-1, sent=0, heard=0, waits=(), is_filling=False))


def _alone(state: State, place: int) -> State:
    folder, process = state.folders[place], state.processes[place]
    assert process is not None
    folder = folder._replace(terms=(*folder.terms, state.next_term), mode=ALONE, owner=place)
    after = _with_process(state, place, process._replace(role=PRIMARY, asking=None))
    return _with_folder(after, place, folder)._replace(next_term=state.next_term + 1)


def _led(state: State, place: int) -> State:
    process = state.processes[place]
    assert process is not None
    led = process._replace(right=False, link=-1, asking=None)
    return _alone(_with_process(state, place, led), place)


def _sent(state: State, place: int, frame: tuple) -> State:
    """The primary sends a frame, if it has a backup."""
    process = state.processes[place]
    assert process is not None
    if process.link < 0:
        return state
    link = state.links[process.link]
    after = _with_link(state, process.link, link._replace(to_backup=(*link.to_backup, frame)))
    return _with_process(after, place, process._replace(sent=process.sent + 1))


def _with_process(state: State, place: int, process: Process | None) -> State:
    return state._replace(processes=_with(state.processes, place, process))


def _with_folder(state: State, place: int, folder: Folder) -> State:
    return state._replace(folders=_with(state.folders, place, folder))


def _with_link(state: State, number: int, link: Link) -> State:
    return state._replace(links=_with(state.links, number, link))


def _with(values: tuple, place: int, value: object) -> tuple:
    return (*values[:place], value, *values[place + 1 :])


def _tidy(state: State) -> State:
    """The same state without what nobody reads any more: frames to ends that are closed."""
    links = tuple(
        link._replace(
            to_backup=link.to_backup if link.is_open[1] else (),
            to_primary=link.to_primary if link.is_open[0] else (),
            is_cut=link.is_cut and any(link.is_open),
        )
        for link in state.links
    )
    return state._replace(links=links)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability.places_model", description=__doc__.split("\n")[0])
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
