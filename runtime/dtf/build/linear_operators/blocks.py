"""Operators made of blocks: on the diagonal, or in the lower triangle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.batches import broadcast_matrix_batch_dims, matrix_adjoint
from dtf.build.linear_operators.products import (
    broadcast_batch_tensors,
    broadcast_batches,
    checked_operators,
    of_all_parts,
)
from dtf.build.ops import array, filling, joining, math
from dtf.build.ops.ordering import group
from dtf.build.tensor import Tensor
from dtf.wire import errors
from dtf.wire.tensor_shape import TensorShape

__all__ = ["LinearOperatorBlockDiag", "LinearOperatorBlockLowerTriangular"]


def _rows_of(operators: Sequence[LinearOperator], x: Tensor, adjoint: bool) -> list[Tensor]:
    """The rows of `x` that belong to each operator."""
    known = [(each.range_dimension if adjoint else each.domain_dimension).value for each in operators]
    sizes: Any = known
    if None in known:
        sizes = joining.stack([
            each.range_dimension_tensor() if adjoint else each.domain_dimension_tensor() for each in operators
        ])
    return joining.split(x, sizes, -2, num=len(operators))


class LinearOperatorBlockDiag(LinearOperator):
    """Operators on the diagonal, zeros elsewhere.

    Args:
      operators: a list of operators.
      is_non_singular, is_self_adjoint, is_positive_definite: promises.
      is_square: as the other promises.
      name: the scope of its operations; their names joined by "_ds_" if None.

    Raises:
      TypeError: the dtypes differ.
      ValueError: the list is empty, or a promise contradicts the parts.
    """

    def __init__(
        self, operators: Sequence[LinearOperator], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._operators = parts = checked_operators(operators)
        words = {
            "is_non_singular": "non-singular", "is_self_adjoint": "self-adjoint",
            "is_positive_definite": "positive definite", "is_square": "square",
        }  # fmt: skip
        given = {
            "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite, "is_square": is_square,
        }  # fmt: skip
        promises = of_all_parts(parts, "The direct sum of", words, given)
        name = "_ds_".join(each.name for each in parts) if name is None else name
        parents = [parent for each in parts for parent in each.graph_parents]
        super().__init__(parts[0].dtype, parents, name=name, parameters={"operators": operators}, **promises)

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks."""
        return self._operators

    def _shape(self) -> TensorShape:
        rows = sum((each.range_dimension for each in self._operators[1:]), self._operators[0].range_dimension)
        columns = sum((each.domain_dimension for each in self._operators[1:]), self._operators[0].domain_dimension)
        return broadcast_batches(self._operators).concatenate([rows, columns])

    def _shape_tensor(self) -> Tensor:
        rows = math.add_n([each.range_dimension_tensor() for each in self._operators])
        columns = math.add_n([each.domain_dimension_tensor() for each in self._operators])
        return joining.concat([broadcast_batch_tensors(self._operators), joining.stack([rows, columns])], 0)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = matrix_adjoint(x) if adjoint_arg else x
        parts = _rows_of(self._operators, x, adjoint)
        made = [each.matmul(part, adjoint=adjoint) for each, part in zip(self._operators, parts, strict=True)]
        return joining.concat(broadcast_matrix_batch_dims(made), -2)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = matrix_adjoint(rhs) if adjoint_arg else rhs
        parts = _rows_of(self._operators, rhs, not adjoint)
        made = [each.solve(part, adjoint=adjoint) for each, part in zip(self._operators, parts, strict=True)]
        return joining.concat(broadcast_matrix_batch_dims(made), -2)

    def _determinant(self) -> Tensor:
        result = self._operators[0].determinant()
        for each in self._operators[1:]:
            result = result * each.determinant()
        return result

    def _log_abs_determinant(self) -> Tensor:
        return _total([each.log_abs_determinant() for each in self._operators])

    def _trace(self) -> Tensor:
        return _total([each.trace() for each in self._operators])

    def _vectors(self, parts: list[Tensor]) -> Tensor:
        """Vectors of the blocks one after the other."""
        wide = broadcast_matrix_batch_dims([array.expand_dims(each, -1) for each in parts])
        return array.squeeze(joining.concat(wide, -2), [-1])

    def _diag_part(self) -> Tensor:
        if all(each.is_square for each in self._operators):
            return self._vectors([each.diag_part() for each in self._operators])
        return super()._diag_part()

    def _eigvals(self) -> Tensor:
        return self._vectors([each.eigvals() for each in self._operators])

    def _to_dense(self) -> Tensor:
        size, rows = self.domain_dimension_tensor(), []
        before: Any = 0
        for each in self._operators:
            dense = each.to_dense()
            after = size - before - each.domain_dimension_tensor()
            shape = array.shape_of(dense)[:-1]
            parts = [
                filling.zeros(joining.concat([shape, [before]], 0), dtype=self.dtype), dense,
                filling.zeros(joining.concat([shape, [after]], 0), dtype=self.dtype),
            ]  # fmt: skip
            rows.append(joining.concat(parts, -1))
            before = before + each.domain_dimension_tensor()
        result = joining.concat(broadcast_matrix_batch_dims(rows), -2)
        result.set_shape(self.shape)
        return result

    def _assert_all(self, check: str) -> Any:
        return group(*[getattr(each, check)() for each in self._operators])

    def _assert_non_singular(self) -> Any:
        if not all(each.is_square for each in self._operators):
            return super()._assert_non_singular()
        return self._assert_all("assert_non_singular")

    def _assert_self_adjoint(self) -> Any:
        return self._assert_all("assert_self_adjoint")

    def _assert_positive_definite(self) -> Any:
        return self._assert_all("assert_positive_definite")


