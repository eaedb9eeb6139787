"""All targets by name: of servers (`server`), of files and contents (`files`), of dtfctl (`control`)."""

from __future__ import annotations

from tests.fuzz.harness import Target
from tests.fuzz.targets import control, files, server

TARGETS: dict[str, Target] = {target.name: target for target in (*server.TARGETS, *files.TARGETS, *control.TARGETS)}
