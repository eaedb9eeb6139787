"""The base of operators: what every matrix can do, by its product with matrices or as a dense tensor.

A subclass gives `_shape`, `_shape_tensor` and `_matmul`, and replaces what its structure makes faster. Promises such
as `is_self_adjoint` are kept, not checked; the `assert_*` methods check them when the graph runs.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg/LinearOperator
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.linear_operators import algebra
from dtf.build.linear_operators.batches import (
    cholesky_solve_with_broadcast,
    matrix_adjoint,
    matrix_solve_with_broadcast,
)
from dtf.build.ops import array, check_ops, decompositions, diagonals, linalg, math, reductions
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["LinearOperator"]


class LinearOperator:
    """A batch of matrices [..., rows, columns].

    Args:
      dtype: the type of the entries.
      graph_parents: the tensors that the operator is made of.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises; None: not known.
      name: the scope of its operations.
      parameters: the arguments of the constructor by name.

    Raises:
      ValueError: the promises contradict each other.
    """

    def __init__(
        self, dtype: Any, graph_parents: Sequence[Any] | None = None, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = None, parameters: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        for index, parent in enumerate(graph_parents or ()):
            if parent is None or not hasattr(parent, "graph"):
                raise ValueError(f"Graph parent item {index} is not a Tensor; {parent}.")
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular operator is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint operator is always square.")
            is_square = True
        self._is_square_promise = is_square
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        self._parents = list(graph_parents or ())
        self._is_non_singular, self._is_self_adjoint = is_non_singular, is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._name = name or type(self).__name__
        self._parameters = parameters or {}

    # -- what is known

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._parameters)

    @property
    def dtype(self) -> Any:
        """The type of the entries."""
        return self._dtype

    @property
    def name(self) -> str:
        """The scope of its operations."""
        return self._name

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that it is made of."""
        return self._parents

    @property
    def is_non_singular(self) -> bool | None:
        """Whether it has an inverse."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether it is its conjugate transpose."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether the real part of x^H A x is positive for all x but 0."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether it has as many rows as columns; the static shape says so where it is known.

        Raises:
          ValueError: the promise contradicts the static shape.
        """
        rows, columns = self.range_dimension, self.domain_dimension
        if rows.value is None or columns.value is None:
            return self._is_square_promise
        square = bool(rows.value == columns.value)
        if self._is_square_promise is not None and self._is_square_promise != square:
            raise ValueError(
                f"User provided is_square hint conflicts with the shape of the operator: is_square="
                f"{self._is_square_promise}, but the operator was {'square' if square else 'not square'}"
            )
        return square

    @contextlib.contextmanager
    def _name_scope(self, name: str | None = None, values: Sequence[Any] | None = None) -> Iterator[str]:
        with name_scope(self._name), name_scope(name, values=list(values or ())) as scope:
            yield scope

    # -- shapes

    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError("_shape_tensor is not implemented.")

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape()

    @property
    def batch_shape(self) -> TensorShape:
        """The static shape without the last two dimensions."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of dimensions, if it is known."""
        return self.shape.ndims

    @property
    def domain_dimension(self) -> Any:
        """The number of columns, a Dimension."""
        return self._dimension(-1)

    @property
    def range_dimension(self) -> Any:
        """The number of rows, a Dimension."""
        return self._dimension(-2)

    def _dimension(self, index: int) -> Any:
        dims = self.shape.dims
        return TensorShape([None]).dims[0] if dims is None else dims[index]  # type: ignore[index]

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape, int32."""
        with self._name_scope(name):
            if self.shape.is_fully_defined():
                return convert_to_tensor(self.shape.as_list(), dtypes.int32)
            return self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape without the last two dimensions, int32."""
        with self._name_scope(name):
            return self._batch_shape_tensor()

    def _batch_shape_tensor(self) -> Tensor:
        if self.batch_shape.is_fully_defined():
            return convert_to_tensor(self.batch_shape.as_list(), dtypes.int32, name="batch_shape")
        return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of dimensions, int32."""
        with self._name_scope(name):
            if self.tensor_rank is not None:
                return convert_to_tensor(self.tensor_rank)
            return array.size(self.shape_tensor())

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns, int32."""
        return self._dimension_tensor(self.domain_dimension, -1, name)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows, int32."""
        return self._dimension_tensor(self.range_dimension, -2, name)

    def _dimension_tensor(self, dimension: Any, index: int, name: str) -> Tensor:
        with self._name_scope(name):
            if dimension.value is not None:
                return convert_to_tensor(dimension.value, dtypes.int32)
            return self.shape_tensor()[index]

    # -- checks

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails where the matrix has no inverse, up to the precision of its type."""
        with self._name_scope(name):
            return self._assert_non_singular()

    def _assert_non_singular(self) -> Any:
        if self._can_use_cholesky():
            return self.assert_positive_definite()
        return check_ops.assert_less(
            self.cond(), self._condition_number_max(), message="Singular matrix up to precision epsilon."
        )

    def _condition_number_max(self) -> Tensor:
        eps = np.finfo(self.dtype.as_numpy_dtype).eps
        kind = self.dtype.real_dtype
        return 1.0 / (math.maximum(math.cast(self.range_dimension_tensor(), kind), math.cast(100.0, kind)) * eps)

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails where the matrix is not positive definite."""
        with self._name_scope(name):
            return self._assert_positive_definite()

    def _assert_positive_definite(self) -> Any:
        if not self.is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is not implemented.")
        factor = decompositions.cholesky(self.to_dense())
        diagonal = diagonals.matrix_diag_part(factor)
        if diagonal.dtype.is_complex:
            diagonal = math.real(diagonal)
        return check_ops.assert_positive(diagonal, message="Matrix was not positive definite.")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails where the matrix is not its conjugate transpose."""
        with self._name_scope(name):
            return self._assert_self_adjoint()

    def _assert_self_adjoint(self) -> Any:
        dense = self.to_dense()
        return check_ops.assert_equal(
            dense, matrix_adjoint(dense), message="Matrix was not equal to its adjoint."
        )

    def _check_input_dtype(self, arg: Tensor) -> None:
        if arg.dtype.base_dtype != self.dtype:
            raise TypeError(f"Expected argument to have dtype {self.dtype}.  Found: {arg.dtype} in tensor {arg}")

    # -- products

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        raise NotImplementedError("_matmul is not implemented.")

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with matrices [..., columns, k], a Tensor; or with another operator, an operator.

        Raises:
          ValueError: the static sizes do not fit.
          TypeError: `x` has another dtype.
        """
        if isinstance(x, LinearOperator):
            left, right = self._pair(x, adjoint, adjoint_arg)
            with self._name_scope(name):
                return algebra.matmul(left, right)
        with self._name_scope(name, [x]):
            x = convert_to_tensor(x, name="x")
            self._check_input_dtype(x)
            self._check_sizes(x, -2 if adjoint else -1, adjoint_arg)
            return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def _pair(self, other: LinearOperator, adjoint: bool, adjoint_arg: bool) -> tuple[Any, Any]:
        left = self.adjoint() if adjoint else self
        right = other.adjoint() if adjoint_arg else other
        rows, columns = right.range_dimension.value, left.domain_dimension.value
        if rows is not None and columns is not None and rows != columns:
            raise ValueError(f"Operators are incompatible. Expected `x` to have dimension {columns} but got {rows}.")
        return left, right

    def _check_sizes(self, x: Tensor, ours: int, adjoint_arg: bool) -> None:
        dims, theirs = self.shape.dims, x.shape.dims
        if dims is not None and theirs is not None and len(theirs) > 1:
            dims[ours].assert_is_compatible_with(theirs[-1 if adjoint_arg else -2])

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product with vectors [..., columns]."""
        with self._name_scope(name, [x]):
            x = convert_to_tensor(x, name="x")
            self._check_input_dtype(x)
            dims, theirs = self.shape.dims, x.shape.dims
            if dims is not None and theirs:
                dims[-2 if adjoint else -1].assert_is_compatible_with(theirs[-1])
            return self._matvec(x, adjoint=adjoint)

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return array.squeeze(self.matmul(array.expand_dims(x, -1), adjoint=adjoint), [-1])

    # -- solutions

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """X with A X = rhs: a Tensor for matrices [..., rows, k], an operator for an operator.

        Raises:
          NotImplementedError: the matrix is known to be singular, or not square.
          ValueError: the static sizes do not fit.
          TypeError: `rhs` has another dtype.
        """
        if self.is_non_singular is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to be singular."
            )
        if self.is_square is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to not be square."
            )
        if isinstance(rhs, LinearOperator):
            left, right = self._pair(rhs, adjoint, adjoint_arg)
            with self._name_scope(name):
                return algebra.solve(left, right)
        with self._name_scope(name, [rhs]):
            rhs = convert_to_tensor(rhs, name="rhs")
            self._check_input_dtype(rhs)
            self._check_sizes(rhs, -1 if adjoint else -2, adjoint_arg)
            return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = matrix_adjoint(rhs) if adjoint_arg else rhs
        if self._can_use_cholesky():
            return cholesky_solve_with_broadcast(decompositions.cholesky(self.to_dense()), rhs)
        return matrix_solve_with_broadcast(self.to_dense(), rhs, adjoint=adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """x with A x = rhs for vectors [..., rows]."""
        with self._name_scope(name, [rhs]):
            rhs = convert_to_tensor(rhs, name="rhs")
            self._check_input_dtype(rhs)
            dims, theirs = self.shape.dims, rhs.shape.dims
            if dims is not None and theirs:
                dims[-1 if adjoint else -2].assert_is_compatible_with(theirs[-1])
            return self._solvevec(rhs, adjoint=adjoint)

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return array.squeeze(self.solve(array.expand_dims(rhs, -1), adjoint=adjoint), [-1])

    # -- other operators

    def adjoint(self, name: str = "adjoint") -> Any:
        """The operator of the conjugate transposes."""
        if self.is_self_adjoint is True:
            return self
        with self._name_scope(name):
            return algebra.adjoint(self)

    @property
    def H(self) -> Any:  # noqa: N802
        """The adjoint."""
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> Any:
        """The operator of the inverses.

        Raises:
          ValueError: the matrix is known to be singular, or not square.
        """
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        with self._name_scope(name):
            return algebra.inverse(self)

    def cholesky(self, name: str = "cholesky") -> Any:
        """The operator of the lower triangular factors.

        Raises:
          ValueError: the matrix is not promised to be self-adjoint and positive definite.
        """
        if not self._can_use_cholesky():
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        with self._name_scope(name):
            return algebra.cholesky(self)

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # -- numbers

    def _needs_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{what} not implemented for an operator that is expected to not be square.")

    def determinant(self, name: str = "det") -> Tensor:
        """The determinants.

        Raises:
          NotImplementedError: the matrix is known not to be square.
        """
        self._needs_square("Determinant")
        with self._name_scope(name):
            return self._determinant()

    def _determinant(self) -> Tensor:
        if self._can_use_cholesky():
            return math.exp(self.log_abs_determinant())
        return decompositions.matrix_determinant(self.to_dense())

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithms of the absolute determinants.

        Raises:
          NotImplementedError: the matrix is known not to be square.
        """
        self._needs_square("Determinant")
        with self._name_scope(name):
            return self._log_abs_determinant()

    def _log_abs_determinant(self) -> Tensor:
        if self._can_use_cholesky():
            diagonal = diagonals.matrix_diag_part(decompositions.cholesky(self.to_dense()))
            return 2 * reductions.reduce_sum(math.log(diagonal), [-1])
        return decompositions.slogdet(self.to_dense())[1]

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices as a tensor."""
        with self._name_scope(name):
            return self._to_dense()

    def _to_dense(self) -> Tensor:
        batch = self.batch_shape
        shape = batch if batch.is_fully_defined() else self.batch_shape_tensor()
        columns = self.domain_dimension.value
        columns = self.domain_dimension_tensor() if columns is None else columns
        return self.matmul(linalg.eye(columns, batch_shape=shape, dtype=self.dtype))

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The diagonals."""
        with self._name_scope(name):
            return self._diag_part()

    def _diag_part(self) -> Tensor:
        return diagonals.matrix_diag_part(self.to_dense())

    def trace(self, name: str = "trace") -> Tensor:
        """The sums of the diagonals."""
        with self._name_scope(name):
            return self._trace()

    def _trace(self) -> Tensor:
        return reductions.reduce_sum(self.diag_part(), [-1])

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The matrices plus a tensor.

        Raises:
          TypeError: `x` has another dtype.
        """
        with self._name_scope(name, [x]):
            x = convert_to_tensor(x, name="x")
            self._check_input_dtype(x)
            return self._add_to_tensor(x)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self.to_dense() + x

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues of a self-adjoint operator.

        Raises:
          NotImplementedError: the matrix is not promised to be self-adjoint.
        """
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        with self._name_scope(name):
            return self._eigvals()

    def _eigvals(self) -> Tensor:
        return decompositions.self_adjoint_eigvals(self.to_dense())

    def cond(self, name: str = "cond") -> Tensor:
        """The condition numbers: the greatest singular value by the least."""
        with self._name_scope(name):
            return self._cond()

    def _cond(self) -> Tensor:
        if self.is_self_adjoint:
            values = math.abs(self.eigvals())
        else:
            values = decompositions.svd(self.to_dense(), compute_uv=False)
        return reductions.reduce_max(values, -1) / reductions.reduce_min(values, -1)
