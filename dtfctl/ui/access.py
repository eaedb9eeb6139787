"""Who may ask the page's server, and the headers of each answer. An ASGI application around another one.

A request must name this machine as its Host (a page of another name that resolves to 127.0.0.1 is refused), come from
no other origin, and have the token. Only the page's own files, which hold nothing of a cluster, need no token.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

ASSETS = "/assets/"
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_OWN_SITES = ("same-origin", "none")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""No script but the page's own, no request to anywhere else, and no address (it has the token) in a Referer."""


class Guard:
    def __init__(self, application: Application, token: str) -> None:
        self._application = application
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._application(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        why = self.refusal(scope)
        if not why:
            await self._application(scope, receive, send_with_headers)
            return
        # A stranger's connection is not kept for another request.
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await send_with_headers({"type": "http.response.start", "status": 403, "headers": headers})
        await send_with_headers({"type": "http.response.body", "body": f"{why}\n".encode()})

    def refusal(self, scope: Scope) -> str:
        """Why a request is refused, "" when it is not."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name = raw_name.decode("latin-1").lower()
            if name in headers and name in ("host", "origin", "authorization"):
                return f"403: the header {name} is there twice"
            headers[name] = raw_value.decode("latin-1")
        host = headers.get("host", "")
        if not _HOST.fullmatch(host):
            return "403: the Host is not this machine; open the page as http://127.0.0.1:PORT"
        if headers.get("origin", f"http://{host}").lower() != f"http://{host}".lower():
            return "403: the request comes from another origin"
        is_opened = scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES and not is_opened:
            return "403: the request comes from another site"
        if scope["path"].startswith(ASSETS) and scope["method"] == "GET":
            return ""
        given = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not given:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            given = query.get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return "403: the token is missing or wrong; use the address that dtfctl ui has printed"
        return ""