class LinearOperatorBlockLowerTriangular(LinearOperator):
    """Operators in the lower triangle, zeros above the diagonal.

    Args:
      operators: a list with a list of operators for each row of blocks: one, then two, then three ... The last of each
        is square.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations.

    Raises:
      TypeError: the dtypes differ.
      ValueError: rows have other lengths, blocks do not fit, or a promise is contradicted.
    """

    def __init__(
        self, operators: Sequence[Sequence[LinearOperator]], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:  # fmt: skip
        self._operators = [checked_operators(row) for row in operators]
        every = checked_operators([each for row in self._operators for each in row])
        for number, row in enumerate(self._operators):
            if len(row) != number + 1:
                raise ValueError(f"The `{number}`th row-partition (0-indexed) must contain {number + 1} operators")
        self._diagonal = [row[-1] for row in self._operators]
        for row in self._operators:
            for column, each in enumerate(row):
                each.range_dimension.assert_is_compatible_with(row[-1].range_dimension)
                each.domain_dimension.assert_is_compatible_with(self._diagonal[column].domain_dimension)
        if any(each.is_square is False for each in self._diagonal):
            raise ValueError("Matrices on the diagonal must be square.")
        if any(each.is_non_singular is False for each in self._diagonal) and is_non_singular:
            raise ValueError("A blockwise lower-triangular operator with a singular diagonal block is singular.")
        if all(each.is_non_singular for each in self._diagonal):
            if is_non_singular is False:
                raise ValueError("A blockwise lower-triangular operator of non-singular blocks is non-singular.")
            is_non_singular = True
        if is_square is False:
            raise ValueError("`LinearOperatorBlockLowerTriangular` must be square.")
        parents = [parent for each in every for parent in each.graph_parents]
        super().__init__(
            every[0].dtype, parents, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            {"operators": operators},
        )  # fmt: skip

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The rows of blocks."""
        return self._operators

    @property
    def _all(self) -> list[LinearOperator]:
        return [each for row in self._operators for each in row]

    def _shape(self) -> TensorShape:
        size = sum((each.domain_dimension for each in self._diagonal[1:]), self._diagonal[0].domain_dimension)
        return broadcast_batches(self._all).concatenate([size, size])

    def _shape_tensor(self) -> Tensor:
        size = math.add_n([each.domain_dimension_tensor() for each in self._diagonal])
        return joining.concat([broadcast_batch_tensors(self._all), joining.stack([size, size])], 0)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        parts = _rows_of(self._diagonal, matrix_adjoint(x) if adjoint_arg else x, adjoint)
        made = []
        for number, row in enumerate(self._operators):
            if adjoint:
                pairs = [(self._operators[other][number], parts[other]) for other in range(number, len(parts))]
            else:
                pairs = list(zip(row, parts[: number + 1], strict=True))
            made.append(_total([each.matmul(part, adjoint=adjoint) for each, part in pairs]))
        return joining.concat(broadcast_matrix_batch_dims(made), -2)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        parts = _rows_of(self._diagonal, matrix_adjoint(rhs) if adjoint_arg else rhs, not adjoint)
        count = len(parts)
        made: list[Any] = [None] * count
        for number in reversed(range(count)) if adjoint else range(count):
            rest = parts[number]
            for other in range(number + 1, count) if adjoint else range(number):
                block = self._operators[other][number] if adjoint else self._operators[number][other]
                rest = rest - block.matmul(made[other], adjoint=adjoint)
            made[number] = self._diagonal[number].solve(rest, adjoint=adjoint)
        return joining.concat(broadcast_matrix_batch_dims(made), -2)

    def _determinant(self) -> Tensor:
        result = self._diagonal[0].determinant()
        for each in self._diagonal[1:]:
            result = result * each.determinant()
        return result

    def _log_abs_determinant(self) -> Tensor:
        return _total([each.log_abs_determinant() for each in self._diagonal])

    def _trace(self) -> Tensor:
        return _total([each.trace() for each in self._diagonal])

    def _diag_part(self) -> Tensor:
        wide = broadcast_matrix_batch_dims([array.expand_dims(each.diag_part(), -1) for each in self._diagonal])
        return array.squeeze(joining.concat(wide, -2), [-1])

    def _assert_non_singular(self) -> Any:
        return group(*[each.assert_non_singular() for each in self._diagonal])

    def _assert_self_adjoint(self) -> Any:
        if len(self._operators) > 1:
            raise errors.InvalidArgumentError(
                None, None, "A LinearOperatorBlockLowerTriangular is expected to be non-self-adjoint."
            )
        return self._diagonal[0].assert_self_adjoint()


def _total(values: Sequence[Tensor]) -> Tensor:
    result = values[0]
    for each in values[1:]:
        result = result + each
    return result
