"""The user's end of a command: data on stdout, words on stderr, and below them a view that is drawn again and again.

How words are told is the `--progress` mode: `tty` draws the live view, `plain` prints lines, `json` prints one JSON
object a line, `quiet` nothing; `auto` is tty at a terminal and plain elsewhere. Errors are always told.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TextIO

from dtfctl.wording import coloured

if TYPE_CHECKING:
    from rich.console import RenderableType

AUTO, TTY, PLAIN, JSON, QUIET = ("auto", "tty", "plain", "json", "quiet")

DRAW_INTERVAL_S = 0.1
FALLBACK_SIZE = (100, 40)
LATEST_S = 250e9
"""The year 9892."""

_STYLE = re.compile(r"\x1b\[[0-9;]*m")

Renderable = Callable[[int, int], "RenderableType"]
"""Makes what is to be drawn, for a width and at most so many lines."""


class Terminal:
    """One for each command. What it draws it wipes again: before anything else is said, and at the end."""

    def __init__(self, mode: str = AUTO, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        is_able = self._err.isatty() and os.environ.get("TERM") != "dumb"
        self.mode = (TTY if is_able else PLAIN) if mode == AUTO else mode
        self._is_out_beside = self._out.isatty()
        self._drawn: list[int] = []
        self._drawn_at = 0.0

    @property
    def is_live(self) -> bool:
        return self.mode == TTY

    def say(self, text: str, **facts: Any) -> None:
        """Words for a person, and with `--progress json` what they are made of."""
        if self.mode == JSON:
            self._write(self._err, json.dumps({"time": rfc3339(time.time()), "message": text, **facts}) + "\n")
        elif self.mode != QUIET:
            self.wipe()
            self._write(self._err, f"{for_terminal(text, self._err)}\n")

    def show(self, lines: Sequence[str]) -> None:
        """Data."""
        if not lines:
            return
        if self._is_out_beside:
            self.wipe()
        self._write(self._out, "".join(f"{line}\n" for line in lines))

    def draw(self, make: Renderable, is_now: bool = False) -> None:
        """The live view, in the place of the former one; not more often than the eye can follow unless `is_now`."""
        now = time.monotonic()
        if not self.is_live or (now < self._drawn_at + DRAW_INTERVAL_S and self._drawn and not is_now):
            return
        width, height = self.size()
        lines = rendered(make(width, height - 1), width, has_colour(self._err))[: height - 1]
        former, self._drawn = self._erasure(), [len(_STYLE.sub("", line)) for line in lines]
        # In one piece, so that nothing flickers.
        self._write(self._err, former + "".join(f"{line}\x1b[0K\n" for line in lines) + "\x1b[J")
        self._drawn_at = now

    def wipe(self) -> None:
        """Takes the live view away."""
        if self._drawn:
            self._write(self._err, self._erasure() + "\x1b[J")
            self._drawn = []

    def keep(self) -> None:
        """What is drawn stays on the screen; what comes is below it."""
        self._drawn = []

    def size(self) -> tuple[int, int]:
        try:
            width, height = os.get_terminal_size(self._err.fileno())
        except (OSError, ValueError):
            width, height = shutil.get_terminal_size(FALLBACK_SIZE)
        return (width, height) if width > 0 and height > 1 else FALLBACK_SIZE

    def _erasure(self) -> str:
        """Moves to where the drawing began. A terminal that was made narrower has broken its lines into more."""
        width = max(1, self.size()[0])
        rows = sum(max(1, -(-length // width)) for length in self._drawn)
        return f"\r\x1b[{rows}A" if rows else ""

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(text)
        stream.flush()


def rendered(renderable: RenderableType, width: int, colour: bool) -> list[str]:
    """The lines as a terminal of that width gets them."""
    # It takes a moment to load, and only live views need it.
    from rich.console import Console

    console = Console(
        width=width, force_terminal=True, color_system="standard" if colour else None, highlight=False, emoji=False,
        markup=False, legacy_windows=False,
    )  # fmt: skip
    with console.capture() as captured:
        console.print(renderable, end="")
    return [line.rstrip() for line in captured.get().rstrip("\n").split("\n")]


def for_terminal(text: str, stream: TextIO) -> str:
    """Words that may quote what came from outside, as a person sees them: nothing in them acts but their colours."""
    return "\n".join(coloured(line, has_colour(stream)) for line in text.split("\n"))


def has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def rfc3339(wall: float) -> str:
    """UTC, with milliseconds. A time that no calendar has, from a damaged file, is the nearest that one has."""
    at = datetime.fromtimestamp(max(0.0, min(wall, LATEST_S)), timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
