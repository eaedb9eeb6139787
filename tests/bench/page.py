"""What `dtfctl ui` costs, and how fast it is: a look at clusters of several sizes, and the page in real Chromium.

    python -m tests.bench.page [--tasks 100 1000]

A look is that of the real store and Looker, without the question to a supervisor; its time is CPU time. In the browser
the clusters are made up (tests/e2e/page_world.py). `shown` is from the address to the last tile, `update` from the
sending of a change to its drawing, both wall-clock time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from dtfctl.control.cluster import Cluster
from dtfctl.show import diagnosis
from dtfctl.show.looker import Looker
from dtfctl.ui import documents
from tests.bench.scale import World, plan_of
from tests.e2e.chromium import Browser
from tests.e2e.page_pictures import world

LOOKS = 5
UPDATES = 6


def look(tasks: int) -> dict[str, float]:
    """CPU seconds of a look and of its documents, and their bytes."""
    with tempfile.TemporaryDirectory() as folder:
        made = World(Path(folder) / "scale", plan_of(tasks))
        made.up()
        made.store.close()
        looker = Looker(Cluster(made.paths))
        took, rendered, size = [], [], 0
        last = 0
        for _ in range(LOOKS):
            begun = time.process_time()
            snapshot = looker.look(last, is_measured=False)
            took.append(time.process_time() - begun)
            last = max((each.id for each in snapshot.history), default=last)
            begun = time.process_time()
            found = diagnosis.findings(snapshot)
            document = {
                "cluster": documents.cluster(snapshot, found, diagnosis.headline(snapshot, found)),
                "tasks": [documents.task(view, snapshot.at) for view in snapshot.tasks],
            }
            size = len(json.dumps(document))
            rendered.append(time.process_time() - begun)
    return {"look_s": min(took), "documents_s": min(rendered), "bytes": size}


def in_browser(tasks: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, world(Path(folder), tasks) as address, Browser() as browser:
        browser.open(f"{address}#well/overview")
        browser.wait_for("document.querySelectorAll('.tile').length === 5", "the small cluster")
        begun = time.monotonic()
        browser.open("about:blank")
        browser.open(f"{address}#tasks-{tasks}/overview")
        browser.wait_for("document.querySelectorAll('.tile').length === arguments[0]", "all tiles", tasks)
        shown_s = time.monotonic() - begun
        lags = []
        for _ in range(UPDATES):
            before = browser.run("return Number(document.documentElement.dataset.updates)")
            browser.wait_for("Number(document.documentElement.dataset.updates) > arguments[0]", "an update", before)
            lags.append(float(browser.run("return Number(document.documentElement.dataset.lagMs)")) / 1000)
        heap = browser.devtools("Runtime.getHeapUsage")["usedSize"]
    return {"shown_s": shown_s, "update_s": statistics.median(lags), "heap_mb": heap / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1000])
    for tasks in parser.parse_args().tasks:
        cost, page = look(tasks), in_browser(tasks)
        print(
            f"{tasks:>6} tasks: look {1000 * cost['look_s']:.0f} ms, documents {1000 * cost['documents_s']:.1f} ms, "
            f"{cost['bytes'] / 1000:.0f} kB; shown {page['shown_s']:.2f} s, update {1000 * page['update_s']:.0f} ms, "
            f"heap {page['heap_mb']:.1f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
