"""The operators of the identity, of its multiples, and of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, name_scope
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.batches import (
    assert_compatible_matrix_dimensions,
    assert_zero_imag_part,
    matrix_adjoint,
    shape_tensor,
)
from dtf.build.ops import array, check_ops, diagonals, filling, joining, math
from dtf.build.ops.ordering import no_op
from dtf.build.ops.searching import where
from dtf.build.tensor import Tensor
from dtf.wire import dtypes, errors
from dtf.wire.tensor_shape import TensorShape, dimension_value

__all__ = ["LinearOperatorIdentity", "LinearOperatorScaledIdentity", "LinearOperatorZeros"]


def _checked_size(value: Any, what: str) -> tuple[Tensor, int | None]:
    """A number of rows as a tensor, and statically.

    Raises:
      TypeError: it is no integer.
      ValueError: it is no scalar, or negative.
    """
    tensor = shape_tensor(value, name=what)
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument {what} must be integer type.  Found: {value}")
    known = constant_value(tensor)
    if known is not None:
        if np.ndim(known):
            raise ValueError(f"Argument {what} must be a 0-D Tensor.  Found: {known}")
        if known < 0:
            raise ValueError(f"Argument {what} must be non-negative.  Found: {known}")
    return tensor, None if known is None else int(known)


def _checked_batch_shape(value: Any) -> tuple[Tensor | None, TensorShape]:
    """The batch dimensions as a tensor (None: none are given), and statically.

    Raises:
      TypeError: they are no integers.
      ValueError: they are no vector, or negative.
    """
    if value is None:
        return None, TensorShape([])
    tensor = shape_tensor(value, name="batch_shape_arg")
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument batch_shape must be integer type.  Found: {value}")
    known = constant_value(tensor)
    if known is None:
        length = tensor.shape.num_elements()
        return tensor, TensorShape(None if length is None else [None] * length)
    if np.ndim(known) != 1:
        raise ValueError(f"Argument batch_shape must be a 1-D Tensor.  Found: {known}")
    if np.any(known < 0):
        raise ValueError(f"Argument batch_shape must be non-negative.  Found:{known}")
    return tensor, TensorShape(known.tolist())


class _BaseIdentity(LinearOperator):
    """What multiples of the identity share."""

    _num_rows: Tensor
    _rows: int | None
    _assert_proper_shapes: bool

    def _check_num_rows_possibly_add_asserts(self) -> None:
        if self._assert_proper_shapes:
            rows = self._num_rows
            checks = [
                check_ops.assert_rank(rows, 0, message="Argument num_rows must be a 0-D Tensor."),
                check_ops.assert_non_negative(rows, message="Argument num_rows must be non-negative."),
            ]
            with control_dependencies([each for each in checks if each is not None]):
                self._num_rows = array.identity(rows)

    def _ones_diag(self) -> Tensor:
        """Ones of the shape of the diagonals."""
        if self.shape.is_fully_defined():
            return filling.ones([*self.batch_shape.as_list(), self.domain_dimension.value], dtype=self.dtype)
        rows = array.expand_dims(self.domain_dimension_tensor(), 0)
        return filling.ones(joining.concat([self.batch_shape_tensor(), rows], 0), dtype=self.dtype)

    def _checked(self, x: Tensor) -> Tensor:
        if self._assert_proper_shapes:
            check = assert_compatible_matrix_dimensions(self, x)
            with control_dependencies([] if check is None else [check]):
                return array.identity(x)
        return x


class LinearOperatorIdentity(_BaseIdentity):
    """The identity [*batch_shape, num_rows, num_rows].

    Args:
      num_rows: an integer, or a scalar integer tensor.
      batch_shape: integers; None: no batch dimension.
      dtype: the type of the entries, float32 if None.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: must be True or None.
      assert_proper_shapes: whether sizes are checked when the graph runs.
      name: the scope of its operations.

    Raises:
      ValueError: a promise is False, or a size is negative or no scalar.
      TypeError: a size is no integer.
    """

    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: Any = None, is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True, is_positive_definite: bool | None = True, is_square: bool | None = True,
        assert_proper_shapes: bool = False, name: str = "LinearOperatorIdentity",
    ) -> None:  # fmt: skip
        self._assert_proper_shapes = assert_proper_shapes
        given = {"num_rows": num_rows, "batch_shape": batch_shape, "dtype": dtype}
        with name_scope(name):
            dtype = dtypes.as_dtype(dtype or dtypes.float32)
            if not is_self_adjoint:
                raise ValueError("An identity operator is always self adjoint.")
            if not is_non_singular:
                raise ValueError("An identity operator is always non-singular.")
            if not is_positive_definite:
                raise ValueError("An identity operator is always positive-definite.")
            if not is_square:
                raise ValueError("An identity operator is always square.")
            super().__init__(dtype, None, True, True, True, True, name, given)
            self._num_rows, self._rows = _checked_size(num_rows, "num_rows")
            self._batch, self._static_batch = _checked_batch_shape(batch_shape)
            self._check_num_rows_possibly_add_asserts()

    def _shape(self) -> TensorShape:
        return self._static_batch.concatenate([self._rows, self._rows])

    def _shape_tensor(self) -> Tensor:
        square = joining.stack([self._num_rows, self._num_rows], axis=0)
        return square if self._batch is None else joining.concat([self._batch, square], 0)

    def _assert_non_singular(self) -> Any:
        return no_op("assert_non_singular")

    def _assert_positive_definite(self) -> Any:
        return no_op("assert_positive_definite")

    def _assert_self_adjoint(self) -> Any:
        return no_op("assert_self_adjoint")

    def _broadcast(self, x: Tensor) -> Tensor:
        """`x` with the batch dimensions of the operator."""
        static = array.broadcast_static_shape(self.batch_shape, x.shape[:-2])
        if static.is_fully_defined() and static.as_list() == x.shape[:-2].as_list():
            return x
        if self.batch_shape.ndims == 0:
            return x
        shape = joining.concat([self.batch_shape_tensor(), [1, 1]], 0)
        return x + filling.zeros(shape, dtype=x.dtype)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._broadcast(self._checked(matrix_adjoint(x) if adjoint_arg else x))

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Tensor:
        return filling.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return filling.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _trace(self) -> Tensor:
        return math.cast(self.domain_dimension_tensor(), self.dtype) * filling.ones(
            self.batch_shape_tensor(), dtype=self.dtype
        )

    def _diag_part(self) -> Tensor:
        return self._ones_diag()

    def _to_dense(self) -> Tensor:
        return diagonals.matrix_diag(self._ones_diag())

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """The identity plus a tensor."""
        with self._name_scope(name, [mat]):
            mat = convert_to_tensor(mat, name="mat")
            self._check_input_dtype(mat)
            diagonal = diagonals.matrix_diag_part(mat)
            return diagonals.matrix_set_diag(mat, 1 + diagonal)

    def _eigvals(self) -> Tensor:
        return self._ones_diag()

    def _cond(self) -> Tensor:
        return filling.ones(self.batch_shape_tensor(), dtype=self.dtype)


class LinearOperatorScaledIdentity(_BaseIdentity):
    """The identity times a number.

    Args:
      num_rows: an integer, or a scalar integer tensor.
      multiplier: the numbers, [...].
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      assert_proper_shapes: whether sizes are checked when the graph runs.
      name: the scope of its operations.

    Raises:
      ValueError: a promise contradicts the operator, or a size is negative or no scalar.
      TypeError: a size is no integer.
    """

    def __init__(
        self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = True, assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:  # fmt: skip
        self._assert_proper_shapes = assert_proper_shapes
        given = {"num_rows": num_rows, "multiplier": multiplier}
        with name_scope(name, values=[multiplier, num_rows]):
            self._multiplier = convert_to_tensor(multiplier, name="multiplier")
            if not self._multiplier.dtype.is_complex:
                if is_self_adjoint is False:
                    raise ValueError("A real diagonal operator is always self adjoint.")
                is_self_adjoint = True
            if not is_square:
                raise ValueError("A ScaledIdentity operator is always square.")
            super().__init__(
                self._multiplier.dtype, [self._multiplier], is_non_singular, is_self_adjoint, is_positive_definite,
                is_square, name, given,
            )  # fmt: skip
            self._num_rows, self._rows = _checked_size(num_rows, "num_rows")
            self._check_num_rows_possibly_add_asserts()

    @property
    def multiplier(self) -> Tensor:
        """The numbers."""
        return self._multiplier

    def _shape(self) -> TensorShape:
        return self._multiplier.shape.concatenate([self._rows, self._rows])

    def _shape_tensor(self) -> Tensor:
        square = joining.stack([self._num_rows, self._num_rows], axis=0)
        return joining.concat([array.shape_of(self._multiplier), square], 0)

    def _assert_non_singular(self) -> Any:
        return check_ops.assert_positive(math.abs(self._multiplier), message="LinearOperator was singular")

    def _assert_positive_definite(self) -> Any:
        real = math.real(self._multiplier) if self.dtype.is_complex else self._multiplier
        return check_ops.assert_positive(real, message="LinearOperator was not positive definite.")

    def _assert_self_adjoint(self) -> Any:
        return assert_zero_imag_part(self._multiplier, message="LinearOperator was not self-adjoint")

    def _matrix(self, adjoint: bool = False) -> Tensor:
        """The numbers as matrices [..., 1, 1]."""
        wide = array.expand_dims(array.expand_dims(self._multiplier, -1), -1)
        return math.conj(wide) if adjoint else wide

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._checked(matrix_adjoint(x) if adjoint_arg else x) * self._matrix(adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._checked(matrix_adjoint(rhs) if adjoint_arg else rhs) / self._matrix(adjoint)

    def _determinant(self) -> Tensor:
        return math.pow(self._multiplier, math.cast(self.domain_dimension_tensor(), self.dtype))

    def _log_abs_determinant(self) -> Tensor:
        size = math.abs(self._multiplier)
        return math.cast(self.domain_dimension_tensor(), size.dtype) * math.log(size)

    def _trace(self) -> Tensor:
        return math.cast(self.domain_dimension_tensor(), self.dtype) * self._multiplier

    def _diag_part(self) -> Tensor:
        return self._ones_diag() * array.expand_dims(self._multiplier, -1)

    def _to_dense(self) -> Tensor:
        return diagonals.matrix_diag(self._diag_part())

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """The operator plus a tensor."""
        with self._name_scope(name, [mat]):
            mat = convert_to_tensor(mat, name="mat")
            self._check_input_dtype(mat)
            total = mat + filling.zeros_like(self._matrix())
            diagonal = diagonals.matrix_diag_part(total) + array.expand_dims(self._multiplier, -1)
            return diagonals.matrix_set_diag(total, diagonal)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        positive = math.abs(self._multiplier) > 0
        ones = filling.ones_like(self._multiplier)
        nan = filling.fill(array.shape_of(self._multiplier), np.nan)
        return where(positive, ones, math.cast(nan, self.dtype))


class LinearOperatorZeros(LinearOperator):
    """Zeros [*batch_shape, num_rows, num_columns].

    Args:
      num_rows: an integer, or a scalar integer tensor.
      num_columns: as num_rows if None.
      batch_shape: integers; None: no batch dimension.
      dtype: the type of the entries, float32 if None.
      is_non_singular, is_positive_definite: must be False or None.
      is_self_adjoint, is_square: promises.
      assert_proper_shapes: whether sizes are checked when the graph runs.
      name: the scope of its operations.

    Raises:
      ValueError: a promise contradicts the operator, or a size is negative or no scalar.
      TypeError: a size is no integer.
    """

    def __init__(
        self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = None,
        is_non_singular: bool | None = False, is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False, is_square: bool | None = True, assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:  # fmt: skip
        given = {"num_rows": num_rows, "num_columns": num_columns, "batch_shape": batch_shape, "dtype": dtype}
        with name_scope(name):
            dtype = dtypes.as_dtype(dtype or dtypes.float32)
            if not is_self_adjoint and is_square:
                raise ValueError("A zero operator is always self adjoint.")
            if is_non_singular:
                raise ValueError("A zero operator is always singular.")
            if is_positive_definite:
                raise ValueError("A zero operator is always not positive-definite.")
            super().__init__(
                dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name, given
            )
            self._num_rows, self._rows = _checked_size(num_rows, "num_rows")
            columns = num_rows if num_columns is None else num_columns
            self._num_columns, self._columns = _checked_size(columns, "num_columns")
            self._batch, self._static_batch = _checked_batch_shape(batch_shape)
            if is_square and None not in (self._rows, self._columns) and self._rows != self._columns:
                raise ValueError("LinearOperatorZeros initialized as is_square=True, but got num_rows != num_columns")

    def _shape(self) -> TensorShape:
        return self._static_batch.concatenate([self._rows, self._columns])

    def _shape_tensor(self) -> Tensor:
        sizes = joining.stack([self._num_rows, self._num_columns], axis=0)
        return sizes if self._batch is None else joining.concat([self._batch, sizes], 0)

    def _assert_non_singular(self) -> Any:
        raise errors.InvalidArgumentError(None, None, "Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> Any:
        raise errors.InvalidArgumentError(None, None, "Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> Any:
        return no_op("assert_self_adjoint")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        rows = self.domain_dimension_tensor() if adjoint else self.range_dimension_tensor()
        batch = array.broadcast_dynamic_shape(array.shape_of(x)[:-2], self.batch_shape_tensor())
        shape = joining.concat([batch, array.expand_dims(rows, 0), array.shape_of(x)[-1:]], 0)
        result = filling.zeros(shape, dtype=x.dtype)
        size = dimension_value(self.domain_dimension if adjoint else self.range_dimension)
        static = array.broadcast_static_shape(x.shape[:-2], self.batch_shape)
        result.set_shape(static.concatenate([size]).concatenate(x.shape[-1:] if x.shape.ndims else [None]))
        return result

    def _determinant(self) -> Tensor:
        return filling.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    _trace = _determinant

    def _diag_part(self) -> Tensor:
        least = math.minimum(self.range_dimension_tensor(), self.domain_dimension_tensor())
        return filling.zeros(joining.concat([self.batch_shape_tensor(), [least]], 0), dtype=self.dtype)

    def _to_dense(self) -> Tensor:
        return filling.zeros(self.shape_tensor(), dtype=self.dtype)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """The tensor, with the batch dimensions of the operator."""
        with self._name_scope(name, [mat]):
            mat = convert_to_tensor(mat, name="mat")
            self._check_input_dtype(mat)
            return mat if self.batch_shape.ndims == 0 else mat + self._to_dense()

    def _eigvals(self) -> Tensor:
        return filling.zeros(self.shape_tensor()[:-1], dtype=self.dtype)
