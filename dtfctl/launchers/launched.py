"""The logs that belong to one other host: those of the processes that it was asked to start.

A host reports bytes by the name of a log. Without this record it could write to the logs of other hosts' tasks. The
record is a file in the run's folder, because the next supervisor brings the rest of the same logs.
"""

from __future__ import annotations

from pathlib import Path

LAUNCHED = "launched"
"""The folder of these files, in the folder of a run."""


class LaunchedLogs:
    """The names of the logs of `host`. One thread."""

    def __init__(self, run_dir: Path, host: str) -> None:
        self._file = run_dir / LAUNCHED / host
        self._names = set(self._file.read_text().split()) if self._file.exists() else set[str]()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def note(self, name: str) -> None:
        """Before the host is asked to start the process that writes it."""
        if name not in self._names:
            self._file.parent.mkdir(exist_ok=True)
            with open(self._file, "a") as file:
                file.write(f"{name}\n")
            self._names.add(name)
