"""PlaceOfTask: the process of one place of a durable task: is it the primary, a backup, or does it wait?

Owns the role, the peer port, and the search for a primary. Terms and modes are in the folder (`replicated_resources`),
which says what outlives the process. The rules are in runtime/durability.md, and why two places never both confirm.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dtf.places import lines, link
from dtf.places.address_book import AddressBook
from dtf.places.frames import Reader, set_silence
from dtf.places.lines import Line
from dtf.places.link import Link
from dtf.places.standby import Standby
from dtf.run.durability.replicated_resources import ALONE, PAIR, ReplicatedResources
from dtf.wire import errors, forks
from dtf.wire.cluster import split_address
from dtf.wire.credentials import Credentials
from dtf.wire.durability import KeptState, Place, parse_place

__all__ = ["PlaceOfTask"]

EMPTY, WAITING, BACKUP, PRIMARY = "empty", "waiting", "backup", "primary"
_SEARCH_PAUSE_S_MIN, _SEARCH_PAUSE_S_MAX = 0.02, 0.3
_ANSWER_S = 5.0
_REVOKE_S = 10.0
_STRANGERS_MAX = 64
_TERMS_SHOWN = 16
_ADDRESS_CHARACTERS_MAX = 300
_NOTICE_S = 2.0
"""Clients ask the primary once a second (`rpc.roaming`) and so know the address before a process there may serve."""


class PlaceOfTask:
    """One process of a task. The lock guards the role and what belongs to it, and is held while orders are carried out;
    a transaction's lock may be taken under it, never the other way round.
    """

    def __init__(
        self,
        task: str,
        places: Sequence[Place],
        resources: ReplicatedResources,
        silence_s: float,
        credentials: Credentials | None = None,
        bound: str = "",
        leave: Callable[[], None] | None = None,
        notice_s: float = _NOTICE_S,
    ) -> None:
        """Listens at the peer port, and looks for the other places.

        Args:
          task: the full name.
          places: all of the task, as they were when its program was started; `resources.place` is this one.
          silence_s: after how long a connection without a byte is lost.
          bound: the host to listen at, where it is another than that of the place's address.
          notice_s: how long a backup at an address that is new to this place waits for its right.
          leave: called when another place is the primary of a later term; None: the program is started anew.

        Raises:
          UnknownError: the peer port is in use, or the address is another machine's.
        """
        self.task = task
        self.resources = resources
        self._own = places[resources.place]
        self._book = AddressBook(resources.journal.folder, resources.place, places)
        resources.places = self._book.all()
        self._silence_s = silence_s
        self._notice_s = notice_s
        self._credentials = credentials
        self._leave = leave or _start_anew
        self._lock = threading.RLock()
        self._is_primary = threading.Event()
        self._closed = threading.Event()
        self._link: Link | None = None
        self._standby: Standby | None = None
        self._failure: errors.OpError | None = None
        self._incarnation = secrets.token_hex(8)
        self._turn = 0
        self._is_released = False
        self._is_asking = False
        self._reason = ""
        self._role = EMPTY if resources.is_empty else WAITING
        self._listening = _listen(self._own.peer_address, bound, task)
        _places.add(self)
        self._strangers = threading.Semaphore(_STRANGERS_MAX)
        if resources.mode == ALONE and resources.primary == resources.place:
            resources.serve_again()
            self._be_primary()
        for name, run in (("peers", self._accept), ("search", self._search)):
            threading.Thread(target=run, name=f"dtf-places-{name}", daemon=True).start()

    def wait(self, period_s: float | None = None) -> bool:
        """Waits until this process is the primary; at most `period_s`. Whether it is.

        Raises:
          OpError: it cannot be, because its folder cannot be used.
        """
        self._is_primary.wait(period_s)
        if self._failure is not None:
            raise self._failure
        return self._is_primary.is_set()

    def close(self) -> None:
        """Frees the port. The other place sees that the connection is lost."""
        self._closed.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in (self._link, self._standby):
            if isinstance(each, Link):
                each.close("this process ends")
            elif each is not None:
                each.close()

    def leave_to_parent(self) -> None:
        """In a forked process: closes its copies of the sockets, so that the parent's end is seen by other places."""
        self._listening.close()
        for each in (self._link, self._standby):
            if each is not None:
                each.close_socket()

    def state(self) -> dict[str, object]:
        """What `python -m dtf.places state` prints."""
        resources, found, standby = self.resources, self._link, self._standby
        role = self._role
        is_paused = role == PRIMARY and resources.is_paused
        backup: dict[str, object] | None = None
        if role == PRIMARY:
            backup = {
                "place": found.place if found is not None else resources.backup,
                "state": found.state if found is not None else (link.LOST if resources.mode == PAIR else "none"),
                "bytes_left": found.bytes_left if found is not None else 0,
                "lag": found.lag if found is not None else 0,
            }
        return {
            "task": self.task,
            "place": resources.place,
            "address": self._own.address,
            "peer_address": self._own.peer_address,
            "pid": os.getpid(),
            "role": role,
            "mode": resources.mode if role == PRIMARY else "",
            "is_paused": is_paused,
            "has_right": standby is not None and standby.has_right,
            "is_complete": not resources.is_empty and not resources.is_filling,
            "lineage": resources.lineage,
            "term": resources.term,
            "terms": resources.terms[-_TERMS_SHOWN:],
            "backup": backup,
            "bytes": resources.bytes_in_blocks,
            "reason": self._reason or ("the backup is lost" if is_paused else ""),
            "places": [str(each) for each in self._book.all()],
            "may_lead": role == PRIMARY or self._is_former_primary() or (role == EMPTY and resources.place == 0),
            "incarnation": self._incarnation,
            "turn": self._turn,
        }

    # -- the role

    def _be_primary(self) -> None:
        self._role, self._standby, self._reason = PRIMARY, None, ""
        self._is_primary.set()

    def _lead(self, why: str) -> None:
        """Begins the next term, alone. The lock is held."""
        self.resources.lead()
        self._be_primary()
        _logger.warning(
            "%s: place %d at %s is the primary of term %s: %s",
            self.task, self.resources.place, self._own.address, self.resources.terms[-1], why,
        )  # fmt: skip

    def _go_on_alone(self, why: str) -> None:
        """The primary, or the one that was it before its process started, goes on in a new term. The lock is held."""
        if self._role == WAITING:
            self.resources.serve_again()
        self.resources.begin_term()
        self._be_primary()
        _logger.warning("%s: place %d goes on alone in term %s: %s", self.task, self.resources.place,
                        self.resources.terms[-1], why)  # fmt: skip

    def _is_former_primary(self) -> bool:
        resources = self.resources
        return self._role == WAITING and resources.mode == PAIR and resources.primary == resources.place

    # -- questions and orders

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                sock, _ = self._listening.accept()
            except OSError:
                if self._closed.wait(_SEARCH_PAUSE_S_MIN):
                    return
                continue
            if not self._strangers.acquire(blocking=False):
                sock.close()
                continue
            threading.Thread(target=self._serve, args=(sock,), name="dtf-places-peer", daemon=True).start()

    def _serve(self, sock: Any) -> None:
        """Answers the questions of one connection."""
        is_taken = False
        try:
            sock.settimeout(_ANSWER_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._credentials is not None:
                from dtf.channel.tls import TlsSocket

                sock = TlsSocket(sock, self._credentials.server_context)
            reader = Reader(sock)
            while not is_taken:
                question = lines.parsed(reader.line(lines.LINE_BYTES_MAX))
                if question.get("ask") == "follow":
                    answer, made = self._follower(question, sock)
                    is_taken = made is not None
                    try:
                        sock.sendall(lines.encoded(answer))
                    except OSError as error:
                        if made is not None:
                            made.close(f"it has gone: {error.strerror or error}")
                            sock.close()
                        raise
                    if made is not None:
                        made.start()
                    continue
                sock.sendall(lines.encoded(self._answer(question)))
        except (EOFError, OSError, ValueError):  # it has gone, or is another program
            pass
        finally:
            self._strangers.release()
            if not is_taken:
                sock.close()

    def _answer(self, question: dict[str, Any]) -> dict[str, object]:
        try:
            if question.get("dtf") != lines.VERSION:
                raise errors.UnimplementedError.of(f"this process speaks version {lines.VERSION} of the questions")
            asked, is_fenced, term = question.get("ask"), question.get("fenced") is True, question.get("term")
            with self._lock:
                if term is not None and term != self.resources.term:
                    raise errors.FailedPreconditionError.of(
                        f"the place is in term {self.resources.term}, not {term}; look at its state again"
                    )
                other_term = question.get("other_term")
                if asked == "alone" and other_term is not None and other_term not in self.resources.terms:
                    raise errors.FailedPreconditionError.of(
                        f"the other place went on in term {other_term}, which this one has not seen; start it again"
                    )
                if self._is_asking and asked != "state":
                    raise errors.UnavailableError.of("it asks another place at this moment; try again")
                standby = None
                if asked == "promote":
                    standby = self._promote(is_fenced)
                elif asked == "alone":
                    self._order_alone(is_fenced)
                elif asked != "state":
                    raise errors.InvalidArgumentError.of(f"{asked!r} is not one of state, promote, alone, follow")
            if standby is not None:
                standby.close()  # its thread begins the term when it has read to the end
                if not self._is_primary.wait(_ANSWER_S):
                    raise errors.UnavailableError.of("it has not begun the next term; look at its state again")
        except errors.OpError as error:
            return {"ok": False, "error": f"{self.task}, place {self.resources.place}: {error.message}",
                    "state": self.state()}  # fmt: skip
        return {"ok": True, "state": self.state()}

    def _promote(self, is_fenced: bool) -> Standby | None:
        """Leads, or gives the connection whose end lets this place lead."""
        if self._role == PRIMARY:
            raise errors.FailedPreconditionError.of("it is the primary already")
        standby = self._standby
        if standby is not None and standby.has_right:
            return standby
        if self._role != WAITING or self.resources.is_filling:
            raise errors.FailedPreconditionError.of(
                "its filling is not over; wait for that" if self._role == BACKUP else "it has no complete state"
            )
        if not is_fenced:
            raise errors.FailedPreconditionError.of(
                "its process does not hold the right, so another place may have gone on; give --fenced if you know "
                "that no other process has served since"
            )
        self._lead("by order")
        return None

    def _order_alone(self, is_fenced: bool) -> None:
        found = self._link
        if self._role == PRIMARY and self.resources.mode == ALONE:
            if found is not None:
                found.close("by order")
            return
        if self._role == PRIMARY and found is not None and found.state == link.IN_SYNC and not is_fenced:
            self._link = None
            if not found.revoke(_REVOKE_S):
                self._link = found if found.state != link.LOST else None
                raise errors.UnavailableError.of("the backup did not give its right back; give --fenced if it is dead")
            self._go_on_alone("by order; the backup has given its right back")
            found.close("by order")
            return
        if self._role == BACKUP:
            raise errors.FailedPreconditionError.of("it is the backup; promote it")
        if not is_fenced:
            raise errors.FailedPreconditionError.of(
                "the other place is not connected; give --fenced if you know that its process is dead or cut off "
                "from all clients"
            )
        if self._role == EMPTY:
            self._lead("by order, with a new state")
        elif self._role == PRIMARY or self._is_former_primary():
            self._go_on_alone("by order")
            if found is not None:
                found.close("by order")
        else:
            raise errors.FailedPreconditionError.of("it was the backup; promote it")

    # -- a backup asks

    def _follower(self, question: dict[str, Any], sock: Any) -> tuple[dict[str, object], Link | None]:
        """The answer to a place that wants to be the backup, and the link to it."""
        try:
            place, at = int(question["place"]), _said_place(question)
            kept = KeptState(str(question["lineage"]), tuple(str(each) for each in question["terms"]))
            turn = question["incarnation"], question["turn"]
            if question.get("task") != self.task or place == self.resources.place or not self._book.has(place):
                raise errors.InvalidArgumentError.of(f"this is {self.task}, place {self.resources.place}")
        except (KeyError, TypeError, ValueError):
            return {"ok": False, "error": "a malformed question", "state": self.state()}, None
        except errors.OpError as error:
            return {"ok": False, "error": error.message, "state": self.state()}, None
        with self._lock:
            refusal = self._why_not(place, kept, turn)
            if refusal:
                return {"ok": False, "error": refusal, "state": self.state()}, None
            self._turn += 1
            is_new = self._found(place, at)
            former, self._link = self._link, None
            if former is not None:
                former.close("its process has connected again")
            if self._role == EMPTY:
                self._lead("both places are empty")
            else:
                self._go_on_alone(f"place {place} is here, and is filled")
            notice_s = self._notice_s if is_new else 0.0
            made = self._link = Link(
                sock, place, self.resources, self._silence_s, self._link_lost, self._given_back, notice_s
            )
            return {"ok": True, "state": self.state()}, made

    def _why_not(self, place: int, kept: KeptState, turn: tuple[object, object]) -> str:
        """Why a place cannot be the backup now; "": it can. A place that asks holds no right."""
        resources = self.resources
        if self._is_asking:
            return "this place asks another one"
        if turn != (self._incarnation, self._turn):
            return "the question is old"
        if self._role == EMPTY:
            is_first = resources.place == 0 and place == 1 and not kept.lineage
            return "" if is_first else "this place is empty"
        if self._role != PRIMARY and not self._is_former_primary():
            return "this place is not the primary"
        if kept.lineage and not resources.kept.follows(kept):
            if kept.follows(resources.kept):
                return "the state of that place is later"
            return f"its state is another branch ({kept.lineage} {kept.terms[-1:]}); remove its folder to discard it"
        if resources.mode == PAIR and place != resources.backup:
            return f"the backup is place {resources.backup}"
        found = self._link
        if found is not None and found.state != link.LOST and found.place != place:
            return f"place {found.place} is the backup"
        return ""

    def _link_lost(self, lost: Link, reason: str) -> None:
        if self._closed.is_set() or self._link is not lost:
            return
        self._reason = f"the backup, place {lost.place}, is lost: {reason}"
        if self.resources.is_paused:
            _logger.warning("%s is paused: %s", self.task, self._reason)
        else:
            _logger.warning("%s: %s", self.task, self._reason)

    def _given_back(self, link: Link) -> None:
        """The backup has given its right back by itself, as with full memory: nobody else may begin a term."""
        words = f"the backup, place {link.place}, cannot take its records, and has given its right back"
        with self._lock:
            is_mine = self._link is link and self._role == PRIMARY and not self._closed.is_set()
            if is_mine:
                self._link = None
                if self.resources.mode == PAIR:
                    self._go_on_alone(words)
                self._reason = words
        link.close(words)

    # -- the search for a primary

    def _search(self) -> None:
        pause_s = _SEARCH_PAUSE_S_MIN
        while not self._closed.is_set():
            try:
                is_here = self._search_once()
            except errors.OpError as error:
                _logger.error("%s, place %d: %s", self.task, self.resources.place, error.message)
                with self._lock:
                    if self._role != PRIMARY:
                        self._failure = error
                        self._is_primary.set()
                return
            pause_s = _SEARCH_PAUSE_S_MIN if is_here else min(2 * pause_s, _SEARCH_PAUSE_S_MAX)
            self._closed.wait(pause_s)

    def _search_once(self) -> bool:
        """One look at the other places. Whether it came to anything."""
        for number, other in self._book.others():
            if self._is_released:
                continue
            if self._role == PRIMARY and not self.resources.is_paused:
                return True
            try:
                line = Line(other.peer_address, min(self._silence_s, _ANSWER_S), self._credentials)
            except errors.OpError as error:
                self._waits(error.message)
                continue
            try:
                if self._meet(line, number, other):
                    return True
            except (errors.UnavailableError, errors.DataLossError) as error:
                self._waits(error.message)
            finally:
                line.close()
        return False

    def _meet(self, line: Line, number: int, other: Place) -> bool:
        state = line.ask({"ask": "state"}).get("state") or {}
        theirs = KeptState(str(state.get("lineage", "")), tuple(state.get("terms", ())))
        own = self.resources.kept
        if self._role == PRIMARY:
            if state.get("role") == PRIMARY and theirs.terms[-1:] != own.terms[-1:] and theirs.follows(own):
                self._superseded(theirs)
            return False
        if not state.get("may_lead"):
            self._waits(f"{line.address} is not the primary: it is {state.get('role')}")
            return False
        with self._lock:
            if self._role == PRIMARY:
                return True
            self._is_asking = True
        try:
            answer = line.ask(
                {
                    "ask": "follow",
                    "task": self.task,
                    "place": self.resources.place,
                    "lineage": own.lineage,
                    "terms": own.terms,
                    "at": str(self._own),
                    "incarnation": state.get("incarnation"),
                    "turn": state.get("turn"),
                }
            )
            if not answer.get("ok"):
                self._waits(f"{line.address}: {answer.get('error')}")
                return False
            set_silence(line.socket, self._silence_s)
            standby = self._standby = Standby(line.socket, line.reader, self.resources)
            self._role, self._reason = BACKUP, ""
            self._found(number, other)
        finally:
            self._is_asking = False
        _logger.info("%s: place %d is the backup of %s", self.task, self.resources.place, line.address)
        try:
            why = standby.run()
        finally:
            with self._lock:
                if self._role == BACKUP and not standby.has_right:
                    self._standby = None
                    self._role = EMPTY if self.resources.is_empty or self.resources.is_filling else WAITING
        with self._lock:
            if self._closed.is_set() or self._role == PRIMARY:
                return True
            if standby.is_revoked:
                self._is_released = True
                self._waits("the primary goes on without this backup; start this process again to be one")
            elif standby.has_right:
                self._lead(why)
            else:
                self._waits(why)
        return True

    def _found(self, number: int, at: Place | None) -> bool:
        """Another place was met there. Whether that address is new. The lock is held, or this place is about to be the
        backup.
        """
        if at is None or not self._book.note(number, at):
            return False
        self.resources.places = self._book.all()
        _logger.info("%s: place %d is at %s now", self.task, number, at.address)
        return True

    def _waits(self, reason: str) -> None:
        if self._role != PRIMARY:
            self._reason = reason

    def _superseded(self, theirs: KeptState) -> None:
        _logger.warning(
            "%s: another place is the primary of term %s; this process starts anew as its backup",
            self.task, theirs.terms[-1],
        )  # fmt: skip
        self._leave()


def _said_place(question: dict[str, Any]) -> Place | None:
    """Where the place is that asks; None: it does not say it. Raises ValueError."""
    said = question.get("at")
    if said is None:
        return None
    try:
        return parse_place(str(said)[:_ADDRESS_CHARACTERS_MAX])
    except errors.OpError as error:
        raise ValueError(error.message) from None


def _close_in_child() -> None:
    for each in list(_places):
        each.leave_to_parent()


def _listen(address: str, bound: str, task: str) -> socket.socket:
    host, port = split_address(address)
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(bound or host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deadline = time.monotonic() + _ANSWER_S
        while True:
            try:
                listening.bind(where)
                break
            except OSError:
                if time.monotonic() > deadline:
                    listening.close()
                    raise
                time.sleep(_SEARCH_PAUSE_S_MIN)
        listening.listen(_STRANGERS_MAX)
        return listening
    except OSError as error:
        raise errors.UnknownError.of(
            f"{task} cannot listen for its other places at {address}: {error.strerror or error}"
        ) from None


def _start_anew() -> None:
    """Starts the program of this process from its beginning."""
    if forks.generation():
        os._exit(os.EX_TEMPFAIL)  # the program of this process is its parent's
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


_places: weakref.WeakSet[PlaceOfTask] = weakref.WeakSet()
forks.in_child(_close_in_child)

_logger = logging.getLogger("dtf")
