"""Operators made of operators: compositions, adjoints, inverses and Kronecker products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtf.build.default_graph import name_scope
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.batches import matrix_adjoint
from dtf.build.ops import array, joining, math
from dtf.build.ops.ordering import group
from dtf.build.ops.rearranging import matrix_transpose
from dtf.build.tensor import Tensor
from dtf.wire import errors
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "LinearOperatorAdjoint", "LinearOperatorComposition", "LinearOperatorInversion", "LinearOperatorKronecker",
    "broadcast_batches", "of_all_parts",
]  # fmt: skip


def of_all(operators: Sequence[LinearOperator], promise: str, given: bool | None, message: str) -> bool | None:
    """A promise that holds for the whole where it holds for all parts; ValueError where the given one contradicts."""
    if all(getattr(each, promise) for each in operators):
        if given is False:
            raise ValueError(message)
        return True
    return given


def of_all_parts(
    parts: Sequence[LinearOperator], whole: str, words: Mapping[str, str], given: Mapping[str, bool | None]
) -> dict[str, bool | None]:
    """The promises `given` of a whole for which each one holds where it holds for all parts.

    Args:
      whole: what is made of the parts, for the error: "The direct sum of".
      words: promise -> how the error calls it.
      given: promise -> what the caller promises.

    Raises:
      ValueError: a promise is False although it holds for all parts.
    """
    return {
        promise: of_all(parts, promise, held, f"{whole} {words[promise]} operators is always {words[promise]}.")
        for promise, held in given.items()
    }


def checked_operators(operators: Any) -> list[LinearOperator]:
    """The operators as a list, of one dtype.

    Raises:
      ValueError: the list is empty.
      TypeError: an element is no operator, or the dtypes differ.
    """
    found = list(operators)
    if not found:
        raise ValueError("Expected a non-empty list of operators. Found: []")
    for each in found:
        if not isinstance(each, LinearOperator):
            raise TypeError(f"Expected a list of operators; found {each!r}")
        if each.dtype != found[0].dtype:
            kinds = ", ".join(f"{one.name}: {one.dtype}" for one in found)
            raise TypeError(f"Expected all operators to have the same dtype.  Found {kinds}")
    return found


def broadcast_batches(operators: Sequence[LinearOperator]) -> TensorShape:
    """The static batch shape that all broadcast to."""
    batch = operators[0].batch_shape
    for each in operators[1:]:
        batch = array.broadcast_static_shape(batch, each.batch_shape)
    return batch


def broadcast_batch_tensors(operators: Sequence[LinearOperator]) -> Tensor:
    """The batch shape that all broadcast to."""
    batch = operators[0].batch_shape_tensor()
    for each in operators[1:]:
        batch = array.broadcast_dynamic_shape(batch, each.batch_shape_tensor())
    return batch


class LinearOperatorComposition(LinearOperator):
    """The product of operators, the last of them applied first.

    Args:
      operators: a list of operators whose sizes fit.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations; their names joined by "_o_" if None.

    Raises:
      TypeError: the dtypes differ.
      ValueError: the list is empty, or a promise contradicts the parts.
    """

    def __init__(
        self, operators: Sequence[LinearOperator], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._operators = checked_operators(operators)
        is_non_singular = of_all(
            self._operators, "is_non_singular", is_non_singular,
            "The composition of non-singular operators is always non-singular.",
        )  # fmt: skip
        for left, right in zip(self._operators[:-1], self._operators[1:], strict=True):
            left.domain_dimension.assert_is_compatible_with(right.range_dimension)
        name = "_o_".join(each.name for each in self._operators) if name is None else name
        parents = [parent for each in self._operators for parent in each.graph_parents]
        super().__init__(
            self._operators[0].dtype, parents, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            {"operators": operators},
        )  # fmt: skip

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _shape(self) -> TensorShape:
        sizes = [self._operators[0].range_dimension, self._operators[-1].domain_dimension]
        return broadcast_batches(self._operators).concatenate(sizes)

    def _shape_tensor(self) -> Tensor:
        sizes = [self._operators[0].range_dimension_tensor(), self._operators[-1].domain_dimension_tensor()]
        return joining.concat([broadcast_batch_tensors(self._operators), joining.stack(sizes)], 0)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        order = self._operators if adjoint else self._operators[::-1]
        result = order[0].matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for each in order[1:]:
            result = each.matmul(result, adjoint=adjoint)
        return result

    def _determinant(self) -> Tensor:
        result = self._operators[0].determinant()
        for each in self._operators[1:]:
            result = result * each.determinant()
        return result

    def _log_abs_determinant(self) -> Tensor:
        result = self._operators[0].log_abs_determinant()
        for each in self._operators[1:]:
            result = result + each.log_abs_determinant()
        return result

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        order = self._operators[::-1] if adjoint else self._operators
        result = order[0].solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for each in order[1:]:
            result = each.solve(result, adjoint=adjoint)
        return result

    def _assert_non_singular(self) -> Any:
        if all(each.is_square for each in self._operators):
            return group(*[each.assert_non_singular() for each in self._operators])
        return super()._assert_non_singular()


class _OfOperator(LinearOperator):
    """What the adjoint and the inverse have of their operator: where it is non-singular or definite, so are they."""

    _operator: LinearOperator

    @property
    def operator(self) -> LinearOperator:
        """The operator whose adjoint or inverse this is."""
        return self._operator

    def _assert_non_singular(self) -> Any:
        return self._operator.assert_non_singular()

    def _assert_positive_definite(self) -> Any:
        return self._operator.assert_positive_definite()

    def _assert_self_adjoint(self) -> Any:
        return self._operator.assert_self_adjoint()

    def _cond(self) -> Tensor:
        return self._operator.cond()


class LinearOperatorAdjoint(_OfOperator):
    """The conjugate transposes of an operator.

    Args:
      operator: the operator.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises, as those of `operator` if None.
      name: the scope of its operations.

    Raises:
      ValueError: a promise contradicts that of `operator`.
    """

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._operator = operator
        promises = {
            "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite, "is_square": is_square,
        }  # fmt: skip
        words = {
            "is_square": "square", "is_self_adjoint": "self adjoint", "is_positive_definite": "positive definite",
            "is_non_singular": "non singular",
        }  # fmt: skip
        for promise, given in promises.items():
            known = getattr(operator, promise)
            if given is not None and known is not None and given != known:
                raise ValueError(f"The adjoint of an operator is {words[promise]} exactly if the operator is.")
            promises[promise] = known if given is None else given
        name = operator.name + "_adjoint" if name is None else name
        with name_scope(name):
            super().__init__(
                operator.dtype, operator.graph_parents, name=name, parameters={"operator": operator}, **promises
            )

    def _shape(self) -> TensorShape:
        shape = self._operator.shape
        return shape[:-2].concatenate([shape[-1], shape[-2]]) if shape.ndims is not None else shape

    def _shape_tensor(self) -> Tensor:
        shape = self._operator.shape_tensor()
        return joining.concat([shape[:-2], [shape[-1], shape[-2]]], 0)

    def adjoint(self, name: str = "adjoint") -> Any:
        """The operator itself."""
        return self._operator

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return self._operator.matvec(x, adjoint=not adjoint)

    def _conjugated(self, value: Tensor) -> Tensor:
        return value if self.is_self_adjoint else math.conj(value)

    def _determinant(self) -> Tensor:
        return self._conjugated(self._operator.determinant())

    def _log_abs_determinant(self) -> Tensor:
        return self._operator.log_abs_determinant()

    def _trace(self) -> Tensor:
        return self._conjugated(self._operator.trace())

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return self._operator.solvevec(rhs, adjoint=not adjoint)

    def _to_dense(self) -> Tensor:
        dense = self._operator.to_dense()
        return dense if self.is_self_adjoint else matrix_adjoint(dense)

    def _eigvals(self) -> Tensor:
        return self._conjugated(self._operator.eigvals())


class LinearOperatorInversion(_OfOperator):
    """The inverses of an operator.

    Args:
      operator: a square operator with an inverse.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises, as those of `operator` if None.
      name: the scope of its operations.

    Raises:
      ValueError: the operator is known to be singular, or a promise contradicts its own.
    """

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._operator = operator
        if is_square is False or operator.is_square is False:
            raise ValueError("operator and its inverse must be square.")
        if is_non_singular is False or operator.is_non_singular is False:
            raise ValueError("operator and its inverse must be non-singular.")
        promises = {"is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite}
        for promise, given in promises.items():
            known = getattr(operator, promise)
            if given is not None and known is not None and given != known:
                words = promise[3:].replace("_", "-")
                raise ValueError(f"if operator is {words}, so must be its inverse.")
            promises[promise] = known if given is None else given
        name = operator.name + "_inv" if name is None else name
        with name_scope(name):
            super().__init__(
                operator.dtype, operator.graph_parents, is_non_singular=True, is_square=True, name=name,
                parameters={"operator": operator}, **promises,
            )  # fmt: skip

    def _shape(self) -> TensorShape:
        return self._operator.shape

    def _shape_tensor(self) -> Tensor:
        return self._operator.shape_tensor()

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return self._operator.solvevec(x, adjoint=adjoint)

    def _determinant(self) -> Tensor:
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        return -1.0 * self._operator.log_abs_determinant()

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return self._operator.matvec(rhs, adjoint=adjoint)

    def _eigvals(self) -> Tensor:
        return 1.0 / self._operator.eigvals()


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators.

    Args:
      operators: a list of operators.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: promises.
      name: the scope of its operations; their names joined by "_x_" if None.

    Raises:
      TypeError: the dtypes differ.
      ValueError: the list is empty, or a promise contradicts the parts.
    """

    def __init__(
        self, operators: Sequence[LinearOperator], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._operators = parts = checked_operators(operators)
        words = {
            "is_square": "square", "is_non_singular": "non-singular", "is_self_adjoint": "self-adjoint",
            "is_positive_definite": "positive-definite",
        }  # fmt: skip
        given = {
            "is_square": is_square, "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
        }  # fmt: skip
        promises = of_all_parts(parts, "The Kronecker product of", words, given)
        name = "_x_".join(each.name for each in parts) if name is None else name
        parents = [parent for each in parts for parent in each.graph_parents]
        super().__init__(parts[0].dtype, parents, name=name, parameters={"operators": operators}, **promises)

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return self._operators

    def _shape(self) -> TensorShape:
        rows, columns = self._operators[0].range_dimension, self._operators[0].domain_dimension
        for each in self._operators[1:]:
            rows, columns = rows * each.range_dimension, columns * each.domain_dimension
        return broadcast_batches(self._operators).concatenate([rows, columns])

    def _shape_tensor(self) -> Tensor:
        rows = self._operators[0].range_dimension_tensor()
        columns = self._operators[0].domain_dimension_tensor()
        for each in self._operators[1:]:
            rows = rows * each.range_dimension_tensor()
            columns = columns * each.domain_dimension_tensor()
        return joining.concat([broadcast_batch_tensors(self._operators), joining.stack([rows, columns])], 0)

    def _applied(self, x: Tensor, adjoint: bool, inverse: bool) -> Tensor:
        """Each factor applied to its own dimension of [..., n_1, ..., n_m, k]; the batch dimensions broadcast first."""
        batch = array.broadcast_dynamic_shape(array.shape_of(x)[:-2], self.batch_shape_tensor())
        count = array.shape_of(x)[-1:]
        static = array.broadcast_static_shape(x.shape[:-2], self.batch_shape)
        takes_rows = adjoint != inverse
        sizes = [
            each.range_dimension_tensor() if takes_rows else each.domain_dimension_tensor() for each in self._operators
        ]
        whole = array.shape_of(x)[-2:]
        value = array.broadcast_to(x, joining.concat([batch, whole], 0))
        value = array.reshape(value, joining.concat([batch, [-1], count], 0))
        # Each round applies a factor to the last dimension and moves what it made to the front; after all rounds the
        # dimensions are in their order again, and that of the columns is the last one.
        value = matrix_transpose(value)
        for each, size in zip(self._operators[::-1], sizes[::-1], strict=True):
            rows = array.reshape(value, joining.concat([batch, [-1], [size]], 0))
            columns = matrix_transpose(rows)
            out = each.solve(columns, adjoint=adjoint) if inverse else each.matmul(columns, adjoint=adjoint)
            value = array.reshape(out, joining.concat([batch, [-1]], 0))
        # [..., n_1, ..., n_m, k], flat
        result = array.reshape(value, joining.concat([batch, [-1], count], 0))
        rows = self.domain_dimension if takes_rows else self.range_dimension
        if static.ndims is not None and x.shape.ndims is not None:
            result.set_shape(static.concatenate([rows]).concatenate(x.shape[-1:]))
        return result

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._applied(matrix_adjoint(x) if adjoint_arg else x, adjoint, False)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._applied(matrix_adjoint(rhs) if adjoint_arg else rhs, adjoint, True)

    def _determinant(self) -> Tensor:
        total = self.domain_dimension_tensor()
        result: Any = 1
        for each in self._operators:
            power = total // each.domain_dimension_tensor()
            result = result * math.pow(each.determinant(), math.cast(power, self.dtype))
        return result

    def _log_abs_determinant(self) -> Tensor:
        total = self.domain_dimension_tensor()
        result: Any = 0
        for each in self._operators:
            power = total // each.domain_dimension_tensor()
            value = each.log_abs_determinant()
            result = result + value * math.cast(power, value.dtype)
        return result

    def _trace(self) -> Tensor:
        result = self._operators[0].trace()
        for each in self._operators[1:]:
            result = result * each.trace()
        return result

    def _outer(self, vectors: list[Tensor]) -> Tensor:
        """The products of all entries of vectors, the last one's index the fastest."""
        result = vectors[0]
        for each in vectors[1:]:
            wide = array.expand_dims(result, -1) * array.expand_dims(each, -2)
            result = array.reshape(wide, joining.concat([array.shape_of(wide)[:-2], [-1]], 0))
        return result

    def _diag_part(self) -> Tensor:
        result = self._outer([each.diag_part() for each in self._operators])
        if self.is_square:
            result.set_shape(self.batch_shape.concatenate([self.domain_dimension]))
        return result

    def _eigvals(self) -> Tensor:
        return self._outer([each.eigvals() for each in self._operators])

    def _to_dense(self) -> Tensor:
        result = self._operators[0].to_dense()
        for each in self._operators[1:]:
            dense = each.to_dense()
            one = array.expand_dims(array.expand_dims(result, -1), -3)  # [..., rows, 1, columns, 1]
            other = array.expand_dims(array.expand_dims(dense, -2), -4)  # [..., 1, rows, 1, columns]
            wide = one * other
            sizes = array.shape_of(result)[-2:] * array.shape_of(dense)[-2:]
            result = array.reshape(wide, joining.concat([array.shape_of(wide)[:-4], sizes], 0))
        result.set_shape(self.shape)
        return result

    def _assert_non_singular(self) -> Any:
        if all(each.is_square for each in self._operators):
            return group(*[each.assert_non_singular() for each in self._operators])
        words = "All Kronecker factors must be square for the product to be invertible."
        raise errors.InvalidArgumentError(None, None, words)

    def _assert_self_adjoint(self) -> Any:
        if all(each.is_square for each in self._operators):
            return group(*[each.assert_self_adjoint() for each in self._operators])
        words = "All Kronecker factors must be square for the product to be self adjoint."
        raise errors.InvalidArgumentError(None, None, words)
