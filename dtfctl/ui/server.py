"""The addresses of the page, and their serving at 127.0.0.1 or a Unix socket.

    /                 the page                             /assets/...       its files
    /api/clusters     all clusters of the state folder     /api/watch        one cluster, as it changes (a JSON a line)
    /api/logs         lines, and those that come           /api/tags, points, histogram, image     event files
    /api/lives, /api/parameters, traffic, gpus, trace       /api/act          POST: an action, or its plan

Everything that touches a disk or a supervisor runs in a thread; streams end with their connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import socket
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from dtfctl.control.cluster import Cluster, clusters
from dtfctl.errors import DtfctlError, StoreError, UnknownCluster
from dtfctl.show import view
from dtfctl.ui import actions, reading
from dtfctl.ui.access import Application, Guard
from dtfctl.ui.documents import Document
from dtfctl.ui.watching import Watching
from dtfctl.values.snapshot import take
from dtfctl.wire.messages import BadMessage
from dtfctl.wording import reason_and_file, reason_of

PAGE = Path(__file__).parent / "page"
THREADS = 32
BODY_BYTES_MAX = 1 << 20
LOG_POLL_S = 0.4
POINTS_MAX = 4_000
KEEP_ALIVE_S = 15.0
STEPS_MAX = 20
RUN_MAX = 1 << 31
HEAD_TIMEOUT_S = 10.0
"""A connection that has not asked for anything by then is closed: it may be a stranger's, who has no token."""
UNUSED_MAX = 100

Handler = Callable[[Request], Awaitable[Response]]
Tracer = Callable[[Cluster, int], Document]
"""Traces so many steps of a running cluster. Raises DtfctlError."""


