"""Where two outcomes of one case differ in what a program can notice."""

from __future__ import annotations

import os
import pickle
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.interop.tensorflow_process import PYTHON, ROOT


def tensorflow_outcomes(tables: Sequence[str], every: int = 1) -> dict[str, dict[str, Any]]:
    """The outcomes under TensorFlow of every so many cases, by table and case, from one process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "outcomes")
        environment = {
            **os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0",
            "TF_USE_LEGACY_KERAS": "1", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        done = subprocess.run(
            [PYTHON, "-W", "ignore", "-m", "tests.interop.argument_forms.outcomes", path, str(every), *tables],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        with open(path, "rb") as file:
            return pickle.load(file)


def difference(wanted: dict[str, Any], found: dict[str, Any], names: bool = False) -> str:
    """The first difference, in words; empty for equal results. Names and op types count only if `names`."""
    one, other = _failure(wanted), _failure(found)
    if one or other:
        if one and other and one[0] == other[0] and _related(one[1], other[1]):
            return ""
        return f"{' '.join(other) or 'no error'} for {' '.join(one) or 'no error'}"
    one, other = (_shown(each["result"], names) for each in (wanted, found))
    if not _fits(one, other):
        return f"result {other} for {one}"
    for index, (value, ours) in enumerate(zip(wanted["values"], found["values"], strict=True)):
        if text := _values_differ(value, ours):
            return f"value {index}: {text}"
    if names and wanted["nodes"] != found["nodes"]:
        return f"nodes {found['nodes']} for {wanted['nodes']}"
    return ""


#: Messages of TensorFlow that say nothing about the call: it has no kernel here, or its own message cannot be made.
_NO_ANSWERS = ("No OpKernel was registered", "basic_string::_M_construct null not valid")


def accepted(wanted: dict[str, Any], found: dict[str, Any]) -> bool:
    """Whether dtf takes a call that TensorFlow's Python refuses, or refuses earlier than the step does."""
    if _failure(wanted)[:1] == ("building",) and not _failure(found):
        return True
    if any(text in wanted.get("message", "") for text in _NO_ANSWERS):
        return True
    return _failure(wanted) == ("running", "InvalidArgumentError") and _failure(found) == ("building", "ValueError")


def _failure(outcome: dict[str, Any]) -> tuple[str, ...]:
    """When an error came, and which; empty without one."""
    return next(((stage, outcome[stage]) for stage in ("building", "running") if stage in outcome), ())


def _related(one: str, other: str) -> bool:
    """Whether an `except` of one error catches the other: TensorFlow has subclasses of Python's errors."""
    of_python = {"OperatorNotAllowedInGraphError": "TypeError"}
    return of_python.get(one, one) == of_python.get(other, other)


def _fits(wanted: Any, found: Any) -> bool:
    """Whether two descriptions agree; a static shape may be more definite than TensorFlow's."""
    if isinstance(wanted, list) and wanted and wanted[0] in ("tensor", "SparseTensor", "IndexedSlices"):
        at = 2 if wanted[0] == "tensor" else 1
        if not isinstance(found, list) or len(found) != len(wanted) or not _refines(wanted[at], found[at]):
            return False
        return all(_fits(one, two) for index, (one, two) in enumerate(zip(wanted, found, strict=True)) if index != at)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_fits, wanted, found))
    return bool(wanted == found)


def _refines(wanted: list[Any] | None, found: list[Any] | None) -> bool:
    if wanted is None:
        return True
    return found is not None and len(wanted) == len(found) and all(
        one is None or one == other for one, other in zip(wanted, found, strict=True)
    )


def _shown(described: Any, names: bool) -> Any:
    """A description without what is not compared."""
    if isinstance(described, list) and described and described[0] == "tensor":
        return described if names else described[:3]
    if isinstance(described, list) and described and described[0] == "operation":
        return described if names else described[:1]
    return [_shown(each, names) for each in described] if isinstance(described, list) else described


def _values_differ(wanted: Any, found: Any) -> str:
    if isinstance(wanted, np.ndarray) and isinstance(found, np.ndarray):
        if wanted.shape != found.shape or wanted.dtype != found.dtype:
            return f"{found.dtype}{found.shape} for {wanted.dtype}{wanted.shape}"
        if wanted.dtype.kind in "fc":
            exact = 2e-2 if wanted.dtype.itemsize <= 2 else 2e-4
            same = np.allclose(wanted, found, rtol=exact, atol=exact, equal_nan=True)
        else:
            same = np.array_equal(wanted, found)
        return "" if same else f"{found.tolist()} for {wanted.tolist()}"[:300]
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return f"{len(found)} parts for {len(wanted)}"
        return next(filter(None, map(_values_differ, wanted, found)), "")
    return "" if type(wanted) is type(found) and wanted == found else f"{found} for {wanted}"
