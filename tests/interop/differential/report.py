"""Compares all ops, or those that are named, and writes what differs: `python -m tests.interop.differential.report`.

    DTF_TENSORFLOW_PYTHON=... python -m tests.interop.differential.report [OP ...]

Runs under the project's Python from the repository root with runtime/ on PYTHONPATH. Prints every difference that
`known` does not explain, and how many variants there were.
"""

from __future__ import annotations

import sys
import time

from tests.interop.differential import decompositions, state
from tests.interop.differential.compare import Comparison, Runtimes
from tests.runtime.op_cases import Case, all_cases


def rows() -> dict[str, list[Case]]:
    """The rows to compare, by op: those of the table that are arrays, of variables, of decompositions."""
    found: dict[str, list[Case]] = {}
    for row in [*all_cases(), *state.rows(), *decompositions.rows()]:
        if row.run is None:
            found.setdefault(row.op, []).append(row)
    return found


def main(arguments: list[str]) -> None:
    compared = {op: cases for op, cases in rows().items() if not arguments or op in arguments}
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
    print(
        f"{total.count} variants of {len(compared)} ops, {total.refused} refused by TensorFlow, "
        f"{len(total.different)} differ, {time.monotonic() - started:.0f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
