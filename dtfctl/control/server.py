"""The daemon's control socket: a Unix socket in the state folder, one JSON document a line. client.py is the other end.

The folder is private to the user, and the daemon answers only processes of the user and of root. The requests (`do`
names them), their keys and their answers:

    up        plan, environment, secrets,      {is: started}; of a running cluster {is: running, differences, changes},
              hosts [, apply, id]              or with `apply`, which makes the changes, {is: changed, changes}
    down      why, grace_period_s (or null)    {is: stopping}
    restart   tasks, why [, id]                {is: done}: each gets a new process, whatever became of the present one
    stop      tasks, why [, id]                {is: done}: each is wanted down until start or restart
    start     tasks, why [, id]                {is: done}: each that has no process gets one
    scale     job, replicas, hosts             as up
              [, apply, id]
    move      tasks, without, hosts            as up: `tasks` has the new host of each, and the hosts `without` get no
              [, apply, id]                    tasks any more
    usage                                      {is: used, tasks, runs}: what each task on another machine takes there,
                                               and [steps run, when] of each task that says so
    watch                                      a line whenever something has changed; what it is stands in the store,
                                               which both sides read

`hosts` is what was found on other machines that are new to the cluster, `tasks` are whole names (worker:1), `changes`
lines of text (plan/diff.py). A request that is repeated under the same `id` is done once. With the answer the request
is on disk. Any may be answered with {error: words}, and all but down, usage and watch with {is: ending} once the
cluster's end is decided.

The shape of each request is declared in protocol.py. What does not have it is answered with {error: "not a
request: ..."} and one line in the log, and changes nothing. The connection goes on; only a line that is too long
ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import traceback
from collections.abc import Awaitable, Callable

from dtfctl.control.client import Reply, Request
from dtfctl.control.protocol import REQUESTS
from dtfctl.control.verbs import Verb
from dtfctl.errors import DtfctlError
from dtfctl.storage.ownership import stranger
from dtfctl.storage.paths import ClusterPaths, socket_address
from dtfctl.wire.messages import BadMessage, Complaints, message
from dtfctl.wording import reason_of

LINE_BYTES_MAX = 16 << 20
WATCH_INTERVAL_S = 0.02
"""A watcher gets one notification for a burst of changes."""


class ControlServer:
    """Serves requests with `answer`; lives in the daemon's event loop."""

    def __init__(self, paths: ClusterPaths, answer: Callable[[Request], Awaitable[Reply]]) -> None:
        self._paths = paths
        self._answer = answer
        self._changed = asyncio.Event()
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None
        self._complaints = Complaints()

    async def start(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._paths.control.unlink()
        with socket_address(self._paths.control) as address:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(address)
        os.chmod(self._paths.control, 0o600)
        self._server = await asyncio.start_unix_server(self._accept, sock=listener, limit=LINE_BYTES_MAX)

    def publish(self) -> None:
        """Something has changed in the store."""
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def is_in_use(self) -> bool:
        """Whether anybody is connected."""
        return bool(self._clients)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        with contextlib.suppress(FileNotFoundError):
            self._paths.control.unlink()
        for client in list(self._clients):
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.current_task()
        assert client is not None
        self._clients.add(client)
        try:
            other = stranger(writer.get_extra_info("socket"))
            if other:
                _write(writer, {"error": f"{other} may not command this cluster"})
            else:
                await self._converse(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._clients.discard(client)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                self._refuse(writer, f"it is longer than {LINE_BYTES_MAX} bytes")
                return
            if not line.endswith(b"\n"):
                # The end; half a request, of a client that was killed, does not count.
                if line:
                    self._refuse(writer, "its line has no end")
                return
            try:
                request = message(line, "do", REQUESTS)
                if request["do"] == Verb.WATCH:
                    await self._watch(writer)
                _write(writer, await self._answer(request))
            except BadMessage as error:
                self._refuse(writer, str(error))
            except ConnectionError:
                raise
            except DtfctlError as error:
                _write(writer, {"error": str(error)})
            except Exception as error:
                # The caller gets an error, instead of asking for ever.
                self._complaints.tell(f"control: {traceback.format_exc()}")
                words = f"this is a bug in dtfctl: {type(error).__name__}: {reason_of(error)}"
                _write(writer, {"error": f"{words} (the supervisor's log has more)"})
            await writer.drain()

    def _refuse(self, writer: asyncio.StreamWriter, words: str) -> None:
        self._complaints.tell(f"control: a request was refused: {words}")
        _write(writer, {"error": f"not a request: {words}"})

    async def _watch(self, writer: asyncio.StreamWriter) -> None:
        while True:
            changed = self._changed
            writer.write(b"{}\n")
            await writer.drain()
            await changed.wait()
            await asyncio.sleep(WATCH_INTERVAL_S)


def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    writer.write(json.dumps(reply).encode() + b"\n")
