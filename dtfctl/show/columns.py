"""Tables for terminals: as wide as their cells, or what gives way where there is less room; states in colours. Pure.

Cells are rows of text, headings first. Words about a task (LAST) give way first, then whole columns; a number that is
shown is shown whole.
"""

from __future__ import annotations

from collections.abc import Sequence

GAP = 2
LAST = "LAST"
LAST_MIN = 6
DROPPED = (LAST, "GENERATION", "HOST", "ADDRESS", "PROCESSES", "THREADS", "SINCE", "PID", "GPU MEMORY", "MEMORY")
"""Columns that a narrow terminal does without, the first one first."""

SHORTENED = ("STATE", "TASK")
SHORTENED_MIN = 4

COLOURS = {
    **dict.fromkeys(("running", "succeeded"), "32"),
    **dict.fromkeys(("starting", "pending", "backoff", "stopping", "exited", "stalled"), "33"),
    **dict.fromkeys(("unreachable", "lost", "failed", "gave-up", "damaged"), "31"),
}
"""Of states; a state that is not here (stopped) has none."""

EVENT_COLOURS = {
    **dict.fromkeys(("ready", "succeed", "succeeded"), "32"),
    **dict.fromkeys(("hangs", "trouble", "notice", "retry", "ended", "stalled"), "33"),
    **dict.fromkeys(("fail", "failed", "give-up", "kill", "abandon", "left behind"), "31"),
}


def lines(cells: Sequence[Sequence[str]], width: int | None = None, is_coloured: bool = False) -> list[str]:
    """The table, no line of it wider than `width`."""
    widths = _widths(cells, width)
    kept = [position for position in range(len(widths)) if widths[position]]
    headings = cells[0]
    found = []
    for row in cells:
        parts = []
        for position in kept:
            text = _cut(row[position], widths[position])
            shown = text if position == kept[-1] else text.ljust(widths[position])
            is_state = is_coloured and headings[position] == "STATE" and row is not headings
            parts.append(coloured(shown, row[position].split(" ")[0], COLOURS) if is_state else shown)
        found.append((" " * GAP).join(parts).rstrip())
    return found


def coloured(text: str, word: str, colours: dict[str, str] = COLOURS) -> str:
    return f"\x1b[{colours[word]}m{text}\x1b[0m" if word in colours else text


def _widths(cells: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Of each column, 0 for one that is left out."""
    widths = [max(len(row[position]) for row in cells) for position in range(len(cells[0]))]
    if width is None:
        return widths
    places = {heading: position for position, heading in enumerate(cells[0])}

    def excess() -> int:
        shown = [each for each in widths if each]
        return sum(shown) + GAP * (len(shown) - 1) - width

    def shorten(heading: str, least: int) -> None:
        position = places[heading]
        widths[position] = max(min(widths[position], least), widths[position] - max(0, excess()))

    if LAST in places:
        shorten(LAST, LAST_MIN)
    for heading in DROPPED:
        if excess() > 0 and heading in places:
            widths[places[heading]] = 0
    for heading in SHORTENED:
        if excess() > 0 and heading in places:
            shorten(heading, SHORTENED_MIN)
    return widths


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
