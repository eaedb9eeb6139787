"""What logs bear: megabytes per second taken in, how long a task waits for a write, and whether every line is there.

    python -m tests.bench.logs [--seconds N] [--tasks N] [--json FILE]

Tasks under a real supervisor write numbered lines as fast as they can: in blocks, as programs whose output is buffered
do, and line by line. Their logs are small ones, so that heads go all the time. What is kept is read afterwards with
dtfctl's own reader: each line must be whole, each number one more than the last, and the last one the last written.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dtfctl.logs import LogReader, last_lines

ROOT = Path(__file__).resolve().parents[2]

WRITER = """
import os, sys, time
lines_at_once, seconds = int(sys.argv[1]), float(sys.argv[2])
number, written, longest = 0, 0, 0.0
end = time.monotonic() + seconds
filler = "x" * 80
digits = len(str(lines_at_once)) - 1
endings = [f"{n:0{digits}d}" if digits else "" for n in range(lines_at_once)]
template = "".join([f"{'N' * (12 - digits)}{ending} {filler}\\n" for ending in endings]).encode()
now = time.monotonic()
while now < end:
    # Cheaper than formatting each line: it is not the writer that is to be measured.
    block = template.replace(b"N" * (12 - digits), b"%0*d" % (12 - digits, number // lines_at_once))
    before = time.monotonic()
    os.write(1, block)
    now = time.monotonic()
    longest = max(longest, now - before)
    number += lines_at_once
    written += len(block)
os.write(1, f"done {number} {written} {longest}\\n".encode())
"""

CLUSTER = """
name: logs
readiness: none
logs: {{max_size: {max_size}, count: 2}}
jobs:
  worker: {{replicas: {tasks}, program: [python, "{writer}", "{lines_at_once}", "{seconds}"]}}
"""


def measure(tasks: int, lines_at_once: int, seconds: float, max_size: str = "16MiB") -> dict[str, Any]:
    """One run. `lost` and `torn` count lines of those that are kept."""
    with tempfile.TemporaryDirectory() as folder:
        writer = Path(folder) / "writer.py"
        writer.write_text(WRITER)
        file = Path(folder) / "cluster.yaml"
        values = {"tasks": tasks, "lines_at_once": lines_at_once, "seconds": seconds, "max_size": max_size}
        file.write_text(CLUSTER.format(writer=writer, **values))
        state = Path(folder) / "state"
        environment = {**os.environ, "DTFCTL_STATE_DIR": str(state), "PYTHONPATH": str(ROOT)}
        for words in (["up", str(file), "--progress", "quiet"], ["wait", "--progress", "quiet"]):
            command = [sys.executable, "-m", "dtfctl", *words]
            subprocess.run(command, env=environment, check=True, timeout=seconds * 10 + 60)
        logs = next(state.glob("logs/runs/*/logs"))
        return {**_read(logs, tasks), "tasks": tasks, "lines_at_once": lines_at_once}


def _read(logs: Path, tasks: int) -> dict[str, Any]:
    written, longest_s, kept, lost, torn, rate = 0, 0.0, 0, 0, 0, 0.0
    began = time.monotonic()
    for task in (f"worker:{index}" for index in range(tasks)):
        count = 0
        expected = None
        for line in LogReader(logs, [task]).past():
            if line.text.startswith("done "):
                count, size, longest = line.text.split()[1:]
                written += int(size)
                longest_s = max(longest_s, float(longest))
                lost += expected != int(count)
                continue
            kept += 1
            torn += len(line.text) != 93
            number = int(line.text[:12])
            lost += expected is not None and number != expected
            expected = number + 1
        assert last_lines(logs, task, 1)[0].startswith("done "), "the last line is missing"
    rate = kept / (time.monotonic() - began)
    taken = sum(path.stat().st_blocks * 512 for path in logs.iterdir())
    return {
        "written_bytes": written,
        "longest_write_s": longest_s,
        "kept_lines": kept,
        "lost": lost,
        "torn": torn,
        "disk_bytes": taken,
        "read_lines_per_s": rate,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for lines_at_once, words in ((1000, "in blocks of 94 KB"), (1, "line by line")):
        found = measure(options.tasks, lines_at_once, options.seconds)
        results.append(found)
        rate = found["written_bytes"] / options.seconds
        print(
            f"{options.tasks} tasks {words}: {rate / 1e6:.0f} MB/s, {rate / 94 / 1e3:.0f},000 lines/s; longest write "
            f"{found['longest_write_s'] * 1e3:.0f} ms; of {found['kept_lines']:,} kept lines {found['lost']} lost, "
            f"{found['torn']} torn; {found['disk_bytes'] / 1e6:.0f} MB on disk; read at "
            f"{found['read_lines_per_s'] / 1e3:.0f},000 lines/s",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
