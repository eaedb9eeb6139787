"""The table of op cases: one row says what an op must compute and which gradients to check numerically.

Each module of this package holds the rows of one family in `CASES`; `tests/runtime/test_ops.py` runs them all.

    Case("Maximum", [x, y], expect=np.maximum)
    Case("ConcatV2", [[a, b], np.int32(1)], expect=lambda a, b, axis: np.concatenate([a, b], 1), grad=[0, 1])
    Case("QueueSizeV2", run=queue_reports_its_size)
"""

from __future__ import annotations

import functools
import importlib
import json
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dtf.wire import dtypes

#: As a case's `expect`: the values that TensorFlow 2.21 gave, kept in recorded.json by tests/interop/record_cases.py.
RECORDED = object()


@dataclass(frozen=True)
class Vary:
    """What the comparison with TensorFlow (tests/interop/differential) may change of a row.

    Attributes:
      values: names of the inputs of which any value will do; None for what the contract says: those whose dtype may be
        floating-point, bool or an 8-bit integer. All others hold sizes, axes or indices.
      domain: the least and the greatest of the odd values to try.
      odd_values: whether to fill the values with NaN, infinities, zeros and the ends of the range at all.
      shapes: whether to try other shapes.
      fixed_attrs: attributes that stay as they are.
    """

    values: tuple[str, ...] | None = None
    domain: tuple[float, float] = (-np.inf, np.inf)
    odd_values: bool = True
    shapes: bool = True
    fixed_attrs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
      op: the op type.
      inputs: one array per input of the OpDef; a list of arrays where the input is a list.
      attrs: attributes that cannot be inferred from the inputs.
      expect: the expected output(s): a function of the flattened inputs, or the value itself; a list for several;
        RECORDED for what numpy has no words for.
      grad: True checks the gradient of every floating-point input against central differences in the inputs' own
        dtype (use float64), a list of flattened input positions only those, False none.
      run: for ops that a row of arrays cannot show (state, queues, files): a test function of its own.
      atol, rtol: tolerances of the value comparison. grad_tol: of the gradient comparison.
      name: tells rows of one op apart.
      vary: what the comparison with TensorFlow may change.
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
    vary: Vary = Vary()

    def __str__(self) -> str:
        return f"{self.op}-{self.name}" if self.name else self.op


def all_cases() -> list[Case]:
    """The rows of all families."""
    cases: list[Case] = []
    for module in pkgutil.iter_modules(__path__):
        cases.extend(importlib.import_module(f"{__name__}.{module.name}").CASES)
    return cases


RECORDED_FILE = Path(__file__).parent / "recorded.json"


def recorded_values(case: Case) -> list[np.ndarray]:
    """The outputs that TensorFlow gave for a case, from recorded.json."""
    rows = _recorded().get(str(case))
    if rows is None:
        raise LookupError(f"{case} is not in recorded.json: run tests/interop/record_cases.py")
    values = []
    for dtype, shape, elements in rows:
        array = np.empty(len(elements), dtypes.as_dtype(dtype).as_numpy_dtype)
        array[:] = [element.encode("latin1") for element in elements] if dtype == "string" else elements
        values.append(array.reshape(shape))
    return values


@functools.cache
def _recorded() -> dict[str, Any]:
    return json.loads(RECORDED_FILE.read_text(encoding="utf-8"))