class Page:
    """The handlers. `root` is the state folder, `chosen` the name of the cluster that is shown first, `tracer` gives
    the traces of `dtfctl trace`."""

    def __init__(self, root: Path, chosen: str = "", is_read_only: bool = False, tracer: Tracer | None = None) -> None:
        self._root = root
        self._chosen = chosen
        self._is_read_only = is_read_only
        self._tracer = tracer
        self._tracing = asyncio.Lock()
        self._watching = Watching()
        self._curves = reading.Curves()
        self._summaries: dict[str, tuple[object, Document]] = {}

    def application(self, token: str) -> Application:
        async def page(_: Request) -> Response:
            return FileResponse(PAGE / "index.html", media_type="text/html; charset=utf-8")

        routes = [
            Route("/", page),
            *(Route(f"/api/{name}", _guarded(handler)) for name, handler in self._handlers().items()),
            Route("/api/act", _guarded(self._act), methods=["POST"]),
            Mount("/assets", StaticFiles(directory=PAGE)),
        ]
        return Guard(Starlette(routes=routes), token)

    def close(self) -> None:
        self._watching.close()

    def _handlers(self) -> Mapping[str, Handler]:
        return {
            "clusters": self._list,
            "watch": self._watch,
            "tags": self._tags,
            "points": self._points,
            "histogram": self._histogram,
            "image": self._image,
            "logs": self._logs,
            "lives": self._lives,
            "parameters": self._parameters,
            "trace": self._trace,
            "traffic": self._traffic,
            "gpus": self._gpus,
        }

    def _cluster(self, request: Request) -> Cluster:
        """By name, one that is there: no name leads out of the state folder. Raises UnknownCluster."""
        name = request.query_params.get("cluster", "")
        return self._named(name)

    def _named(self, name: str) -> Cluster:
        for cluster in clusters(self._root):
            if cluster.name == name:
                return cluster
        raise UnknownCluster(f'no cluster is called "{name}"')

    async def _list(self, _: Request) -> Response:
        found = await asyncio.to_thread(self._summarize)
        return JSONResponse(
            {"clusters": found, "chosen": self._chosen, "isReadOnly": self._is_read_only, "now": time.time()}
        )

    def _summarize(self) -> list[Document]:
        """Running ones first, then the newest. One whose store was not written since is not read again."""
        found = []
        for cluster in clusters(self._root):
            key = _written_at(cluster)
            kept = self._summaries.get(cluster.name)
            if kept is None or kept[0] != key:
                kept = key, _summary(cluster)
                self._summaries[cluster.name] = kept
            found.append(kept[1])
        return sorted(found, key=lambda each: (each["isOver"], -each["startedAt"], each["name"]))

    async def _watch(self, request: Request) -> Response:
        cluster = self._cluster(request)

        async def lines() -> AsyncIterator[bytes]:
            changes = self._watching.changes(cluster)
            async for document in _kept_alive(changes):
                yield json.dumps({**document, "now": time.time()}, separators=(",", ":")).encode() + b"\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _tags(self, request: Request) -> Response:
        return await _in_thread(self._curves.tags, self._cluster(request))

    async def _points(self, request: Request) -> Response:
        first, last = _number(request, "first", -math.inf), _number(request, "last", math.inf)
        count = int(min(POINTS_MAX, max(10, _number(request, "count", 600))))
        tag = request.query_params.get("tag", "")
        return await _in_thread(self._curves.points, self._cluster(request), tag, first, last, count)

    async def _histogram(self, request: Request) -> Response:
        parameters = request.query_params
        names = parameters.get("run", ""), parameters.get("tag", "")
        return await _in_thread(self._curves.histogram, self._cluster(request), *names)

    async def _image(self, request: Request) -> Response:
        parameters = request.query_params
        number = int(_number(request, "number", -1))
        names = parameters.get("run", ""), parameters.get("tag", "")
        found = await asyncio.to_thread(self._curves.image, self._cluster(request), *names, number)
        if found is None:
            return JSONResponse({"error": "no such image"}, 404)
        data, about = found
        if parameters.get("known", "") == about["key"]:
            return Response(status_code=204)
        headers = {"x-image": json.dumps(about)}
        return Response(data, media_type=_image_type(data), headers=headers)

    async def _logs(self, request: Request) -> Response:
        parameters = request.query_params
        since = _number(request, "since", math.nan)
        until = _number(request, "until", math.nan)
        try:
            question = reading.log_question(
                parameters.getlist("task"),
                parameters.get("pattern", "")[:500],
                parameters.getlist("level"),
                None if math.isnan(since) else since,
                None if math.isnan(until) else until,
                int(min(RUN_MAX, max(0, _number(request, "run", 0)))),
            )
        except (re.error, ValueError) as error:
            return JSONResponse({"error": f"not a pattern or level: {reason_of(error)}"}, 400)
        follower = await asyncio.to_thread(reading.LogFollower, self._cluster(request), question)

        async def batches() -> AsyncIterator[Document]:
            yield {"lines": await asyncio.to_thread(follower.past), "isPast": True}
            is_over = follower.has_end
            while not is_over:
                lines, is_over = await asyncio.to_thread(follower.poll)
                if lines:
                    yield {"lines": lines, "isPast": False}
                if not is_over:
                    await asyncio.sleep(LOG_POLL_S)
            yield {"isOver": True}

        async def lines() -> AsyncIterator[bytes]:
            async for document in _kept_alive(batches()):
                yield json.dumps(document, separators=(",", ":")).encode() + b"\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _lives(self, request: Request) -> Response:
        return await _in_thread(reading.lives_of, self._cluster(request))

    async def _parameters(self, request: Request) -> Response:
        return await _in_thread(reading.parameters_of, self._cluster(request))

    async def _traffic(self, request: Request) -> Response:
        is_of_all = request.query_params.get("of", "") == "all"
        return await _in_thread(reading.traffic_of, self._cluster(request), is_of_all)

    async def _gpus(self, request: Request) -> Response:
        return await _in_thread(reading.gpus_of, self._cluster(request))

    async def _trace(self, request: Request) -> Response:
        """Traces some steps now; one trace at a time."""
        cluster = self._cluster(request)
        if self._tracer is None:
            return JSONResponse({"error": "this page cannot trace"}, 404)
        if self._tracing.locked():
            return JSONResponse({"error": "another trace is under way; try again"}, 409)
        steps = int(min(STEPS_MAX, max(1, _number(request, "steps", 3))))
        async with self._tracing:
            return await _in_thread(self._tracer, cluster, steps)

    async def _act(self, request: Request) -> Response:
        if self._is_read_only:
            return JSONResponse({"error": "this page is read-only (dtfctl ui --read-only)"}, 403)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"error": "the content type must be application/json"}, 415)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES_MAX:
                return JSONResponse({"error": f"the request is longer than {BODY_BYTES_MAX} bytes"}, 413)
        try:
            action = actions.action_of(body)
        except BadMessage as error:
            return JSONResponse({"error": f"not an action: {error}"}, 400)
        answer = await asyncio.to_thread(actions.perform, self._named(action.cluster), action)
        return JSONResponse(answer, 409 if "error" in answer else 200)


