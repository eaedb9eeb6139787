"""python -m tests.e2e.chaos --seed 1 --kills 50 --security tls --hosts namespaces"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e import hosts
from tests.e2e.chaos.campaign import Campaign, Cluster, Lost, Report, describe
from tests.e2e.chaos.cluster import LocalTraining, RemoteTraining, kill


@contextlib.contextmanager
def cluster_in(folder: Path, security: str, where: str) -> Iterator[Cluster]:
    """A cluster of its own folder, whose processes are ended at the end."""
    with contextlib.ExitStack() as stack:
        cluster: Cluster
        if where == "namespaces":
            laboratory = stack.enter_context(hosts.Laboratory(folder, 3))
            laboratory.boot()
            cluster = RemoteTraining(folder, laboratory, sys.executable, security)
        else:
            cluster = LocalTraining(folder, sys.executable, security)
        try:
            yield cluster
        finally:
            with contextlib.suppress(Exception):
                cluster.run("down", "--timeout", "0", status=None)
            for pid in cluster.processes():
                kill(pid)


def attack(seed: int, kills: int, security: str, where: str, report: Report, say) -> None:
    """With a new cluster after each loss, until so many kills were tried."""
    begun = report.kills
    while (left := kills - (report.kills - begun)) > 0:
        folder = Path(tempfile.mkdtemp(prefix="dtf-chaos-"))
        try:
            with cluster_in(folder, security, where) as cluster:
                try:
                    Campaign(cluster, seed, left, report, say).run()
                except (Lost, AssertionError) as loss:
                    report.lost.append(f"seed {seed}, {security}, {where}: {loss}")
                    say(f"LOST: {loss}\n{describe(cluster)}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        seed += 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Kills what runs of a cluster whose training is known exactly.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--security", choices=("none", "tls"), default="none")
    parser.add_argument("--hosts", choices=("local", "namespaces"), default="local")
    options = parser.parse_args()
    if options.hosts == "namespaces" and hosts.why_not():
        parser.error(f"no machines of their own: {hosts.why_not()}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(1))  # what was begun is ended
    begun = time.monotonic()
    report = Report()

    def say(words: str) -> None:
        print(f"{time.monotonic() - begun:7.1f}s {words}", flush=True)

    attack(options.seed, options.kills, options.security, options.hosts, report, say)
    say(str(report))
    sys.exit(bool(report.lost))


if __name__ == "__main__":
    main()
