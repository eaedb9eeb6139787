"""Compares one row of the table under both runtimes, in all its variants.

Owns the pair of processes and the walk row -> variants -> jobs -> outcomes -> differences; what these are is in the
neighbours.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from tests.interop.differential import decompositions, known
from tests.interop.differential.difference import difference
from tests.interop.differential.jobs import job
from tests.interop.differential.processes import Runner
from tests.interop.differential.row import Kernels
from tests.interop.differential.variant import Variant
from tests.interop.differential.variants import variants
from tests.runtime.op_cases import Case


@dataclass(frozen=True)
class Comparison:
    """How many variants were compared, how many of them TensorFlow refused, and (variant, what differs)."""

    count: int = 0
    refused: int = 0
    different: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.count + other.count, self.refused + other.refused, self.different + other.different)


class Runtimes:
    """A process of each runtime, which work at the same time."""

    def __init__(self) -> None:
        self._ours, self._theirs = Runner("dtf"), Runner("tensorflow.compat.v1")
        self._both = ThreadPoolExecutor(2)
        self.kernels: Kernels = self._theirs.run_one("kernels")

    def compare(self, case: Case) -> Comparison:
        """All variants of a row."""
        every = [variant for variant in variants(case, self.kernels) if known.skipped(variant) is None]
        outcomes = self._outcomes(every)
        # Some of TensorFlow's shape rules want to know the shapes that the variant keeps from them.
        again = [
            at
            for at, (variant, (_, theirs)) in enumerate(zip(every, outcomes, strict=True))
            if not variant.static and not variant.raw_attrs and theirs.get("error", ("",))[0] == "import"
        ]
        for at, pair in zip(again, self._outcomes([replace(every[at], static=True) for at in again]), strict=True):
            outcomes[at] = pair
        different = []
        for variant, (ours, theirs) in zip(every, outcomes, strict=True):
            if case.op in decompositions.OPS:
                ours, theirs = (decompositions.invariant(case.op, outcome) for outcome in (ours, theirs))
            found = difference(ours, theirs, known.tolerance_factor(variant))
            if found is not None and known.reason(variant, found) is None:
                different.append((str(variant), found))
        refused = sum("error" in theirs for _, theirs in outcomes)
        return Comparison(len(every), refused, tuple(different))

    def close(self) -> None:
        """Ends the processes."""
        self._ours.close()
        self._theirs.close()
        self._both.shutdown()

    def _outcomes(self, every: list[Variant]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        jobs = [job(variant) for variant in every]
        ours, theirs = self._both.map(lambda runner: runner.run(jobs), (self._ours, self._theirs))
        return list(zip(ours, theirs, strict=True))
