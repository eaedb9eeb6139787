"""One question to one task: is it there? Asked of its server, its port, a command or a file, and never of its log.

`ask` answers "" when all is well, and otherwise what is missing, in words for the user. Who asks when: probing.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from dtfctl.launchers import here
from dtfctl.launchers.base import HostChecks
from dtfctl.probes import places
from dtfctl.probes.get_status import NoAnswer, get_status
from dtfctl.values.plan import Probe, Task


@dataclass(frozen=True)
class Question:
    """`probe` has its placeholders filled. A file must be younger than `age_s`. `checks` looks at the task's
    machine, without it at this one."""

    probe: Probe
    task: Task
    address: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    age_s: float = math.inf
    checks: HostChecks = here
    tls: ssl.SSLContext | None = None
    peer: str = ""
    """The second port of a place of a durable task: its server answers only while it is the primary."""
    is_liveness: bool = False


async def ask(question: Question) -> str:
    probe, checks = question.probe, question.checks
    if probe.kind in ("grpc", "tcp") and question.peer:
        return await _state_of_place(question)
    if probe.kind == "tcp":
        return await _connect(question.address, probe.timeout_s)
    if probe.kind == "grpc":
        return await _get_status(question)
    if probe.kind == "command":
        environment = dict(question.environment)
        return await checks.check_command(probe.target, environment, question.task.working_dir, probe.timeout_s)
    if probe.kind == "file":
        return await checks.check_file(probe.target, question.age_s)
    return ""


async def _state_of_place(question: Question) -> str:
    """A place is ready when it serves, or may begin to at any moment; it is alive as long as it answers."""
    try:
        found = await places.ask(question.peer, {"ask": "state"}, question.probe.timeout_s, question.tls)
    except places.PlaceError as error:
        return str(error)
    return "" if found.is_ready or question.is_liveness else f"{found}"


async def _get_status(question: Question) -> str:
    """The answer holds the devices' names as plain bytes: enough to see that it is this task that answers and not
    another, without a schema."""
    address, task = question.address, question.task
    try:
        reply = await get_status(address, question.probe.timeout_s, question.tls)
    except asyncio.TimeoutError:
        return f"{address} does not answer GetStatus within {question.probe.timeout_s:g}s"
    except ssl.SSLError as error:
        return f"{address} is open but a TLS connection to it fails: {error.reason or error}"
    except OSError:
        return f"{address} is not open yet"
    except NoAnswer as error:
        return f"{address} is open but does not answer GetStatus: {error}"
    name = f"/job:{task.job.name}/replica:0/task:{task.index}/".encode()
    if b"/job:" in reply and name not in reply:
        other = reply[reply.index(b"/job:") :].split(b"/device:")[0].decode(errors="replace")
        return f"{address} is used by another task, {other}"
    return ""


async def _connect(address: str, timeout_s: float) -> str:
    host, _, port = address.rpartition(":")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, int(port)), timeout_s)
    except asyncio.TimeoutError:
        return f"nothing answers at {address}"
    except OSError:
        return f"{address} is not open yet"
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ""

