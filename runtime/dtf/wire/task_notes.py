"""Notes between the task of this process and its supervisor, beside GetStatus: reports and requests.

Owns one value for the process, `notes`, and its words on the wire: a field of GetStatusRequest and GetStatusResponse
that TensorFlow does not know and therefore skips, with JSON in it. Sessions count their runs here: so the supervisor
sees that a loop stands still although the server answers. The hook that saves checkpoints sees here whether one is
wanted before a parameter server ends by plan. Nothing of the runtime depends on it.
"""

from __future__ import annotations

import json
import math

from dtf.wire import codec

FIELD = 47_475
HOLD_S_MAX = 30.0


class TaskNotes:
    """Changed by single assignments only, from any thread.

    Attributes:
      runs: how many runs of this process's sessions have ended well.
      savers: how many of its sessions can save a checkpoint when asked.
      wanted: the number of the last request for a checkpoint, 0 for none; `saved`, that of the last one fulfilled.
      hold_s: for how many seconds after saving the task makes no further step.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.savers = 0
        self.wanted = 0
        self.saved = 0
        self.hold_s = 0.0

    def ask(self, request: bytes) -> None:
        """Takes note of what a GetStatusRequest asks for; what cannot be read asks for nothing."""
        try:
            for field, value, _ in codec.message_fields(memoryview(request)):
                if field != FIELD:
                    continue
                found = json.loads(bytes(value))
                number, hold_s = int(found["save"]), float(found.get("hold_s", 0.0))
                if math.isfinite(hold_s) and 0 < number < 1 << 62 and number != self.wanted:
                    self.hold_s = min(max(hold_s, 0.0), HOLD_S_MAX)
                    self.wanted = number
        except Exception:  # a field of another program
            return

    def report(self) -> bytes:
        """What is appended to a serialized GetStatusResponse: nothing of a task that only serves."""
        if not (self.runs or self.savers):
            return b""
        value = json.dumps({"runs": self.runs, "savers": self.savers, "saved": self.saved}).encode()
        return codec.length_delimited(FIELD, len(value)) + value


notes = TaskNotes()
