"""The daemon's half of the talk with a keeper, wherever that is: requests, replies, events, over one connection after
another. Who makes the connections: local.py and remote.py. The lines themselves: keeper/.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

from dtfctl.errors import HostsUnusable, PortTaken
from dtfctl.launchers.base import Event, Exited, Launch, Listed, Started
from dtfctl.launchers.keeper import TOKEN_VARIABLE
from dtfctl.launchers.keeper.protocol import MESSAGES
from dtfctl.values.plan import LOCALHOST
from dtfctl.values.task import Exit
from dtfctl.wire.messages import Complaints, Shape, message
from dtfctl.wording import reason_of

Message = dict[str, Any]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

REPLIES = {
    "hold": "held",
    "sweep": "swept",
    "drain": "drained",
    "lease": "leased",
    "command": "checked",
    "file": "checked",
    "usage": "used",
}
"""What each request that has an id is answered with, or else with `refused`."""


class Refused(HostsUnusable):
    """A keeper or an agent that cannot do what it is asked; `words` say why."""

    def __init__(self, text: str, words: str) -> None:
        super().__init__(text)
        self.words = words


class KeeperClient:
    """Only the daemon's event loop touches it.

    `reach` makes a connection, however long that takes; `take` gets every message that is no reply. What is sent
    without a connection is lost, and nothing is lost by that: after the next listing the supervisor asks again.
    """

    def __init__(
        self,
        reach: Callable[[], Awaitable[Streams]],
        hello: Message,
        take: Callable[[Message], None],
        shapes: Mapping[str, Shape] = MESSAGES,
        host: str = LOCALHOST,
    ) -> None:
        self._reach = reach
        self._shapes = shapes
        self._host = host
        self._complaints = Complaints()
        self._hello = hello
        self._take = take
        self._replies: dict[int, asyncio.Future[Message]] = {}
        self._requests = 0
        self._writer: asyncio.StreamWriter | None = None
        self._is_ending = False
        self._listed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._converse())

    async def wait_until_listed(self) -> None:
        """Until the keeper has told all that it knows. Raises what `reach` raises."""
        assert self._running is not None
        listed = asyncio.create_task(self._listed.wait())
        await asyncio.wait({self._running, listed}, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            listed.cancel()
            self._running.result()

    @property
    def is_connected(self) -> bool:
        return self._listed.is_set()

    def send(self, request: Message) -> None:
        if self._writer is not None:
            self._writer.write(json.dumps(request).encode() + b"\n")

    async def ask(self, request: Message) -> Message:
        """The reply, from a later connection if need be. Raises Refused."""
        while True:
            await self._listed.wait()
            self._requests += 1
            number = self._requests
            reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            self._replies[number] = reply
            self.send({**request, "id": number})
            try:
                answer = await reply
            except ConnectionError:
                continue
            else:
                if answer["is"] != REPLIES[request["do"]]:
                    words = answer.get("error", f"its answer to {request['do']} is {answer['is']}")
                    raise Refused(f"{self._host}: {words}", words)
                return answer
            finally:
                del self._replies[number]

    async def hold_port(
        self,
        task: str,
        address: str,
        port: int,
        fixed: bool,
        within: tuple[int, int] | None,
        owner: Callable[[int], str] = lambda port: "",
    ) -> int:
        """See base.Launcher; `owner` says who has a port, as far as that is known."""
        request = {"do": "hold", "task": task, "address": address, "port": port, "fixed": fixed, "within": within}
        try:
            held: int = (await self.ask(request))["port"]
            return held
        except Refused as error:
            words = error.words
        if port:
            raise PortTaken(f"port {port} of {task}: {words}{owner(port)}")
        which = f"any port of {within[0]}-{within[1]}" if within else "a port"
        raise PortTaken(f"{which} of {task} at {address}: {words}")

    async def close(self, timeout_s: float) -> bool:
        """Tells the keeper to go, and waits for its end of the connection, which closes last of all. Returns whether
        the connection has ended after that; whether the keeper or the connection came to its end, the caller knows."""
        is_sent = self._writer is not None
        self.send({"do": "bye"})
        self._is_ending = True
        if self._running is None:
            return False
        if not is_sent:
            self._running.cancel()
        with contextlib.suppress(asyncio.TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(self._running, timeout_s)
            return is_sent
        return False

    async def cut(self) -> None:
        """Lets go of the connection; the keeper and its tasks go on."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
            self._listed.clear()

    async def _converse(self) -> None:
        while not self._is_ending:
            reader, writer = await self._reach()
            self._writer = writer
            self.send(self._hello)
            try:
                with contextlib.suppress(ConnectionError):
                    while (line := await reader.readline()).endswith(b"\n"):
                        self._receive_line(line)
            except ValueError:
                # What has no end cannot be read past; a new connection begins with a new line.
                self._complain("a line of it has no end")
            finally:
                self._writer = None
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
            self._listed.clear()
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(ConnectionError("the keeper ended"))

    def _receive_line(self, line: bytes) -> None:
        """A line that is no message changes nothing."""
        try:
            self._receive(message(line, "is", self._shapes))
        except (ValueError, OSError) as error:
            # BadMessage is a ValueError; and a disk that is full here must not end the talk either.
            self._complain(reason_of(error))

    def _complain(self, words: str) -> None:
        self._complaints.tell(f"invalid message from the keeper on {self._host}: {words}")

    def _receive(self, message: Message) -> None:
        if message["is"] == "misunderstood":
            self._complaints.tell(f"the keeper on {self._host} does not understand a request: {message['error']}")
            return
        if "id" in message:
            waiting = self._replies.get(message["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
            return
        if message["is"] == "listed":
            self._listed.set()
        self._take(message)


def start_request(launch: Launch, token: str) -> Message:
    return {
        "do": "start",
        "task": launch.task,
        "generation": launch.generation,
        "argv": launch.argv,
        "environment": {**launch.environment, TOKEN_VARIABLE: token},
        "working_dir": launch.working_dir,
        "log": launch.log,
        "address": None if launch.port is None else [launch.address, launch.port],
        "limits": {**asdict(launch.limits), "cpus": launch.cpus},
        "files": launch.files,
        "logs": [launch.logs.max_bytes, launch.logs.count],
    }


def signal_request(task: str, generation: int, number: int) -> Message:
    return {"do": "signal", "task": task, "generation": generation, "number": number}


def event_of(message: Message, host: str, ahead_s: float = 0.0) -> Event | None:
    """The keeper's message as an event of its host, whose monotonic clock is so far ahead of this machine's."""
    kind = message["is"]
    if kind == "listed":
        return Listed(frozenset((task, generation) for task, generation in message["known"]), host)
    if kind == "started":
        return Started(message["task"], message["generation"], message["pid"], message["at"] - ahead_s, host)
    if kind == "exited":
        words = message.get("error", ""), message.get("preempted", "")
        rest = bool(message.get("is_out_of_memory")), message.get("traceback", "")
        ended = Exit(message["at"] - ahead_s, message.get("code"), message.get("signal"), *words, *rest)
        return Exited(message["task"], message["generation"], ended, host)
    return None
