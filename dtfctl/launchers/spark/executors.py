"""Spark's executors as hosts: the driver's part. See server.Engine.

A barrier job takes as many slots as there are hosts, all at once, and starts a process on each; the job then ends and
leaves the slots free. The processes connect to this driver. When one is lost, the next call starts another one by an
ordinary job, on any executor with the same address.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext, cloudpickle

from dtfctl.launchers.bridge.commands import ALIVE_S
from dtfctl.launchers.bridge.server import FIRST_WORD_S, LOOK_S, Ask, Tell
from dtfctl.launchers.spark import link, task
from dtfctl.launchers.spark.words import reason_in

START_S = 60.0
"""How long a job that starts the processes may take."""

RETURN_S = 2.0
GROUP = "dtfctl"

# Executors need not have dtfctl.
cloudpickle.register_pickle_by_value(task)  # type: ignore[no-untyped-call, unused-ignore]


class LostExecutor(Exception):
    """A host has no process any more."""


@dataclass(eq=False)
class Link:
    """A connection from a host's process."""

    executor: tuple[str, int]
    process: int
    writer: asyncio.StreamWriter
    waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    async def ask(self, do: str, *values: Any) -> Any:
        data = b""
        if values and isinstance(values[-1], bytes):
            *values_, data = values
            values = tuple(values_)
        number = next(self.numbers)
        answer = self.waiting[number] = asyncio.get_running_loop().create_future()
        try:
            with contextlib.suppress(OSError):  # the connection's reader sees its end
                self.writer.write(link.frame({"id": number, "do": do, "values": values}, data))
                await self.writer.drain()
            return await answer
        finally:
            self.waiting.pop(number, None)

    def take(self, header: dict[str, Any], data: bytes) -> None:
        answer = self.waiting.get(header.get("id", -1))
        if answer is None or answer.done():
            return
        if "error" in header:
            answer.set_exception(RuntimeError(header["error"]))
        else:
            answer.set_result(header.get("value", data))

    def lose(self) -> None:
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(LostExecutor("the executor is lost"))
        self.writer.close()


