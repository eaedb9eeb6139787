"""The rows of `algebra` for the operators of this package."""

from __future__ import annotations

from typing import Any

from dtf.build.linear_operators import hints
from dtf.build.linear_operators.algebra import (
    RegisterAdjoint,
    RegisterCholesky,
    RegisterInverse,
    RegisterMatmul,
    RegisterSolve,
)
from dtf.build.linear_operators.base import LinearOperator
from dtf.build.linear_operators.blocks import LinearOperatorBlockDiag
from dtf.build.linear_operators.circulant import LinearOperatorCirculant, _BaseCirculant
from dtf.build.linear_operators.dense import LinearOperatorDiag, LinearOperatorLowerTriangular
from dtf.build.linear_operators.identities import (
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from dtf.build.linear_operators.products import (
    LinearOperatorAdjoint,
    LinearOperatorComposition,
    LinearOperatorInversion,
    LinearOperatorKronecker,
)
from dtf.build.linear_operators.structured import LinearOperatorHouseholder
from dtf.build.ops import array, decompositions, math

__all__: list[str] = []


def _promises(operator: Any) -> dict[str, Any]:
    names = ("is_non_singular", "is_self_adjoint", "is_positive_definite")
    return {name: getattr(operator, name) for name in names}


# -- adjoints


@RegisterAdjoint(LinearOperator)
def _(operator: Any) -> Any:
    return LinearOperatorAdjoint(operator, **_promises(operator), is_square=operator.is_square)


@RegisterAdjoint(LinearOperatorAdjoint)
def _(operator: Any) -> Any:
    return operator.operator


@RegisterAdjoint(LinearOperatorIdentity)
def _(operator: Any) -> Any:
    return operator


@RegisterAdjoint(LinearOperatorScaledIdentity)
def _(operator: Any) -> Any:
    multiplier = math.conj(operator.multiplier) if operator.multiplier.dtype.is_complex else operator.multiplier
    return LinearOperatorScaledIdentity(
        operator._num_rows, multiplier, operator.is_non_singular, operator.is_self_adjoint,
        operator.is_positive_definite, True,
    )  # fmt: skip


@RegisterAdjoint(LinearOperatorDiag)
def _(operator: Any) -> Any:
    diagonal = math.conj(operator.diag) if operator.diag.dtype.is_complex else operator.diag
    return LinearOperatorDiag(
        diagonal, operator.is_non_singular, operator.is_self_adjoint, operator.is_positive_definite, True
    )


@RegisterAdjoint(LinearOperatorBlockDiag)
def _(operator: Any) -> Any:
    return LinearOperatorBlockDiag([each.adjoint() for each in operator.operators], **_promises(operator),
                                   is_square=operator.is_square)  # fmt: skip


@RegisterAdjoint(LinearOperatorKronecker)
def _(operator: Any) -> Any:
    return LinearOperatorKronecker([each.adjoint() for each in operator.operators], **_promises(operator),
                                   is_square=operator.is_square)  # fmt: skip


@RegisterAdjoint(_BaseCirculant)
def _(operator: Any) -> Any:
    spectrum = math.conj(operator.spectrum) if operator.spectrum.dtype.is_complex else operator.spectrum
    return type(operator)(spectrum, operator.dtype, **_promises(operator), is_square=True)


@RegisterAdjoint(LinearOperatorHouseholder)
def _(operator: Any) -> Any:
    return operator


# -- Cholesky factors


@RegisterCholesky(LinearOperator)
def _(operator: Any) -> Any:
    return LinearOperatorLowerTriangular(
        decompositions.cholesky(operator.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
    )


@RegisterCholesky(LinearOperatorIdentity)
def _(operator: Any) -> Any:
    return operator


@RegisterCholesky(LinearOperatorScaledIdentity)
def _(operator: Any) -> Any:
    root = math.sqrt(operator.multiplier)
    return LinearOperatorScaledIdentity(operator._num_rows, root, True, True, True, True)


@RegisterCholesky(LinearOperatorDiag)
def _(operator: Any) -> Any:
    return LinearOperatorDiag(math.sqrt(operator.diag), True, True, True, True)


@RegisterCholesky(LinearOperatorBlockDiag)
def _(operator: Any) -> Any:
    return LinearOperatorBlockDiag(
        [each.cholesky() for each in operator.operators], is_non_singular=True, is_self_adjoint=None, is_square=True
    )


@RegisterCholesky(LinearOperatorKronecker)
def _(operator: Any) -> Any:
    return LinearOperatorKronecker(
        [each.cholesky() for each in operator.operators], is_non_singular=True, is_self_adjoint=None, is_square=True
    )


# -- inverses


@RegisterInverse(LinearOperator)
def _(operator: Any) -> Any:
    return LinearOperatorInversion(operator, **_promises(operator), is_square=operator.is_square)


@RegisterInverse(LinearOperatorInversion)
def _(operator: Any) -> Any:
    return operator.operator


@RegisterInverse(LinearOperatorDiag)
def _(operator: Any) -> Any:
    return LinearOperatorDiag(1.0 / operator.diag, **_promises(operator), is_square=True)


@RegisterInverse(LinearOperatorIdentity)
def _(operator: Any) -> Any:
    return operator


@RegisterInverse(LinearOperatorScaledIdentity)
def _(operator: Any) -> Any:
    return LinearOperatorScaledIdentity(
        operator._num_rows, 1.0 / operator.multiplier, operator.is_non_singular, True, operator.is_positive_definite,
        True,
    )  # fmt: skip


@RegisterInverse(LinearOperatorBlockDiag)
def _(operator: Any) -> Any:
    return LinearOperatorBlockDiag([each.inverse() for each in operator.operators], **_promises(operator),
                                   is_square=True)  # fmt: skip


@RegisterInverse(LinearOperatorKronecker)
def _(operator: Any) -> Any:
    return LinearOperatorKronecker([each.inverse() for each in operator.operators], **_promises(operator),
                                   is_square=True)  # fmt: skip


@RegisterInverse(_BaseCirculant)
def _(operator: Any) -> Any:
    return type(operator)(1.0 / operator.spectrum, operator.dtype, **_promises(operator), is_square=True)


@RegisterInverse(LinearOperatorHouseholder)
def _(operator: Any) -> Any:
    return operator


# -- products


def _product_promises(a: Any, b: Any) -> dict[str, Any]:
    """Of products that commute."""
    return {
        "is_non_singular": hints.combined_non_singular_hint(a, b),
        "is_self_adjoint": hints.combined_commuting_self_adjoint_hint(a, b),
        "is_positive_definite": hints.combined_commuting_positive_definite_hint(a, b),
    }


@RegisterMatmul(LinearOperator, LinearOperator)
def _(a: Any, b: Any) -> Any:
    is_square = hints.is_square(a, b)
    non_singular = hints.combined_non_singular_hint(a, b) if is_square is not False else None
    if a.is_square is False or b.is_square is False:
        non_singular = None
    return LinearOperatorComposition([a, b], is_non_singular=non_singular, is_square=is_square)


@RegisterMatmul(LinearOperatorIdentity, LinearOperator)
def _(a: Any, b: Any) -> Any:
    return b


@RegisterMatmul(LinearOperator, LinearOperatorIdentity)
def _(a: Any, b: Any) -> Any:
    return a


@RegisterMatmul(LinearOperatorIdentity, LinearOperatorIdentity)
def _(a: Any, b: Any) -> Any:
    return a


@RegisterMatmul(LinearOperatorScaledIdentity, LinearOperatorScaledIdentity)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorScaledIdentity(
        a._num_rows, a.multiplier * b.multiplier, **_product_promises(a, b), is_square=True
    )


def _scaled(diagonal: Any, scale: Any) -> Any:
    values = diagonal.diag * array.expand_dims(scale.multiplier, -1)
    return LinearOperatorDiag(values, **_product_promises(diagonal, scale), is_square=True)


@RegisterMatmul(LinearOperatorDiag, LinearOperatorScaledIdentity)
def _(a: Any, b: Any) -> Any:
    return _scaled(a, b)


@RegisterMatmul(LinearOperatorScaledIdentity, LinearOperatorDiag)
def _(a: Any, b: Any) -> Any:
    return _scaled(b, a)


@RegisterMatmul(LinearOperatorZeros, LinearOperator)
@RegisterMatmul(LinearOperatorZeros, LinearOperatorIdentity)
@RegisterMatmul(LinearOperator, LinearOperatorZeros)
@RegisterMatmul(LinearOperatorIdentity, LinearOperatorZeros)
def _(a: Any, b: Any) -> Any:
    if not a.is_square or not b.is_square:
        raise ValueError("Matmul with non-square `LinearOperator`s or non-square `LinearOperatorZeros` not supported.")
    return a if isinstance(a, LinearOperatorZeros) else b


@RegisterMatmul(LinearOperatorZeros, LinearOperatorZeros)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorZeros(
        a._num_rows, b._num_columns, dtype=a.dtype, is_self_adjoint=None if a._num_rows is not b._num_columns else True,
        is_square=hints.is_square(a, b),
    )  # fmt: skip


@RegisterMatmul(LinearOperatorDiag, LinearOperatorDiag)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorDiag(a.diag * b.diag, **_product_promises(a, b), is_square=True)


@RegisterMatmul(LinearOperatorDiag, LinearOperatorLowerTriangular)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorLowerTriangular(
        array.expand_dims(a.diag, -1) * b.to_dense(), is_non_singular=hints.combined_non_singular_hint(a, b),
        is_self_adjoint=None, is_positive_definite=None, is_square=True,
    )  # fmt: skip


@RegisterMatmul(LinearOperatorLowerTriangular, LinearOperatorDiag)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorLowerTriangular(
        a.to_dense() * array.expand_dims(b.diag, -2), is_non_singular=hints.combined_non_singular_hint(a, b),
        is_self_adjoint=None, is_positive_definite=None, is_square=True,
    )  # fmt: skip


@RegisterMatmul(LinearOperatorCirculant, LinearOperatorCirculant)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorCirculant(a.spectrum * b.spectrum, a.dtype, **_product_promises(a, b), is_square=True)


def _same_blocks(a: Any, b: Any) -> bool:
    sizes = [(one.domain_dimension.value, other.range_dimension.value)
             for one, other in zip(a.operators, b.operators, strict=False)]  # fmt: skip
    return len(a.operators) == len(b.operators) and all(one is not None and one == other for one, other in sizes)


@RegisterMatmul(LinearOperatorBlockDiag, LinearOperatorBlockDiag)
def _(a: Any, b: Any) -> Any:
    if not _same_blocks(a, b):
        return LinearOperatorComposition([a, b], is_square=hints.is_square(a, b))
    return LinearOperatorBlockDiag(
        [one.matmul(other) for one, other in zip(a.operators, b.operators, strict=True)],
        is_non_singular=hints.combined_non_singular_hint(a, b), is_self_adjoint=None, is_positive_definite=None,
        is_square=hints.is_square(a, b),
    )  # fmt: skip


@RegisterMatmul(LinearOperatorKronecker, LinearOperatorKronecker)
def _(a: Any, b: Any) -> Any:
    if not _same_blocks(a, b):
        return LinearOperatorComposition([a, b], is_square=hints.is_square(a, b))
    return LinearOperatorKronecker(
        [one.matmul(other) for one, other in zip(a.operators, b.operators, strict=True)],
        is_non_singular=hints.combined_non_singular_hint(a, b), is_self_adjoint=None, is_positive_definite=None,
        is_square=hints.is_square(a, b),
    )  # fmt: skip


@RegisterMatmul(LinearOperatorInversion, LinearOperator)
def _(a: Any, b: Any) -> Any:
    return a.operator.solve(b)


@RegisterMatmul(LinearOperatorInversion, LinearOperatorIdentity)
def _(a: Any, b: Any) -> Any:
    return a


@RegisterMatmul(LinearOperatorInversion, LinearOperatorZeros)
def _(a: Any, b: Any) -> Any:
    return b


# -- solutions


@RegisterSolve(LinearOperator, LinearOperator)
def _(a: Any, b: Any) -> Any:
    inverse = LinearOperatorInversion(a)
    is_square = hints.is_square(a, b)
    return LinearOperatorComposition(
        [inverse, b], is_non_singular=hints.combined_non_singular_hint(inverse, b) if b.is_square else None,
        is_square=is_square,
    )  # fmt: skip


@RegisterSolve(LinearOperatorInversion, LinearOperator)
def _(a: Any, b: Any) -> Any:
    return a.operator.matmul(b)


@RegisterSolve(LinearOperatorIdentity, LinearOperator)
@RegisterSolve(LinearOperatorIdentity, LinearOperatorIdentity)
def _(a: Any, b: Any) -> Any:
    return b


@RegisterSolve(LinearOperator, LinearOperatorIdentity)
def _(a: Any, b: Any) -> Any:
    return a.inverse()


@RegisterSolve(LinearOperatorScaledIdentity, LinearOperatorScaledIdentity)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorScaledIdentity(
        a._num_rows, b.multiplier / a.multiplier, **_product_promises(a, b), is_square=True
    )


@RegisterSolve(LinearOperatorDiag, LinearOperatorDiag)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorDiag(b.diag / a.diag, **_product_promises(a, b), is_square=True)


@RegisterSolve(LinearOperatorDiag, LinearOperatorScaledIdentity)
def _(a: Any, b: Any) -> Any:
    values = array.expand_dims(b.multiplier, -1) / a.diag
    return LinearOperatorDiag(values, **_product_promises(a, b), is_square=True)


@RegisterSolve(LinearOperatorScaledIdentity, LinearOperatorDiag)
def _(a: Any, b: Any) -> Any:
    values = b.diag / array.expand_dims(a.multiplier, -1)
    return LinearOperatorDiag(values, **_product_promises(a, b), is_square=True)


@RegisterSolve(LinearOperatorDiag, LinearOperatorLowerTriangular)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorLowerTriangular(
        b.to_dense() / array.expand_dims(a.diag, -1), is_non_singular=hints.combined_non_singular_hint(a, b),
        is_self_adjoint=None, is_positive_definite=None, is_square=True,
    )  # fmt: skip


@RegisterSolve(LinearOperatorCirculant, LinearOperatorCirculant)
def _(a: Any, b: Any) -> Any:
    return LinearOperatorCirculant(b.spectrum / a.spectrum, a.dtype, **_product_promises(a, b), is_square=True)


@RegisterSolve(LinearOperatorBlockDiag, LinearOperatorBlockDiag)
@RegisterSolve(LinearOperatorKronecker, LinearOperatorKronecker)
def _(a: Any, b: Any) -> Any:
    if not _same_blocks(a, b):
        return LinearOperatorComposition([LinearOperatorInversion(a), b], is_square=hints.is_square(a, b))
    return type(a)(
        [one.solve(other) for one, other in zip(a.operators, b.operators, strict=True)],
        is_non_singular=hints.combined_non_singular_hint(a, b), is_self_adjoint=None, is_positive_definite=None,
        is_square=hints.is_square(a, b),
    )  # fmt: skip
