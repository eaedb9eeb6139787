"""Matrices as operators: products, solutions and determinants that use the structure of a matrix.

    base ......... LinearOperator, whose methods every operator has     dense ...... full, lower triangular, diagonal
    identities ... the identity, its multiples, zeros                   circulant .. by Fourier transforms
    products ..... compositions, adjoints, inverses, Kronecker          blocks ..... on the diagonal, or below it
    structured ... reflections, permutations, Toeplitz, tridiagonal     low_rank ... L + U D V^H
    algebra ...... tables: what operators of two classes combine to     registrations .. their rows; hints: promises
    batches ...... matrices whose batch dimensions broadcast

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg
"""

from __future__ import annotations

import dtf.build.linear_operators.registrations  # noqa: F401
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.blocks import LinearOperatorBlockDiag, LinearOperatorBlockLowerTriangular
from dtf.build.linear_operators.circulant import (
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
)
from dtf.build.linear_operators.dense import (
    LinearOperatorDiag,
    LinearOperatorFullMatrix,
    LinearOperatorLowerTriangular,
)
from dtf.build.linear_operators.identities import (
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from dtf.build.linear_operators.low_rank import LinearOperatorLowRankUpdate
from dtf.build.linear_operators.products import (
    LinearOperatorAdjoint,
    LinearOperatorComposition,
    LinearOperatorInversion,
    LinearOperatorKronecker,
)
from dtf.build.linear_operators.structured import (
    LinearOperatorHouseholder,
    LinearOperatorPermutation,
    LinearOperatorToeplitz,
    LinearOperatorTridiag,
)

__all__ = [
    "LinearOperator", "LinearOperatorAdjoint", "LinearOperatorBlockDiag", "LinearOperatorBlockLowerTriangular",
    "LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D", "LinearOperatorComposition",
    "LinearOperatorDiag", "LinearOperatorFullMatrix", "LinearOperatorHouseholder", "LinearOperatorIdentity",
    "LinearOperatorInversion", "LinearOperatorKronecker", "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular", "LinearOperatorPermutation", "LinearOperatorScaledIdentity",
    "LinearOperatorToeplitz", "LinearOperatorTridiag", "LinearOperatorZeros",
]  # fmt: skip
