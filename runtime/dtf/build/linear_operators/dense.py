"""The operators of full, lower triangular and diagonal matrices."""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.batches import (
    assert_no_entries_with_modulus_zero,
    assert_zero_imag_part,
    matmul_with_broadcast,
    matrix_adjoint,
    matrix_triangular_solve_with_broadcast,
)
from dtf.build.ops import array, check_ops, diagonals, joining, math, reductions
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["LinearOperatorDiag", "LinearOperatorFullMatrix", "LinearOperatorLowerTriangular"]

_NUMBERS = [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128]


def checked_dtype(tensor: Tensor, what: str) -> Tensor:
    """Raises TypeError for a type that is no floating-point or complex number."""
    if tensor.dtype.base_dtype not in _NUMBERS:
        raise TypeError(f"Argument {what} must have dtype in {_NUMBERS}.  Found: {tensor.dtype}")
    return tensor


class LinearOperatorFullMatrix(LinearOperator):
    """Matrices without structure.

    Args:
      matrix: [..., rows, columns].
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      ValueError: the matrix has fewer than two dimensions.
    """

    def __init__(
        self, matrix: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[matrix]):
            self._matrix = checked_dtype(convert_to_tensor(matrix, name="matrix"), "matrix")
        rank = self._matrix.shape.ndims
        if rank is not None and rank < 2:
            raise ValueError(f"Argument matrix must have at least 2 dimensions.  Found: {self._matrix}")
        super().__init__(
            self._matrix.dtype, [self._matrix], is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            {"matrix": matrix},
        )  # fmt: skip

    @property
    def matrix(self) -> Tensor:
        """The matrices."""
        return self._matrix

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _shape_tensor(self) -> Tensor:
        return array.shape_of(self._matrix)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul_with_broadcast(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Tensor:
        return self._matrix


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangles of matrices; entries above the diagonal are ignored.

    Args:
      tril: [..., n, n].
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      ValueError: the operator is promised not to be square.
    """

    def __init__(
        self, tril: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:  # fmt: skip
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        with name_scope(name, values=[tril]):
            self._given = checked_dtype(convert_to_tensor(tril, name="tril"), "tril")
            rank = self._given.shape.ndims
            if rank is not None and rank < 2:
                raise ValueError(f"Argument tril must have at least 2 dimensions.  Found: {self._given}")
            self._tril = diagonals.matrix_band_part(self._given, -1, 0)
            self._diagonal = diagonals.matrix_diag_part(self._tril)
        super().__init__(
            self._given.dtype, [self._given], is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"tril": tril},
        )  # fmt: skip

    @property
    def tril(self) -> Tensor:
        """The matrices as they were given."""
        return self._given

    def _shape(self) -> TensorShape:
        return self._tril.shape

    def _shape_tensor(self) -> Tensor:
        return array.shape_of(self._tril)

    def _assert_non_singular(self) -> Any:
        return assert_no_entries_with_modulus_zero(
            self._diagonal, message="Singular operator:  Diagonal contained zero values."
        )

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul_with_broadcast(self._tril, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _determinant(self) -> Tensor:
        return reductions.reduce_prod(self._diagonal, [-1])

    def _log_abs_determinant(self) -> Tensor:
        return reductions.reduce_sum(math.log(math.abs(self._diagonal)), [-1])

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = matrix_adjoint(rhs) if adjoint_arg else rhs
        return matrix_triangular_solve_with_broadcast(self._tril, rhs, lower=True, adjoint=adjoint)

    def _to_dense(self) -> Tensor:
        return self._tril

    def _eigvals(self) -> Tensor:
        return self._diagonal


class LinearOperatorDiag(LinearOperator):
    """Diagonal matrices.

    Args:
      diag: the diagonals [..., n].
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      ValueError: the diagonal has no dimension, or the promises contradict a real diagonal.
    """

    def __init__(
        self, diag: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str = "LinearOperatorDiag",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[diag]):
            self._diag = checked_dtype(convert_to_tensor(diag, name="diag"), "diag")
            if self._diag.shape.ndims == 0:
                raise ValueError(f"Argument diag must have at least 1 dimension.  Found: {self._diag}")
            if not self._diag.dtype.is_complex:
                if is_self_adjoint is False:
                    raise ValueError("A real diagonal operator is always self adjoint.")
                is_self_adjoint = True
            if is_square is False:
                raise ValueError("Only square diagonal operators currently supported.")
        super().__init__(
            self._diag.dtype, [self._diag], is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"diag": diag},
        )  # fmt: skip

    @property
    def diag(self) -> Tensor:
        """The diagonals."""
        return self._diag

    def _shape(self) -> TensorShape:
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = array.shape_of(self._diag)
        return joining.concat([shape, shape[-1:]], 0)

    def _assert_non_singular(self) -> Any:
        return assert_no_entries_with_modulus_zero(
            self._diag, message="Singular operator:  Diagonal contained zero values."
        )

    def _assert_positive_definite(self) -> Any:
        complex_ = self.dtype.is_complex
        message = "Diagonal operator had diagonal entries with non-positive real part, thus was not positive definite."
        if not complex_:
            message = "Real diagonal operator had non-positive diagonal entries, thus was not positive definite."
        return check_ops.assert_positive(math.real(self._diag) if complex_ else self._diag, message=message)

    def _assert_self_adjoint(self) -> Any:
        return assert_zero_imag_part(
            self._diag,
            message="This diagonal operator contained non-zero imaginary values.  Thus it was not self-adjoint.",
        )

    def _scale(self, adjoint: bool) -> Tensor:
        return math.conj(self._diag) if adjoint else self._diag

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        return array.expand_dims(self._scale(adjoint), -1) * x

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return self._scale(adjoint) * x

    def _determinant(self) -> Tensor:
        return reductions.reduce_prod(self._diag, [-1])

    def _log_abs_determinant(self) -> Tensor:
        total = reductions.reduce_sum(math.log(math.abs(self._diag)), [-1])
        return math.cast(total, self.dtype) if self.dtype.is_complex else total

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = matrix_adjoint(rhs) if adjoint_arg else rhs
        return rhs / array.expand_dims(self._scale(adjoint), -1)

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return rhs / self._scale(adjoint)

    def _to_dense(self) -> Tensor:
        return diagonals.matrix_diag(self._diag)

    def _diag_part(self) -> Tensor:
        return self._diag

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return _with_diagonal_added(x, self._diag)

    def _eigvals(self) -> Tensor:
        return self._diag

    def _cond(self) -> Tensor:
        sizes = math.abs(self._diag)
        ratio = reductions.reduce_max(sizes, -1) / reductions.reduce_min(sizes, -1)
        return math.cast(ratio, self.dtype) if self.dtype.is_complex else ratio


def _with_diagonal_added(x: Tensor, diagonal: Tensor) -> Tensor:
    """`x` with a diagonal added; the batch dimensions broadcast."""
    total = diagonals.matrix_diag_part(x) + diagonal
    if x.shape.is_fully_defined() and total.shape.is_fully_defined():
        batch = total.shape[:-1].as_list()
        wide = x if x.shape[:-2].as_list() == batch else array.broadcast_to(x, [*batch, *x.shape[-2:].as_list()])
    else:
        wide = array.broadcast_to(x, joining.concat([array.shape_of(total)[:-1], array.shape_of(x)[-2:]], 0))
    return diagonals.matrix_set_diag(wide, total)
