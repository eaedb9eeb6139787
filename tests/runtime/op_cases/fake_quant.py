"""Cases of simulated quantisation."""

from __future__ import annotations

import numpy as np

from tests.runtime.op_cases import RECORDED, Case, Vary
from tests.runtime.op_cases.array import floats32, ints

NUMBERS, GRADS = floats32(4, 3) * 4, floats32(4, 3)
BOUNDS = [np.float32(-1.3), np.float32(2.6)]
CHANNELS = [np.float32([-1.3, 0, 0.5]), np.float32([2.6, 0, 4])]
NARROW = {"num_bits": 4, "narrow_range": True}


def cases():
    for attrs, name in (({}, ""), (NARROW, "narrow")):
        limits = attrs | {"min": -1.5, "max": 3.0}
        yield Case("FakeQuantWithMinMaxArgs", [NUMBERS], limits, RECORDED, name=name)
        yield Case("FakeQuantWithMinMaxArgsGradient", [GRADS, NUMBERS], limits, RECORDED, name=name)
        yield Case("FakeQuantWithMinMaxVars", [NUMBERS, *BOUNDS], attrs, RECORDED, name=name)
        yield Case("FakeQuantWithMinMaxVarsGradient", [GRADS, NUMBERS, *BOUNDS], attrs, RECORDED, name=name)
        op = "FakeQuantWithMinMaxVarsPerChannel"
        yield Case(op, [NUMBERS, *CHANNELS], attrs, RECORDED, name=name)
        yield Case(f"{op}Gradient", [GRADS, NUMBERS, *CHANNELS], attrs, RECORDED, name=name)


def around_zero():
    plain = Vary(odd_values=False, fixed_attrs=("num_bits", "axis"))
    ways = (
        {}, {"range_given": True}, {"range_given": True, "signed_input": False}, {"signed_input": False},
        {"range_given": True, "num_bits": 3, "narrow_range": True},
        {"range_given": True, "num_bits": 3, "round_mode": "HALF_UP"},
    )  # fmt: skip
    for number, attrs in enumerate(ways):
        for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
            yield Case(op, [NUMBERS, *BOUNDS], attrs, RECORDED, name=f"way{number}", vary=plain)
    attrs = {"axis": 1, "num_bits": 5}
    yield Case("QuantizeAndDequantizeV4", [NUMBERS, *CHANNELS], attrs, RECORDED, name="channels", vary=plain)
    yield Case("QuantizeAndDequantizeV2", [NUMBERS, *CHANNELS], {"axis": 1}, RECORDED, name="channels", vary=plain)
    for attrs in ({}, {"range_given": False, "signed_input": False}):
        name = "" if not attrs else "unsigned"
        yield Case("QuantizeAndDequantizeV3", [NUMBERS, *BOUNDS, ints(6)], attrs, RECORDED, name=name, vary=plain)
    yield Case("QuantizeAndDequantizeV4Grad", [GRADS, NUMBERS, *BOUNDS], {}, RECORDED, vary=plain)
    yield Case("QuantizeAndDequantizeV4Grad", [GRADS, NUMBERS, *CHANNELS], {"axis": 1}, RECORDED, name="channels",
               vary=plain)  # fmt: skip


CASES = [*cases(), *around_zero()]
