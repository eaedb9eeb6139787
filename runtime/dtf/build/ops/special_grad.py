"""Gradients of the special functions of tf.math.special.

Where a derivative has the form f - y/x, its limit at x = 0 is put in by hand.
"""

from __future__ import annotations

import math

from dtf.build.gradients import not_differentiable
from dtf.build.ops import special
from dtf.build.ops.filling import ones_like, zeros_like
from dtf.build.ops.math import cos, divide, equal, exp, log, multiply, negative, sign, sin, square, subtract
from dtf.build.ops.math_grad import derivative
from dtf.build.ops.searching import where_v2
from dtf.build.tensor import Tensor

not_differentiable("IgammaGradA")


def _over(y: Tensor, x: Tensor, limit: float) -> Tensor:
    """y / x, and `limit` where x is 0. The division never uses that 0, so that its own gradient remains finite."""
    at_zero = equal(x, zeros_like(x))
    return where_v2(at_zero, multiply(limit, ones_like(x)), divide(y, where_v2(at_zero, ones_like(x), x)))


derivative("BesselI0")(lambda x, y: special.bessel_i1(x))
derivative("BesselI0e")(lambda x, y: subtract(special.bessel_i1e(x), multiply(sign(x), y)))
derivative("BesselI1")(lambda x, y: subtract(special.bessel_i0(x), _over(y, x, 0.5)))
derivative("BesselI1e")(
    lambda x, y: subtract(subtract(special.bessel_i0e(x), multiply(y, sign(x))), _over(y, x, 0.5))
)
derivative("BesselJ0")(lambda x, y: negative(special.bessel_j1(x)))
derivative("BesselJ1")(lambda x, y: subtract(special.bessel_j0(x), _over(y, x, 0.5)))
derivative("BesselK0")(lambda x, y: negative(special.bessel_k1(x)))
derivative("BesselK0e")(lambda x, y: subtract(y, special.bessel_k1e(x)))
derivative("BesselK1")(lambda x, y: subtract(negative(special.bessel_k0(x)), divide(y, x)))
derivative("BesselK1e")(lambda x, y: subtract(subtract(y, divide(y, x)), special.bessel_k0e(x)))
derivative("BesselY0")(lambda x, y: negative(special.bessel_y1(x)))
derivative("BesselY1")(lambda x, y: subtract(special.bessel_y0(x), divide(y, x)))
derivative("Dawsn")(lambda x, y: subtract(1.0, multiply(multiply(2.0, x), y)))
derivative("Expint")(lambda x, y: divide(exp(x), x))
derivative("FresnelCos")(lambda x, y: cos(multiply(math.pi / 2, square(x))))
derivative("FresnelSin")(lambda x, y: sin(multiply(math.pi / 2, square(x))))


@derivative("Spence")
def _spence(x: Tensor, y: Tensor) -> Tensor:
    at_one = equal(x, ones_like(x))
    return where_v2(at_one, negative(ones_like(x)), divide(log(x), where_v2(at_one, ones_like(x), subtract(1.0, x))))
