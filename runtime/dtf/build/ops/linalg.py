"""Public functions and shape rules of matrix products, contractions over axes, norms and traces.

Names, arguments and defaults are TensorFlow 1.x's (https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg).
The last two dimensions of a tensor are the matrix, those before them a batch. Gradients are in `linalg_grad`, kernels
in `dtf.run.kernels.linalg`. `einsum`, `decompositions` and `diagonals` have the rest of tf.linalg.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import dynamic_axes
from dtf.build.ops.decompositions import check_inner, svd
from dtf.build.ops.math import abs as absolute
from dtf.build.ops.math import cast, conj, multiply, pow, real, sqrt, square, truediv
from dtf.build.ops.reductions import reduce_max, reduce_sum
from dtf.build.shape_rules import broadcast_shape, shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "adjoint",
    "cross",
    "eye",
    "matmul",
    "matvec",
    "norm",
    "normalize",
    "sparse_matmul",
    "tensordot",
    "trace",
]


# -- products --


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product.

    Args:
      a: [..., n, k], after transposition.
      b: [..., k, m], after transposition, of the dtype of `a`; batch dimensions broadcast.
      transpose_a: transpose the last two dimensions of `a` first.
      transpose_b: transpose the matrices of `b` first.
      adjoint_a: conjugate and transpose `a` first.
      adjoint_b: conjugate and transpose `b` first.
      a_is_sparse: `a` has many zeros (float32 and bfloat16 only).
      b_is_sparse: `b` has many zeros.
      name: the name of the operation.

    Returns:
      A Tensor [..., n, m] of the dtype of `a`.

    Raises:
      ValueError: both transpose and adjoint are asked of one argument, or the shapes do not fit.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/linalg/matmul
    """
    with name_scope(name, "MatMul", [a, b]) as name:
        if transpose_a and adjoint_a:
            raise ValueError("Only one of transpose_a and adjoint_a can be True.")
        if transpose_b and adjoint_b:
            raise ValueError("Only one of transpose_b and adjoint_b can be True.")
        a, b = _pair(a, b)
        sparse_types = (dtypes.float32, dtypes.bfloat16)
        sparse = (
            (a_is_sparse or b_is_sparse) and a.dtype.base_dtype in sparse_types and b.dtype.base_dtype in sparse_types
        )
        may_be_matrices = a.shape.ndims in (None, 2) and b.shape.ndims in (None, 2)
        if (_is_batch(a) or _is_batch(b)) and not (sparse and may_be_matrices):
            if transpose_a:
                a = conj(a)
            if transpose_b:
                b = conj(b)
            return apply_op(
                "BatchMatMulV2", name, x=a, y=b, adj_x=transpose_a or adjoint_a, adj_y=transpose_b or adjoint_b
            )
        if adjoint_a:
            a, transpose_a = conj(a), True
        if adjoint_b:
            b, transpose_b = conj(b), True
        if sparse:
            product = sparse_matmul(a, b, transpose_a, transpose_b, a_is_sparse, b_is_sparse, name)
            both_half = a.dtype.base_dtype == dtypes.bfloat16 and b.dtype.base_dtype == dtypes.bfloat16
            return cast(product, dtypes.bfloat16) if both_half else product
        return apply_op("MatMul", name, a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b)


