"""Cases of element-wise arithmetic, comparison, reductions, scans, segments, sequences and casts."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from tests.runtime.op_cases import Case


def numbers(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """float64, no two alike and none near 0 or another whole number of tenths, so that differences meet no kink."""
    values = np.random.RandomState(seed).uniform(low, high, shape)
    return values + np.where(np.abs(values) < 0.05, 0.1, 0.0)


def whole(*shape: int, low: int = -9, high: int = 9, dtype: type = np.int32, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).randint(low, high, shape).astype(dtype)


def half(value: np.ndarray) -> np.ndarray:
    return value.astype(ml_dtypes.bfloat16)


def elementwise(function, otypes=None):
    return np.vectorize(function, otypes=otypes)


def axes(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


x = numbers(3, 4)
y = numbers(3, 4, seed=1)
row = numbers(4, seed=2)
positive = numbers(3, 4, low=0.3, high=3.0)
positive_row = numbers(4, low=0.3, high=3.0, seed=2)
unit = numbers(3, 4, low=-0.9, high=0.9)
z = (x + 1j * y).astype(np.complex128)
booleans = np.array([[True, False, True], [False, False, True]])
cube = numbers(2, 3, 4)
inf, nan = np.inf, np.nan
odd = np.array([0.0, -0.0, 1.5, -2.5, inf, -inf, nan], np.float32)

ONE_ARGUMENT = [
    Case("Abs", [x], expect=np.abs, grad=True),
    Case("Abs", [whole(5, dtype=np.int8)], expect=np.abs, name="int8"),
    Case("Acos", [unit], expect=np.arccos, grad=True),
    Case("Acosh", [positive + 1], expect=np.arccosh, grad=True),
    Case("Asin", [unit], expect=np.arcsin, grad=True),
    Case("Asinh", [x], expect=np.arcsinh, grad=True),
    Case("Atan", [x], expect=np.arctan, grad=True),
    Case("Atanh", [unit], expect=np.arctanh, grad=True),
    Case("Ceil", [x], expect=np.ceil),
    Case("Cos", [x], expect=np.cos, grad=True),
    Case("Cosh", [x], expect=np.cosh, grad=True),
    Case("Digamma", [np.array([1.0, 0.5, 10.0, -0.5])], expect=np.array(
        [-0.5772156649015329, -1.9635100260214235, 2.251752589066721, 0.03648997397857652]), rtol=1e-13),
    Case("Digamma", [positive], expect=elementwise(
        lambda v: (math.lgamma(v + 1e-5) - math.lgamma(v - 1e-5)) / 2e-5), grad=True, name="differences"),
    Case("Erf", [x], expect=elementwise(math.erf), grad=True, rtol=1e-14, atol=1e-15),
    Case("Erf", [np.linspace(-6, 6, 401)], expect=elementwise(math.erf), rtol=1e-14, atol=1e-15, name="wide"),
    Case("Erf", [np.linspace(-6, 6, 401).astype(np.float32)], expect=elementwise(math.erf), name="float32"),
    Case("Erf", [odd[:2]], expect=lambda v: v, name="zero"),
    Case("Erfc", [x], expect=elementwise(math.erfc), grad=True, rtol=1e-13, atol=0),
    Case("Erfc", [np.linspace(-6, 26, 401)], expect=elementwise(math.erfc), rtol=1e-13, atol=0, name="wide"),
    Case("Erfinv", [np.array([-1.0, 0.0, 1.0, 2.0])], expect=np.array([-inf, 0.0, inf, nan]), name="ends"),
    Case("Erfinv", [np.array([math.erf(v) for v in (-3.0, -0.7, 0.01, 0.5, 2.0)])],
         expect=np.array([-3.0, -0.7, 0.01, 0.5, 2.0]), rtol=1e-10, grad=[0], grad_tol=2e-3),
    Case("Exp", [x], expect=np.exp, grad=True),
    Case("Expm1", [x * 1e-3], expect=np.expm1, grad=True),
    Case("Floor", [x], expect=np.floor),
    Case("Inv", [x], expect=lambda v: 1 / v, grad=True, grad_tol=1e-3),
    Case("Invert", [whole(5, dtype=np.int8)], expect=np.invert),
    Case("IsFinite", [odd], expect=np.isfinite),
    Case("IsInf", [odd], expect=np.isinf),
    Case("IsNan", [odd], expect=np.isnan),
    Case("Lgamma", [np.concatenate([x.ravel(), [20.0, 150.0]])], expect=elementwise(math.lgamma), grad=True,
         rtol=1e-12),
    Case("Log", [positive], expect=np.log, grad=True),
    Case("Log", [odd], expect=np.array([-inf, -inf, np.log(np.float32(1.5)), nan, inf, nan, nan]), name="edges"),
    Case("Log1p", [positive], expect=np.log1p, grad=True),
    Case("LogicalNot", [booleans], expect=np.logical_not),
    Case("Ndtri", [np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in (-7.0, -0.3, 0.8, 2.0)])],
         expect=np.array([-7.0, -0.3, 0.8, 2.0]), rtol=1e-9),
    Case("Ndtri", [np.array([0.2, 0.4, 0.7])], expect=np.array([-0.8416212335729143, -0.2533471031357997,
         0.5244005127080407]), rtol=1e-12, grad=True, name="middle"),
    Case("Neg", [x], expect=np.negative, grad=True),
    Case("PopulationCount", [np.array([0, 1, 255, -1, -2], np.int16)], expect=np.array([0, 1, 8, 16, 15], np.uint8)),
    Case("Reciprocal", [x], expect=lambda v: 1 / v, grad=True, grad_tol=1e-3),
    Case("Rint", [np.array([0.5, 1.5, -0.5, 2.4])], expect=np.array([0.0, 2.0, 0.0, 2.0])),
    Case("Round", [np.array([0.5, 1.5, -2.5, 2.4], np.float32)], expect=np.array([0.0, 2.0, -2.0, 2.0])),
    Case("Round", [whole(4)], expect=lambda v: v, name="int32"),
    Case("Rsqrt", [positive], expect=lambda v: 1 / np.sqrt(v), grad=True),
    Case("Sigmoid", [x], expect=lambda v: 1 / (1 + np.exp(-v)), grad=True),
    Case("Sigmoid", [np.array([-1000.0, 1000.0], np.float32)], expect=np.array([0.0, 1.0]), name="saturated"),
    Case("Sign", [x], expect=np.sign, grad=True),
    Case("Sign", [np.array([3 + 4j, 0])], expect=np.array([0.6 + 0.8j, 0]), name="complex"),
    Case("Sin", [x], expect=np.sin, grad=True),
    Case("Sinh", [x], expect=np.sinh, grad=True),
    Case("Sqrt", [positive], expect=np.sqrt, grad=True),
    Case("Square", [x], expect=np.square, grad=True),
    Case("Square", [np.array([200], np.uint8)], expect=np.array([64], np.uint8), name="wraps"),
    Case("Tan", [unit], expect=np.tan, grad=True),
    Case("Tanh", [x], expect=np.tanh, grad=True),
    Case("Tanh", [half(x)], expect=lambda v: np.tanh(v.astype(float)), rtol=1e-2, atol=1e-2, name="bfloat16"),
    Case("Exp", [x.astype(np.float16)], expect=np.exp, name="float16"),
    Case("Exp", [np.float32(1.0)], expect=np.exp, name="scalar"),
    Case("Exp", [np.zeros((0, 3), np.float32)], expect=np.exp, name="empty"),
]  # fmt: skip

GRADIENT_HELPERS = [
    Case("SigmoidGrad", [x, y], expect=lambda v, dv: dv * v * (1 - v), grad=True),
    Case("TanhGrad", [x, y], expect=lambda v, dv: dv * (1 - v * v), grad=True),
    Case("SqrtGrad", [positive, y], expect=lambda v, dv: dv * 0.5 / v, grad=True),
    Case("SqrtGrad", [np.zeros(2), np.array([0.0, 1.0])], expect=np.array([0.0, inf]), name="at_zero"),
    Case("RsqrtGrad", [positive, y], expect=lambda v, dv: dv * -0.5 * v**3, grad=True),
    Case("ReciprocalGrad", [x, y], expect=lambda v, dv: -dv * v * v, grad=True),
    Case("InvGrad", [x, y], expect=lambda v, dv: -dv * v * v, grad=True),
]

COMPLEX = [
    Case("Angle", [z], {"Tout": np.float64}, expect=np.angle),
    Case("Complex", [x, row], {"Tout": np.complex128}, expect=lambda a, b: a + 1j * b),
    Case("ComplexAbs", [z], {"Tout": np.float64}, expect=np.abs),
    Case("Conj", [z], expect=np.conj),
    Case("Imag", [z.astype(np.complex64)], expect=np.imag),
    Case("Real", [z.astype(np.complex64)], expect=np.real),
]

seven, minus_two = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)

TWO_ARGUMENTS = [
    Case("Add", [x, row], expect=np.add, grad=True),
    Case("Add", [np.array([b"ab", b""], object), np.array(b"c", object)], expect=np.array([b"abc", b"c"], object),
         name="string"),
    Case("AddV2", [x[:, :1], row], expect=np.add, grad=True),
    Case("AddV2", [np.array([250], np.uint8), np.array([10], np.uint8)], expect=np.array([4], np.uint8), name="wraps"),
    Case("AddV2", [half(x), half(y)], expect=lambda a, b: a + b, name="bfloat16"),
    Case("AddV2", [np.float32(1), np.float32(2)], expect=np.float32(3), name="scalars"),
    Case("Sub", [row, x], expect=np.subtract, grad=True),
    Case("Mul", [x, row], expect=np.multiply, grad=True),
    Case("Mul", [numbers(2, 1, 3), numbers(4, 1)], expect=np.multiply, grad=True, name="both_repeated"),
    Case("Div", [x, positive_row], expect=np.divide, grad=True, grad_tol=1e-3),
    Case("Div", [seven, minus_two], expect=np.array([3, -3, -3, 3], np.int32), name="integers_truncate"),
    Case("RealDiv", [x, positive_row], expect=np.divide, grad=True, grad_tol=1e-3),
    Case("TruncateDiv", [seven, minus_two], expect=np.array([3, -3, -3, 3], np.int32)),
    Case("TruncateDiv", [np.array([7.5, -7.5]), np.array([2.0, 2.0])], expect=np.array([3.0, -3.0]), name="floats"),
    Case("FloorDiv", [seven, minus_two], expect=np.array([3, -4, -4, 3], np.int32)),
    Case("FloorDiv", [np.array([1.0, -7.5]), np.array([0.1, 2.0])], expect=np.array([10.0, -4.0]), name="floats"),
    Case("FloorMod", [seven, minus_two], expect=np.array([1, 1, -1, -1], np.int32)),
    Case("FloorMod", [x, positive_row], expect=np.mod, grad=True, name="floats"),
    Case("TruncateMod", [seven, minus_two], expect=np.array([1, -1, 1, -1], np.int32)),
    Case("TruncateMod", [x, positive_row], expect=np.fmod, grad=True, name="floats"),
    Case("Mod", [seven, minus_two], expect=np.array([1, -1, 1, -1], np.int32)),
    Case("DivNoNan", [np.array([1.0, 0.0, nan]), np.array([2.0, 0.0, 0.0])], expect=np.array([0.5, 0.0, 0.0])),
    Case("DivNoNan", [x, positive_row], expect=np.divide, grad=True, grad_tol=1e-3, name="gradient"),
    Case("MulNoNan", [np.array([2.0, inf, nan]), np.array([3.0, 0.0, 0.0])], expect=np.array([6.0, 0.0, 0.0])),
    Case("MulNoNan", [x, row], expect=np.multiply, grad=True, name="gradient"),
    Case("Xdivy", [np.array([1.0, 0.0]), np.array([2.0, 0.0])], expect=np.array([0.5, 0.0])),
    Case("Xdivy", [x, positive_row], expect=np.divide, grad=True, grad_tol=1e-3, name="gradient"),
    Case("Xlogy", [np.array([1.0, 0.0]), np.array([2.0, 0.0])], expect=np.array([math.log(2), 0.0])),
    Case("Xlogy", [x, positive_row], expect=lambda a, b: a * np.log(b), grad=True, name="gradient"),
    Case("Xlog1py", [np.array([1.0, 0.0]), np.array([1.0, -1.0])], expect=np.array([math.log(2), 0.0])),
    Case("Xlog1py", [x, positive_row], expect=lambda a, b: a * np.log1p(b), grad=True, name="gradient"),
    Case("Pow", [positive, row], expect=np.power, grad=True),
    Case("Pow", [whole(5, low=-4, high=4), whole(5, low=0, high=4)], expect=np.power, name="int32"),
    Case("Pow", [np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, -1.0])], expect=np.array([1.0, 0.0, 0.5]),
         name="of_zero"),
    Case("Pow", [np.array([0.0, 0.0, 2.0]), np.array([1.0, 2.0, -1.0])], expect=np.array([0.0, 0.0, 0.5]), grad=[1],
         name="gradient_at_zero"),
    Case("Maximum", [x, row], expect=np.maximum, grad=True),
    Case("Minimum", [x, row], expect=np.minimum, grad=True),
    Case("Maximum", [np.array([nan, 1.0]), np.array([1.0, nan])], expect=np.array([nan, nan]), name="nan"),
    Case("SquaredDifference", [x, row], expect=lambda a, b: (a - b) ** 2, grad=True),
    Case("Atan2", [x, positive_row], expect=np.arctan2, grad=True),
    Case("NextAfter", [np.array([1.0, 0.0]), np.array([2.0, -1.0])], expect=np.nextafter),
    Case("Polygamma", [np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0])],
         expect=np.array([-0.5772156649015329, math.pi**2 / 6, -2.4041138063191885]), rtol=1e-13, grad=[1],
         grad_tol=1e-3),
    Case("Zeta", [np.array([2.0, 4.0, 1.0]), np.array([1.0, 1.0, 3.0])],
         expect=np.array([math.pi**2 / 6, math.pi**4 / 90, inf]), rtol=1e-13),
    Case("Zeta", [np.array([4.0, 6.5]), np.array([1.5, 2.5])],
         expect=lambda a, q: sum((q + k) ** -a for k in range(3000)), rtol=1e-9, grad=[1], name="gradient"),
    Case("Igamma", [np.array([1.0, 1.0, 0.5]), np.array([0.5, 20.0, 0.49])],
         expect=lambda a, v: np.array([1 - math.exp(-0.5), 1 - math.exp(-20.0), math.erf(0.7)]), rtol=1e-12, grad=[1]),
    Case("Igammac", [np.array([1.0, 1.0, 0.5]), np.array([0.5, 20.0, 4.0])],
         expect=lambda a, v: np.array([math.exp(-0.5), math.exp(-20.0), math.erfc(2.0)]), rtol=1e-12, atol=0, grad=[1]),
    Case("Betainc", [np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]), np.array([0.3, 0.3, 0.6])],
         expect=np.array([0.3, 0.09, 4 * 0.6**3 - 3 * 0.6**4]), rtol=1e-12, grad=[2]),
    Case("ApproximateEqual", [np.array([1.0, 1.0]), np.array([1.05, 1.2])], {"tolerance": 0.1},
         expect=np.array([True, False])),
    Case("Equal", [seven, np.int32(7)], expect=np.equal),
    Case("Equal", [np.array([b"a", b"b"], object), np.array([b"a", b"c"], object)], expect=np.array([True, False]),
         name="string"),
    Case("NotEqual", [x, row], expect=np.not_equal),
    Case("Less", [x, row], expect=np.less),
    Case("LessEqual", [x, row], expect=np.less_equal),
    Case("Greater", [x, row], expect=np.greater),
    Case("GreaterEqual", [x, row], expect=np.greater_equal),
    Case("LogicalAnd", [booleans, booleans[0]], expect=np.logical_and),
    Case("LogicalOr", [booleans, booleans[1]], expect=np.logical_or),
    Case("BitwiseAnd", [seven, minus_two], expect=np.bitwise_and),
    Case("BitwiseOr", [seven, minus_two], expect=np.bitwise_or),
    Case("BitwiseXor", [seven, minus_two], expect=np.bitwise_xor),
    Case("LeftShift", [np.array([1, 1, 1], np.int8), np.array([3, -1, 99], np.int8)],
         expect=np.array([8, 1, -128], np.int8)),
    Case("RightShift", [np.array([-8, 8, -8], np.int8), np.array([1, 99, 99], np.int8)],
         expect=np.array([-4, 0, -1], np.int8)),
    Case("ClipByValue", [x, np.float64(-0.5), np.float64(0.7)], expect=np.clip, grad=True),
    Case("AddN", [[x, y, x]], expect=lambda a, b, c: a + b + c, grad=True),
    Case("AddN", [[x]], expect=lambda a: a, name="of_one"),
    Case("AccumulateNV2", [[x, y]], {"shape": [3, 4]}, expect=np.add, grad=True),
]  # fmt: skip

REDUCTIONS = [
    Case("Sum", [cube, axes(0, -1)], expect=lambda v, a: v.sum((0, 2)), grad=[0]),
    Case("Sum", [cube, axes(1)], {"keep_dims": True}, expect=lambda v, a: v.sum(1, keepdims=True), grad=[0],
         name="kept"),
    Case("Sum", [cube, axes()], expect=lambda v, a: v, grad=[0], name="no_axes"),
    Case("Sum", [cube, np.int32(1)], expect=lambda v, a: v.sum(1), grad=[0], name="scalar_axis"),
    Case("Sum", [np.array([100, 100], np.int8), axes(0)], expect=np.int8(-56), name="wraps"),
    Case("Sum", [np.full(3000, 10, np.float16), axes(0)], expect=np.float16(30000), name="float16"),
    Case("Sum", [np.zeros((0, 3), np.float32), axes(0)], expect=np.zeros(3), name="empty"),
    Case("Sum", [np.float32(3), axes()], expect=np.float32(3), name="of_scalar"),
    Case("Mean", [cube, axes(0, 1, 2)], expect=lambda v, a: v.mean(), grad=[0]),
    Case("Mean", [cube, axes(2)], {"keep_dims": True}, expect=lambda v, a: v.mean(2, keepdims=True), grad=[0],
         name="kept"),
    Case("Mean", [np.array([-5, 2], np.int32), axes(0)], expect=np.int32(-1), name="int32"),
    Case("Prod", [cube, axes(2)], expect=lambda v, a: v.prod(2), grad=[0]),
    Case("Prod", [np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]]), axes(-1)], {"keep_dims": True},
         expect=np.zeros((2, 1)), grad=[0], name="of_zeros"),
    Case("Max", [cube, axes(1)], expect=lambda v, a: v.max(1), grad=[0]),
    Case("Max", [np.zeros((0,), np.float32), axes(0)], expect=np.float32(-inf), name="of_nothing"),
    Case("Min", [cube, axes(0, 2)], {"keep_dims": True}, expect=lambda v, a: v.min((0, 2), keepdims=True), grad=[0]),
    Case("Min", [np.zeros((0,), np.int32), axes(0)], expect=np.int32(2**31 - 1), name="of_nothing"),
    Case("EuclideanNorm", [cube, axes(1)], expect=lambda v, a: np.sqrt((v * v).sum(1)), grad=[0]),
    Case("All", [booleans, axes(1)], expect=lambda v, a: v.all(1)),
    Case("Any", [booleans, axes(0)], {"keep_dims": True}, expect=lambda v, a: v.any(0, keepdims=True)),
    Case("ArgMax", [x, np.int32(1)], expect=lambda v, a: v.argmax(1)),
    Case("ArgMax", [x, np.int64(-2)], {"output_type": np.int32}, expect=lambda v, a: v.argmax(0).astype(np.int32),
         name="int32"),
    Case("ArgMin", [x, np.int32(0)], expect=lambda v, a: v.argmin(0)),
    Case("Cumsum", [cube, np.int32(1)], expect=lambda v, a: v.cumsum(1), grad=[0]),
    Case("Cumsum", [row, np.int32(0)], {"exclusive": True, "reverse": True},
         expect=lambda v, a: v[::-1].cumsum()[::-1] - v, grad=[0], name="exclusive_reverse"),
    Case("Cumsum", [np.array([100, 100], np.int8), np.int32(0)], expect=np.array([100, -56], np.int8), name="wraps"),
    Case("Cumprod", [cube, np.int32(-1)], expect=lambda v, a: v.cumprod(-1), grad=[0]),
    Case("Cumprod", [row, np.int32(0)], {"exclusive": True}, expect=lambda v, a: np.array([1, *v.cumprod()[:-1]]),
         grad=[0], name="exclusive"),
    Case("CumulativeLogsumexp", [x, np.int32(1)], expect=lambda v, a: np.log(np.exp(v).cumsum(1)), grad=[0]),
    Case("CumulativeLogsumexp", [row, np.int32(0)], {"exclusive": True, "reverse": True},
         expect=lambda v, a: np.append(np.log(np.exp(v)[::-1].cumsum()[::-1][1:]), -inf), name="exclusive_reverse"),
]  # fmt: skip

SEQUENCES = [
    Case("Range", [np.int32(2), np.int32(11), np.int32(3)], expect=np.array([2, 5, 8], np.int32)),
    Case("Range", [np.int64(5), np.int64(0), np.int64(-2)], expect=np.array([5, 3, 1]), name="down"),
    Case("Range", [np.float32(0), np.float32(1), np.float32(0.25)], expect=np.array([0, 0.25, 0.5, 0.75]),
         name="float"),
    Case("LinSpace", [np.float32(1), np.float32(2), np.int32(5)], expect=np.array([1, 1.25, 1.5, 1.75, 2])),
    Case("LinSpace", [np.float64(1), np.float64(2), np.int32(1)], expect=np.array([1.0]), name="of_one"),
    Case("Cast", [x], {"DstT": np.float32}, expect=lambda v: v.astype(np.float32)),
    Case("Cast", [np.array([-1.9, 1.9])], {"DstT": np.int32}, expect=np.array([-1, 1], np.int32), name="truncates"),
    Case("Cast", [np.array([0.0, 0.3, nan])], {"DstT": np.bool_}, expect=np.array([False, True, True]), name="to_bool"),
    Case("Cast", [z], {"DstT": np.float32}, expect=lambda v: v.real.astype(np.float32), name="real_part"),
    Case("Cast", [x.astype(np.float32)], {"DstT": ml_dtypes.bfloat16}, expect=half, name="bfloat16"),
    Case("Cast", [x], {"DstT": np.float64}, expect=lambda v: v, grad=True, name="unchanged"),
    Case("Bincount", [np.array([1, 1, 5], np.int32), np.int32(4), np.array([], np.int32)],
         expect=np.array([0, 2, 0, 0], np.int32)),
    Case("Bincount", [np.array([1, 1, 3], np.int32), np.int32(4), np.array([0.5, 1.0, 2.0])],
         expect=np.array([0, 1.5, 0, 2.0]), name="weighted"),
    Case("Bucketize", [np.array([-5.0, 0.0, 3.0, 10.0])], {"boundaries": [0.0, 3.0, 8.0]},
         expect=np.array([0, 1, 2, 3], np.int32)),
    Case("HistogramFixedWidth", [np.array([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]), np.array([0.0, 5.0]), np.int32(5)],
         {"dtype": np.int32}, expect=np.array([2, 1, 1, 0, 2], np.int32)),
]  # fmt: skip

rows = numbers(5, 2)
sorted_ids = np.array([0, 0, 2, 2, 2], np.int32)
ids = np.array([2, 0, -1, 2, 2], np.int32)
count = np.int32(4)
indices = np.array([4, 0, 0, 3], np.int32)
index_ids = np.array([0, 0, 2, 2], np.int32)


def by_id(reduce, ids, count, empty):
    """The reduction of the rows of each id, in plain Python."""

    def expect(data, *_):
        result = np.full((count, *data.shape[1:]), empty, data.dtype)
        for each in range(count):
            if (ids == each).any():
                result[each] = reduce(data[ids == each], 0)
        return result

    return expect


def gathered(reduce):
    def expect(data, *_):
        return by_id(reduce, index_ids, 3, 0.0)(data[indices])

    return expect


def scattered(divisor):
    def expect(grad, *_):
        result = np.zeros((6, 2))
        for index, each in zip(indices, index_ids, strict=True):
            result[index] += grad[each] / divisor((index_ids == each).sum())
        return result

    return expect


def over_root(values, axis):
    return values.sum(axis) / math.sqrt(len(values))


SEGMENTS = [
    Case("SegmentSum", [rows, sorted_ids], expect=by_id(np.sum, sorted_ids, 3, 0), grad=[0]),
    Case("SegmentMean", [rows, sorted_ids], expect=by_id(np.mean, sorted_ids, 3, 0), grad=[0]),
    Case("SegmentMean", [rows[:, 0], sorted_ids], expect=by_id(np.mean, sorted_ids, 3, 0), grad=[0], name="vector"),
    Case("SegmentProd", [rows, sorted_ids], expect=by_id(np.prod, sorted_ids, 3, 1), grad=[0]),
    Case("SegmentMax", [rows, sorted_ids], expect=by_id(np.max, sorted_ids, 3, 0), grad=[0]),
    Case("SegmentMin", [rows, sorted_ids], expect=by_id(np.min, sorted_ids, 3, 0), grad=[0]),
    Case("UnsortedSegmentSum", [rows, ids, count], expect=by_id(np.sum, ids, 4, 0), grad=[0]),
    Case("UnsortedSegmentSum", [cube, np.array([[0, 1, 0], [1, 1, 2]]), np.int32(3)],
         expect=lambda v, i, n: np.stack([v[0, 0] + v[0, 2], v[0, 1] + v[1, 0] + v[1, 1], v[1, 2]]), grad=[0],
         name="matrix_of_ids"),
    Case("UnsortedSegmentSum", [half(rows), ids, count], expect=lambda v, i, n: by_id(np.sum, ids, 4, 0)(
         v.astype(np.float32)), rtol=1e-2, atol=1e-2, name="bfloat16"),
    Case("UnsortedSegmentProd", [rows, ids, count], expect=by_id(np.prod, ids, 4, 1), grad=[0]),
    Case("UnsortedSegmentProd", [np.array([0.0, 2.0, 3.0, 0.0, 0.0]), np.array([0, 0, 0, 1, 1], np.int32), np.int32(2)],
         expect=np.zeros(2), grad=[0], name="of_zeros"),
    Case("UnsortedSegmentMax", [rows, ids, count], expect=by_id(np.max, ids, 4, np.finfo(float).min)),
    Case("UnsortedSegmentMax", [rows, np.array([1, 0, -1, 1, 1], np.int32), np.int32(2)],
         expect=by_id(np.max, np.array([1, 0, -1, 1, 1]), 2, 0), grad=[0], name="gradient"),
    Case("UnsortedSegmentMin", [rows, np.array([1, 0, -1, 1, 1], np.int32), np.int32(2)],
         expect=by_id(np.min, np.array([1, 0, -1, 1, 1]), 2, 0), grad=[0]),
    Case("SparseSegmentSum", [rows, indices, index_ids], expect=gathered(np.sum), grad=[0]),
    Case("SparseSegmentMean", [rows, indices, index_ids], expect=gathered(np.mean), grad=[0]),
    Case("SparseSegmentSqrtN", [rows, indices, index_ids], expect=gathered(over_root), grad=[0]),
    Case("SparseSegmentSumWithNumSegments", [rows, indices, index_ids, np.int32(5)],
         expect=lambda v, *_: np.concatenate([gathered(np.sum)(v), np.zeros((2, 2))]), grad=[0]),
    Case("SparseSegmentMeanWithNumSegments", [rows, indices, index_ids, np.int32(5)],
         expect=lambda v, *_: np.concatenate([gathered(np.mean)(v), np.zeros((2, 2))]), grad=[0]),
    Case("SparseSegmentSqrtNWithNumSegments", [rows, indices, index_ids, np.int32(5)],
         expect=lambda v, *_: np.concatenate([gathered(over_root)(v), np.zeros((2, 2))]), grad=[0]),
    Case("SparseSegmentSumGrad", [numbers(3, 2), indices, index_ids, np.int32(6)], expect=scattered(lambda n: 1)),
    Case("SparseSegmentMeanGrad", [numbers(3, 2), indices, index_ids, np.int32(6)], expect=scattered(lambda n: n)),
    Case("SparseSegmentSqrtNGrad", [numbers(3, 2), indices, index_ids, np.int32(6)], expect=scattered(math.sqrt)),
    *[
        Case(f"SparseSegment{name}GradV2", [numbers(3, 2), indices, index_ids, np.int32(6)],
             expect=lambda *values, weight=weight: [scattered(weight)(*values)[np.unique(indices)], np.unique(indices)])
        for name, weight in (("Sum", lambda n: 1), ("Mean", lambda n: n), ("SqrtN", math.sqrt))
    ],
]  # fmt: skip

CASES = [
    *ONE_ARGUMENT, *GRADIENT_HELPERS, *COMPLEX, *TWO_ARGUMENTS, *REDUCTIONS, *SEQUENCES, *SEGMENTS,
]  # fmt: skip
