"""An operator with a correction of low rank: L + U D V^H.

Solutions and determinants come from the small matrix C = D^-1 + V^H L^-1 U (Woodbury's identity and the matrix
determinant lemma). Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg/LinearOperatorLowRankUpdate
"""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.batches import (
    cholesky_solve_with_broadcast,
    matmul_with_broadcast,
    matrix_solve_with_broadcast,
)
from dtf.build.linear_operators.dense import LinearOperatorDiag, checked_dtype
from dtf.build.linear_operators.identities import LinearOperatorIdentity
from dtf.build.ops import array, decompositions, diagonals, joining, math, reductions
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape

__all__ = ["LinearOperatorLowRankUpdate"]


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D V^H.

    Args:
      base_operator: L, [..., rows, columns].
      u: [..., rows, k].
      diag_update: the diagonal of D, [..., k]; ones if None.
      v: [..., columns, k]; `u` if None.
      is_diag_update_positive: whether `diag_update` is promised to be positive.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      TypeError: the dtypes differ.
      ValueError: the static sizes do not fit, or a promise contradicts the parts.
    """

    def __init__(
        self, base_operator: LinearOperator, u: Any, diag_update: Any = None, v: Any = None,
        is_diag_update_positive: bool | None = None, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:  # fmt: skip
        given = {"base_operator": base_operator, "u": u, "diag_update": diag_update, "v": v}
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("Default diagonal is the identity, which is positive.  However, user set "
                                 "'is_diag_update_positive' to False.")  # fmt: skip
            is_diag_update_positive = True
        self._use_cholesky = bool(
            base_operator.is_positive_definite and base_operator.is_self_adjoint and is_diag_update_positive
            and v is None
        )  # fmt: skip
        if base_operator.is_self_adjoint and v is None and not base_operator.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A = L + UDU^H, with L self-adjoint and D real diagonal, is self-adjoint.")
            is_self_adjoint = True
        if self._use_cholesky:
            words = "Arguments imply this is self-adjoint positive-definite operator."
            if is_positive_definite is False or is_self_adjoint is False:
                raise ValueError(words)
            is_positive_definite, is_self_adjoint = True, True
        with name_scope(name):
            self._u = checked_dtype(convert_to_tensor(u, name="u"), "u")
            self._v = self._u if v is None else convert_to_tensor(v, name="v")
            self._diag_update = None if diag_update is None else convert_to_tensor(diag_update, name="diag_update")
            self._base = base_operator
            parts = [self._u, self._v, *([] if self._diag_update is None else [self._diag_update])]
            for each in parts:
                if each.dtype.base_dtype != base_operator.dtype:
                    raise TypeError(f"All inputs must have dtype {base_operator.dtype}.  Found: {each.dtype}")
            super().__init__(
                base_operator.dtype, [*base_operator.graph_parents, *parts], is_non_singular, is_self_adjoint,
                is_positive_definite, is_square, name, given,
            )  # fmt: skip
            self._diag_operator = self._made_diag_operator(is_diag_update_positive)
            self._is_diag_update_positive = is_diag_update_positive
            self._check_shapes()

    def _made_diag_operator(self, positive: bool | None) -> LinearOperator:
        if self._diag_update is not None:
            return LinearOperatorDiag(self._diag_update, is_positive_definite=positive)
        rank: Any = self._u.shape.dims[-1].value if self._u.shape.dims is not None else None
        rank = array.shape_of(self._u)[-1] if rank is None else rank
        return LinearOperatorIdentity(rank, dtype=self.dtype)

    def _check_shapes(self) -> None:
        self._u.shape.with_rank_at_least(2)
        self._v.shape.with_rank_at_least(2)
        if self._u.shape.ndims is not None:
            self._base.range_dimension.assert_is_compatible_with(self._u.shape[-2])
        if self._v.shape.ndims is not None:
            self._base.domain_dimension.assert_is_compatible_with(self._v.shape[-2])
        if self._u.shape.ndims is not None and self._v.shape.ndims is not None:
            self._u.shape[-1].assert_is_compatible_with(self._v.shape[-1])
        if self._diag_update is not None and self._u.shape.ndims is not None:
            self._diag_operator.domain_dimension.assert_is_compatible_with(self._u.shape[-1])

    @property
    def u(self) -> Tensor:
        """U."""
        return self._u

    @property
    def v(self) -> Tensor:
        """V."""
        return self._v

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether D is promised to be positive."""
        return self._is_diag_update_positive

    @property
    def diag_update(self) -> Tensor | None:
        """The diagonal of D."""
        return self._diag_update

    @property
    def diag_operator(self) -> LinearOperator:
        """D."""
        return self._diag_operator

    @property
    def base_operator(self) -> LinearOperator:
        """L."""
        return self._base

    def _shape(self) -> TensorShape:
        batch = array.broadcast_static_shape(self._base.batch_shape, self._diag_operator.batch_shape)
        for each in (self._u, self._v):
            batch = array.broadcast_static_shape(batch, each.shape[:-2])
        return batch.concatenate(self._base.shape[-2:])

    def _shape_tensor(self) -> Tensor:
        batch = array.broadcast_dynamic_shape(
            self._base.batch_shape_tensor(), self._diag_operator.batch_shape_tensor()
        )
        for each in (self._u, self._v):
            batch = array.broadcast_dynamic_shape(batch, array.shape_of(each)[:-2])
        return joining.concat([batch, self._base.shape_tensor()[-2:]], 0)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        onto = matmul_with_broadcast(right, x, adjoint_a=True, adjoint_b=adjoint_arg)
        update = matmul_with_broadcast(left, self._diag_operator.matmul(onto, adjoint=adjoint))
        return self._base.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg) + update

    def _capacitance(self) -> Tensor:
        """D^-1 + V^H L^-1 U."""
        inner = matmul_with_broadcast(self._v, self._base.solve(self._u), adjoint_a=True)
        return self._diag_operator.inverse().add_to_tensor(inner)

    def _determinant(self) -> Tensor:
        if self.is_positive_definite and self.is_self_adjoint:
            return math.exp(self.log_abs_determinant())
        small = decompositions.matrix_determinant(self._capacitance())
        return small * self._diag_operator.determinant() * self._base.determinant()

    def _log_abs_determinant(self) -> Tensor:
        base, diagonal = self._base.log_abs_determinant(), self._diag_operator.log_abs_determinant()
        if not self._use_cholesky:
            return decompositions.slogdet(self._capacitance())[1] + diagonal + base
        factor = decompositions.cholesky(self._capacitance())
        small = 2 * reductions.reduce_sum(math.log(diagonals.matrix_diag_part(factor)), [-1])
        return small + diagonal + base

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        first = self._base.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        onto = matmul_with_broadcast(right, first, adjoint_a=True)
        if self._use_cholesky:
            small = cholesky_solve_with_broadcast(decompositions.cholesky(self._capacitance()), onto)
        else:
            small = matrix_solve_with_broadcast(self._capacitance(), onto, adjoint=adjoint)
        return first - self._base.solve(matmul_with_broadcast(left, small), adjoint=adjoint)

    def _update_diagonal(self) -> Tensor:
        product = self._u * math.conj(self._v)
        if self._diag_update is not None:
            product = product * array.expand_dims(self._diag_update, -2)
        return reductions.reduce_sum(product, [-1])

    def _diag_part(self) -> Tensor:
        if self.is_square is False:
            return super()._diag_part()
        return self._base.diag_part() + self._update_diagonal()
