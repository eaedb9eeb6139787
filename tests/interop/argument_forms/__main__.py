"""`python -m tests.interop.argument_forms [--names] [--open] [TABLE...]`: what differs between dtf and TensorFlow.

`--open` writes the cases that differ to the file that the test leaves out.
"""

from __future__ import annotations

import sys

import dtf
from tests.interop.argument_forms import compare, known, outcomes

arguments = sys.argv[1:]
tables = [each for each in arguments if not each.startswith("--")] or list(outcomes.TABLES)
wanted = compare.tensorflow_outcomes(tables)
total = taken = 0
differing = []
for table, cases in wanted.items():
    for case, outcome in cases.items():
        total += 1
        found = outcomes.outcome(dtf, case)
        text = compare.difference(outcome, found, "--names" in arguments)
        if text and compare.accepted(outcome, found):
            taken += 1
        elif text and not known.reason(case):
            differing.append(case)
            print(f"{table}: {case}\n    {text}")
            for each in (found, outcome):
                if "message" in each:
                    print(f"    {each['message'][:160]!r}")
print(f"{total} cases, {len(differing)} differ, {taken} are accepted or refused earlier by dtf only")
if "--open" in arguments:
    known.OPEN.write_text("".join(f"{case}\n" for case in sorted(differing)), encoding="utf-8")
