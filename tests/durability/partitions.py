"""Networks that are cut between the places of a durable ps, and between a place and the worker; all processes live.

    python -m tests.durability.partitions [--rounds N]          as root: it makes three network namespaces

A worker adds known amounts. In turn, the places are cut from each other, the host of the primary from all others, and
that of the backup. The sums must be exact, the program must see no exception, and its session must never be made again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["is_possible", "train_in_parts"]

_HOSTS = ("a", "b")
_SERVE = ("10.77.1.1", "10.77.2.1")
_WORKER = ("10.77.1.2", "10.77.2.2")
_BETWEEN = ("10.77.3.1", "10.77.3.2")
_SILENCE_S = 0.5


def is_possible() -> bool:
    """Whether this system lets this process make network namespaces."""
    if os.geteuid() or shutil.which("ip") is None:
        return False
    name = f"dtf-try-{os.getpid()}"
    is_made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return is_made


class Network:
    """Three hosts: a and b have a place each, w has the worker. As a context manager it removes them."""

    def __init__(self, name: str) -> None:
        self.names = {host: f"dtf-{name}-{host}" for host in ("a", "b", "w")}

    def __enter__(self) -> Network:
        for name in self.names.values():
            _run("netns", "add", name)
            _run("-n", name, "link", "set", "lo", "up")
        for host, own, worker in zip(_HOSTS, _SERVE, _WORKER, strict=True):
            self._join(host, "w", f"{host}w", own, worker)
        self._join("a", "b", "ab", *_BETWEEN)
        self.heal()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)

    def cut_places(self) -> None:
        """No packet passes between the places."""
        for host in range(2):
            _run("-n", self.names[_HOSTS[host]], "route", "replace", "blackhole", _SERVE[1 - host])

    def cut_worker(self, host: int) -> None:
        """No packet passes between this place and the worker."""
        _run("-n", self.names["w"], "route", "replace", "blackhole", _SERVE[host])
        for address in _WORKER:
            _run("-n", self.names[_HOSTS[host]], "route", "replace", "blackhole", address)

    def heal(self) -> None:
        """All packets pass."""
        for host in range(2):
            name, gateway = self.names[_HOSTS[host]], _BETWEEN[1 - host]
            subprocess.run(["ip", "-n", name, "route", "delete", "blackhole", _SERVE[1 - host]], capture_output=True)
            _run("-n", name, "route", "replace", _SERVE[1 - host], "via", gateway, "src", _SERVE[host])
            cut = [("w", _SERVE[host]), *((_HOSTS[host], address) for address in _WORKER)]
            for where, address in cut:
                command = ["ip", "-n", self.names[where], "route", "delete", "blackhole", address]
                subprocess.run(command, capture_output=True)
        _run("-n", self.names["b"], "route", "replace", _WORKER[0], "via", _WORKER[1], "src", _SERVE[1])

    def _join(self, one: str, other: str, link: str, address: str, other_address: str) -> None:
        first, second = self.names[one], self.names[other]
        ends = f"{link}0", f"{link}1"
        _run("-n", first, "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", second)
        for name, end, own in ((first, ends[0], address), (second, ends[1], other_address)):
            _run("-n", name, "address", "add", f"{own}/24", "dev", end)
            _run("-n", name, "link", "set", end, "up")


def _run(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextlib.contextmanager
def _places(network: Network, folder: Path, cluster: str, places: str) -> Iterator[None]:
    """The processes of both places."""
    running = []
    try:
        for place, host in enumerate(_HOSTS):
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith("DTF_DUR")},
                "DTF_DURABILITY": "host",
                "DTF_DURABILITY_DIR": str(folder / host),
                "DTF_DURABILITY_PLACES": places,
                "DTF_DURABILITY_PLACE": str(place),
                "DTF_DURABILITY_SILENCE": str(_SILENCE_S),
                "OPENBLAS_NUM_THREADS": "1",
            }
            command = [sys.executable, "-m", "dtf.serve", "--cluster_spec", cluster, "--job_name", "ps"]
            running.append(
                subprocess.Popen(["ip", "netns", "exec", network.names[host], *command], env=environment)
            )
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def train_in_parts(rounds: int) -> str:
    """Trains in namespaces of its own; what was found, in words. Raises RuntimeError when it was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="dtf-partitions-", dir="/dev/shm"))
    try:
        with Network(str(os.getpid())) as network:
            cluster = f"ps|{_SERVE[0]}:2222,worker|{_WORKER[0]}:2223"
            places = "ps:0=" + ",".join(f"{address}:2222/2322" for address in _SERVE)
            with _places(network, folder, cluster, places):
                command = [sys.executable, "-m", "tests.durability.partitions", "--inside", network.names["w"][4:-2]]
                found = subprocess.run(
                    ["ip", "netns", "exec", network.names["w"], *command, "--rounds", str(rounds)],
                    env={**os.environ, "DTF_DURABILITY_PLACES": places},
                    stdout=subprocess.PIPE,
                    text=True,
                    timeout=60 + 60 * rounds,
                )
    finally:
        shutil.rmtree(folder)
    if found.returncode:
        raise RuntimeError(found.stdout or f"the training has ended with {found.returncode}")
    return found.stdout.strip()