def _pair(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors; a value that is not a tensor gets the other's dtype."""
    if isinstance(b, Tensor) and not isinstance(a, Tensor):
        b_tensor = convert_to_tensor(b, name="b")
        return convert_to_tensor(a, _dtype_hint(a, b_tensor), name="a"), b_tensor
    a_tensor = convert_to_tensor(a, name="a")
    return a_tensor, convert_to_tensor(b, _dtype_hint(b, a_tensor), name="b")


def _dtype_hint(value: Any, beside: Tensor) -> dtypes.DType | None:
    return None if isinstance(getattr(value, "dtype", None), dtypes.DType) else beside.dtype.base_dtype


def _is_batch(x: Tensor) -> bool:
    return x.shape.ndims is None or x.shape.ndims > 2


def sparse_matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of two dense matrices with many zeros, float32 or bfloat16 each. [n, k], [k, m] -> float32 [n, m]."""
    return apply_op(
        "SparseMatMul", name, a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b, a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
    )  # fmt: skip


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of a matrix [..., n, k] and a vector [..., k]: [..., n]."""
    with name_scope(name, "MatVec", [a, b]):
        column = apply_op("ExpandDims", input=b, dim=-1)
        product = matmul(a, column, transpose_a, False, adjoint_a, False, a_is_sparse, b_is_sparse)
        return apply_op("Squeeze", input=product, squeeze_dims=[-1])


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The cross product of vectors of three elements. Both [..., 3]."""
    return apply_op("Cross", name, a=a, b=b)


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    """Sums products of two tensors over pairs of axes.

    Args:
      a: the first tensor.
      b: the second tensor, of the dtype of `a`.
      axes: n, for the last n axes of `a` with the first n of `b`; or [axes of a, axes of b], lists of equal length.
        A tensor of either form is allowed.
      name: the name of the operation.

    Returns:
      A Tensor with the remaining axes of `a`, then of `b`.

    Raises:
      ValueError: the axes do not pair, or are out of range.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/tensordot
    """
    with name_scope(name, "Tensordot", [a, b]) as name:
        a, b = _pair(a, b)
        rank_a, rank_b = a.shape.ndims, b.shape.ndims
        axes_known = constant_value(axes) if isinstance(axes, Tensor) else axes
        if rank_a is None or rank_b is None or axes_known is None or not _all_numbers(axes_known):
            return dynamic_axes.tensordot(a, b, axes, name)
        axes = axes_known
        axes_a, axes_b = _contracted_axes(axes, rank_a, rank_b)
        left, free_a = _as_matrix(a, rank_a, axes_a, contracted_last=True)
        right, free_b = _as_matrix(b, rank_b, axes_b, contracted_last=False)
        product = apply_op("MatMul", a=left, b=right)
        sizes = [size for each in (free_a, free_b) for size in (each if isinstance(each, list) else [])]
        if isinstance(free_a, list) and isinstance(free_b, list):
            return apply_op("Reshape", name, tensor=product, shape=np.array(sizes, np.int32))
        shape = apply_op("ConcatV2", values=[_int32_vector(free_a), _int32_vector(free_b)], axis=0)
        result = apply_op("Reshape", name, tensor=product, shape=shape)
        result.set_shape(_without(a.shape, axes_a).concatenate(_without(b.shape, axes_b)))
        return result


def _all_numbers(axes: Any) -> bool:
    """Whether no axis is a tensor."""
    if isinstance(axes, (list, tuple)):
        return all(_all_numbers(each) for each in axes)
    return not isinstance(axes, Tensor)


def _contracted_axes(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    if not isinstance(axes, list | tuple) and np.ndim(axes) == 0:
        count = int(axes)
        if count < 0:
            raise ValueError(f"'axes' must be at least 0. Given: {axes}")
        if count > min(rank_a, rank_b):
            raise ValueError(f"'axes' must not be larger than the number of dimensions, {rank_a} and {rank_b}: {axes}")
        return list(range(rank_a - count, rank_a)), list(range(count))
    if len(axes) != 2:
        raise ValueError(f"'axes' must be an integer or have length 2: {axes}")
    axes_a, axes_b = (np.reshape(each, -1).tolist() for each in axes)
    if len(axes_a) != len(axes_b):
        raise ValueError(f"Different number of contraction axes 'a' and 'b', {len(axes_a)} != {len(axes_b)}.")
    for each, rank in ((axes_a, rank_a), (axes_b, rank_b)):
        if any(not -rank <= axis < rank for axis in each):
            raise ValueError(f"Axes {each} are out of range for a tensor of rank {rank}.")
    return [axis % rank_a for axis in axes_a], [axis % rank_b for axis in axes_b]


def _as_matrix(x: Tensor, rank: int, contracted: list[int], contracted_last: bool) -> tuple[Tensor, Any]:
    """x as [free, contracted] (or the other way round) and the sizes of the free axes, a list or a vector tensor."""
    free = [axis for axis in range(rank) if axis not in contracted]
    order = free + contracted if contracted_last else contracted + free
    moved = _transposed(x, order)
    sizes = x.shape.as_list()
    contracted_size = _product([sizes[axis] for axis in contracted])
    free_sizes: Any = [sizes[axis] for axis in free]
    if None in free_sizes:
        free_sizes = apply_op("GatherV2", params=apply_op("Shape", input=x), indices=np.array(free, np.int32), axis=0)
    if contracted_size is None:
        shape = apply_op("Shape", input=x)
        sides = [
            apply_op("Prod", input=apply_op("GatherV2", params=shape, indices=axes, axis=0), reduction_indices=0)
            for axes in (np.array(free, np.int32), np.array(contracted, np.int32))
        ]
        return apply_op("Reshape", tensor=moved, shape=sides if contracted_last else sides[::-1]), free_sizes
    free_size = _product(free_sizes) if isinstance(free_sizes, list) else -1
    target = [free_size, contracted_size] if contracted_last else [contracted_size, free_size]
    if contracted_size == 0 and free_size == -1:
        target[target.index(-1)] = apply_op("Prod", input=free_sizes, reduction_indices=0)
    matrix = moved if moved.shape.as_list() == target else apply_op("Reshape", tensor=moved, shape=target)
    return matrix, free_sizes


def _transposed(x: Tensor, order: list[int]) -> Tensor:
    return x if order == sorted(order) else apply_op("Transpose", x=x, perm=np.array(order, np.int32))


def _product(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _int32_vector(sizes: Any) -> Tensor:
    return sizes if isinstance(sizes, Tensor) else convert_to_tensor(np.array(sizes, np.int32))


def _without(shape: TensorShape, axes: list[int]) -> TensorShape:
    return TensorShape([size for axis, size in enumerate(shape.as_list()) if axis not in axes])


# -- norms and traces --


def norm(
    tensor: TensorLike,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors or of matrices.

    Args:
      tensor: floating-point or complex numbers.
      ord: "euclidean" (of matrices: Frobenius), "fro" (matrices only), 1, 2, np.inf, or any positive p for vectors.
      axis: one axis for vectors, two for matrices; None takes all elements as one vector.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor without those axes.

    Raises:
      ValueError: the norm is not defined for the axes in `axis`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/norm
    """
    keep = bool(keep_dims if keepdims is None else keepdims)
    is_matrix = isinstance(axis, tuple | list) and len(axis) == 2
    if isinstance(axis, tuple | list) and not is_matrix and len(axis) != 1:
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    if is_matrix and axis[0] == axis[1]:
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    supported = ("euclidean", "fro", 1, 2, np.inf) if is_matrix else ("euclidean", 1, 2, np.inf)
    if ord not in supported and (is_matrix or not np.isreal(ord) or ord <= 0):
        kind = "matrix" if is_matrix else "vector"
        raise ValueError(f"'ord' must be a supported {kind} norm in {supported}, got {ord}")
    with name_scope(name, "norm", [tensor]):
        tensor = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean") or (ord == 2 and not is_matrix):
            return sqrt(reduce_sum(_square_modulus(tensor), axis, keepdims=keep))
        if is_matrix:
            return _matrix_norm(tensor, ord, axis, keep)
        size = absolute(tensor)
        if ord == 1:
            return reduce_sum(size, axis, keepdims=keep)
        if ord == np.inf:
            return reduce_max(size, axis, keepdims=keep)
        return pow(reduce_sum(pow(size, ord), axis, keepdims=keep), 1.0 / ord)


def _spectral_norm(tensor: Tensor, axis: Sequence[int], keep: bool) -> Tensor:
    """The largest singular values of matrices in a tensor of unknown rank."""
    size = apply_op("Rank", input=tensor)
    ends = [at if at >= 0 else apply_op("AddV2", x=size, y=at) for at in axis]
    inner = apply_op("Pack", values=ends)
    outer = apply_op("ListDiff", x=apply_op("Range", start=0, limit=size, delta=1), y=inner)[0]
    moved = apply_op("Transpose", x=tensor, perm=apply_op("ConcatV2", values=[outer, inner], axis=0))
    largest = reduce_max(svd(moved, compute_uv=False), -1)
    if not keep:
        return largest
    kept = apply_op("TensorScatterUpdate", tensor=apply_op("Shape", input=tensor),
                    indices=apply_op("ExpandDims", input=inner, dim=1), updates=[1, 1])  # fmt: skip
    return apply_op("Reshape", tensor=largest, shape=kept)


def _matrix_norm(tensor: Tensor, ord: Any, axis: Sequence[int], keep: bool) -> Tensor:
    rows, columns = axis
    if ord == 2:  # the largest singular value
        rank = tensor.shape.ndims
        if rank is None:
            return _spectral_norm(tensor, axis, keep)
        order = [each for each in range(rank) if each not in (rows % rank, columns % rank)]
        order += [rows % rank, columns % rank]
        moved = _transposed(tensor, order)
        largest = reduce_max(svd(moved, compute_uv=False), -1)
        if not keep:
            return largest
        for each in sorted((rows % rank, columns % rank)):
            largest = apply_op("ExpandDims", input=largest, dim=each)
        return largest
    along, over = (rows, columns) if ord == 1 else (columns, rows)  # sums along one axis, the greatest over the other
    result = reduce_max(reduce_sum(absolute(tensor), along, keepdims=True), over, keepdims=True)
    return result if keep else apply_op("Squeeze", input=result, squeeze_dims=[rows, columns])


def _square_modulus(tensor: Tensor) -> Tensor:
    return real(multiply(tensor, conj(tensor))) if tensor.dtype.is_complex else square(tensor)


def normalize(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(tensor / norm, norm), with the norm of `norm(tensor, ord, axis, keepdims=True)`."""
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        size = cast(norm(tensor, ord, axis, keepdims=True), tensor.dtype.base_dtype)
        return truediv(tensor, size), size


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the main diagonal. [..., n, m] -> [...]."""
    with name_scope(name, "Trace", [x]) as name:
        x = convert_to_tensor(x, name="x")
        return reduce_sum(apply_op("MatrixDiagPart", input=x), [-1], name=name)


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The conjugate transpose. [..., n, m] -> [..., m, n]."""
    with name_scope(name, "adjoint", [matrix]):
        matrix = convert_to_tensor(matrix, name="matrix")
        rank = matrix.shape.ndims
        op_type = "ConjugateTranspose" if matrix.dtype.is_complex else "Transpose"
        if rank is not None:
            perm: Any = np.array([*range(rank - 2), rank - 1, rank - 2], np.int32)
        else:
            dynamic = apply_op("Rank", input=matrix)
            front = apply_op("Range", start=0, limit=apply_op("Sub", x=dynamic, y=2), delta=1)
            back = [apply_op("Sub", x=dynamic, y=1), apply_op("Sub", x=dynamic, y=2)]
            perm = apply_op("ConcatV2", values=[front, apply_op("Pack", values=back)], axis=0)
        return apply_op(op_type, x=matrix, perm=perm)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Identity matrices: ones on the main diagonal, zeros elsewhere.

    Args:
      num_rows: the number of rows, an integer or an int32 scalar.
      num_columns: the number of columns; `num_rows` by default.
      batch_shape: the shape of the batch of matrices, a list or an int32 vector; none by default.
      dtype: the element type.
      name: the name of the operation.

    Returns:
      A Tensor of shape batch_shape + [num_rows, num_columns].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/eye
    """
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]) as name:
        square = num_columns is None
        columns = num_rows if square else num_columns
        known = isinstance(num_rows, int | np.integer) and isinstance(columns, int | np.integer)
        batch = _int32_vector([] if batch_shape is None else batch_shape)
        shorter = min(num_rows, columns) if known else apply_op("Minimum", x=num_rows, y=columns)
        ones_shape = apply_op("ConcatV2", values=[batch, apply_op("Pack", values=[shorter])], axis=0)
        ones = apply_op("Fill", dims=ones_shape, value=convert_to_tensor(1, dtype=dtypes.as_dtype(dtype)))
        if square:
            return apply_op("MatrixDiag", name, diagonal=ones)
        shape = apply_op("ConcatV2", values=[batch, apply_op("Pack", values=[num_rows, columns])], axis=0)
        zeros = apply_op("Fill", dims=shape, value=convert_to_tensor(0, dtype=dtypes.as_dtype(dtype)))
        return apply_op("MatrixSetDiag", name, input=zeros, diagonal=ones)


