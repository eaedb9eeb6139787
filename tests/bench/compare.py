"""dtf beside TensorFlow: `python -m tests.bench.compare [--rounds N] [--json FILE] [FIGURE ...]`.

Runs `tests.bench.figures` for both runtimes in turn, round after round, so that the machine's moods meet both, and
prints medians and ratios. TensorFlow's Python is taken from DTF_TENSORFLOW_PYTHON; without it only dtf is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict

from tests.bench.cluster import ROOT
from tests.bench.figures import FIGURES


def measure(python: str, runtime: str, figure: str) -> dict[str, float | str]:
    """One run of one figure in a process of its own."""
    done = subprocess.run(
        [python, "-m", "tests.bench.figures", runtime, figure], cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=300
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {figure: f"exit status {done.returncode}"}


def advantage(name: str, dtf: float, tensorflow: float) -> float:
    """How many times better dtf is; more is better for rates, less for times and sizes."""
    return dtf / tensorflow if name.endswith("per_s") else tensorflow / dtf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", nargs="*", choices=[[], *FIGURES], help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="also write the medians and all samples to this file")
    arguments = parser.parse_args()
    pythons = {"dtf": sys.executable}
    if os.environ.get("DTF_TENSORFLOW_PYTHON"):
        pythons["tensorflow"] = os.environ["DTF_TENSORFLOW_PYTHON"]

    samples: dict[str, dict[str, list[float]]] = {runtime: defaultdict(list) for runtime in pythons}
    failures: dict[tuple[str, str], str] = {}
    for round_number in range(arguments.rounds):
        for figure in arguments.figures or FIGURES:
            for runtime, python in pythons.items():
                print(f"round {round_number + 1}/{arguments.rounds}: {figure} on {runtime}", file=sys.stderr)
                for name, value in measure(python, runtime, figure).items():
                    if isinstance(value, str):
                        failures[runtime, name] = value
                    else:
                        samples[runtime][name].append(value)

    medians = {runtime: {name: statistics.median(v) for name, v in found.items()} for runtime, found in samples.items()}
    print(f"| figure | {' | '.join(pythons)} | dtf is better by |")
    print(f"|---|{'---|' * (len(pythons) + 1)}")
    for name in dict.fromkeys(name for found in medians.values() for name in found):
        cells = [f"{medians[runtime][name]:,.3g}" if name in medians[runtime] else "-" for runtime in pythons]
        both = len(pythons) == 2 and all(name in medians[runtime] for runtime in pythons)
        ratio = f"{advantage(name, medians['dtf'][name], medians['tensorflow'][name]):.2f}x" if both else "-"
        print(f"| {name} | {' | '.join(cells)} | {ratio} |")
    for (runtime, name), reason in failures.items():
        print(f"{name} on {runtime} failed: {reason}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
            json.dump({"machine": machine, "medians": medians, "samples": samples}, file, indent=1)


if __name__ == "__main__":
    main()
