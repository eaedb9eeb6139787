"""`python -m tests.fuzz`: tries inputs, prints what came of them, and keeps the lost ones in the corpus."""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from pathlib import Path

from tests.fuzz import harness
from tests.fuzz.targets import TARGETS


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        name, seed, seconds, inputs, first, progress = sys.argv[2:]
        harness.serve_child(TARGETS[name], int(seed), float(seconds), int(inputs), int(first), Path(progress))
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="in all, shared by the targets")
    parser.add_argument("--inputs", type=int, default=1 << 40, help="at most so many of each target")
    parser.add_argument("--seed", type=int, help="which inputs; by default others each time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="only this; may be repeated")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    names = options.target or list(TARGETS)
    print(f"seed {seed}", flush=True)
    total = harness.Tally()
    deadline = time.monotonic() + options.minutes * 60
    for position, name in enumerate(names):
        share_s = (deadline - time.monotonic()) / (len(names) - position)
        tally = harness.campaign(TARGETS[name], seed, max(0.5, share_s), options.inputs, options.first)
        total.add(tally)
        print(f"{name:14}{tally}", flush=True)
        for (number, why), count in _kinds(tally.lost):
            print(f"    {count} times: --target {name} --seed {seed} --first {number} --inputs 1: {why}", flush=True)
    print(f"{'all':14}{total}")
    sys.exit(1 if total.lost else 0)


def _kinds(lost: list[tuple[int, str]]) -> list[tuple[tuple[int, str], int]]:
    """One of each kind of loss, with how many there are: those whose words differ in numbers only are one kind."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    for number, why in lost:
        kinds.setdefault(re.sub(r"\d+", "", why.splitlines()[0]), []).append((number, why.strip()))
    return [(found[0], len(found)) for found in kinds.values()]


if __name__ == "__main__":
    main()
