"""Compares all ops, or those that are named, and writes what differs: `python -m tests.interop.differential.report`.

    DTF_TENSORFLOW_PYTHON=... python -m tests.interop.differential.report [--write] [OP ...]

Runs under the project's Python from the repository root with runtime/ on PYTHONPATH. Prints every difference that
`known` does not explain, and how many variants there were. With --write, `open_differences.txt` becomes the list of
them (of the ops that are compared): what nobody has decided on yet, which the test lets pass so that nothing is added.
"""

from __future__ import annotations

import sys
import time

from tests.interop.differential import known, state
from tests.interop.differential.compare import Comparison, Runtimes
from tests.runtime.op_cases import Case, all_cases


def rows() -> dict[str, list[Case]]:
    """The rows to compare, by op: those of the table that are arrays, and those of variables."""
    found: dict[str, list[Case]] = {}
    for row in [*all_cases(), *state.rows()]:
        if row.run is None:
            found.setdefault(row.op, []).append(row)
    return found


def main(arguments: list[str]) -> None:
    chosen = {name for name in arguments if not name.startswith("--")}
    compared = {op: cases for op, cases in rows().items() if not chosen or op in chosen}
    runtimes, started = Runtimes(), time.monotonic()
    total = Comparison()
    try:
        for cases in compared.values():
            for case in cases:
                found = runtimes.compare(case)
                for variant, words in found.different:
                    print(f"{variant}: {words}", flush=True)
                total += found
    finally:
        runtimes.close()
    if "--write" in arguments:
        kept = [name for name in known.open_differences() if name.split()[0].split("-")[0] not in compared]
        known.write_open_differences([*kept, *(variant for variant, _ in total.different)])
    print(
        f"{total.count} variants of {len(compared)} ops, {total.refused} refused by TensorFlow, "
        f"{len(total.different)} differ, {time.monotonic() - started:.0f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