# -- shape rules --


@shape_rule("MatMul", "SparseMatMul")
def _matmul_shape(op: Operation) -> list[TensorShape]:
    rows, inner = _swapped(op.inputs[0].shape.with_rank(2), op.get_attr("transpose_a"))
    inner_b, columns = _swapped(op.inputs[1].shape.with_rank(2), op.get_attr("transpose_b"))
    check_inner(inner, inner_b)
    return [TensorShape([rows, columns])]


@shape_rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul_shape(op: Operation) -> list[TensorShape]:
    x, y = (tensor.shape.with_rank_at_least(2) for tensor in op.inputs)
    if x.ndims is None or y.ndims is None:
        return [unknown_shape()]
    rows, inner = _swapped(x[-2:], op.get_attr("adj_x"))
    inner_y, columns = _swapped(y[-2:], op.get_attr("adj_y"))
    check_inner(inner, inner_y)
    batch = x[:-2].merge_with(y[:-2]) if op.type == "BatchMatMul" else broadcast_shape(x[:-2], y[:-2])
    return [batch.concatenate([rows, columns])]


def _swapped(matrix: TensorShape, swap: bool) -> tuple[int | None, int | None]:
    rows, columns = (None, None) if matrix.ndims is None else matrix.as_list()
    return (columns, rows) if swap else (rows, columns)


@shape_rule("Cross")
def _cross_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.merge_with(op.inputs[1].shape).with_rank_at_least(1)
    if shape.ndims is not None and shape.as_list()[-1] not in (3, None):
        raise ValueError("Cross-products are only defined for 3-element vectors")
    return [shape]
