"""How long it takes to add workers to a running training: `python -m tests.bench.elastic [--add 8] [--rounds N]`.

With `cluster_spec: elastic` the others train on; with full ones all tasks restart. The time is that from the command
until the last new worker has made a step, and, with full ones, all others have made one again.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

WAIT_S = 120.0
FILE = """
name: bench
program: [python, {root}/tests/e2e/counting_trainer.py]
python: {python}
environment: {{PYTHONPATH: "{root}/runtime"}}
cluster_spec: {spec}
jobs: {{ps: 1, worker: 2}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for spec in ("elastic", "full"):
        times = sorted(measured(spec, arguments.add) for _ in range(arguments.rounds))
        print(f"{spec:>8}: {arguments.add} workers added in {statistics.median(times):.1f} s "
              f"({times[0]:.1f} to {times[-1]:.1f})", flush=True)  # fmt: skip


def measured(spec: str, add: int) -> float:
    """Seconds until `add` more workers train beside two."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = CommandLine(Path(folder))
        cluster.timeout_s = WAIT_S
        cluster.write(FILE.format(root=ROOT, python=sys.executable, spec=spec))
        cluster.start("up", "--attach")

        def first_steps() -> int:
            return cluster.out().count("first step")

        try:
            wait_until(lambda: first_steps() >= 2, "two workers to train", timeout_s=WAIT_S)
            again = 0 if spec == "elastic" else 2
            began = time.perf_counter()
            cluster.run("scale", f"worker={2 + add}")
            wait_until(lambda: first_steps() >= 2 + add + again, "all to train", timeout_s=WAIT_S)
            return time.perf_counter() - began
        finally:
            cluster.run("down", "bench", "--timeout", "0", status=None)


if __name__ == "__main__":
    main()