def _train(network: Network, rounds: int) -> int:
    """The worker's program."""
    import dtf as tf
    from dtf.places import lines
    from dtf.wire import errors

    def state(place: int) -> dict[str, object]:
        try:
            return dict(lines.ask(f"{_SERVE[place]}:2322", {"ask": "state"}, 2.0)["state"])
        except errors.OpError:
            return {}

    def in_sync() -> int:
        deadline = time.monotonic() + 60
        while True:
            for place in range(2):
                if state(place).get("has_right"):
                    return 1 - place
            assert time.monotonic() < deadline, [state(place) for place in range(2)]
            time.sleep(0.01)

    in_sync()
    cluster = {"ps": [f"{_SERVE[0]}:2222"], "worker": [f"{_WORKER[0]}:2223"]}
    with tf.train.Server(cluster, "worker", 0) as server, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            dense, table = tf.Variable(tf.zeros([3000])), tf.Variable(tf.zeros([900, 8]))
            train = tf.group(dense.assign_add(tf.ones([3000])), tf.scatter_add(table, [3, 5], tf.ones([2, 8])))
        with tf.Session(server.target) as session:
            session.run([dense.initializer, table.initializer])
            steps, longest, failures = 0, 0.0, []
            end = threading.Event()

            def work() -> None:
                nonlocal steps, longest
                try:
                    while not end.is_set():
                        began = time.monotonic()
                        session.run(train)
                        longest = max(longest, time.monotonic() - began)
                        steps += 1
                except BaseException as error:
                    failures.append(error)

            def wait_for_steps(count: int) -> None:
                goal, deadline = steps + count, time.monotonic() + 45
                while steps < goal and not failures:
                    assert time.monotonic() < deadline, (steps, [state(place) for place in range(2)])
                    time.sleep(0.005)

            worker = threading.Thread(target=work)
            worker.start()
            pauses = []
            try:
                for turn in range(rounds):
                    primary = in_sync()
                    wait_for_steps(5)
                    network.cut_places()
                    if turn % 3 == 1:
                        network.cut_worker(primary)
                    if turn % 3 == 2:
                        network.cut_worker(1 - primary)
                        time.sleep(3 * _SILENCE_S)  # the time that the network is cut
                    else:
                        wait_for_steps(5)
                    network.heal()
                    wait_for_steps(5)
                    pauses.append(round(longest, 2))
                    longest = 0.0
            finally:
                end.set()
                worker.join()
            if failures:
                raise failures[0]
            in_sync()
            found, rows = session.run([dense, table])
    is_exact = (found == steps).all() and (rows[[3, 5]] == steps).all() and not rows[4].any()
    print(f"{rounds} cuts, {steps} steps, longest steps {pauses} s: {'exact' if is_exact else f'WRONG {found[:3]}'}")
    return not is_exact


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.durability.partitions", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--inside", metavar="NAME", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.inside:
        return _train(Network(chosen.inside), chosen.rounds)
    print(train_in_parts(chosen.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
