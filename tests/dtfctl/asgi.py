"""Requests to an ASGI application without a server: what it answers, and the first lines of a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


def ask(
    application: Any,
    path: str,
    query: Mapping[str, Any] | None = None,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    lines: int | None = None,
) -> Answer:
    """Of a stream so many `lines`; then the client is gone."""
    given = {"host": "127.0.0.1:8000", **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": urlencode(query or {}, doseq=True).encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    answer = Answer()

    async def run() -> None:
        enough = asyncio.Event()
        requests = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if requests:
                return requests.pop(0)
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
                return
            answer.body += message.get("body", b"")
            if lines is not None and answer.body.count(b"\n") >= lines:
                enough.set()
                await asyncio.sleep(3600)  # until the application has seen that the client is gone

        asking = asyncio.ensure_future(application(scope, receive, send))
        waiting = asyncio.ensure_future(enough.wait())
        await asyncio.wait([asking, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=30)
        waiting.cancel()
        if not asking.done():
            asking.cancel()
        await asyncio.gather(asking, return_exceptions=enough.is_set())

    asyncio.run(run())
    return answer
