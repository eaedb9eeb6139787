"""What an open page costs a training: `python -m tests.bench.page_cost`.

The example digits trains, two ps and two workers here. Windows without and with a page take turns: `dtfctl ui` as a
process, and a reader that asks as the overview in a browser does (the stream, traffic and GPUs every four seconds).
The browser itself is left out: it is on the machine of who looks. CPU time of the page's process, of the supervisor and
of the tasks is read from /proc.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from dtfctl.control.cluster import Cluster
from dtfctl.launchers.usage import measure
from dtfctl.storage.paths import ClusterPaths
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.e2e.page import PageProcess

WINDOW_S = 8.0
POLL_S = 4.0
CLUSTER = """
name: trial
program: python {digits}/trainer.py {{cluster_flags}} --checkpoint_dir={{checkpoint_dir}} --train_steps=10000000
checkpoint_dir: checkpoints
jobs: {{ps: 2, worker: 2}}
"""


class Viewer(threading.Thread):
    """Reads what a browser with the overview reads, until `is_closed`."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        base, _, query = address.partition("?")
        self._base, self._token = base, query.partition("=")[2]
        self.is_closed = False

    def _open(self, path: str) -> Any:
        request = urllib.request.Request(self._base + path, headers={"authorization": f"Bearer {self._token}"})
        return urllib.request.urlopen(request, timeout=30)

    def run(self) -> None:
        asked_at = 0.0
        with self._open("api/watch?cluster=trial") as stream:
            for _ in stream:
                if self.is_closed:
                    return
                if time.monotonic() > asked_at + POLL_S:
                    asked_at = time.monotonic()
                    for question in ("traffic?of=all&", "gpus?", "tags?"):
                        with self._open(f"api/{question}cluster=trial") as answer:
                            answer.read()


def cpu_s(pid: int) -> float:
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def main(rounds: int = 6) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dtfctl = CommandLine(Path(folder), CLUSTER.format(digits=ROOT / "clusters" / "digits"))
        dtfctl.environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'runtime'}"
        dtfctl.run("up")
        try:
            cluster = Cluster(ClusterPaths(dtfctl.state / "trial"))
            pids = [task["pid"] for task in dtfctl.status()["tasks"]]
            supervisor = dtfctl.supervisor()

            def window(page: PageProcess | None) -> dict[str, float]:
                viewer = Viewer(page.address) if page else None
                if viewer:
                    viewer.start()
                    time.sleep(2.0)
                before = snapshot(page)
                time.sleep(WINDOW_S)
                after = snapshot(page)
                if viewer:
                    viewer.is_closed = True
                    viewer.join(10)
                took_s = after["at"] - before["at"]
                steps = after["steps"] - before["steps"]
                return {
                    "steps_per_s": steps / took_s,
                    "tasks_ms_per_step": 1000 * (after["tasks"] - before["tasks"]) / steps,
                    "supervisor_ms_per_s": 1000 * (after["supervisor"] - before["supervisor"]) / took_s,
                    "page_ms_per_s": 1000 * (after["page"] - before["page"]) / took_s,
                }

            def snapshot(page: PageProcess | None) -> dict[str, float]:
                _, runs = cluster.measured()
                used = measure(pids)
                return {
                    "at": statistics.mean(float(at) for _, at in runs.values()),
                    "steps": sum(float(count) for count, _ in runs.values()),
                    "tasks": sum(usage.cpu_s for usage in used.values()),
                    "supervisor": cpu_s(supervisor),
                    "page": cpu_s(page.process.pid) if page else 0.0,
                }

            time.sleep(12.0)  # until steps are counted
            rows: dict[bool, list[dict[str, float]]] = {False: [], True: []}
            for number in range(rounds):
                for has_page in (False, True) if number % 2 else (True, False):
                    if has_page:
                        with PageProcess(dtfctl.state) as page:
                            rows[True].append(window(page))
                    else:
                        rows[False].append(window(None))
            for name in rows[True][0]:
                without, with_page = (statistics.median(row[name] for row in rows[key]) for key in (False, True))
                print(f"{name:>20}: {without:9.3f} without, {with_page:9.3f} with a page")
            pairs = zip(rows[True], rows[False], strict=True)
            lost = [1 - one["steps_per_s"] / other["steps_per_s"] for one, other in pairs]
            print(f"steps lost, pair by pair: {', '.join(f'{each:.0%}' for each in lost)}")
        finally:
            dtfctl.run("down", "--purge", status=None)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
