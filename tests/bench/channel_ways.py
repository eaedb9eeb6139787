"""What a call over the channel costs by Unix socket, by TCP, and by TCP with TLS: one task calls another's process.

    python -m tests.bench.channel_ways            (in the repository, with runtime in PYTHONPATH)
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dtf.channel.client import Channel
from dtf.channel.endpoint import Endpoint
from dtf.channel.listener import Listener
from dtf.wire import credentials
from tests.certificates import environment

WAYS = ("unix", "tcp", "tls")
SIZES = ((100, 2000), (64_000, 500), (1_000_000, 100), (16_000_000, 10), (100_000_000, 3))
ROUNDS = 3


def serve() -> None:
    """A listener that takes what comes, and sends as many bytes as it is asked for, until its input ends."""
    data = np.ones(SIZES[-1][0], np.uint8).data
    listener = Listener("127.0.0.1", "ps", credentials.from_environment())
    listener.start(
        {
            "/take": lambda request, answer: answer.set((b"",)),
            "/give": lambda request, answer: answer.set((data[: int(bytes(request))],)),
        }
    )
    print(listener.endpoint.port, listener.endpoint.token.hex(), listener.endpoint.unix, flush=True)
    sys.stdin.read()
    listener.stop(0)


def measure(way: str, variables: dict[str, str]) -> dict[str, float]:
    """Seconds by what was measured: medians of one connection."""
    chosen = variables if way == "tls" else {}
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.channel_ways", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), **chosen},
    )
    assert server.stdin is not None and server.stdout is not None
    port, token, unix = server.stdout.readline().split()
    endpoint = Endpoint(unix if way == "unix" else "", int(port), bytes.fromhex(token))
    found = {}
    begun = time.perf_counter()
    channel = Channel(endpoint, "127.0.0.1", "ps", credentials=credentials.from_environment(chosen))
    found["connect"] = time.perf_counter() - begun
    data = np.ones(SIZES[-1][0], np.uint8).data
    for size, count in SIZES:
        for name, request in (("push", ("/take", (data[:size],))), ("pull", ("/give", (str(size).encode(),)))):
            times = []
            for _ in range(count):
                begun = time.perf_counter()
                channel.call(*request, 60.0)
                times.append(time.perf_counter() - begun)
            found[f"{name} {size:,}"] = statistics.median(times)
    channel.close()
    server.stdin.close()
    server.wait()
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(Path(folder))
        rounds = [{way: measure(way, variables) for way in WAYS} for _ in range(ROUNDS)]
    print("| bytes | " + " | ".join(WAYS) + " |\n|---|---|---|---|")
    for what in rounds[0]["unix"]:
        cells = []
        for way in WAYS:
            median_s = statistics.median(each[way][what] for each in rounds)
            size = int(what.split()[-1].replace(",", "")) if " " in what else 0
            cells.append(f"{size / median_s / 1e6:,.0f} MB/s" if size >= 1_000_000 else f"{median_s * 1e6:,.0f} us")
        print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
