"""Ops that graphs of newer format versions must not have: since which version, and what to use instead.

Source: the op registry of TensorFlow 2.21 (`OpDef.deprecation`).
"""

from __future__ import annotations

__all__ = ["DEPRECATED", "check"]

_TENSOR_ARRAYS = {
    "": "TensorArrayV3", "Close": "TensorArrayCloseV3", "Concat": "TensorArrayGradV3",
    "Gather": "TensorArrayGatherV3", "Grad": "TensorArrayGradV3", "Pack": "TensorArrayGatherV3 with RangeOp",
    "Read": "TensorArrayReadV3", "Size": "TensorArraySizeV3", "Split": "TensorArraySplitV3",
    "Write": "TensorArrayWriteV3",
}  # fmt: skip
_SECOND_TENSOR_ARRAYS = ("", "Close", "Gather", "Grad", "Read", "Scatter", "Size", "Split", "Write")
_BATCHES = {
    "Cholesky": 13, "CholeskyGrad": 13, "MatrixDeterminant": 13, "MatrixInverse": 13, "MatrixSolve": 13,
    "MatrixSolveLs": 13, "MatrixTriangularSolve": 13, "Svd": 13,
}  # fmt: skip
_SHORT_BATCHES = {
    "FFT": 15, "FFT2D": 15, "FFT3D": 15, "IFFT": 15, "IFFT2D": 15, "IFFT3D": 15, "MatrixBandPart": 14,
    "MatrixDiag": 14, "MatrixDiagPart": 14, "MatrixSetDiag": 14,
}  # fmt: skip
_READERS = ("FixedLengthRecord", "Identity", "TFRecord", "TextLine")
_WORD2VEC = "Moving word2vec into tensorflow_models/tutorials and deprecating its ops here as a result"

#: Op type -> the first version of graphs without it, and the explanation.
DEPRECATED: dict[str, tuple[int, str]] = {
    **{f"TensorArray{name}": (16, f"Use {instead}") for name, instead in _TENSOR_ARRAYS.items()},
    **{f"TensorArray{name}V2": (26, f"Use TensorArray{name}V3") for name in _SECOND_TENSOR_ARRAYS},
    **{f"Batch{name}": (version, f"Use {name} instead.") for name, version in _BATCHES.items()},
    **{f"Batch{name}": (version, f"Use {name}") for name, version in _SHORT_BATCHES.items()},
    **{f"{name}Reader": (26, f"Use {name}ReaderV2") for name in _READERS},
    "AdjustContrast": (2, "Use AdjustContrastv2 instead"),
    "AudioSummary": (15, "Use AudioSummaryV2."),
    "BatchNormWithGlobalNormalization": (9, "Use tf.nn.batch_normalization()"),
    "BatchNormWithGlobalNormalizationGrad": (9, "Use tf.nn.batch_normalization()"),
    "BatchSelfAdjointEig": (11, "Use SelfAdjointEigV2 instead."),
    "BatchSelfAdjointEigV2": (13, "Use SelfAdjointEigV2 instead."),
    "Conv3DBackpropFilter": (10, "Use Conv3DBackpropFilterV2"),
    "Conv3DBackpropInput": (10, "Use Conv3DBackpropInputV2"),
    "MatrixExponential": (27, "Use Python implementation tf.linalg.matrix_exponential instead."),
    "NegTrain": (19, _WORD2VEC),
    "Old": (8, "For reasons"),
    "PlaceholderV2": (23, "Placeholder now behaves the same as PlaceholderV2."),
    "QuantizeAndDequantize": (22, "Replaced by QuantizeAndDequantizeV2"),
    "RandomCrop": (8, "Random crop is now pure Python"),
    "RandomPoisson": (25, "Replaced by RandomPoissonV2"),
    "SelfAdjointEig": (11, "Use SelfAdjointEigV2 instead."),
    "Skipgram": (19, _WORD2VEC),
    "StatefulStandardNormal": (29, "Use StatefulStandardNormalV2 instead"),
    "TensorArrayScatter": (19, "Use TensorArrayGradV3"),
    "TensorArrayUnpack": (20, "Use TensorArrayScatterV3 with RangeOp"),
    "TileGrad": (3, "TileGrad has been replaced with reduce_sum"),
    "TopK": (7, "Use TopKV2 instead"),
}


def check(op_type: str, producer: int) -> None:
    """Refuses an op that graphs of a format version no longer have.

    Args:
      op_type: the op.
      producer: the version of the graph.

    Raises:
      NotImplementedError: the op was removed in an earlier version, or in this one.
    """
    entry = DEPRECATED.get(op_type)
    if entry is not None and producer >= entry[0]:
        raise NotImplementedError(
            f"Op {op_type} is not available in GraphDef version {producer}. It has been removed in version {entry[0]}. "
            f"{entry[1].removesuffix('.')}."
        )
