"""Operators with a structure of their own: reflections, permutations, three diagonals, Toeplitz matrices."""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.batches import matmul_with_broadcast, matrix_adjoint, matrix_solve_with_broadcast
from dtf.build.linear_operators.dense import checked_dtype
from dtf.build.ops import (
    array,
    diagonals,
    filling,
    gathering,
    joining,
    linalg,
    math,
    normalization,
    reductions,
    searching,
    spectral,
)
from dtf.build.ops.ordering import group, no_op
from dtf.build.ops.rearranging import matrix_transpose, reverse
from dtf.build.tensor import Tensor
from dtf.wire import dtypes, errors
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "LinearOperatorHouseholder", "LinearOperatorPermutation", "LinearOperatorToeplitz", "LinearOperatorTridiag",
]  # fmt: skip


class LinearOperatorHouseholder(LinearOperator):
    """Reflections I - 2 v v^H of unit vectors v.

    Args:
      reflection_axis: vectors [..., n] of any length but 0.
      is_non_singular, is_self_adjoint, is_square: must be True or None.
      is_positive_definite: must be False or None.
      name: the scope of its operations.

    Raises:
      ValueError: a promise contradicts the operator, or the axis has no dimension.
    """

    def __init__(
        self, reflection_axis: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[reflection_axis]):
            self._axis = checked_dtype(convert_to_tensor(reflection_axis, name="reflection_axis"), "reflection_axis")
            if self._axis.shape.ndims == 0:
                raise ValueError(f"Argument reflection_axis must have at least 1 dimension.  Found: {self._axis}")
            if is_self_adjoint is False:
                raise ValueError("A Householder operator is always self adjoint.")
            if is_positive_definite is True:
                raise ValueError("A Householder operator is always non-positive definite.")
            if is_square is False:
                raise ValueError("A Householder operator is always square.")
            super().__init__(
                self._axis.dtype, [self._axis], is_non_singular, True, is_positive_definite, True, name,
                {"reflection_axis": reflection_axis},
            )  # fmt: skip

    @property
    def reflection_axis(self) -> Tensor:
        """The vectors."""
        return self._axis

    def _shape(self) -> TensorShape:
        return self._axis.shape.concatenate(self._axis.shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = array.shape_of(self._axis)
        return joining.concat([shape, shape[-1:]], 0)

    def _assert_non_singular(self) -> Any:
        return no_op("assert_non_singular")

    def _assert_positive_definite(self) -> Any:
        raise errors.InvalidArgumentError(None, None, "Householder operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> Any:
        return no_op("assert_self_adjoint")

    def _unit(self) -> Tensor:
        return normalization.l2_normalize(self._axis, axis=-1)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        column = array.expand_dims(self._unit(), -1)
        onto = matmul_with_broadcast(column, x, adjoint_a=True)
        return x - 2 * column * onto

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _trace(self) -> Tensor:
        size = math.cast(self.domain_dimension_tensor(), self.dtype)
        return (size - 2) * filling.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _determinant(self) -> Tensor:
        return -filling.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return filling.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _to_dense(self) -> Tensor:
        unit = self._unit()
        column = array.expand_dims(unit, -1)
        matrix = -2 * linalg.matmul(column, column, adjoint_b=True)
        return diagonals.matrix_set_diag(matrix, 1 + diagonals.matrix_diag_part(matrix))

    def _diag_part(self) -> Tensor:
        unit = self._unit()
        return 1 - 2 * unit * math.conj(unit)

    def _eigvals(self) -> Tensor:
        ones = filling.ones_like(self._axis)
        return joining.concat([-ones[..., :1], ones[..., 1:]], -1)

    def _cond(self) -> Tensor:
        return filling.ones(self.batch_shape_tensor(), dtype=self.dtype)


class LinearOperatorPermutation(LinearOperator):
    """Permutations: row i of a product is row perm[i] of its argument.

    Args:
      perm: integers [..., n], each of 0 ... n - 1 once.
      dtype: the type of the entries.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      TypeError: `perm` is not of integers.
      ValueError: `perm` has no dimension, or a promise contradicts the operator.
    """

    def __init__(
        self, perm: Any, dtype: Any = dtypes.float32, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[perm]):
            self._perm = convert_to_tensor(perm, name="perm")
            if not self._perm.dtype.is_integer:
                raise TypeError(f"Argument perm must be of integers.  Found: {self._perm.dtype}")
            if self._perm.shape.ndims == 0:
                raise ValueError(f"Argument perm must have at least 1 dimension.  Found: {perm}")
            if is_non_singular is False:
                raise ValueError("A Permutation operator is always non-singular.")
            if is_square is False:
                raise ValueError("A Permutation operator is always square.")
            super().__init__(
                dtype, [self._perm], True, is_self_adjoint, is_positive_definite, True, name,
                {"perm": perm, "dtype": dtype},
            )  # fmt: skip

    @property
    def perm(self) -> Tensor:
        """The order."""
        return self._perm

    def _shape(self) -> TensorShape:
        return self._perm.shape.concatenate(self._perm.shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = array.shape_of(self._perm)
        return joining.concat([shape, shape[-1:]], 0)

    def _assert_non_singular(self) -> Any:
        return no_op("assert_non_singular")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        order = searching.argsort(self._perm, axis=-1) if adjoint else self._perm
        batch = array.broadcast_dynamic_shape(array.shape_of(order)[:-1], array.shape_of(x)[:-2])
        static = array.broadcast_static_shape(self._perm.shape[:-1], x.shape[:-2])
        size = array.shape_of(x)[-2:]
        x = array.broadcast_to(x, joining.concat([batch, size], 0))
        order = array.broadcast_to(order, joining.concat([batch, size[:1]], 0))
        flat = array.reshape(x, joining.concat([[-1], size], 0))
        orders = array.reshape(order, [-1, size[0]])
        rows = gathering.gather(flat, orders, batch_dims=1, axis=1)
        result = array.reshape(rows, joining.concat([batch, size], 0))
        if static.ndims is not None and x.shape.ndims is not None:
            result.set_shape(static.concatenate(x.shape[-2:]))
        return result

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _log_abs_determinant(self) -> Tensor:
        return filling.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _to_dense(self) -> Tensor:
        return filling.one_hot(self._perm, self.domain_dimension_tensor(), dtype=self.dtype)

    def _diag_part(self) -> Tensor:
        numbers = math.range(self.domain_dimension_tensor())
        return math.cast(math.equal(numbers, math.cast(self._perm, dtypes.int32)), self.dtype)

    def _cond(self) -> Tensor:
        return filling.ones(self.batch_shape_tensor(), dtype=self.dtype)


class LinearOperatorToeplitz(LinearOperator):
    """Toeplitz matrices: the diagonals are constant. Products are made by Fourier transforms of twice the size.

    Args:
      col: the first columns [..., n].
      row: the first rows [..., n]; their first entries are ignored.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      ValueError: the operator is promised not to be square, or a vector has no dimension.
    """

    def __init__(
        self, col: Any, row: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str = "LinearOperatorToeplitz",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[row, col]):
            self._row = convert_to_tensor(row, name="row")
            self._col = convert_to_tensor(col, name="col")
            for what, each in (("row", self._row), ("col", self._col)):
                checked_dtype(each, what)
                if each.shape.ndims == 0:
                    raise ValueError(f"Argument {what} must have at least 1 dimension.  Found: {each}")
            if is_square is False:
                raise ValueError("Only square Toeplitz operators currently supported.")
            super().__init__(
                self._row.dtype, [self._row, self._col], is_non_singular, is_self_adjoint, is_positive_definite, True,
                name, {"col": col, "row": row},
            )  # fmt: skip

    @property
    def col(self) -> Tensor:
        """The first columns."""
        return self._col

    @property
    def row(self) -> Tensor:
        """The first rows."""
        return self._row

    def _shape(self) -> TensorShape:
        shape = array.broadcast_static_shape(self._row.shape, self._col.shape)
        return shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = array.broadcast_dynamic_shape(array.shape_of(self._row), array.shape_of(self._col))
        return joining.concat([shape, shape[-1:]], 0)

    def _vectors(self) -> tuple[Tensor, Tensor]:
        """The rows and columns with their common batch dimensions."""
        if self._row.shape.is_fully_defined() and self._row.shape == self._col.shape:
            return self._row, self._col
        shape = array.broadcast_dynamic_shape(array.shape_of(self._row), array.shape_of(self._col))
        return array.broadcast_to(self._row, shape), array.broadcast_to(self._col, shape)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        row, col = self._vectors()
        if adjoint:
            row, col = math.conj(col), math.conj(row)
            col = joining.concat([math.conj(self._vectors()[1])[..., :1], col[..., 1:]], -1)
        # the first column of a circulant matrix of twice the size, whose upper left part is this one
        kernel = joining.concat([col, filling.zeros_like(col[..., :1]), reverse(row[..., 1:], [-1])], -1)
        wide = dtypes.complex128 if self.dtype in (dtypes.float64, dtypes.complex128) else dtypes.complex64
        spectrum = spectral.fft(math.cast(kernel, wide))
        columns = matrix_transpose(math.cast(x, wide))
        padded = joining.concat([columns, filling.zeros_like(columns)], -1)
        product = spectral.ifft(spectral.fft(padded) * array.expand_dims(spectrum, -2))
        size = array.shape_of(columns)[-1]
        made = matrix_transpose(product[..., :size])
        result = math.cast(made if self.dtype.is_complex else math.real(made), self.dtype)
        static = array.broadcast_static_shape(self.batch_shape, x.shape[:-2])
        if static.ndims is not None and x.shape.ndims is not None:
            result.set_shape(static.concatenate(x.shape[-2:]))
        return result

    def _trace(self) -> Tensor:
        return math.cast(self.domain_dimension_tensor(), self.dtype) * self._vectors()[1][..., 0]

    def _diag_part(self) -> Tensor:
        first = self._vectors()[1][..., :1]
        return first * filling.ones(array.expand_dims(self.domain_dimension_tensor(), 0), dtype=self.dtype)

    def _to_dense(self) -> Tensor:
        row, col = self._vectors()
        size = self.domain_dimension_tensor()
        # all diagonals from the lowest to the highest: entry (i, j) is number j - i + n - 1
        entries = joining.concat([reverse(col, [-1]), row[..., 1:]], -1)
        numbers = math.range(size)
        at = array.expand_dims(numbers, 0) - array.expand_dims(numbers, 1) + size - 1
        result = gathering.gather(entries, at, axis=-1)
        result.set_shape(self.shape)
        return result


class LinearOperatorTridiag(LinearOperator):
    """Matrices with entries on the diagonal and beside it only.

    Args:
      diagonals: in "compact" [..., 3, n], in "sequence" a list of three [..., n] (superdiagonal, diagonal,
        subdiagonal), in "matrix" [..., n, n].
      diagonals_format: "compact", "sequence" or "matrix".
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      ValueError: the format is unknown, the shapes do not fit, or a promise contradicts the operator.
    """

    def __init__(
        self, diagonals: Any, diagonals_format: str = "compact", is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:  # fmt: skip
        if diagonals_format not in ("compact", "sequence", "matrix"):
            raise ValueError(
                "Argument `diagonals_format` must be one of ('compact', 'sequence', 'matrix'). Found : "
                f"{diagonals_format}"
            )
        self._format = diagonals_format
        values = diagonals if diagonals_format == "sequence" else [diagonals]
        with name_scope(name, values=list(values)):
            self._given = [checked_dtype(convert_to_tensor(each, name="diagonals"), "diagonals") for each in values]
            if diagonals_format == "sequence" and len(self._given) != 3:
                raise ValueError(f"diagonals_format='sequence' needs 3 diagonals. Found: {len(self._given)}")
            if is_square is False:
                raise ValueError("Only square tridiagonal operators currently supported.")
            super().__init__(
                self._given[0].dtype, self._given, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
                {"diagonals": diagonals, "diagonals_format": diagonals_format},
            )  # fmt: skip

    @property
    def diagonals(self) -> Any:
        """The diagonals as they were given."""
        return self._given if self._format == "sequence" else self._given[0]

    @property
    def diagonals_format(self) -> str:
        """Their format."""
        return self._format

    def _parts(self) -> list[Tensor]:
        """The superdiagonal, whose last entry is not used, the diagonal, and the subdiagonal, whose first is not."""
        if self._format == "sequence":
            return self._given
        if self._format == "compact":
            return [self._given[0][..., index, :] for index in range(3)]
        matrix = self._given[0]
        none = filling.zeros_like(matrix[..., :1, 0])
        upper = joining.concat([diagonals.matrix_diag_part(matrix[..., :-1, 1:]), none], -1)
        lower = joining.concat([none, diagonals.matrix_diag_part(matrix[..., 1:, :-1])], -1)
        return [upper, diagonals.matrix_diag_part(matrix), lower]

    def _shape(self) -> TensorShape:
        if self._format == "matrix":
            return self._given[0].shape
        if self._format == "compact":
            shape = self._given[0].shape
            return shape[:-2].concatenate([shape[-1], shape[-1]]) if shape.ndims is not None else shape
        shape = self._given[0].shape
        for each in self._given[1:]:
            shape = array.broadcast_static_shape(shape, each.shape)
        return shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        if self._format == "matrix":
            return array.shape_of(self._given[0])
        shape = array.shape_of(self._given[0])
        if self._format == "compact":
            return joining.concat([shape[:-2], shape[-1:], shape[-1:]], 0)
        for each in self._given[1:]:
            shape = array.broadcast_dynamic_shape(shape, array.shape_of(each))
        return joining.concat([shape, shape[-1:]], 0)

    def _assert_self_adjoint(self) -> Any:
        from dtf.build.ops import check_ops

        upper, middle, lower = self._parts()
        checks = [
            check_ops.assert_equal(
                lower[..., 1:], math.conj(upper[..., :-1]), message="Matrix was not equal to its adjoint."
            )
        ]
        if middle.dtype.is_complex:
            part = math.imag(middle)
            checks.append(check_ops.assert_equal(
                part, filling.zeros_like(part), message="Matrix was not equal to its adjoint."
            ))
        return group(*[each for each in checks if each is not None])

    def _adjoint_parts(self) -> list[Tensor]:
        upper, middle, lower = self._parts()
        none = filling.zeros_like(upper[..., :1])
        return [
            joining.concat([math.conj(lower[..., 1:]), none], -1), math.conj(middle),
            joining.concat([none, math.conj(upper[..., :-1])], -1),
        ]  # fmt: skip

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        upper, middle, lower = (
            array.expand_dims(each, -1) for each in (self._adjoint_parts() if adjoint else self._parts())
        )
        none = filling.zeros_like(x[..., :1, :])
        below, above = joining.concat([x[..., 1:, :], none], -2), joining.concat([none, x[..., :-1, :]], -2)
        return upper * below + middle * x + lower * above

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = matrix_adjoint(rhs) if adjoint_arg else rhs
        return matrix_solve_with_broadcast(self.to_dense(), rhs, adjoint=adjoint)

    def _diag_part(self) -> Tensor:
        return self._parts()[1]

    def _trace(self) -> Tensor:
        return reductions.reduce_sum(self._parts()[1], [-1])

    def _to_dense(self) -> Tensor:
        if self._format == "matrix":
            return self._given[0]
        upper, middle, lower = self._parts()
        result = (
            diagonals.matrix_diag(upper[..., :-1], k=1) + diagonals.matrix_diag(middle)
            + diagonals.matrix_diag(lower[..., 1:], k=-1)
        )  # fmt: skip
        result.set_shape(self.shape)
        return result
