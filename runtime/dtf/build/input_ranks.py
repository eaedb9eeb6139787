"""The ranks that inputs of ops must have, as TensorFlow's shape functions check them when a node is made.

Owns the table and the check; further conditions on inputs are in the op's shape rule. An entry has a word for each
input, in the order of the contract: a rank, a lowest rank ("2+"), or "*" for any rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor import Operation

__all__ = ["check"]

_TABLE = """
    Fill                1 0             Tile                * 1             BroadcastTo         * 1
    Reshape             * 1             ReverseV2           * 1             InvertPermutation   1
    OneHot              * 0 0 0         Range               0 0 0           TopKV2              1+ 0
    Transpose           * 1             Pad                 * 2             PadV2               * 2 0
    MirrorPad           * 2             Slice               * 1 1           StridedSlice        * 1 1 1
    Split               0 *             SplitV              * 1 0           Unique              1
    UniqueWithCounts    1               ListDiff            1 1             ReverseSequence     * 1
    MatrixDiag          1+              MatrixDiagPart      2+              MatrixSetDiag       2+ 1+
    MatrixBandPart      2+ 0 0          ScatterNd           * * 1           Bincount            * 0 *
    HistogramFixedWidth * 1 0           SegmentSum          * 1             SegmentMean         * 1
    SegmentMax          * 1             SegmentMin          * 1             SegmentProd         * 1
    SparseSegmentSum    * 1 1           SparseSegmentMean   * 1 1           SparseSegmentSqrtN  * 1 1
    RandomUniform       1               RandomStandardNormal 1              TruncatedNormal     1
    RandomUniformInt    1 0 0           Multinomial         2 0             RandomGamma         1 *
    RandomPoissonV2     1 *             StatelessRandomUniform 1 1          StatelessRandomNormal 1 1
    StatelessTruncatedNormal 1 1        StatelessRandomUniformInt 1 1 0 0
    RegexReplace        * 0 0           RegexFullMatch      * 0             StringSplit         1 0
    StringSplitV2       1 0             ReadFile            0               WriteFile           0 0
    GenerateVocabRemapping 0 0          LoadAndRemapMatrix  0 0 1 1 *
    DecodePng           0               DecodeJpeg          0               DecodeGif           0
    DecodeBmp           0               EncodeJpeg          3               CropAndResize       4 2 1 1
    NonMaxSuppression   2 1 0           NonMaxSuppressionV2 2 1 0 0         NonMaxSuppressionV3 2 1 0 0 0
    DrawBoundingBoxes   4 3             ResizeBilinear      4 1             ResizeNearestNeighbor 4 1
    ResizeBicubic       4 1             ResizeArea          4 1             ExtractGlimpse      4 1 2
    SampleDistortedBoundingBox 1 3      SampleDistortedBoundingBoxV2 1 3 0
    MatMul              2 2             Cholesky            2+              MatrixInverse       2+
    MatrixSolve         2+ 2+           MatrixDeterminant   2+              MatrixTriangularSolve 2+ 2+
    Qr                  2+              Svd                 2+              SelfAdjointEigV2    2+
    SparseToDense       * 1 * 0         SparseReshape       2 1 1           SparseReorder       2 1 1
    SparseTensorDenseMatMul 2 1 1 2     SparseSoftmax       2 1 1           SparseFillEmptyRows 2 1 1 0
    SparseSplit         0 2 1 1
    Conv2D              4 4             Conv3D              5 5             DepthwiseConv2dNative 4 4
    MaxPool             4               AvgPool             4               MaxPool3D           5
    AvgPool3D           5               BiasAdd             2+ 1            LRN                 4
    Dilation2D          4 3             FusedBatchNorm      4 1 1 1 1       FusedBatchNormV2    4 1 1 1 1
    FusedBatchNormV3    4 1 1 1 1       SpaceToDepth        4               DepthToSpace        4
    SpaceToBatchND      * 1 2           BatchToSpaceND      * 1 2           Softmax             1+
    LogSoftmax          1+              InTopK              2 1             InTopKV2            2 1 0
    NthElement          1+ 0            CTCLoss             3 2 1 1         CTCGreedyDecoder    3 1
    FFT                 1+              FFT2D               2+              FFT3D               3+
    IFFT                1+              IFFT2D              2+              IFFT3D              3+
    RFFT                1+ 1            RFFT2D              2+ 1            IRFFT               1+ 1
    Switch              * 0             RefSwitch           * 0             LoopCond            0
    ImageSummary        0               HistogramSummary    0 *             DecodeWav           0
    CountUpTo           0               Assert              0
"""


def _rows() -> dict[str, tuple[str, ...]]:
    rows: dict[str, list[str]] = {}
    words: list[str] = []
    for word in _TABLE.split():
        if word[0].isalpha():
            words = rows.setdefault(word, [])
        else:
            words.append(word)
    return {op_type: tuple(ranks) for op_type, ranks in rows.items()}


_ranks = _rows()


def check(op: Operation) -> None:
    """Looks at the known ranks of the inputs.

    Raises:
      ValueError: an input has the wrong rank.
    """
    wanted = _ranks.get(op.type)
    if wanted is None:
        return
    for tensor, rank in zip(op.inputs, wanted, strict=False):
        if rank[0] != "*":
            _check_one(tensor.shape, rank)


def _check_one(shape: TensorShape, rank: str) -> None:
    if rank.endswith("+"):
        shape.with_rank_at_least(int(rank[:-1]))
    else:
        shape.with_rank(int(rank))
