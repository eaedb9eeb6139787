"""Matrices whose batch dimensions broadcast, and checks of them: what several operators share.

Source: https://github.com/tensorflow/tensorflow/blob/r1.15/tensorflow/python/ops/linalg/linear_operator_util.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, name_scope
from dtf.build.ops import array, check_ops, decompositions, joining, linalg, math, rearranging
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "assert_compatible_matrix_dimensions", "assert_is_batch_matrix", "assert_no_entries_with_modulus_zero",
    "assert_zero_imag_part", "broadcast_matrix_batch_dims", "cholesky_solve_with_broadcast", "convert_nonref_to_tensor",
    "matmul_with_broadcast", "matrix_adjoint", "matrix_solve_with_broadcast", "matrix_triangular_solve_with_broadcast",
    "rotate_transpose", "shape_tensor",
]  # fmt: skip


def convert_nonref_to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """The value as a tensor; a variable is read here."""
    return convert_to_tensor(value, dtype, name=name)


def assert_no_entries_with_modulus_zero(
    x: Any, message: str | None = None, name: str = "assert_no_entries_with_modulus_zero"
) -> Any:
    """An operation that fails where an entry is 0."""
    with name_scope(name, values=[x]):
        size = math.abs(convert_to_tensor(x, name="x"))
        return check_ops.assert_less(math.cast(0, size.dtype), size, message=message)


def assert_zero_imag_part(x: Any, message: str | None = None, name: str = "assert_zero_imag_part") -> Any:
    """An operation that fails where an imaginary part is not 0."""
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_floating:
            from dtf.build.ops.ordering import no_op

            return no_op()
        part = math.imag(x)
        return check_ops.assert_equal(math.cast(0, part.dtype), part, message=message)


def assert_compatible_matrix_dimensions(operator: Any, x: Any) -> Operation | None:
    """An operation that fails where `x` has other rows than the operator has columns."""
    return check_ops.assert_equal(
        array.shape_of(x)[-2], operator.domain_dimension_tensor(),
        message=f"Dimensions are not compatible.  shape[-2] of argument must be the columns of {operator.name}",
    )  # fmt: skip


def assert_is_batch_matrix(tensor: Tensor) -> None:
    """Raises ValueError for a static rank below two."""
    rank = tensor.shape.ndims
    if rank is not None and rank < 2:
        raise ValueError(f"Expected [batch] matrix to have at least two dimensions.  Found: {tensor}")


def shape_tensor(shape: Any, name: str | None = None) -> Tensor:
    """A shape as an int32 tensor, also an empty one."""
    if isinstance(shape, (tuple, list)):
        return convert_to_tensor([int(each) for each in shape], dtypes.int32, name=name)
    if isinstance(shape, TensorShape):
        return convert_to_tensor(shape.as_list(), dtypes.int32, name=name)
    return convert_to_tensor(shape, name=name)


def matrix_adjoint(x: Tensor) -> Tensor:
    """The conjugate transposes."""
    return linalg.adjoint(x)


def broadcast_matrix_batch_dims(batch_matrices: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Matrices with the batch dimensions that all of them broadcast to.

    Raises:
      ValueError: one has fewer than two dimensions.
      TypeError: `batch_matrices` is not a sequence.
    """
    with name_scope(name, "broadcast_matrix_batch_dims", batch_matrices):
        if not isinstance(batch_matrices, (tuple, list)):
            raise TypeError(f"batch_matrices should be a list or tuple, got {batch_matrices!r}")
        found = [convert_to_tensor(each) for each in batch_matrices]
        for each in found:
            assert_is_batch_matrix(each)
        if len(found) < 2:
            return found
        static = found[0].shape[:-2]
        for each in found[1:]:
            static = array.broadcast_static_shape(static, each.shape[:-2])
        if static.is_fully_defined() and all(each.shape.is_fully_defined() for each in found):
            batch = static.as_list()
            return [
                each if each.shape[:-2].as_list() == batch
                else array.broadcast_to(each, [*batch, *each.shape[-2:].as_list()])
                for each in found
            ]  # fmt: skip
        shapes = [array.shape_of(each) for each in found]
        dynamic = shapes[0][:-2]
        for shape in shapes[1:]:
            dynamic = array.broadcast_dynamic_shape(dynamic, shape[:-2])
        result = []
        for each, shape in zip(found, shapes, strict=True):
            wide = array.broadcast_to(each, joining.concat([dynamic, shape[-2:]], 0))
            wide.set_shape(static.concatenate(each.shape[-2:]))
            result.append(wide)
        return result


def _alike(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    one, other = broadcast_matrix_batch_dims([a, b])
    return one, other


def matmul_with_broadcast(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The products of matrices whose batch dimensions broadcast."""
    with name_scope(name, "MatMulWithBroadcast", [a, b]):
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, a.dtype.base_dtype, name="b")
        if a.shape.ndims is None or b.shape.ndims is None:
            a, b = _alike(a, b)
        return linalg.matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, a_is_sparse, b_is_sparse)


def matrix_solve_with_broadcast(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The solutions of linear equations whose batch dimensions broadcast."""
    with name_scope(name, "MatrixSolveWithBroadcast", [matrix, rhs]):
        matrix = convert_to_tensor(matrix, name="matrix")
        one, other = _alike(matrix, convert_to_tensor(rhs, matrix.dtype.base_dtype, name="rhs"))
        return decompositions.matrix_solve(one, other, adjoint=adjoint)


def matrix_triangular_solve_with_broadcast(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The solutions for triangular matrices whose batch dimensions broadcast."""
    with name_scope(name, "MatrixTriangularSolve", [matrix, rhs]):
        matrix = convert_to_tensor(matrix, name="matrix")
        one, other = _alike(matrix, convert_to_tensor(rhs, matrix.dtype.base_dtype, name="rhs"))
        return decompositions.matrix_triangular_solve(one, other, lower=lower, adjoint=adjoint)


def cholesky_solve_with_broadcast(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The solutions for Cholesky factors whose batch dimensions broadcast."""
    with name_scope(name, "CholeskySolveWithBroadcast", [chol, rhs]):
        chol = convert_to_tensor(chol, name="chol")
        return decompositions.cholesky_solve(*_alike(chol, convert_to_tensor(rhs, chol.dtype.base_dtype, name="rhs")))


def rotate_transpose(x: Any, shift: int, name: str = "rotate_transpose") -> Tensor:
    """A tensor whose dimensions are rotated to the right by `shift`."""
    with name_scope(name, values=[x, shift]):
        x = convert_to_tensor(x, name="x")
        rank = x.shape.ndims
        if rank is None:
            from dtf.build.ops.math import range as numbers

            size = array.rank(x)
            return rearranging.transpose(x, math.floormod(numbers(size) - shift, size))
        return rearranging.transpose(x, [(each - shift) % rank for each in range(rank)]) if rank else x


def checked(assertion: Any, value: Tensor) -> Tensor:
    """The value, once the assertion holds."""
    with control_dependencies([] if assertion is None else [assertion]):
        return array.identity(value)
