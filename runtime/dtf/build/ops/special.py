"""Public functions of the special functions of tf.math.special, and their static shapes.

Bessel functions and functions defined as integrals; gamma, beta and error functions belong to `math`. Kernels:
`run.kernels.bessel` and `run.kernels.integrals`; gradients: `special_grad`. Source:
https://www.tensorflow.org/api_docs/python/tf/math/special
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.math import lgamma, one_op, subtract
from dtf.build.ops.reductions import reduce_sum
from dtf.build.shape_rules import broadcast, shape_rule, unchanged
from dtf.build.tensor import Tensor

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e",
    "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "dawsn", "expint", "fresnel_cos", "fresnel_sin", "lbeta",
    "spence",
]  # fmt: skip


def _of_x(op_type: str, name: str, text: str) -> Any:
    return one_op(op_type, name, ["x"], text + " Of real floating-point x, element by element.")


bessel_i0 = _of_x("BesselI0", "bessel_i0", "The modified Bessel function of the first kind, of order 0.")
bessel_i0e = _of_x("BesselI0e", "bessel_i0e", "exp(-abs(x)) * bessel_i0(x).")
bessel_i1 = _of_x("BesselI1", "bessel_i1", "The modified Bessel function of the first kind, of order 1.")
bessel_i1e = _of_x("BesselI1e", "bessel_i1e", "exp(-abs(x)) * bessel_i1(x).")
bessel_j0 = _of_x("BesselJ0", "bessel_j0", "The Bessel function of the first kind, of order 0.")
bessel_j1 = _of_x("BesselJ1", "bessel_j1", "The Bessel function of the first kind, of order 1.")
bessel_k0 = _of_x("BesselK0", "bessel_k0", "The modified Bessel function of the second kind, of order 0.")
bessel_k0e = _of_x("BesselK0e", "bessel_k0e", "exp(x) * bessel_k0(x).")
bessel_k1 = _of_x("BesselK1", "bessel_k1", "The modified Bessel function of the second kind, of order 1.")
bessel_k1e = _of_x("BesselK1e", "bessel_k1e", "exp(x) * bessel_k1(x).")
bessel_y0 = _of_x("BesselY0", "bessel_y0", "The Bessel function of the second kind, of order 0.")
bessel_y1 = _of_x("BesselY1", "bessel_y1", "The Bessel function of the second kind, of order 1.")
dawsn = _of_x("Dawsn", "dawsn", "exp(-x^2) times the integral of exp(t^2) from 0 to x.")
expint = _of_x("Expint", "expint", "The exponential integral Ei(x).")
fresnel_cos = _of_x("FresnelCos", "fresnel_cos", "The integral of cos(pi t^2 / 2) from 0 to x.")
fresnel_sin = _of_x("FresnelSin", "fresnel_sin", "The integral of sin(pi t^2 / 2) from 0 to x.")
spence = _of_x("Spence", "spence", "Minus the integral of log(t) / (t - 1) from 1 to x.")



def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """log |Beta(x)| over the last axis: the sum of lgamma(x) less lgamma of the sum. x: [..., k] -> [...]."""
    with name_scope(name, "lbeta", [x]) as name:
        x = convert_to_tensor(x, name="x")
        return subtract(reduce_sum(lgamma(x), axis=[-1]), lgamma(reduce_sum(x, axis=[-1])), name=name)


shape_rule(
    "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1",
    "BesselK1e", "BesselY0", "BesselY1", "Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence",
)(unchanged)  # fmt: skip
shape_rule("IgammaGradA")(broadcast)
