"""Matrices as operators: `to_dense`, products, solutions and determinants that know a matrix's structure.

Owns the operators of full, lower triangular, diagonal and scaled identity matrices. TensorFlow's others (circulant,
Kronecker, low rank updates) are left out.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg/LinearOperator
"""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, decompositions, diagonals, filling, linalg, math, rearranging, reductions
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "LinearOperator", "LinearOperatorDiag", "LinearOperatorFullMatrix", "LinearOperatorIdentity",
    "LinearOperatorLowerTriangular", "LinearOperatorScaledIdentity",
]  # fmt: skip


class LinearOperator:
    """A batch of matrices [..., rows, columns]; subclasses give `to_dense` and what is faster than with it.

    Args:
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises, which are kept and not checked.
    """

    def __init__(
        self, dtype: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.dtype = dtype
        self.is_non_singular, self.is_self_adjoint = is_non_singular, is_self_adjoint
        self.is_positive_definite, self.is_square = is_positive_definite, is_square
        self.name = name or type(self).__name__

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self.to_dense().shape

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape, int32."""
        return array.shape_of(self.to_dense())

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Tensor:
        """The product with matrices."""
        with name_scope(self.name):
            return linalg.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg, name=name)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product with vectors."""
        column = array.expand_dims(convert_to_tensor(x, self.dtype), -1)
        return array.squeeze(self.matmul(column, adjoint, name=name), [-1])

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Tensor:
        """X with A X = rhs."""
        rhs = convert_to_tensor(rhs, self.dtype)
        with name_scope(self.name):
            return self._solve(rearranging.matrix_transpose(rhs) if adjoint_arg else rhs, adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return decompositions.matrix_solve(self.to_dense(), rhs, adjoint=adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solvevec") -> Tensor:
        """x with A x = rhs."""
        return array.squeeze(self.solve(array.expand_dims(convert_to_tensor(rhs, self.dtype), -1), adjoint), [-1])

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The diagonal."""
        return diagonals.matrix_diag_part(self.to_dense(), name=name)

    def trace(self, name: str = "trace") -> Tensor:
        """The sum of the diagonal."""
        return reductions.reduce_sum(self.diag_part(), [-1], name=name)

    def determinant(self, name: str = "det") -> Tensor:
        """The determinant."""
        return decompositions.matrix_determinant(self.to_dense(), name=name)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithm of the determinant's size."""
        return math.log(math.abs(self.determinant()), name=name)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The matrices plus `x`."""
        return math.add(self.to_dense(), x, name=name)


class LinearOperatorFullMatrix(LinearOperator):
    """Matrices without structure."""

    def __init__(self, matrix: Any, name: str = "LinearOperatorFullMatrix", **promises: Any) -> None:
        self._matrix = convert_to_tensor(matrix, name="matrix")
        super().__init__(self._matrix.dtype.base_dtype, name=name, **promises)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices."""
        return array.identity(self._matrix, name)


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangles of matrices; what is above the diagonal is not looked at."""

    def __init__(self, tril: Any, name: str = "LinearOperatorLowerTriangular", **promises: Any) -> None:
        self._tril = diagonals.matrix_band_part(convert_to_tensor(tril, name="tril"), -1, 0)
        super().__init__(self._tril.dtype.base_dtype, name=name, **promises)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices, 0 above the diagonal."""
        return array.identity(self._tril, name)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return decompositions.matrix_triangular_solve(self._tril, rhs, lower=True, adjoint=adjoint)

    def determinant(self, name: str = "det") -> Tensor:
        """The product of the diagonal."""
        return reductions.reduce_prod(self.diag_part(), [-1], name=name)


class LinearOperatorDiag(LinearOperator):
    """Diagonal matrices, given by [..., n]."""

    def __init__(self, diag: Any, name: str = "LinearOperatorDiag", **promises: Any) -> None:
        self.diag = convert_to_tensor(diag, name="diag")
        super().__init__(self.diag.dtype.base_dtype, name=name, **promises)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices."""
        return diagonals.matrix_diag(self.diag, name=name)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return rhs / array.expand_dims(self.diag, -1)

    def determinant(self, name: str = "det") -> Tensor:
        """The product of the diagonal."""
        return reductions.reduce_prod(self.diag, [-1], name=name)


class LinearOperatorScaledIdentity(LinearOperatorDiag):
    """The identity times `multiplier`, [...]."""

    def __init__(
        self, num_rows: Any, multiplier: Any, name: str = "LinearOperatorScaledIdentity", **promises: Any
    ) -> None:
        self.multiplier = convert_to_tensor(multiplier, name="multiplier")
        ones = filling.ones([num_rows], self.multiplier.dtype.base_dtype)
        super().__init__(array.expand_dims(self.multiplier, -1) * ones, name=name, **promises)


class LinearOperatorIdentity(LinearOperatorDiag):
    """The identity [*batch_shape, num_rows, num_rows]."""

    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: Any = dtypes.float32,
        name: str = "LinearOperatorIdentity", **promises: Any,
    ) -> None:  # fmt: skip
        super().__init__(filling.ones([*(batch_shape or []), num_rows], dtype), name=name, **promises)