def _guarded(handler: Handler) -> Handler:
    """Operating errors become an answer in words."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except UnknownCluster as error:
            return JSONResponse({"error": str(error)}, 404)
        except DtfctlError as error:
            return JSONResponse({"error": str(error)}, 500)
        except OSError as error:
            return JSONResponse({"error": reason_and_file(error)}, 500)

    return answer


async def _in_thread(function: Callable[..., Any], *arguments: Any) -> Response:
    return JSONResponse(await asyncio.to_thread(function, *arguments))


async def _kept_alive(documents: AsyncIterator[Document]) -> AsyncIterator[Document]:
    """The same, with {} when nothing has come for a while: a connection that is gone is found by it."""
    following: asyncio.Future[Document] | None = None
    try:
        while True:
            if following is None:
                following = asyncio.ensure_future(_next(documents))
            done, _ = await asyncio.wait([following], timeout=KEEP_ALIVE_S)
            if not done:
                yield {}
                continue
            following = None
            try:
                document = done.pop().result()
            except _Ended:
                return
            except (DtfctlError, OSError) as error:
                yield {"error": str(error) if isinstance(error, DtfctlError) else reason_and_file(error)}
                return
            yield document
    finally:
        if following is not None:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError, _Ended, DtfctlError, OSError):
                await following
        close = getattr(documents, "aclose", None)
        if close is not None:
            await close()


async def _next(documents: AsyncIterator[Document]) -> Document:
    try:
        return await documents.__anext__()
    except StopAsyncIteration:
        raise _Ended from None


class _Ended(Exception):
    """A Future cannot hold StopAsyncIteration."""


def _summary(cluster: Cluster) -> Document:
    try:
        found = cluster.find()
    except StoreError as error:
        words = str(error).splitlines()[0]
        return {"name": cluster.name, "state": "damaged", "reason": words, "isOver": True, "startedAt": 0.0}
    if found is None:
        return {"name": cluster.name, "state": "waiting", "reason": "", "isOver": True, "startedAt": 0.0}
    snapshot = take(*found, time.monotonic(), time.time())
    return {
        **view.summary(snapshot),
        "name": cluster.name,
        "isOver": snapshot.is_over,
        "startedAt": snapshot.started_at,
        "runs": reading.runs_of(cluster),
    }


def _written_at(cluster: Cluster) -> object:
    found = []
    for suffix in ("", "-wal"):
        try:
            status = os.stat(f"{cluster.paths.store}{suffix}")
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)


def _number(request: Request, name: str, otherwise: float) -> float:
    text = request.query_params.get(name, "")
    try:
        number = float(text) if text else otherwise
    except ValueError:
        return otherwise
    return number if math.isfinite(number) else otherwise


def _image_type(data: bytes) -> str:
    """Only of known pictures: nothing of a file is ever served as a page or a script."""
    for begin, name in ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif")):
        if data.startswith(begin):
            return f"image/{name}"
    return "application/octet-stream"


# -- serving


class _Connection(H11Protocol):  # type: ignore[misc]  # uvicorn is an extra, of type Any without it
    """Is closed if no request comes in time, or when too many wait for theirs: the oldest of them first."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self._close_unused)
        _unused[self] = None
        while len(_unused) > UNUSED_MAX:
            next(iter(_unused))._close_unused()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None:
            _unused.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        _unused.pop(self, None)
        super().connection_lost(exc)

    def _close_unused(self) -> None:
        if self in _unused:
            del _unused[self]
            self.transport.abort()


_unused: dict[_Connection, None] = {}
"""The connections without a request so far, the oldest first. Touched only in the loop of the server."""


def listener(port: int, unix: Path | None) -> socket.socket:
    """A socket at 127.0.0.1 (`port` 0: a free one), or a Unix socket that only this user may open. Raises OSError."""
    if unix is None:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", port))
        except OSError as error:
            found.close()
            raise OSError(error.errno, f"port {port} of 127.0.0.1: {reason_of(error)}") from None
        return found
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(unix).st_mode):
            unix.unlink()
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        found.bind(str(unix))
    except OSError as error:
        found.close()
        raise OSError(error.errno, f"{unix}: {reason_of(error)}") from None
    finally:
        os.umask(before)
    return found


def serve(page: Page, token: str, bound: socket.socket, begun: Callable[[], None]) -> None:
    """Until Ctrl-C or SIGTERM. `begun` is called once requests are answered."""

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "page"))
        config = uvicorn.Config(
            page.application(token),
            http=_Connection,
            backlog=UNUSED_MAX,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
            server_header=False,
            date_header=False,
        )
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve([bound]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            begun()
        try:
            await serving
        finally:
            page.close()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
