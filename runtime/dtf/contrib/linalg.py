"""tf.contrib.linalg: the linear operators of tf.linalg under their first names. Only re-exports names."""

from __future__ import annotations

from dtf.build.linear_operators import (
    LinearOperator,
    LinearOperatorDiag,
    LinearOperatorFullMatrix,
    LinearOperatorIdentity,
    LinearOperatorLowerTriangular,
    LinearOperatorScaledIdentity,
)

LinearOperatorTriL = LinearOperatorLowerTriangular

__all__ = [
    "LinearOperator", "LinearOperatorDiag", "LinearOperatorFullMatrix", "LinearOperatorIdentity",
    "LinearOperatorLowerTriangular", "LinearOperatorScaledIdentity", "LinearOperatorTriL",
]  # fmt: skip
