"""The differences from TensorFlow's kernels that are known and kept, each with its reason: this list is all of them.

A row excuses the variants whose name ("Op-row what is varied") matches its first pattern and whose difference, in the
words of `difference`, matches the second. `WIDER` says where right results may be further apart than its tolerances;
`ENDS_TENSORFLOW` names the variants that are not run because they end the process of TensorFlow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.interop.differential.variant import Variant


@dataclass(frozen=True)
class Known:
    """One difference that is kept: patterns (re.search) of the variant's name and of the difference, and why."""

    variant: str
    difference: str
    reason: str


KNOWN: list[Known] = [
    # TensorFlow has no kernel.
    Known(
        "",
        r"TensorFlow fails \(run, 12\)|No OpKernel was registered",
        "TensorFlow has no such CPU kernel; dtf has",
    ),
    Known(
        "",
        r"TensorFlow fails \(import, 12\).*is not available in GraphDef version",
        "TensorFlow has removed the op; dtf still runs it, for graphs of any age",
    ),
    Known(
        "",
        r"(?i)TensorFlow fails \(run, 3\).*(only supports? NHWC|Op does not support N5Eigen4half)",
        "TensorFlow's CPU kernel takes channels last, and float32, only",
    ),
    Known(
        "^Conv2DBackprop",
        "do not yet support dilation",
        "no dilated gradients on TensorFlow's CPU; dtf has them",
    ),
    Known(
        "^_Fused(Depthwise|BatchNormEx)",
        "Missing 0-th output",
        "only with oneDNN, or on accelerators, there",
    ),
    Known("^TopK", r"import, 12", "removed from graphs as new as these; dtf still runs it"),
    # What TensorFlow leaves open or gets wrong.
    Known(
        "^Fractional(Avg|Max)PoolGrad.*(pooling_sequence|orig_input_tensor_shape|out_backprop)",
        r"dtf fails \(run, 3\)",
        "TensorFlow cuts off sequences and shapes that do not fit; dtf refuses them",
    ),
    Known("^Empty", r"values\[0\]", "uninitialised memory there, zeros here"),
    Known("^Round.*int", "", "TensorFlow's Round of integers gives zeros"),
    Known(
        "^FusedBatchNorm(V2|V3)?[- ]",
        r"values\[[345]\]",
        "reserved outputs that TensorFlow leaves uninitialised",
    ),
    Known(
        "^(Depthwise)?Conv2d?.*size . to 0",
        r"differ",
        "of empty images TensorFlow leaves the result uninitialised",
    ),
    Known(
        "^Conv2DBackpropFilter.*size . to 0|^DepthwiseConv2dNativeBackprop.*size . to 0",
        "",
        "of empty images TensorFlow leaves the result uninitialised",
    ),
    Known(
        "^AvgPoolGrad",
        "dtf fails .*Expected out_backprop",
        "TensorFlow reads past a gradient that is too small",
    ),
    Known(
        "^Truncate(Div|Mod)|^(Mod|Div).*",
        r"TensorFlow fails \(run, 13\).*Unexpected error in binary",
        "TensorFlow calls this division by zero its own fault (INTERNAL); dtf, as for Div, an invalid argument",
    ),
    Known("^Erf[- ].*odd float64", "", "NaN at infinity there, 1 here"),
    Known(
        "^ArgMax.*Tidx=int16",
        "",
        "TensorFlow reads the int16 axis as an int32, with what stands behind it",
    ),
    Known(
        "^Mean.*int|^SegmentMean.*int|^Mean-kept odd",
        "differ",
        "means of integers whose sum leaves the range: TensorFlow's sum wraps around, dtf's is wider",
    ),
    Known("^_FusedMatMul.*size . to 0", "", "TensorFlow leaves the bias out where the inner dimension is 0"),
    Known("^_FusedMatMul.*(args|b) is shorter", "", "TensorFlow does not look at the bias's size"),
    Known(
        "^_FusedConv2D.*T=float64",
        "",
        "TensorFlow's rewrite makes float32 ones only; its float64 one is wrong",
    ),
    Known("^TopKV2 sorted=False", "", "the order is left open, dtf's is the sorted one"),
    # Denormals, infinities, NaN.
    Known(
        "^(FloorDiv|Xdivy|Div|RealDiv|SqrtGrad|DivNoNan).*odd",
        "differ",
        "TensorFlow's threads take denormals for zero, numpy computes with them",
    ),
    Known(
        "^(Max|Min)Pool.*odd|^MaxPool.*Grad.*odd",
        "",
        "which of NaN and a number is the larger is left open by TensorFlow",
    ),
    Known(
        "^(Unsorted)?Segment(Max|Min).*odd|^TensorScatter(Max|Min).*odd|^Scatter(Max|Min).*odd",
        "",
        "dtf passes NaN on; TensorFlow's answer depends on the order of its comparisons",
    ),
    Known("^(TopKV2|TopK|NthElement|ClipByValue).*odd", "", "the order of NaN among numbers is left open"),
    Known(
        "^(Matrix(Inverse|Determinant|Solve|TriangularSolve|SolveLs)|LogMatrixDeterminant|Cholesky|CholeskyGrad|BandedTriangularSolve|TridiagonalSolve|Lu|MatrixSquareRoot|MatrixLogarithm|MatrixExponential).*odd",
        "",
        "matrices of NaN and infinities: LAPACK and Eigen stop at different places",
    ),
    Known("^Cholesky T=complex", "", "the made matrix is not Hermitian: Eigen goes on, LAPACK refuses"),
    Known(
        "^(_?(Fused)?(ResizeAnd)?(Pad)?Conv2D|DepthwiseConv2d|LRN|MatMul|BatchMatMul|_FusedMatMul|Einsum).*odd",
        "differ",
        "inf - inf and inf * 0 depend on the order of summing, and on gradients by zero-padded products",
    ),
    # Complex numbers.
    Known(
        "^(Rsqrt|Sigmoid|Pow|Tanh|Atanh|Acosh|Asin|Acos|Atan|Asinh|Log1p|Expm1).*complex",
        "differ",
        "branch cuts, 0 ** 0 and overflow follow C99 here",
    ),
    Known("^ClipByValue.*T=complex", "", "there is no order of complex numbers"),
    Known(
        "^(MatrixDeterminant|Cumprod|MatrixSolveLs).*T=complex",
        "gradient",
        "TensorFlow's gradient leaves out a conjugation; dtf's is that of differences",
    ),
    Known(
        "^SoftmaxCrossEntropyWithLogits",
        "gradient 1",
        "TensorFlow's gradient by the labels leaves out that the second output depends on them too",
    ),
    Known(
        "^Igammac?.*odd|^(Zeta|Polygamma).*odd",
        "differ",
        "limits at infinity of both arguments, and poles",
    ),
    Known("^Resize.*odd", "differ", "infinities times the weight 0 of a neighbour"),
    Known(
        "^Conv2D-explicit padding=",
        "must be empty if the padding",
        "TensorFlow wants paddings only with EXPLICIT",
    ),
    Known(
        "^ToBool",
        "cannot be converted to a boolean",
        "TensorFlow has no such conversion; dtf's is that of Python",
    ),
    Known("^SparseTensorDenseMatMul.*complex", "gradient", "TensorFlow's gradient leaves out a conjugation"),
    Known(
        "^Debug",
        "tensor_name=|gated_grpc|Failed to parse",
        "TensorFlow's debugger reads these names; dtf has none",
    ),
    Known(
        "^Fresnel|^Bessel|^Dawsn|^Expint|^Spence",
        "differ",
        "TensorFlow's float32 series end early; poles",
    ),
    Known("RFFT.*size . to", "differ", "of an empty axis TensorFlow leaves the result uninitialised"),
    Known("^(Resource)?CountUpTo.*dimension", "", "TensorFlow's shape rule counts scalars only"),
    # What is wrong, and TensorFlow does not see: it reads past an array, or ends.
    Known(
        "", r"dtf fails \(.*TensorFlow fails \(crash", "TensorFlow's process ends, by a CHECK or a SIGSEGV; dtf refuses"
    ),
    Known(
        "^AvgPool3DGrad",
        "dtf fails .*Expected out_backprop",
        "TensorFlow reads past a gradient that is too small",
    ),
    Known(
        "^ResourceScatter.* updates is shorter",
        "dtf fails",
        "TensorFlow reads past updates that are too few",
    ),
    Known(
        "^(Block)?LSTM", "dtf fails .*(could not be broadcast|Incompatible shapes|mismatch|wc[ifo])",
        "TensorFlow reads past small arrays"
    ),
    Known(
        "^_FusedConv2D", "dtf fails .*(could not be broadcast|Incompatible shapes)",
        "TensorFlow does not look at the sizes of the arguments"
    ),
    Known(
        "^_FusedConv2D-batch-norm args is a scalar",
        "",
        "a scale of one number is taken for that of all channels",
    ),
    Known(
        "^RaggedTensorToTensor.* (values is|row_partition|size 3 to)",
        "",
        "TensorFlow reads past values that are fewer than the partitions say",
    ),
    Known(
        "^RaggedTensorToSparse.*rt_nested_splits has a dimension more", "", "TensorFlow takes the first size for rows"
    ),
    Known(
        "^(Ragged|Sparse)Bincount weights is a scalar",
        "",
        "one weight for many values: TensorFlow reads past it",
    ),
    Known("^DenseBincount input is a scalar", "", "a number is no vector of one"),
    Known("^SparseBincount values is negative", "dtf fails", "TensorFlow writes before the counts"),
    Known("^UnravelIndex.*negative", "dtf fails", "TensorFlow's results are negative coordinates"),
    Known("^DataFormatDimMap", "dtf fails .*is not in", "TensorFlow reads past its table"),
    Known(
        "^BandedTriangularSolve.*size 4 to 1",
        "dtf fails .*number of bands",
        "more bands than rows: TensorFlow does not see",
    ),
    Known(
        "^MaxPool(Grad)*V2.* strides is", "dtf fails .*batch or the depth", "TensorFlow does not look at these strides"
    ),
    Known(
        "^SampleDistortedBoundingBox.*odd",
        "must be positive",
        "TensorFlow takes an image without rows or columns",
    ),
    Known("^ParseSequenceExampleV2 serialized is a scalar", "", "splits that TensorFlow leaves unset"),
    Known(
        "^SparseReduceSum.*(indices|shape) is",
        r"dtf fails .*does not index into",
        "TensorFlow calls it INTERNAL, or adds",
    ),
    Known(
        "^Sparse(Add|AddGrad|SparseMaximum|SparseMinimum|SliceGrad|Softmax).*(_indices|shape) is (zero|negative)",
        "",
        "rows that are out of order, or twice: TensorFlow goes through both inputs in order, dtf sorts them",
    ),
    Known("^SparseConcat shapes is negative", "", "a size below 0: TensorFlow calls it INTERNAL"),
    Known(
        "^(SparseToSparseSetOperation|SetSize).*is zero", "repeated", "an index that is there twice does no harm here"
    ),
    Known(
        "^CTCLoss.*(size 5 to|inputs is shorter|labels_values is too large)",
        "",
        "labels that stand for no class: TensorFlow's path is as long as if they did",
    ),
    Known(
        "^Mfcc.*sample_rate is too large",
        "",
        "bands above the spectrum: zeros there, the logarithm of nothing here",
    ),
    Known(
        "^RaggedGather",
        "dtf (fails|gives)",
        "TensorFlow ends, or does not compare the splits with the values",
    ),
    Known("^Substr-each_its_own (pos|len) is", "", "TensorFlow's process reads past the smaller of the two"),
    Known(
        "^(Resource)?SparseApply.*(size 3 to 0|grad is a scalar)",
        "",
        "rows without elements: some rules refuse them, some do not",
    ),
    Known("^ScaleAndTranslateGrad size 2 to 0", "", "no numbers to scale by, and no image"),
    Known("^StatelessRandomGammaV2 (size 3 to 1|a dimension more)", "must end with", "a broadcast alpha does no harm"),
    Known("^ResourceScatterNdSub.*T=bool", "boolean subtract", "there is no difference of truth values"),
    # What is uninitialised, drawn, or a matter of taste.
    Known("^BlockLSTM.*size 2 to 0", "", "empty batches: TensorFlow leaves sums unset"),
    Known(
        "^BlockLSTMV2-",
        r"gradient \d",
        "TensorFlow takes its gates for those of the first version, in another order",
    ),
    Known("^BlockLSTM(Grad)?V2-.*float16", "differ", "TensorFlow computes with 16 bits"),
    Known("^Fused(ResizeAnd)?PadConv2D.*float16", "differ", "TensorFlow computes with 16 bits"),
    Known(
        "^FusedResizeAndPadConv2D.*float64",
        "differ",
        "dtf resizes in single precision, as ResizeBilinear does",
    ),
    Known(
        "^Fused(ResizeAnd)?PadConv2D.*size 1 to",
        "differ",
        "TensorFlow gives the first image's result for all",
    ),
    Known(
        "^QuantizeAndDequantize.*range_given=True",
        "must be a scalar",
        "TensorFlow no longer takes a range per slice",
    ),
    Known(
        "^Mfcc.*sample_rate is too large",
        "differ",
        "most bands lie between two bins; TensorFlow gives zeros",
    ),
    Known("^RGBToHSV.*odd", "differ", "where NaN or infinity is the largest channel"),
    Known(
        "^(StatelessRandomGamma|RandomGamma).*",
        r"gradient \d",
        "TensorFlow's derivative by alpha is less exact",
    ),
    Known(
        "^FusedBatchNorm-inference size . to 0",
        "",
        "of no images: TensorFlow's statistics are those of nothing, dtf's stay",
    ),
    Known(
        "^DepthwiseConv2dNative-VALID.*size . to 1|^Conv3D-VALID.*size . to 1",
        "gradient",
        "of windows without a position TensorFlow leaves it uninitialised",
    ),
    Known(
        "^Dilation2D.*size . to 0", "gradient", "of empty windows: TensorFlow gives the gradient to the first element"
    ),
    Known("^Dilation2D-SAME odd bfloat16", "", "-inf is below TensorFlow's least number"),
    Known(
        "^Fingerprint-rows_of_strings size 2 to 0",
        "",
        "of rows without strings TensorFlow leaves it uninitialised",
    ),
    Known("^ExtractGlimpse.*noise=uniform", "differ", "noise without a seed"),
    Known("^StringFormat size 4 to 0", "", "how an empty array is written"),
    Known("^DecodeJSONExample", "values", "the same message: numbers packed here, one by one there"),
    Known("^Debug.*gated_grpc=True", "", "nobody listens to the debugger: TensorFlow gives nothing"),
    Known(
        "^TridiagonalSolve.*perturb_singular",
        "not supported",
        "TensorFlow ignores it on CPUs, or not; dtf refuses",
    ),
    Known("^RaggedRange.*odd", "", "steps past the ends of the ranges, and to infinity"),
    Known(
        "^(Resource)?SparseApplyAdagradDA.*global_step is",
        "after",
        "a step before the first: divisions by nothing",
    ),
    Known("^(Resource)?SparseApplyAdadelta.*complex", "after", "roots of complex squares: another branch"),
    Known(
        "^(Conv3DBackprop|Conv3D|Dilation).*odd",
        "differ",
        "inf - inf and inf * 0 depend on the order of summing",
    ),
    Known(
        "^(RGBToHSV|HSVToRGB|AdjustHue|AdjustSaturation).*odd",
        "differ",
        "colors of NaN, infinities and numbers above 1",
    ),
    Known("^FakeQuant.*odd", "differ", "bounds that are NaN, infinite or the wrong way round"),
    Known("^CTC.*odd", "", "likelihoods of NaN and infinities"),
    Known(
        "^CTC(Loss|BeamSearchDecoder)",
        r"differ, at \[[\d, ]+\] dtf np.float64",
        "TensorFlow adds logarithms in float32 also where the values are float64",
    ),
    Known("^CTCBeamSearchDecoder.*sequence_length is negative", "", "TensorFlow reads in front of the first step"),
    Known("^LSTMBlockCellGrad.*size 2 to 0", "dtf fails", "no batch at all, which the op itself refuses too"),
    Known("^Conv3DBackpropFilterV2.*T=b?float16", "differ", "TensorFlow sums in 16 bits"),
    Known(
        "^(RGBToHSV|HSVToRGB).* shape ",
        r"TensorFlow fails \(import, 3\)",
        "the number of channels is looked at when the graph is made there, and when it runs here",
    ),
    Known(
        "^QuantizeAndDequantize.* shape ",
        r"TensorFlow fails \(import, 3\): 'Shape must be rank",
        "ranges that are not used may have any rank here",
    ),
    Known("^StringFormat inputs is a scalar", "TypeError", "a number in place of strings is refused before the step"),
    Known("^LSTMBlockCell.*odd|^NonMaxSuppression.*odd", "", "NaN and overflow of 16-bit numbers"),
    Known("^ScaleAndTranslate.*odd .?.?float", "differ", "infinities times the weight 0 of a neighbour"),
    Known("^ScaleAndTranslate.*odd u?int", "differ", "sums of the ends of the range that cancel in float32"),
    Known(
        "^(MatrixSquareRoot|TridiagonalSolve-that_needs_pivots).*T=complex",
        "gradient",
        "TensorFlow's gradient leaves out a conjugation; dtf's is that of differences",
    ),
    Known("^Conv3D-NCDHW", "", "TensorFlow's CPU kernel takes channels last only"),
    # Limits.
    Known("counter is shorter", "counter must be a vector", "TensorFlow reads past a counter of one word"),
    Known(
        "^(MaxPool|AvgPool|Conv2D|Depthwise|_FusedConv2D).*(NCHW|data_format)",
        "",
        "TensorFlow's CPU kernels take channels last only, and say so in several ways",
    ),
    Known(
        "^(Max|Avg)Pool.*VALID.*size . to",
        "gradient",
        "of windows without a position TensorFlow leaves it uninitialised",
    ),
    Known("^MaxPoolGrad.*size . to|^MaxPoolGradGrad", "differ", "maxima that are not those of the images"),
    Known(
        "^Conv2D.*VALID.*size . to",
        "gradient",
        "of windows without a position TensorFlow leaves it uninitialised",
    ),
    Known("^TridiagonalSolve T=complex", "gradient", "TensorFlow's gradient leaves out a conjugation"),
    Known("^Random(Gamma)|^StatelessRandomGamma", "gradient 0: dtf nothing", "dtf has no gradient by alpha"),
    Known(
        "Tseed=uint",
        "Invalid seed type",
        "the contract allows the unsigned seeds that TensorFlow's kernel refuses",
    ),
    Known("^BroadcastArgs s1 is negative", "", "TensorFlow takes negative sizes, of which there are none"),
    Known("^TopKV2-ties.*sorted=False", "", "the order is left open"),
    Known("^Range.*odd int64", "", "the step goes past the end of the range of integers"),
    Known("^MatrixSolveLs.*size . to 0", "", "no rows: TensorFlow leaves the result uninitialised"),
    Known("^(Lower|Upper)Bound unequal", "", "the made rows are not sorted"),
]

