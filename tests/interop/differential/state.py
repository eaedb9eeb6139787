"""Rows of the ops that read and change variables, made from their contracts.

An op of the table belongs here when every one of its inputs is a variable (a reference, or a handle called as one) or
has a name that this module knows: gradients, updates, indices, the optimizers' scalars. So a new optimizer's op is
compared with TensorFlow's by being in the table of contracts; only a scalar of a new name has to be added to SCALARS.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.wire import dtypes, opdef
from dtf.wire.opdef import ArgDef, OpDef
from tests.runtime.op_cases import Case, Vary
from tests.runtime.op_cases.training import SCALARS

ROWS, COLUMNS = 5, 3

HANDLES = {
    "accum", "accum_update", "gradient_accumulator", "gradient_squared_accumulator", "linear", "m", "mg", "mom", "ms",
    "ref", "resource", "v", "var", "vhat",
}  # fmt: skip

VARYING = Vary(odd_values=False)


def rows() -> list[Case]:
    """One row per op that changes variables, and per flag that its contract has."""
    made = [row for name in opdef.names() if (row := _row(opdef.get(name))) is not None]
    return [each for row in made for each in (row, *_with_flags(row))]


def _row(contract: OpDef) -> Case | None:
    if not any(_is_variable(arg) for arg in contract.inputs) or any(arg.is_list for arg in contract.inputs):
        return None
    random = np.random.RandomState(5)
    inputs = [_input(contract, arg, at, random) for at, arg in enumerate(contract.inputs)]
    if any(value is None for value in inputs):
        return None
    attrs: dict[str, Any] = {}
    if contract.name in ("CountUpTo", "ResourceCountUpTo"):
        attrs["limit"] = 7
        inputs = [np.array(3, np.int32)]
    if contract.name == "VariableShape":
        attrs["out_type"] = dtypes.int32
    return Case(contract.name, inputs, attrs, name="of variables", vary=VARYING)


def _is_variable(arg: ArgDef) -> bool:
    return (arg.is_ref and arg.type_attr is not None) or (arg.type == dtypes.resource and arg.name in HANDLES)


def _input(contract: OpDef, arg: ArgDef, at: int, random: np.random.RandomState) -> np.ndarray | None:
    name = contract.name
    sparse, nd, assigned = "Sparse" in name or "Scatter" in name, "Nd" in name, "StridedSlice" in name
    if _is_variable(arg):
        if at == 0:
            return random.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32)
        # Slots are positive, as sums of squares are; centred RMSProp needs the mean's square below the mean square.
        low, high = (-0.1, 0.1) if arg.name in ("mg", "m") else (0.1, 1)
        return random.uniform(low, high, (ROWS, COLUMNS)).astype(np.float32)
    if arg.name in ("grad", "delta", "updates", "value"):
        values = random.uniform(0.2, 1, (4 if sparse else 2 if assigned else ROWS, COLUMNS))
        return (values * random.choice([-1, 1], values.shape)).astype(np.float32)
    if arg.name == "indices":
        indices = np.array([4, 1, 3, 0] if "Update" in name else [4, 1, 4, 0], np.int32)
        return indices[:, None] if nd or "GatherNd" in name else indices
    if assigned and arg.name in ("begin", "end", "strides"):
        return np.array({"begin": [1], "end": [5], "strides": [2]}[arg.name], np.int32)
    if arg.name == "global_step":
        return np.array(3, np.int64)
    if arg.name in SCALARS and arg.type_attr is not None:
        return np.array(SCALARS[arg.name], np.float32)
    return None


def _with_flags(row: Case) -> list[Case]:
    flags = [attr for attr in opdef.get(row.op).attrs if attr.type == "bool" and attr.name != "use_locking"]
    return [
        Case(row.op, row.inputs, {**row.attrs, flag.name: not flag.default}, name=f"{flag.name}", vary=VARYING)
        for flag in flags
    ]
