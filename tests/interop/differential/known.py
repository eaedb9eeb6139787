"""The differences from TensorFlow's kernels that are known and kept, each with its reason: this list is all of them.

A row excuses the variants whose name ("Op-row what is varied") matches its first pattern and whose difference, in the
words of `difference`, matches the second. `WIDER` says where right results may be further apart than its tolerances;
`ENDS_TENSORFLOW` names the variants that are not run because they end the process of TensorFlow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.interop.differential.variants import Variant


@dataclass(frozen=True)
class Known:
    """One difference that is kept: patterns (re.search) of the variant's name and of the difference, and why."""

    variant: str
    difference: str
    reason: str


KNOWN: list[Known] = [
    # TensorFlow has no kernel.
    Known("", r"TensorFlow fails \(run, 12\)|No OpKernel was registered", "TensorFlow has no such CPU kernel; dtf has"),
    Known("", r"(?i)TensorFlow fails \(run, 3\).*(only supports? NHWC|Op does not support N5Eigen4half)",
          "TensorFlow's CPU kernel takes channels last, and float32, only"),
    Known("^Conv2DBackprop", "do not yet support dilation", "no dilated gradients on TensorFlow's CPU; dtf has them"),
    Known("^_Fused(Depthwise|BatchNormEx)", "Missing 0-th output", "only with oneDNN, or on accelerators, there"),
    Known("^TopK", r"import, 12", "removed from graphs as new as these; dtf still runs it"),
    # What TensorFlow leaves open or gets wrong.
    Known("^Empty", r"values\[0\]", "uninitialised memory there, zeros here"),
    Known("^Round.*int", "", "TensorFlow's Round of integers gives zeros"),
    Known("^FusedBatchNorm(V2|V3)?[- ]", r"values\[[345]\]", "reserved outputs that TensorFlow leaves uninitialised"),
    Known("^(Depthwise)?Conv2d?.*size . to 0", r"differ", "of empty images TensorFlow leaves the result uninitialised"),
    Known("^Conv2DBackpropFilter.*size . to 0|^DepthwiseConv2dNativeBackprop.*size . to 0", "",
          "of empty images TensorFlow leaves the result uninitialised"),
    Known("^AvgPoolGrad", "dtf fails .*Expected out_backprop", "TensorFlow reads past a gradient that is too small"),
    Known("^Truncate(Div|Mod)|^(Mod|Div).*", r"TensorFlow fails \(run, 13\).*Unexpected error in binary",
          "TensorFlow calls this division by zero its own fault (INTERNAL); dtf, as for Div, an invalid argument"),
    Known("^Erf[- ].*odd float64", "", "NaN at infinity there, 1 here"),
    Known("^ArgMax.*Tidx=int16", "", "TensorFlow reads the int16 axis as an int32, with what stands behind it"),
    Known("^Mean.*int|^SegmentMean.*int|^Mean-kept odd", "differ",
          "means of integers whose sum leaves the range: TensorFlow's sum wraps around, dtf's is wider"),
    Known("^_FusedMatMul.*size . to 0", "", "TensorFlow leaves the bias out where the inner dimension is 0"),
    Known("^_FusedMatMul.*(args|b) is shorter", "", "TensorFlow does not look at the bias's size"),
    Known("^_FusedConv2D.*T=float64", "", "TensorFlow's rewrite makes float32 ones only; its float64 one is wrong"),
    Known("^TopKV2 sorted=False", "", "the order is left open, dtf's is the sorted one"),
    # Denormals, infinities, NaN.
    Known("^(FloorDiv|Xdivy|Div|RealDiv|SqrtGrad|DivNoNan).*odd", "differ",
          "TensorFlow's threads take denormals for zero, numpy computes with them"),
    Known("^(Max|Min)Pool.*odd|^MaxPool.*Grad.*odd", "", "which of NaN and a number is the larger is left open by TensorFlow"),
    Known("^(Unsorted)?Segment(Max|Min).*odd|^TensorScatter(Max|Min).*odd|^Scatter(Max|Min).*odd", "",
          "dtf passes NaN on; TensorFlow's answer depends on the order of its comparisons"),
    Known("^(TopKV2|TopK|NthElement|ClipByValue).*odd", "", "the order of NaN among numbers is left open"),
    Known("^(Matrix(Inverse|Determinant|Solve|TriangularSolve|SolveLs)|LogMatrixDeterminant|Cholesky|CholeskyGrad|BandedTriangularSolve|TridiagonalSolve|Lu|MatrixSquareRoot|MatrixLogarithm|MatrixExponential).*odd", "",
          "matrices of NaN and infinities: LAPACK and Eigen stop at different places"),
    Known("^Cholesky T=complex", "", "the made matrix is not Hermitian: Eigen goes on, LAPACK refuses"),
    Known("^(Conv2D|DepthwiseConv2d|LRN|MatMul|BatchMatMul|_FusedMatMul|Einsum).*odd", "differ",
          "inf - inf and inf * 0 depend on the order of summing, and on gradients by zero-padded products"),
    # Complex numbers.
    Known("^(Rsqrt|Sigmoid|Pow|Tanh|Atanh|Acosh|Asin|Acos|Atan|Asinh|Log1p|Expm1).*complex", "differ",
          "branch cuts, 0 ** 0 and overflow follow C99 here"),
    Known("^ClipByValue.*T=complex", "", "there is no order of complex numbers"),
    Known("^(MatrixDeterminant|Cumprod|MatrixSolveLs).*T=complex", "gradient",
          "TensorFlow's gradient leaves out a conjugation; dtf's is that of differences"),
    Known("^SoftmaxCrossEntropyWithLogits", "gradient 1",
          "TensorFlow's gradient by the labels leaves out that the second output depends on them too"),
    # Limits.
    Known("^Einsum-ellipsis size", "rank of an input with an ellipsis", "dtf's gradient of an ellipsis needs static ranks"),
    Known("^Range.*odd int64", "", "the step goes past the end of the range of integers"),
    Known("^MatrixSolveLs.*size . to 0", "", "no rows: TensorFlow leaves the result uninitialised"),
    Known("^(Lower|Upper)Bound unequal", "", "the made rows are not sorted"),
]

#: Pattern of the variant: by how much the tolerances are wider, and why.
WIDER: list[tuple[str, float, str]] = [
    ("^Igammac?.*odd float32", 100.0, "TensorFlow iterates in float32, dtf in float64"),
    ("^Einsum.*float16", 2.0, "sums of 16-bit products that cancel"),
]

#: Pattern of the variant: what it does to TensorFlow.
ENDS_TENSORFLOW: list[tuple[str, str]] = []


def reason(variant: Variant, difference: str) -> str | None:
    """Why this difference is kept, or None where it is not."""
    name = str(variant)
    for row in KNOWN:
        if re.search(row.variant, name) and re.search(row.difference, difference, re.DOTALL):
            return row.reason
    return None


def tolerance_factor(variant: Variant) -> float:
    """By how much the tolerances of this variant are wider."""
    return max((factor for op, factor, _ in WIDER if re.search(op, str(variant))), default=1.0)


def skipped(variant: Variant) -> str | None:
    """Why this variant is not run, or None where it is."""
    return next((why for pattern, why in ENDS_TENSORFLOW if re.search(pattern, str(variant))), None)
