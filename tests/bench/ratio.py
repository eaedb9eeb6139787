"""How many ps for how many workers: `python -m tests.bench.ratio --ps 1 2 4 --workers 1 2 4 8 [--plot FILE]`.

Asynchronous training (or synchronous, `--mode sync`) of one of tests.bench.programs in every combination, each task a
process of its own on this machine; global steps per second as a table, and drawn. What is best depends on the model:
on how much its workers compute, and how much the ps move and update. On one machine all of them share its cores, so
the table says most where there are more cores than tasks.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence

from tests.bench.cluster import Tasks
from tests.bench.figures import report
from tests.bench.programs import MODELS

BAR_WIDTH = 50
Grid = dict[tuple[int, int], float]
"""(ps, workers) -> global steps per second."""


def measure(runtime: str, model: str, mode: str, ps: int, workers: int, seconds: float) -> float:
    """Global steps per second of one combination."""
    with Tasks(runtime, ps=ps, worker=workers) as tasks:
        tasks.serve(["ps"])
        chief = tasks.start("worker", 0, model, str(seconds), mode)
        for index in range(1, workers):
            tasks.start("worker", index, model, str(seconds), mode)
        return report(chief)["steps_per_s"]


def table(grid: Grid) -> str:
    """The grid in Markdown: a row for each number of workers, a column for each number of ps."""
    ps_counts, worker_counts = _axes(grid)
    lines = [f"| workers | {' | '.join(f'{ps} ps' for ps in ps_counts)} |", f"|---|{'---|' * len(ps_counts)}"]
    for workers in worker_counts:
        lines.append(f"| {workers} | {' | '.join(f'{grid[ps, workers]:.1f}' for ps in ps_counts)} |")
    return "\n".join(lines)


def bars(grid: Grid) -> str:
    """The grid as bars of text, a group for each number of workers."""
    ps_counts, worker_counts = _axes(grid)
    most = max(grid.values())
    lines = []
    for workers in worker_counts:
        for ps in ps_counts:
            length = round(BAR_WIDTH * grid[ps, workers] / most)
            lines.append(f"{workers:>3} workers {ps:>2} ps {'█' * length:<{BAR_WIDTH}} {grid[ps, workers]:.1f} steps/s")
        lines.append("")
    return "\n".join(lines)


def plot(grid: Grid, title: str, file: str) -> None:
    """Draws steps per second over workers, a line for each number of ps, into a PNG or SVG file.

    Raises:
      SystemExit: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("--plot draws with matplotlib: pip install matplotlib") from None
    ps_counts, worker_counts = _axes(grid)
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    for ps in ps_counts:
        axes.plot(worker_counts, [grid[ps, workers] for workers in worker_counts], marker="o", label=f"{ps} ps")
    axes.set(xlabel="workers", ylabel="global steps per second", title=title, xticks=worker_counts, ylim=(0, None))
    axes.legend()
    figure.savefig(file)


def _axes(grid: Grid) -> tuple[list[int], list[int]]:
    return sorted({ps for ps, _ in grid}), sorted({workers for _, workers in grid})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ps", type=int, nargs="+", default=[1, 2, 4], help="numbers of ps")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8], help="numbers of workers")
    parser.add_argument("--model", choices=sorted(MODELS), default="mlp")
    parser.add_argument("--mode", choices=["async", "sync"], default="async")
    parser.add_argument("--runtime", choices=["dtf", "tensorflow"], default="dtf")
    parser.add_argument("--seconds", type=float, default=3.0, help="of training for each figure, after the warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="how often all is measured; the median counts")
    parser.add_argument("--plot", metavar="FILE", help="draw it with matplotlib too, as PNG or SVG")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file too")
    options = parser.parse_args(arguments)
    found: dict[tuple[int, int], list[float]] = {(ps, workers): [] for workers in options.workers for ps in options.ps}
    for _ in range(options.rounds):
        for (ps, workers), rates in found.items():
            rates.append(measure(options.runtime, options.model, options.mode, ps, workers, options.seconds))
            print(f"{workers} workers, {ps} ps: {rates[-1]:.1f} steps/s", flush=True)
    grid = {place: statistics.median(rates) for place, rates in found.items()}
    title = f"{options.model}, {options.mode}, {options.runtime}"
    print(f"\n{title}: global steps per second\n\n{table(grid)}\n\n{bars(grid)}")
    if options.json:
        rows = [{"ps": ps, "workers": workers, "steps_per_s": rate} for (ps, workers), rate in grid.items()]
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if options.plot:
        plot(grid, title, options.plot)


if __name__ == "__main__":
    main()
