"""Curves as text: sparklines for live views, plots by plotext, pictures by matplotlib where it is installed.

plotext draws into any terminal, is pure Python and comes with the extra `plot`; nothing else needs it. matplotlib is
large, so only `--png` asks for it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dtfctl.errors import PlotMissing
from dtfctl.wording import printable

if TYPE_CHECKING:
    from dtfctl.logs.events import Series
    from dtfctl.logs.progress import Progress

BARS = "▁▂▃▄▅▆▇█"
GAP = "·"
SPARK_WIDTH = 24
POINTS_MAX = 1000
TRAIL_MAX = 240

Points = Mapping[str, tuple[Sequence[int], Sequence[float]]]
"""Label -> steps and values."""


class Trail:
    """The last losses and rates of a training that is watched, as one line."""

    def __init__(self) -> None:
        self._losses: deque[float | None] = deque(maxlen=TRAIL_MAX)
        self._rates: deque[float | None] = deque(maxlen=TRAIL_MAX)
        self._last: Progress | None = None

    def add(self, progress: Progress | None) -> None:
        """Each step counts once."""
        if progress is None or (self._last is not None and progress.step == self._last.step):
            return
        self._last = progress
        for kept, value in ((self._losses, progress.loss), (self._rates, progress.steps_per_s)):
            if value is not None:
                kept.append(value)

    def line(self) -> str:
        """"" before there are two values of either."""
        parts = []
        for name, kept in (("loss", self._losses), ("steps/s", self._rates)):
            drawn_values = sparkline(list(kept))
            if drawn_values:
                parts.append(f"{name} {kept[-1]:.4g} {drawn_values}")
        return "  ".join(parts)


def sparkline(values: Sequence[float | None], width: int = SPARK_WIDTH) -> str:
    """One character for each stretch of the values, its mean as the height. A stretch without numbers is a dot. Less
    than two values give ""."""
    if len(values) < 2:
        return ""
    stretches = [values[len(values) * at // width : len(values) * (at + 1) // width] for at in range(width)]
    if len(values) < width:
        stretches = [[value] for value in values]
    means: list[float | None] = []
    for stretch in stretches:
        finite = [value for value in stretch if value is not None and math.isfinite(value)]
        means.append(sum(finite) / len(finite) if len(finite) == len(stretch) and finite else None)
    known = [mean for mean in means if mean is not None]
    if not known:
        return GAP * len(means)
    low, high = min(known), max(known)
    step = (high - low) / (len(BARS) - 1) or 1.0
    return "".join(GAP if mean is None else BARS[round((mean - low) / step)] for mean in means)


def points(found: Mapping[tuple[str, str], Series], first: int | None) -> Points:
    """At most POINTS_MAX of each series, by a label: the tag, with the run where there are several."""
    has_runs = len({name for name, _ in found}) > 1
    return {
        printable(f"{name}: {tag}" if has_runs and name != "." else tag): series.points(
            POINTS_MAX, -math.inf if first is None else first
        )[::2]
        for (name, tag), series in found.items()
    }


def drawn(title: str, curves: Points, width: int, height: int, is_coloured: bool) -> str:
    """A plot in characters.

    Raises:
      PlotMissing: plotext is not installed.
    """
    try:
        import plotext
    except ImportError:
        raise PlotMissing("curves in the terminal need plotext: pip install 'dtf[plot]'") from None
    plotext.clear_figure()
    plotext.plotsize(max(40, width), max(10, height))
    plotext.theme("pro" if is_coloured else "clear")
    for label, (steps, values) in curves.items():
        kept = [(step, value) for step, value in zip(steps, values, strict=True) if math.isfinite(value)]
        if kept:
            plotext.plot([step for step, _ in kept], [value for _, value in kept], label=label, marker="braille")
    plotext.title(title)
    plotext.xlabel("step")
    text: str = plotext.build()
    return text if is_coloured else str(plotext.uncolorize(text))


def write_png(path: str, title: str, curves: Points) -> None:
    """A picture of the curves.

    Raises:
      PlotMissing: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotMissing("pictures of curves need matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for label, (steps, values) in curves.items():
        axes.plot(steps, values, label=label.replace("$", r"\$"))
    axes.set_title(title)
    axes.set_xlabel("step")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120, format="png")


def csv_word(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text
