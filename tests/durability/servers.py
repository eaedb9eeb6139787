"""Durable parameter servers as processes of this machine, which tests kill and start again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dtf.places import lines
from dtf.wire import errors
from tests.durability.forked import Forked
from tests.ports import free_ports

__all__ = ["PLACES", "Places", "ServedPlaces", "Servers"]

PLACES = 2

_PROGRAM = """
import dtf as tf
cluster, task, folder, *host = arguments
experimental = tf.ConfigProto.Experimental(durability="process", durability_folder=folder)
if host:
    experimental.durability = "host"
    experimental.durability_places, experimental.durability_place = host
if folder == "none":
    experimental.Clear()
print("begins", flush=True)
server = tf.train.Server(cluster, "ps", task, config=tf.ConfigProto(experimental=experimental))
print("ready", flush=True)
server.join()
"""


class Servers:
    """The ps of a cluster; the worker is a server of the caller's process. As a context manager it ends them.

    Attributes:
      cluster: job -> addresses.
      kills: how many processes were killed.
      config: for the servers of workers.
    """

    def __init__(self, folder: Path, count: int = 1, workers: int = 1, is_durable: bool = True) -> None:
        ports = free_ports(count + workers)
        self.cluster = {
            "ps": [f"127.0.0.1:{port}" for port in ports[:count]],
            "worker": [f"127.0.0.1:{port}" for port in ports[count:]],
        }
        self.config: Any = None
        self.kills = 0
        self._folder = folder
        self._is_durable = is_durable
        self._processes: dict[object, Forked] = {}
        self._running: set[object] = set()

    def start(self, task: int) -> None:
        """Starts a ps and waits until it serves."""
        folder = str(self._folder / f"ps-{task}") if self._is_durable else "none"
        self._started(task, [task, folder]).wait_for("ready")

    def address_of(self, task: int) -> str:
        """Where a ps serves."""
        return self.cluster["ps"][task]

    def kill(self, task: int) -> None:
        """Kills a ps with SIGKILL."""
        self._killed(task)

    def restart(self, task: int) -> None:
        """Kills a ps and starts it again."""
        self.kill(task)
        self.start(task)

    def _started(self, name: object, arguments: list[object]) -> Forked:
        if name not in self._processes:
            self._processes[name] = Forked(_PROGRAM)
        process = self._processes[name]
        process.start([self.cluster, *arguments])
        process.wait_for("begins")
        self._running.add(name)
        return process

    def _killed(self, name: object) -> None:
        self._running.remove(name)
        self._processes[name].kill()
        self.kills += 1

    def __enter__(self) -> Servers:
        starting = [threading.Thread(target=self.start, args=(task,)) for task in range(len(self.cluster["ps"]))]
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self._killed(name)
        for process in self._processes.values():
            process.close()


class Places(Servers):
    """As `Servers`, with durability "host": each task has two places, whose processes are killed in turn: the primary,
    its backup, or both with time between.

    Attributes:
      places: each task's peer addresses.
      text: DTF_DURABILITY_PLACES, as it was at first.
    """

    def __init__(self, folder: Path, count: int = 1, workers: int = 1) -> None:
        super().__init__(folder, count, workers)
        ports = iter(free_ports(count * (2 * PLACES - 1)))
        self._servers: list[list[str]] = []
        self.places = []
        for address in self.cluster["ps"]:
            servers = [address, *(f"127.0.0.1:{next(ports)}" for _ in range(PLACES - 1))]
            self._servers.append(servers)
            self.places.append([f"127.0.0.1:{next(ports)}" for _ in servers])
        self.text = self._listed()
        import dtf as tf

        experimental = tf.ConfigProto.Experimental(durability_places=self.text)
        self.config = tf.ConfigProto(experimental=experimental)

    def start(self, task: int) -> None:
        """Starts both places, and waits until the backup is in sync."""
        for place in range(PLACES):
            self.start_place(task, place)
        self.wait_in_sync(task)

    def start_place(self, task: int, place: int) -> None:
        """Starts the process of a place."""
        folder = str(self._folder / f"ps-{task}-{place}")
        self._started((task, place), [task, folder, self._listed(), place])

    def _listed(self) -> str:
        listed = []
        for task, servers in enumerate(self._servers):
            peers = [each.rpartition(":")[2] for each in self.places[task]]
            pairs = (f"{server}/{peer}" for server, peer in zip(servers, peers, strict=True))
            listed.append(f"ps:{task}=" + ",".join(pairs))
        return ";".join(listed)

    def move(self, task: int) -> None:
        """Moves the backup to new addresses, without its folder, and makes it the primary. Nobody else is told."""
        primary = self.wait_in_sync(task)
        place = 1 - primary
        assert self.ask(task, primary, ask="alone").get("ok")
        self.kill_place(task, place)
        shutil.rmtree(self._folder / f"ps-{task}-{place}")
        server, peer = free_ports(2)
        self._servers[task][place], self.places[task][place] = f"127.0.0.1:{server}", f"127.0.0.1:{peer}"
        self.start_place(task, place)
        self.wait_in_sync(task)
        assert self.ask(task, place, ask="promote").get("ok")
        self._killed((task, primary))  # its process has left, or is about to
        self.start_place(task, primary)

    def kill_place(self, task: int, place: int) -> None:
        """Kills the process of a place with SIGKILL."""
        self._killed((task, place))

    def wait_for_primary(self, task: int, place: int) -> None:
        """Waits until this place serves; the other one may not answer."""
        self._wait(lambda: self._serves(task, place) or None, task)

    def _serves(self, task: int, place: int) -> bool:
        state = self.state(task, place)
        return state.get("role") == "primary" and not state["is_paused"]

    def ask(self, task: int, place: int, **question: object) -> dict[str, Any]:
        """The answer of a place; {} when it does not answer."""
        try:
            return lines.ask(self.places[task][place], {"ask": "state", **question}, 10.0)
        except errors.OpError:
            return {}

    def state(self, task: int, place: int) -> dict[str, Any]:
        """The state of a place; {} when it does not answer."""
        return self.ask(task, place).get("state", {})

    def address_of(self, task: int) -> str:
        """See `Servers.address_of`."""
        return str(self.state(task, self.primary(task))["address"])

    def primary(self, task: int) -> int:
        """Which place serves, once one does."""
        return self._wait(
            lambda: next(
                (place for place in range(PLACES) if self._serves(task, place)),
                None,
            ),
            task,
        )

    def wait_in_sync(self, task: int) -> int:
        """Waits until one place is the backup of the other, in sync; the primary."""
        return self._wait(
            lambda: next((1 - place for place in range(PLACES) if self.state(task, place).get("has_right")), None), task
        )

    def _wait(self, look: Any, task: int, timeout_s: float = 60.0) -> int:
        deadline = time.monotonic() + timeout_s
        while (found := look()) is None:
            states = [self.state(task, place) for place in range(PLACES)]
            assert time.monotonic() < deadline, f"ps:{task} does not come to it: {states}"
            time.sleep(0.005)
        return found

    def restart(self, task: int) -> None:
        """Kills the primary twice, then the backup twice, and so on, and starts it again when the other one serves. The
        exit of a killed backup was seen, so every other time the primary is ordered to go on alone.
        """
        primary = self.wait_in_sync(task)
        turn = self.kills // len(self.places) % 4
        victim = primary if turn < 2 else 1 - primary
        self.kill_place(task, victim)
        if self.kills % 5 == 4:  # as with a lost host
            shutil.rmtree(self._folder / f"ps-{task}-{victim}")
        if turn == 3:
            self._wait(lambda: self.ask(task, primary, ask="alone", fenced=True).get("ok"), task)
        if victim == primary or turn == 3:
            self.primary(task)
        self.start_place(task, victim)


class ServedPlaces(Places):
    """As `Places`, with processes that may start anew by themselves: those of `python -m dtf.serve`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._served: dict[int, subprocess.Popen[bytes]] = {}

    def start_place(self, task: int, place: int) -> None:
        """See `Places.start_place`."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DTF_DUR")},
            "DTF_DURABILITY": "host",
            "DTF_DURABILITY_DIR": str(self._folder / f"ps-{task}-{place}"),
            "DTF_DURABILITY_PLACES": self.text,
            "DTF_DURABILITY_PLACE": str(place),
            "DTF_DURABILITY_SILENCE": "0.5",
            "OPENBLAS_NUM_THREADS": "1",
        }
        spec = ",".join(f"{job}|{';'.join(addresses)}" for job, addresses in self.cluster.items())
        command = [sys.executable, "-m", "dtf.serve", "--cluster_spec", spec, "--job_name", "ps"]
        self._served[place] = subprocess.Popen([*command, "--task_id", str(task)], env=environment)

    def kill_place(self, task: int, place: int) -> None:
        """See `Places.kill_place`."""
        self._served[place].kill()
        self._served.pop(place).wait()
        self.kills += 1

    def signal_place(self, place: int, number: int) -> None:
        """Sends a signal to the process of a place."""
        self._served[place].send_signal(number)

    def has_ended(self, place: int) -> bool:
        """Whether the process of a place has ended."""
        return self._served[place].poll() is not None

    def __exit__(self, *error: object) -> None:
        for place in list(self._served):
            self.kill_place(0, place)
        super().__exit__(*error)