class Executors:
    """See server.Engine. Its methods run in one event loop; Spark's jobs run in threads."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        conf = context.getConf()
        self._driver = conf.get("spark.driver.host") or "127.0.0.1"
        self._bind = conf.get("spark.driver.bindAddress") or self._driver
        self._secret = secrets.token_hex(32)
        self._links: dict[str, Link] = {}
        self._lost: set[str] = set()
        self._starting: dict[str, asyncio.Lock] = {}
        self._hosts_per_executor: float = 1
        self._hub: asyncio.Server | None = None
        self._beating: asyncio.Task[None] | None = None

    async def group(self, tell: Tell, group: str, hosts: list[str], wanted: dict[str, Any]) -> list[dict[str, str]]:
        if self._context.getConf().get("spark.dynamicAllocation.enabled") == "true":
            raise RuntimeError("Spark may take executors away: set spark.dynamicAllocation.enabled to false")
        await self.release(group, hosts)
        await self._listen()
        await self._wait_for_slots(len(hosts), wanted["wait_s"], tell)
        self._hosts_per_executor = math.inf
        try:
            lines = await self._job(hosts, "", is_barrier=True)
        except BaseException:
            await self.release(group, hosts)
            raise
        wrong = [line["error"] for line in lines if "error" in line]
        if wrong:
            await self.release(group, hosts)
            raise RuntimeError(wrong[0])
        held = [found.executor for found in self._links.values()]
        self._hosts_per_executor = max(map(held.count, held), default=1)
        return lines

    async def release(self, group: str, hosts: list[str]) -> None:
        for name in hosts:
            found = self._links.pop(name, None)
            if found is not None:
                with contextlib.suppress(OSError):
                    found.writer.write(link.frame({"do": "leave"}))
                    await found.writer.drain()
                found.lose()

    async def host(self, name: str, address: str) -> Ask:
        async with self._starting.setdefault(name, asyncio.Lock()):
            if name not in self._links and not await self._returns(name):
                await self._listen()
                await self._replace(name, address)
            return self._links[name].ask

    async def _returns(self, name: str) -> bool:
        """Whether a process connects again that has only lost its connection."""
        deadline = time.monotonic() + RETURN_S
        while name in self._lost and name not in self._links and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_S)
        self._lost.discard(name)
        return name in self._links

    async def close(self) -> None:
        """Everything that is left of the hosts ends."""
        await self.release("", list(self._links))
        if self._beating is not None:
            self._beating.cancel()
        if self._hub is not None:
            self._hub.close()

    def forget(self, name: str) -> None:
        """A lost connection is forgotten already; an error of a command is not the connection's."""

    # -- slots

    async def _wait_for_slots(self, wanted: int, wait_s: float, tell: Tell) -> None:
        began = time.monotonic()
        is_told = False
        while (found := await asyncio.to_thread(self._slots)) < wanted + len(self._links):
            took_s = time.monotonic() - began
            why = await asyncio.to_thread(self._too_few, wanted, found)
            if took_s >= wait_s:
                raise RuntimeError(why)
            if took_s >= FIRST_WORD_S and not is_told:
                tell({"waiting": why})
                is_told = True
            await asyncio.sleep(LOOK_S)

    def _slots(self) -> int:
        spark = self._context._jsc.sc()
        profile = spark.resourceProfileManager().defaultResourceProfile()
        return int(spark.maxNumConcurrentTasks(profile))

    def _too_few(self, wanted: int, found: int) -> str:
        # The driver is in the list, too.
        executors = len(self._context._jsc.sc().statusTracker().getExecutorInfos()) - 1
        conf = self._context.getConf()
        each = ", ".join(
            f"{name} {conf.get(f'spark.{name}')}"
            for name in ("executor.cores", "task.cpus", "cores.max", "executor.instances")
            if conf.get(f"spark.{name}")
        )
        there = f"{executors} executor{'' if executors == 1 else 's'} with {found} slot{'' if found == 1 else 's'}"
        used = f", {len(self._links)} of them in use" if self._links else ""
        numbers = f"wanted are {wanted}, one for each host; there are {there} in all{used} ({each})"
        return f"Spark has too few slots: {numbers}"

    # -- processes

    async def _job(self, names: list[str], address: str, is_barrier: bool) -> list[dict[str, str]]:
        """Runs a task for each name; what the tasks say."""
        assert self._hub is not None
        port = self._hub.sockets[0].getsockname()[1]
        wanted = {"hub": [self._driver, port], "secret": self._secret, "driver": self._driver, "only": address}
        start = task.starter(task.modules(), wanted)
        group = f"{GROUP}-{secrets.token_hex(4)}"

        def run() -> list[str]:
            self._context.setJobGroup(group, "dtfctl starts its processes on executors", True)
            slots = self._context.parallelize(names, len(names))
            found: list[str] = (slots.barrier() if is_barrier else slots).mapPartitions(start).collect()
            return found

        try:
            lines = await asyncio.wait_for(asyncio.to_thread(run), START_S)
        except asyncio.TimeoutError:
            await asyncio.to_thread(self._context.cancelJobGroup, group)
            raise RuntimeError(f"Spark does not run dtfctl's tasks within {START_S:g}s") from None
        except Exception as error:
            raise RuntimeError(reason_in(error)) from None
        return [json.loads(line) for line in lines]

    async def _replace(self, name: str, address: str) -> None:
        """One of the tasks on as many slots as there are comes to an executor with the address."""
        slots = max(1, await asyncio.to_thread(self._slots))
        lines = await self._job([name] * slots, address, is_barrier=False)
        if name not in self._links:
            there = ", ".join(sorted({line["error"] for line in lines if "error" in line})) or "no executor"
            raise RuntimeError(f"Spark has no free executor at {address}; there is {there}")

    async def _listen(self) -> None:
        if self._hub is None:
            self._hub = await asyncio.start_server(self._take, self._bind, 0)
            self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        """A process that hears nothing takes the driver for lost."""
        while True:
            await asyncio.sleep(ALIVE_S)
            for found in self._links.values():
                with contextlib.suppress(OSError):
                    found.writer.write(link.frame({"id": -1, "do": "alive", "values": ["driver"]}))

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            own = link.nonce()
            writer.write(link.frame({"nonce": own}))
            hello, _ = await asyncio.wait_for(link.receive(reader, link.GREETING_BYTES_MAX), START_S)
            theirs = str(hello.get("nonce"))
            if not link.is_proof(hello.get("proof"), self._secret, "executor", own, theirs):
                return
            name, place = hello["name"], hello["place"]
            found = Link((place["address"], hello["executor"]), hello["process"], writer)
            refused = self._refuses(name, found)
            answer = {"proof": link.proof(self._secret, "driver", theirs, own), "refused": refused}
            writer.write(link.frame(answer))
            if not refused:
                former = self._links.get(name)
                self._links[name] = found
                if former is not None:
                    former.lose()
                await self._listen_to(name, found, reader)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, link.LinkError, KeyError, TypeError):
            return
        finally:
            writer.close()

    def _refuses(self, name: str, new: Link) -> str:
        """The second one of a name is not wanted, nor more hosts on an executor than there were."""
        former = self._links.get(name)
        if former is not None and (former.executor, former.process) != (new.executor, new.process):
            return f"{name} has a process already"
        others = [found.executor for other, found in self._links.items() if other != name]
        return "an executor that is in use" if others.count(new.executor) >= self._hosts_per_executor else ""

    async def _listen_to(self, name: str, found: Link, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                found.take(*await link.receive(reader))
        finally:
            found.lose()
            if self._links.get(name) is found:
                del self._links[name]
                self._lost.add(name)
