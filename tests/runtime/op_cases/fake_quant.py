"""Cases of simulated quantisation."""

from __future__ import annotations

import numpy as np

from tests.runtime.op_cases import RECORDED, Case
from tests.runtime.op_cases.array import floats32

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


CASES = list(cases())
