"""For tests of dtf and of programs that use it: whole clusters on this machine.

    with LocalCluster({"ps": 1, "worker": 2}) as cluster:
        with tf.Session(cluster.target("worker", 1)) as session:
            ...

    with LocalCluster({"ps": 1}, processes=True) as cluster:
        cluster.kill("ps", 0)
        cluster.start("ps", 0)                  # on the same port, with nothing left of its former self
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dtf.build import conversion, variable_collections
from dtf.build.gradients import gradients as reverse_gradients
from dtf.server import Server
from dtf.session import Session
from dtf.wire.cluster import ClusterSpec

__all__ = ["LocalCluster", "check_gradient"]

_STOP_TIMEOUT_S = 10.0
_TASK_PROGRAM = """
import json, os, sys, threading
from dtf.server import Server

def obey_parent():
    if sys.stdin.readline():
        server.stop()
    else:
        os._exit(1)

server = Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
obeying = threading.Thread(target=obey_parent, daemon=True)
obeying.start()
print("ready", flush=True)
server.join()
obeying.join()
"""


class LocalCluster:
    """Servers on free loopback ports, which stay reserved. As a context manager it stops them all at the end.

    Attributes:
      cluster_spec: the ClusterSpec.
      servers: (job, index) -> Server, of the tasks that run in this process.
      processes: (job, index) -> subprocess.Popen, of the tasks that run in processes of their own.
    """

    def __init__(
        self, jobs: Mapping[str, int], processes: bool = False, start: bool = True, config: Any = None
    ) -> None:
        """A cluster of `jobs`, job name -> number of tasks.

        Args:
          processes: each task in a process of its own.
          start: start all tasks now.
          config: a ConfigProto for the servers of this process.
        """
        self._ports = ReservedPorts(sum(jobs.values()))
        numbers = iter(self._ports.numbers)
        self.cluster_spec = ClusterSpec(
            {job: [f"127.0.0.1:{next(numbers)}" for _ in range(count)] for job, count in jobs.items()}
        )
        self.servers: dict[tuple[str, int], Server] = {}
        self.processes: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._in_processes = processes
        self._config = config
        if start:
            try:
                self._start_all()
            except BaseException:
                self.stop_all()
                raise

    def target(self, job: str, index: int = 0) -> str:
        """The session target of a task."""
        return f"grpc://{self.cluster_spec.task_address(job, index)}"

    def start(self, job: str, index: int = 0) -> None:
        """Starts a task, or starts it again, and waits until it serves."""
        if self._in_processes:
            self._launch(job, index)
            self._wait_until_ready(job, index)
        else:
            self.servers[job, index] = Server(self.cluster_spec, job, index, config=self._config)

    def stop(self, job: str, index: int = 0) -> int:
        """Stops a task in good order; returns its exit status (0 in this process)."""
        if not self._in_processes:
            self.servers.pop((job, index)).stop()
            return 0
        process = self.processes.pop((job, index))
        _ask_to_stop(process)
        return _wait(process)

    def kill(self, job: str, index: int = 0) -> None:
        """Ends a task's process at once, as SIGKILL does."""
        process = self.processes.pop((job, index))
        process.kill()
        _wait(process)

    def stop_all(self) -> None:
        """Stops every task."""
        for process in self.processes.values():
            _ask_to_stop(process)
        for process in self.processes.values():
            _wait(process)
        self.processes.clear()
        for server in self.servers.values():
            server.stop(grace_s=0)
        self.servers.clear()
        self._ports.release()

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop_all()

    def _start_all(self) -> None:
        tasks = [(job, index) for job in self.cluster_spec.jobs for index in self.cluster_spec.task_indices(job)]
        if not self._in_processes:
            for task in tasks:
                self.start(*task)
            return
        for task in tasks:
            self._launch(*task)
        for task in tasks:
            self._wait_until_ready(*task)

    def _launch(self, job: str, index: int) -> None:
        package = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        self.processes[job, index] = subprocess.Popen(
            [sys.executable, "-c", _TASK_PROGRAM, json.dumps(self.cluster_spec.as_dict()), job, str(index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )

    def _wait_until_ready(self, job: str, index: int) -> None:
        process = self.processes[job, index]
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"the server of /job:{job}/task:{index} ended with status {process.wait()}")


def check_gradient(
    y: Any, xs: Any, feed_dict: Mapping[Any, Any], step: float = 1e-3, tolerance: float = 1e-3, session: Any = None
) -> None:
    """Compares `tf.gradients` with central differences.

    Args:
      y: a floating tensor of any shape; its elements are summed with fixed random weights.
      xs: a floating placeholder, or a list of them.
      feed_dict: the point of comparison: an array for each of `xs`, and all other feeds that `y`
          needs.
      step: how far to move each element of each x to both sides.
      tolerance: the allowed difference, relative to the larger of 1 and the difference quotient.
      session: where to run; a new local session by default, which also initializes the variables.

    Raises:
      AssertionError: a gradient differs or is missing; the message names the x and the element.
    """
    with y.graph.as_default():
        xs = list(xs) if isinstance(xs, list | tuple) else [xs]
        feeds = {key: np.asarray(value, key.dtype.as_numpy_dtype) for key, value in feed_dict.items()}
        with contextlib.ExitStack() as stack:
            if session is None:
                session = stack.enter_context(Session())
                session.run(variable_collections.global_variables_initializer())
            shape = np.shape(session.run(y, feeds))
            weights = np.random.RandomState(0).uniform(0.5, 1.5, shape).astype(y.dtype.as_numpy_dtype)
            made = reverse_gradients(y, xs, conversion.convert_to_tensor(weights))
            for x, grad in zip(xs, made, strict=True):
                assert grad is not None, f"{y.name} does not depend on {x.name}"
                grad = conversion.convert_to_tensor(grad)
                _compare_with_differences(session, y, x, grad, feeds, weights, step, tolerance)


def _compare_with_differences(
    session: Any, y: Any, x: Any, grad: Any, feeds: dict[Any, Any], weights: Any, step: float, tolerance: float
) -> None:
    computed = session.run(grad, feeds)
    for index in np.ndindex(feeds[x].shape):
        moved = []
        for sign in (1, -1):
            point = feeds[x].copy()
            point[index] += sign * step
            moved.append(float(np.sum(np.float64(session.run(y, {**feeds, x: point})) * weights)))
        quotient = (moved[0] - moved[1]) / (2 * step)
        assert abs(computed[index] - quotient) <= tolerance * max(1.0, abs(quotient)), (
            f"the gradient of {y.name} by {x.name}{list(index)} is {computed[index]}, differences give {quotient}"
        )


def _ask_to_stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"stop\n")
        process.stdin.flush()


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


class ReservedPorts:
    """Free ports of 127.0.0.1 that no other program gets until `release`, though servers can listen at them.

    A bound socket that does not listen keeps a port from outgoing connections and from programs that look for a free
    one. Linux lets another socket bind and listen there if both have SO_REUSEADDR, as those of gRPC have. Other systems
    do not; the ports are only found free there.

    Attributes:
      numbers: the ports.
    """

    def __init__(self, count: int) -> None:
        """Reserves `count` ports.

        Raises:
          OSError: too few ports are free.
        """
        sockets: list[socket.socket] = []
        self.release = weakref.finalize(self, _close, sockets)
        """Frees the ports; the end of this object does, too."""
        for _ in range(count):
            sockets.append(socket.socket())
            sockets[-1].bind(("127.0.0.1", 0))
        self.numbers = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # only now: the port was nobody's
        if sys.platform != "linux":
            self.release()


def _close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()
