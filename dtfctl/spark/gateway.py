"""Gives the executors of a Spark program to dtfctl: the bridge as a thread of the driver."""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from dtfctl.launchers.bridge.server import Bridge
from dtfctl.launchers.spark.request import SOCKET_VARIABLE

if TYPE_CHECKING:
    from pyspark import SparkContext

STOP_S = 30.0


class Gateway:
    """Serves from its making until `close`. `variables` lead dtfctl to it."""

    def __init__(self, context: SparkContext) -> None:
        # pyspark is not everybody's.
        from dtfctl.launchers.spark.executors import Executors

        self._executors = Executors(context)
        self._folder = Path(tempfile.mkdtemp(prefix="dtfctl-spark-"))
        self._path = str(self._folder / "socket")
        self._is_ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="dtfctl-gateway", daemon=True)
        self._thread.start()
        self._is_ready.wait()
        self.variables = {SOCKET_VARIABLE: self._path}

    def close(self) -> None:
        if self._thread.is_alive() and self._serving is not None:
            self._loop.call_soon_threadsafe(self._serving.cancel)
            self._thread.join(STOP_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        with contextlib.closing(self._loop), contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._serving = asyncio.current_task()
        try:
            await Bridge(self._executors).serve(self._path, self._is_ready.set, idle_s=math.inf)
        finally:
            await self._executors.close()
