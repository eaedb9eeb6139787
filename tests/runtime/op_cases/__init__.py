"""The table of op cases: one row says what an op must compute and which gradients to check numerically.

Each module of this package holds the rows of one family in `CASES`; `tests/runtime/test_ops.py` runs them all.

    Case("Maximum", [x, y], expect=np.maximum)
    Case("ConcatV2", [[a, b], np.int32(1)], expect=lambda a, b, axis: np.concatenate([a, b], 1), grad=[0, 1])
    Case("QueueSizeV2", run=queue_reports_its_size)
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
      op: the op type.
      inputs: one array per input of the OpDef; a list of arrays where the input is a list.
      attrs: attributes that cannot be inferred from the inputs.
      expect: the expected output(s): a function of the flattened inputs, or the value itself; a list for several.
      grad: True checks the gradient of every floating-point input against central differences in the inputs' own
        dtype (use float64), a list of flattened input positions only those, False none.
      run: for ops that a row of arrays cannot show (state, queues, files): a test function of its own.
      atol, rtol: tolerances of the value comparison. grad_tol: of the gradient comparison.
      name: tells rows of one op apart.
    """

    op: str
    inputs: Sequence[Any] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    expect: Any = None
    grad: bool | Sequence[int] = False
    run: Callable[[], None] | None = None
    atol: float = 1e-6
    rtol: float = 1e-5
    grad_tol: float = 1e-4
    name: str = ""

    def __str__(self) -> str:
        return f"{self.op}-{self.name}" if self.name else self.op


def all_cases() -> list[Case]:
    """The rows of all families."""
    cases: list[Case] = []
    for module in pkgutil.iter_modules(__path__):
        cases.extend(importlib.import_module(f"{__name__}.{module.name}").CASES)
    return cases
