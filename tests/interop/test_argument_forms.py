"""Calls in all forms of their arguments must come to what they come to in TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest

import dtf
from tests.interop.argument_forms import compare, known, outcomes
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = [*needs_tensorflow[:2], pytest.mark.timeout(1200)]


#: One case in so many is compared here; `python -m tests.interop.argument_forms` compares all.
EVERY = 5


@pytest.fixture(scope="module")
def wanted() -> dict[str, dict[str, Any]]:
    return compare.tensorflow_outcomes(outcomes.TABLES, EVERY)


@pytest.mark.parametrize("table", outcomes.TABLES)
def test_calls_come_to_what_they_do_in_tensorflow(table: str, wanted: dict[str, dict[str, Any]]) -> None:
    left_out = known.open_cases()
    differing = []
    for case, outcome in wanted[table].items():
        if case in left_out or known.reason(case):
            continue
        found = outcomes.outcome(dtf, case)
        text = compare.difference(outcome, found)
        if text and not compare.accepted(outcome, found):
            differing.append(f"{case}: {text}")
    assert not differing, "\n".join(differing[:20])
