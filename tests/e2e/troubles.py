"""What the page would say is wrong with a cluster, noted over a whole run: the same looks, without a browser.

    with TroubleNotes(state / "digits") as notes: ...train...
    assert notes.found == {}
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

from dtfctl.control.cluster import Cluster
from dtfctl.errors import DtfctlError
from dtfctl.show import diagnosis
from dtfctl.show.looker import Looker
from dtfctl.storage.paths import ClusterPaths
from dtfctl.ui import pacing, watching


class TroubleNotes:
    """A thread that looks as an open page does, until the block ends.

    Attributes:
      found: the findings by kind; each with its words when they were seen first.
      looks: how often it has looked at a cluster that was there.
    """

    def __init__(self, folder: Path) -> None:
        self.found: dict[str, str] = {}
        self.looks = 0
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="trouble-notes")

    def __enter__(self) -> TroubleNotes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        cluster = Cluster(ClusterPaths(self._folder))
        looker, paces, asked_at = Looker(cluster, watching.WINDOW_S), pacing.Pacing(), 0.0
        while not self._ended.wait(watching.MEASURE_S):
            try:
                if time.monotonic() - asked_at >= pacing.ASK_S:
                    asked_at = time.monotonic()
                    paces.take(asyncio.run(pacing.ask(cluster)), asked_at)
                snapshot = looker.look(paces=paces.paces)
            except (DtfctlError, OSError):
                continue  # it has not begun
            self.looks += 1
            for finding in diagnosis.findings(snapshot):
                self.found.setdefault(str(finding.kind), finding.words)
