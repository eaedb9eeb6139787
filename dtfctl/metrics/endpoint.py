"""The address at which a supervisor gives its figures: HTTP, one path, nothing but GET.

An address of this machine only answers no request for another name: a page in the user's browser, whose name resolves
to 127.0.0.1, gets nothing.

Owns the listening socket and its readers, each bounded in time, size and number. What is given is made anew for each
reader, but not more often than each `FRESH_S`. Lives in the daemon's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import time
from collections.abc import Awaitable, Callable

from dtfctl.errors import DtfctlError
from dtfctl.metrics.families import exposition
from dtfctl.values.snapshot import Snapshot
from dtfctl.wire.messages import Complaints
from dtfctl.wording import reason_of

PATH = "/metrics"
READERS_MAX = 16
REQUEST_BYTES_MAX = 16 << 10
REQUEST_TIMEOUT_S = 5.0
REFUSED_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 30.0
FRESH_S = 0.5


class MetricsAddressTaken(DtfctlError):
    """The address of `metrics` cannot be listened at; why."""


class MetricsEndpoint:
    """`look` makes a Snapshot with all that is known."""

    def __init__(self, look: Callable[[], Awaitable[Snapshot]]) -> None:
        self.address = ""
        self._look = look
        self._server: asyncio.AbstractServer | None = None
        self._readers: set[asyncio.Task[None]] = set()
        self._complaints = Complaints()
        self._found: tuple[float, Snapshot] | None = None
        self._looking = asyncio.Lock()

    async def follow(self, address: str) -> None:
        """Listens at `address` (host:port) from now on, or at none ("").

        Raises:
          MetricsAddressTaken: it cannot be listened at; the endpoint is closed then.
        """
        if address == self.address:
            return
        await self.close()
        if not address:
            return
        host, _, port = address.rpartition(":")
        try:
            self._server = await asyncio.start_server(self._accept, host, int(port), limit=REQUEST_BYTES_MAX)
        except (OSError, OverflowError) as error:
            reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else reason_of(error)
            if isinstance(error, OSError) and "address already in use" in str(error):
                reason = "the port is used by another program"
            raise MetricsAddressTaken(f"metrics: cannot listen at {address}: {reason}; choose another") from None
        self.address = address

    async def close(self) -> None:
        server, self._server, self.address = self._server, None, ""
        if server is not None:
            server.close()
        for reader in list(self._readers):
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._readers.add(task)
        try:
            if len(self._readers) > READERS_MAX:
                # An answer to a request that was not read is lost.
                with contextlib.suppress(asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                    await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REFUSED_TIMEOUT_S)
                _write(writer, "503 Service Unavailable", f"more than {READERS_MAX} readers at once\n".encode())
            else:
                await self._converse(reader, writer)
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), ANSWER_TIMEOUT_S)
        except (ConnectionError, asyncio.TimeoutError, asyncio.CancelledError):
            # What a reader has not taken by now it does not take: closing would wait for it.
            writer.transport.abort()
        finally:
            self._readers.discard(task)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_TIMEOUT_S)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            _write(writer, "400 Bad Request", b"not a request\n")
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            _write(writer, "400 Bad Request", b"not a request\n")
            return
        method, target = words[0], words[1].partition("?")[0]
        if method not in ("GET", "HEAD"):
            _write(writer, "405 Method Not Allowed", b"GET only\n", "Allow: GET, HEAD\r\n")
        elif not self._is_meant(_header(lines, "host")):
            _write(writer, "403 Forbidden", f"the Host is not this machine: use http://{self.address}{PATH}\n".encode())
        elif target != PATH:
            _write(writer, "404 Not Found", f"the figures are at {PATH}\n".encode())
        else:
            await self._give(writer, _header(lines, "accept"), is_head=method == "HEAD")

    def _is_meant(self, host: str) -> bool:
        """Whether the Host of a request fits to the address. Programs that send none are no browsers."""
        own = self.address.rpartition(":")[0]
        return not host or not _is_loopback(own) or _is_number_or_localhost(host)

    async def _give(self, writer: asyncio.StreamWriter, accept: str, is_head: bool) -> None:
        try:
            body, content_type = exposition(await self._snapshot(), accept)
        except Exception as error:
            # Whoever reads figures must not end the supervisor of a training.
            self._complaints.tell(f"metrics: {type(error).__name__}: {reason_of(error)}")
            words = str(error) if isinstance(error, DtfctlError) else "the figures cannot be made; see daemon.log"
            _write(writer, "500 Internal Server Error", f"{words}\n".encode())
            return
        length = f"Content-Length: {len(body)}\r\n" if is_head else ""
        _write(writer, "200 OK", b"" if is_head else body, length, content_type)

    async def _snapshot(self) -> Snapshot:
        async with self._looking:
            if self._found is None or time.monotonic() > self._found[0] + FRESH_S:
                snapshot = await self._look()
                self._found = time.monotonic(), snapshot
            return self._found[1]


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_number_or_localhost(host: str) -> bool:
    """Of a Host header. No name server has a say in either."""
    name = host.partition("]")[0].strip("[") if host.startswith("[") else host.partition(":")[0]
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.lower() == "localhost"
    return True


def _header(lines: list[str], name: str) -> str:
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() == name:
            return value.strip()
    return ""


def _write(
    writer: asyncio.StreamWriter, status: str, body: bytes, more: str = "", content_type: str = "text/plain"
) -> None:
    length = "" if "Content-Length" in more else f"Content-Length: {len(body)}\r\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{length}{more}"
    head += "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    with contextlib.suppress(ConnectionError):
        writer.write(head.encode("latin-1") + body)
