"""Starts servers from the command line, with the flags of TensorFlow's grpc_tensorflow_server:

    python -m dtf.serve --cluster_spec "ps|localhost:2222;localhost:2223" --job_name ps --task_id 0

One command can start several tasks of a job (`--task_id 0-31,40`). One process loads the runtime and forks each task,
which starts in a few milliseconds and shares most of its memory with the others.

Owns the processes that it forks. The process ends when all tasks have ended. SIGTERM or Ctrl-C ends all tasks and
gives the status of that signal; the failure of a task ends all tasks with that task's status. No task outlives the
process.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

from dtf.server import Server
from dtf.wire import errors

_PR_SET_PDEATHSIG = 1
_INTERRUPTED = 128 + signal.SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until stopped; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dtf.serve", description="Serves tasks of a cluster.")
    parser.add_argument("--cluster_spec", required=True, help="job|host:port;host:port,job|host:port", type=cluster_of)
    parser.add_argument("--job_name", required=True)
    parser.add_argument("--task_id", default="0", help="a number, or several: 0-31,40", type=numbers_of)
    given = parser.parse_args(arguments)
    cluster, job = given.cluster_spec, given.job_name
    if job not in cluster:
        parser.error(f"the cluster has no job {job!r}; it has {', '.join(cluster)}")
    for task in given.task_id:
        if task >= len(cluster[job]):
            parser.error(f"job {job!r} has no task {task}; it has {len(cluster[job])}")

    def serve(task: int) -> int:
        try:
            server = Server(cluster, job_name=job, task_index=task)
            print(f"/job:{job}/task:{task} serves at {server.target}", file=sys.stderr, flush=True)
            server.join()
        except errors.OpError as error:
            logging.getLogger("dtf").error("/job:%s/task:%d: %s", job, task, error.message)
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED
        return 0

    if len(given.task_id) == 1:
        return serve(given.task_id[0])
    _load()
    return _serve_each(serve, given.task_id, job)


def cluster_of(text: str) -> dict[str, list[str]]:
    """Addresses by job: "ps|a:1;b:2,worker|c:3". Raises ValueError for invalid text."""
    cluster: dict[str, list[str]] = {}
    for part in text.split(","):
        job, separator, hosts = part.partition("|")
        if not separator or not job or job in cluster or not all(hosts.split(";")):
            raise ValueError(f"{part!r} is not of the form job|host:port;host:port")
        cluster[job] = hosts.split(";")
    return cluster


def numbers_of(text: str) -> list[int]:
    """Numbers and ranges: "0-2,5" -> [0, 1, 2, 5]. Raises ValueError for invalid text or a repeated
    number."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            raise ValueError(f"{part!r} names no task")
        found.extend(numbers)
    if len(set(found)) < len(found):
        raise ValueError(f"{text!r} names a task twice")
    return found


def _load() -> None:
    """Everything that the start of a server needs. Nothing of it may start a thread or gRPC: threads are not forked."""
    import dtf.rpc.peers
    import dtf.rpc.service
    import dtf.run.exchange.collective_groups
    import dtf.run.master.master_session
    import dtf.run.worker.worker  # noqa: F401


def _serve_each(serve: Callable[[int], int], tasks: Sequence[int], job: str) -> int:
    """A process for each task; returns when all have ended."""
    gc.collect()
    gc.freeze()  # objects that the collector does not touch stay shared
    own = os.getpid()
    running: dict[int, int] = {}
    for task in tasks:
        process = os.fork()
        if process == 0:
            _be_a_task(serve, task, own)  # while the signals have no handlers yet
        running[process] = task

    is_ending = False
    result = 0

    def told_to_end(number: int, _: object) -> None:
        nonlocal result
        result = result or 128 + number
        end_all()

    def end_all() -> None:
        nonlocal is_ending
        is_ending = True
        for process in list(running):
            with contextlib.suppress(ProcessLookupError):  # it has just been waited for
                os.kill(process, signal.SIGTERM)

    signal.signal(signal.SIGTERM, told_to_end)
    signal.signal(signal.SIGINT, told_to_end)
    while running:
        process, status = os.wait()
        task = running.pop(process)
        code = os.waitstatus_to_exitcode(status)
        if code and not is_ending:
            result = code if code > 0 else 128 - code
            logging.getLogger("dtf").error("/job:%s/task:%d ended with status %d; ending the others", job, task, result)
            end_all()
    return result


def _be_a_task(serve: Callable[[int], int], task: int, parent: int) -> None:
    """The main function of a forked task; does not return."""
    status = 1
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() == parent:
            status = serve(task)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
