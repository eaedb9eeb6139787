"""The words by which a task says that its state outlives its process, in the description of its devices, and the
places at which such a task may be.

Owns the words. TensorFlow shows the description as it shows the model of a GPU.

    durability: process LINEAGE
    durability: host LINEAGE TERM,TERM,... HOST:PORT/PEER_PORT,...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dtf.wire import errors
from dtf.wire.cluster import split_address
from dtf.wire.device import task_name

__all__ = [
    "PLACES_VARIABLE", "KeptState", "Place", "described", "kept_state", "lineage_of", "parse_place", "parse_places",
    "places_of",
]  # fmt: skip

PLACES_VARIABLE = "DTF_DURABILITY_PLACES"
"""The places of the durable tasks of a cluster; see `parse_places`."""

_WORDS = "durability: "
_TASK = re.compile(r"(?:/job:)?(\w[\w.-]*)(?::|/task:)(\d+)$")


class KeptState(NamedTuple):
    """What a task says about its state: a random name, and the terms that it has passed through (level "host")."""

    lineage: str
    terms: tuple[str, ...] = ()

    def follows(self, earlier: KeptState) -> bool:
        """Whether this state goes on from `earlier`, or is the same."""
        return self.lineage == earlier.lineage and (not earlier.terms or earlier.terms[-1] in self.terms)


class Place(NamedTuple):
    """A process that may hold the state of a task: where it serves as the primary, and where other places reach it."""

    address: str
    peer_address: str

    def __str__(self) -> str:
        """As `parse_place` reads it."""
        return f"{self.address}/{self.peer_address.rpartition(':')[2]}"


def described(lineage: str, terms: Sequence[str] = (), places: Iterable[Place] = ()) -> str:
    """The description of the devices of a durable task: its state, and where its places are now."""
    if not terms:
        return f"{_WORDS}process {lineage}"
    return " ".join(filter(None, (f"{_WORDS}host", lineage, ",".join(terms), ",".join(map(str, places)))))


def kept_state(descriptions: Iterable[str]) -> KeptState | None:
    """The state of the task whose devices say this; None: it does not outlive its process."""
    for description in descriptions:
        if description.startswith(_WORDS):
            _, lineage, *terms = description[len(_WORDS) :].split(" ")
            return KeptState(lineage, tuple(terms[0].split(",")) if terms else ())
    return None


def places_of(descriptions: Iterable[str]) -> tuple[Place, ...]:
    """The places of the task whose devices say this; (): it says none, or they cannot be read."""
    for description in descriptions:
        if description.startswith(_WORDS):
            words = description[len(_WORDS) :].split(" ")
            try:
                return tuple(parse_place(each) for each in words[3].split(",")) if len(words) > 3 else ()
            except errors.OpError:
                return ()
    return ()


def lineage_of(descriptions: Iterable[str]) -> str:
    """The lineage of the state of the task whose devices say this; "": its state does not outlive its process."""
    found = kept_state(descriptions)
    return found.lineage if found is not None else ""


def parse_places(text: str) -> dict[str, tuple[Place, ...]]:
    """Places by task name: "ps:0=a:2222/2322,b:2222/2322;ps:1=...".

    Raises:
      InvalidArgumentError: the text is malformed; says which part.
    """
    found: dict[str, tuple[Place, ...]] = {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        task, _, listed = part.partition("=")
        match = _TASK.match(task.strip())
        try:
            places = tuple(parse_place(each.strip()) for each in listed.split(","))
        except errors.OpError:
            raise _malformed(part) from None
        if match is None or len(places) < 2:
            raise _malformed(part)
        name = task_name(match[1], int(match[2]))
        if name in found:
            raise errors.InvalidArgumentError.of(f"{PLACES_VARIABLE} names {task} twice.")
        found[name] = places
    addresses = [address for places in found.values() for place in places for address in place]
    for address in addresses:
        if addresses.count(address) > 1:
            raise errors.InvalidArgumentError.of(f"{PLACES_VARIABLE} uses the address {address} twice.")
    return found


def parse_place(text: str) -> Place:
    """The place that `str` gives. Raises InvalidArgumentError for another text."""
    address, _, port = text.rpartition("/")
    host, _ = split_address(address)
    if not port.isdecimal() or not port.isascii() or not 0 < int(port) < 1 << 16:
        raise errors.InvalidArgumentError.of(f"{text!r} is not of the form HOST:PORT/PEER_PORT")
    return Place(address, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _malformed(part: str) -> errors.OpError:
    return errors.InvalidArgumentError.of(
        f"{PLACES_VARIABLE} has {part!r}, which is not of the form TASK=HOST:PORT/PEER_PORT,HOST:PORT/PEER_PORT, such "
        "as ps:0=a:2222/2322,b:2222/2322."
    )