#: Pattern of the variant: by how much the tolerances are wider, and why.
WIDER: list[tuple[str, float, str]] = [
    ("^Igammac?.*odd float32", 100.0, "TensorFlow iterates in float32, dtf in float64"),
    (
        "^(Resize|CropAndResize|ScaleAndTranslate).*float64",
        2000.0,
        "TensorFlow's positions and weights are float32 for images of float64 too",
    ),
    ("^(ResizeBicubicGrad|ImageProjectiveTransform).*float64", 50000.0, "the same, summed"),
    ("^CTCLoss", 100.0, "TensorFlow adds logarithms in float32"),
    ("^ResizeArea.*too large", 10.0, "float32 positions of a thousand outputs, whose differences are the weights"),
    ("^ResizeBicubic", 100.0, "sums of large numbers that cancel"),
    ("^Qr.*float16", 4.0, "TensorFlow factors in 16 bits, dtf in 32"),
    ("^BlockLSTMGrad.*float16", 4.0, "sums of 16-bit products over all steps"),
    (
        "^(Einsum|Conv2D|Conv3D|MatMul|BatchMatMul|SparseMatMul|Depthwise).*float16",
        4.0,
        "sums of 16-bit products that cancel",
    ),
]

#: Pattern of the variant: what it does to TensorFlow.
ENDS_TENSORFLOW: list[tuple[str, str]] = [
    ("^Conv2D-SAME.*size . to 0", "SIGSEGV in oneDNN for images without a row or column"),
    ("^SparseTensorDenseMatMul.*a_shape is (negative|zero)", "CHECK failure: it makes a tensor of a negative size"),
    ("^(FakeQuantWithMinMaxVarsPerChannel(-narrow)?) inputs is a scalar", "CHECK failure: a scalar has no channels"),
    ("^CropAndResizeGrad(Image|Boxes).*odd", "SIGSEGV: boxes that are not finite"),
    ("^CombinedNonMaxSuppression (a dimension less|boxes is a scalar)", "CHECK failure"),
    ("^_FusedConv2D-batch-norm odd float64", "CHECK failure: it reads its arguments as float32"),
    ("^RaggedTensorToTensor.*(size 3 to 0|row_partition_tensors is negative)", "SIGSEGV: it trusts the partitions"),
    ("^RaggedGather.*indices (has a dimension more|is a scalar)", "CHECK failure: it makes fewer outputs"),
    ("^LSTMBlockCell(Grad)?-.*(a dimension less|(x|cs_prev) is a scalar)", "CHECK failure: it reads sizes unseen"),
    ("^LSTMBlockCellGrad-.*wc[ifo] is a scalar", "CHECK failure"),
    ("^BlockLSTM(Grad)?(V2)?-.*(size 5 to|seq_len_max is)", "CHECK failure: more steps than there are inputs"),
    ("^BlockLSTMGrad-.*((cs_prev|h_prev) is shorter|(cs_grad|h_grad) is a scalar)", "it writes past its arrays"),
    ("^CTCLoss.*size 5 to 0", "SIGSEGV: there is no class"),
    ("^MaxPoolGradWithArgmax.*(include_batch_in_index|argmax is (too large|negative))", "aborts: it writes anywhere"),
    ("SparseApply.*grad is a scalar", "CHECK failure: it reads the sizes of a scalar"),
    ("sign_decay is a vector", "CHECK failure: it reads a vector as a scalar"),
    ("^UnicodeDecodeWithOffsets.*Tsplits=int32", "CHECK failure: it writes int64 splits as int32"),
    ("RFFT.*fft_length is zero", "its library for transforms takes no size 0 and aborts"),
    ("Random(Gamma|Poisson|Binomial|GammaV2|PoissonV2).* odd", "draws again until a number fits, which none does"),
]


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
