"""dtfctl's process on an executor, without Spark: the executor is a process that sleeps, the driver is this one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from dtfctl.launchers.spark import link, task
from tests.waiting import wait_until

SECRET = "secret"


class Hub:
    """The driver's end: takes one connection after the other."""

    def __init__(self) -> None:
        self.streams: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self.hellos: list[dict[str, object]] = []

    async def __aenter__(self) -> Hub:
        self.server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        own = link.nonce()
        writer.write(link.frame({"nonce": own}))
        hello, _ = await link.receive(reader)
        assert link.is_proof(hello["proof"], SECRET, "executor", own, hello["nonce"])
        writer.write(link.frame({"proof": link.proof(SECRET, "driver", hello["nonce"], own), "refused": ""}))
        self.hellos.append(hello)
        await self.streams.put((reader, writer))


async def ask(streams, do, *values, data=b""):
    reader, writer = streams
    writer.write(link.frame({"id": 1, "do": do, "values": values}, data))
    header, output = await asyncio.wait_for(link.receive(reader), 60)
    assert "error" not in header, header
    return header.get("value", output)


@pytest.fixture
def executor():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def begin(executor, monkeypatch):
    monkeypatch.setattr(task, "executor_of", lambda driver: (executor.pid, "10.0.0.1"))

    async def begin(port: int, secret: str = SECRET, only: str = "") -> dict[str, str]:
        wanted = {"hub": ["127.0.0.1", port], "secret": secret, "driver": "127.0.0.1", "only": only}
        start = task.starter(task.modules(), wanted)
        lines = await asyncio.to_thread(lambda: list(start(iter(["group/node-1"]))))
        return json.loads(lines[0])

    return begin


def test_a_command_must_run_with_its_bytes_and_end_with_the_executor(begin, executor, tmp_path):
    swept = tmp_path / "swept"

    async def run() -> None:
        async with Hub() as hub:
            place = await begin(hub.port)
            assert (place["address"], place["python"]) == ("10.0.0.1", sys.executable)
            streams = await hub.streams.get()
            guard = (f"import sys; open({str(swept)!r}, 'w').write(sys.stdin.read())", "what to sweep")
            await ask(streams, "open", "bridge", "c", ["/bin/cat"], guard)
            await ask(streams, "write", "c", data=b"\0\xffbytes")
            assert await ask(streams, "read", "c") == b"\0\xffbytes"
            await ask(streams, "write", "c", data=b"")
            assert await ask(streams, "read", "c") == b""
            assert await ask(streams, "end", "c", 5.0) == [0, ""]
            executor.kill()
            assert await asyncio.wait_for(streams[0].read(), 60) == b""

    asyncio.run(run())
    wait_until(lambda: swept.read_text() == "what to sweep", "the guard")


def test_a_lost_connection_is_made_again_by_the_same_process(begin):
    async def run() -> None:
        async with Hub() as hub:
            await begin(hub.port)
            (await hub.streams.get())[1].close()
            streams = await asyncio.wait_for(hub.streams.get(), 60)
            assert hub.hellos[0]["process"] == hub.hellos[1]["process"]
            streams[1].write(link.frame({"do": "leave"}))
            assert await asyncio.wait_for(streams[0].read(), 60) == b""

    asyncio.run(run())


def test_the_process_ends_when_the_driver_has_ended(begin):
    async def run() -> int:
        async with Hub() as hub:
            await begin(hub.port)
            return hub.hellos[0]["process"]

    pid = asyncio.run(run())
    wait_until(lambda: not _is_there(pid), "the end of the process")


def _is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_driver_that_does_not_know_the_secret_gets_nothing(begin):
    async def run() -> None:
        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(link.frame({"nonce": "x"}))
            await link.receive(reader)
            writer.write(link.frame({"proof": "guessed", "refused": ""}))
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        found = await begin(server.sockets[0].getsockname()[1])
        server.close()
        await server.wait_closed()
        assert "does not know the application's secret" in found["error"]

    asyncio.run(run())


def test_an_executor_at_another_address_is_left_alone(begin):
    assert asyncio.run(begin(1, only="10.0.0.2")) == {"error": "an executor at 10.0.0.1"}
