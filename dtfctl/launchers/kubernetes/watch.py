"""What changes in the pods of a run, from a version of their list on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator

from dtfctl.launchers.kubernetes.api import Api, ApiError
from dtfctl.launchers.kubernetes.logs import lines
from dtfctl.manifests.documents import Document

WATCH_S = 60
"""So long one watch lasts; the next begins at its last version. A silent network is noticed a little later."""

SHORT_S = 1.0
"""A watch that ends sooner is none: something between here and there has closed it."""

SILENCE_S = 75.0
LINE_BYTES_MAX = 16 << 20
"""Of one object: etcd keeps at most 1.5 MB."""


class Gone(Exception):
    """The watch was lost, or the server does not have that version any more: a new list is needed."""


async def events(api: Api, selector: str, version: str) -> AsyncIterator[tuple[str, Document]]:
    """(ADDED, MODIFIED or DELETED, the pod). Raises Gone."""
    while True:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        stop = threading.Event()
        thread = threading.Thread(
            target=_read, args=(api, selector, version, queue, asyncio.get_running_loop(), stop), daemon=True
        )
        thread.start()
        begun = time.monotonic()
        try:
            while (line := await queue.get()) is not None:
                if not line:
                    raise Gone
                kind, document = _event(line)
                if kind == "ERROR":
                    raise Gone
                metadata = document.get("metadata")
                found = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
                version = found if isinstance(found, str) else version
                if kind != "BOOKMARK":
                    yield kind, document
            if time.monotonic() - begun < SHORT_S:
                raise Gone
        finally:
            stop.set()


def _read(
    api: Api,
    selector: str,
    version: str,
    queue: asyncio.Queue[bytes | None],
    loop: asyncio.AbstractEventLoop,
    stop: threading.Event,
) -> None:
    """Lines into the queue; None behind the last one, an empty one where the watch was lost."""

    def put(line: bytes | None) -> None:
        with contextlib.suppress(RuntimeError):
            # The loop may have ended.
            loop.call_soon_threadsafe(queue.put_nowait, line)

    query: dict[str, str | int] = {
        "watch": "true",
        "labelSelector": selector,
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": WATCH_S,
    }
    try:
        with api.stream(api.path("pods"), query, SILENCE_S) as pieces:
            for line in lines(pieces, LINE_BYTES_MAX):
                if stop.is_set():
                    return
                if line.strip():
                    put(line)
        put(None)
    except (ApiError, ValueError):
        put(b"")


def _event(line: bytes) -> tuple[str, Document]:
    try:
        found = json.loads(line)
        kind, document = found["type"], found["object"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Gone from None
    if not isinstance(kind, str) or not isinstance(document, dict):
        raise Gone
    return kind, document
