"""The daemon's ear: a Unix socket in the state folder, one JSON document a line. The other end is control_client.py.

The folder is private to the user, and only his processes (and root's) are listened to. The requests (`do` names them),
what they carry and what they are answered with:

    up        plan, environment, secrets,      {is: started}; of a running cluster {is: running, differences, changes},
              hosts [, apply, id]              or with `apply`, which makes the changes, {is: changed, changes}
    down      why, grace_period_s (or null)    {is: stopping}
    restart   tasks, why [, id]                {is: done}: each gets a new process, whatever became of the present one
    stop      tasks, why [, id]                {is: done}: each is wanted down until start or restart
    start     tasks, why [, id]                {is: done}: each that has no process gets one
    scale     job, replicas, hosts             as up
              [, apply, id]
    usage                                      {is: used, tasks}: what each task on another machine takes there
    watch                                      a line whenever something has changed; what it is stands in the store,
                                               which both sides read

`hosts` is what was found on other machines that are new to the cluster, `tasks` are whole names (worker:1), `changes`
lines of text (changes.py). A request that is repeated under the same `id` is done once. With the answer the request is
on disk. Any may be answered with {error: words}, and all but down, usage and watch with {is: ending} once the cluster's
end is decided.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable

from dtfctl.control_client import Reply, Request
from dtfctl.ownership import stranger
from dtfctl.paths import ClusterPaths, socket_address

LINE_BYTES_MAX = 16 << 20
WATCH_INTERVAL_S = 0.02
"""A watcher is told of a burst of changes once."""


class ControlServer:
    """Serves requests with `answer`; lives in the daemon's event loop."""

    def __init__(self, paths: ClusterPaths, answer: Callable[[Request], Awaitable[Reply]]) -> None:
        self._paths = paths
        self._answer = answer
        self._changed = asyncio.Event()
        self._conversations: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None

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

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        with contextlib.suppress(FileNotFoundError):
            self._paths.control.unlink()
        for conversation in list(self._conversations):
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        assert conversation is not None
        self._conversations.add(conversation)
        try:
            other = stranger(writer.get_extra_info("socket"))
            if other:
                raise PermissionError(f"{other} may not command this cluster")
            await self._converse(reader, writer)
        except PermissionError as error:
            writer.write(json.dumps({"error": str(error)}).encode() + b"\n")
        except (ConnectionError, asyncio.CancelledError):
            pass
        except ValueError as error:
            writer.write(json.dumps({"error": f"not a request: {error}"}).encode() + b"\n")
        finally:
            self._conversations.discard(conversation)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            request = json.loads(line)
            if not isinstance(request, dict) or not isinstance(request.get("do"), str):
                raise ValueError('it must be an object with the key "do"')
            if request["do"] == "watch":
                await self._watch(writer)
            else:
                writer.write(json.dumps(await self._answer(request)).encode() + b"\n")
                await writer.drain()

    async def _watch(self, writer: asyncio.StreamWriter) -> None:
        while True:
            changed = self._changed
            writer.write(b"{}\n")
            await writer.drain()
            await changed.wait()
            await asyncio.sleep(WATCH_INTERVAL_S)
