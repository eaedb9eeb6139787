"""Is a task ready? Asked of its server, its port, a command or a file, and never of its log.

`check` answers "" when the task is ready, and otherwise what is missing, in words for the user.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping

from dtfctl.launchers.local import run_command
from dtfctl.plan import Probe, Task

GET_STATUS = "/tensorflow.WorkerService/GetStatus"


async def check(
    probe: Probe, task: Task, address: str, command: str, environment: Mapping[str, str], started_at: float
) -> str:
    """`command` is the probe's command with its placeholders filled; a file must be younger than `started_at`
    (wall clock, seconds), for it may be the former run's."""
    if probe.kind == "tcp":
        return await _connect(address, probe.timeout_s)
    if probe.kind == "grpc":
        # Cheaper than a refused gRPC call, and gRPC is not even imported before somebody listens.
        refused = await _connect(address, probe.timeout_s)
        return refused or await asyncio.to_thread(get_status, address, task, probe.timeout_s)
    if probe.kind == "command":
        return await run_command(command, dict(environment), task.working_dir, probe.timeout_s)
    if probe.kind == "file":
        try:
            is_new = os.stat(probe.target).st_mtime >= started_at
        except OSError as error:
            return f"the file {probe.target}: {error.strerror}"
        return "" if is_new else f"the file {probe.target} is of an earlier run"
    return ""


def get_status(address: str, task: Task, timeout_s: float) -> str:
    """Asks the server for its devices. The request is an empty message, so no schema is needed, and the answer
    holds the devices' names as plain bytes: enough to see that it is this task that answers and not another."""
    import grpc

    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as channel:
        call = channel.unary_unary(GET_STATUS, request_serializer=bytes, response_deserializer=bytes)
        try:
            reply = call(b"", timeout=timeout_s)
        except grpc.RpcError as error:
            return f"{address} is open but does not answer GetStatus: {error.code().name}"
    name = f"/job:{task.job.name}/replica:0/task:{task.index}/".encode()
    if b"/job:" in reply and name not in reply:
        other = reply[reply.index(b"/job:") :].split(b"/device:")[0].decode(errors="replace")
        return f"{address} is served by another task, {other}"
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
