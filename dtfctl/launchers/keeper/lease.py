"""How long the tasks of a host may run without news of their supervisor, so that no two processes write for one task.

A supervisor replaces the tasks of a host that it cannot reach. The tasks that still run there must have ended by then,
and only the host itself can end them. So the supervisor grants a lease, by this host's monotonic clock, and renews it.
When it runs out, the keeper kills the tasks; a shim whose keeper is gone does the same. Without a lease tasks run on.
A keeper that hears nothing for much longer goes too: nobody may ever come to end it. What it knows stays on disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from dtfctl.launchers.keeper.protocol import LEASE_RECORD
from dtfctl.wire.messages import BadMessage, checked

FILE = "lease"
OVERSLEPT_S = 2.0
"""A process that wakes so late was stopped, and all its host with it: that time does not count."""

LEAVE_AFTER = 2
LEAVE_AFTER_S_MIN = 10.0
"""A keeper goes when its lease has been over for so many times as long as it was, and for at least so many seconds."""

WORDS = "killed by its own host, which had lost its supervisor for too long (fence_after)"


class Lease:
    """`until` is None without a lease, `leave_at` when a keeper without news goes; `host` is this host's name in the
    environment of its tasks."""

    def __init__(self, boot: str) -> None:
        self.boot = boot
        self.until: float | None = None
        self.leave_at: float | None = None
        self.host = ""
        self.load()

    def load(self) -> None:
        """The lease on record, as a former keeper has left it. One of an earlier boot counts for nothing."""
        with contextlib.suppress(OSError, BadMessage), open(FILE, "rb") as file:
            record = checked(file.read(), LEASE_RECORD)
            if record["boot"] == self.boot:
                self.until, self.host = record["until"], record["host"]
                # Whoever has started this keeper may be about to renew it.
                self.leave_at = max(record["until"], time.monotonic()) + LEAVE_AFTER_S_MIN

    def renew(self, until: float | None, host: str) -> None:
        """On disk too, for a keeper or shim that has to go on with it."""
        self.until, self.host, self.leave_at = until, host, None
        if until is not None:
            self.leave_at = until + max(LEAVE_AFTER * (until - time.monotonic()), LEAVE_AFTER_S_MIN)
        aside = f"{FILE}.{os.getpid()}"
        with contextlib.suppress(OSError):
            if until is None:
                os.unlink(FILE)
                return
            with open(aside, "w") as file:
                json.dump({"boot": self.boot, "until": until, "host": host}, file)
            os.replace(aside, FILE)

    def is_over(self, now: float) -> bool:
        return self.until is not None and now >= self.until

    def forgive(self, overslept_s: float) -> None:
        if self.until is not None and overslept_s > OVERSLEPT_S:
            self.until += overslept_s
            self.leave_at = None if self.leave_at is None else self.leave_at + overslept_s
