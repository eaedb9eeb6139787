"""Kernels of sparse tensors: indices [n, rank] int64, values [n], dense shape [rank].

Owns their conversion, order and products with dense matrices.
"""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode
from dtf.run.kernels.arguments import invalid, room, shape_text, vector
from dtf.run.kernels.gathering import rows_of_nd_indices, scatter_nd, scatter_rows
from dtf.run.kernels.sparse_components import check_dimensions, reduced_axes, sparse_kernel
from dtf.run.value_types import Array
from dtf.wire import dtypes
from dtf.wire.strings import filled


@sparse_kernel("SparseToDense")
def _(node: KernelNode) -> Function:
    dtype, validate = node.attr("T").as_numpy_dtype, node.attr("validate_indices")

    def sparse_to_dense(
        indices: np.ndarray, output_shape: np.ndarray, values: np.ndarray, default: np.ndarray
    ) -> np.ndarray:
        shape = tuple(output_shape.tolist())
        places = np.asarray(indices, np.int64)
        places = places.reshape(-1, 1) if places.ndim < 2 else places
        if places.shape[1] != len(shape):
            raise invalid(f"output_shape has incorrect number of elements: {len(shape)} should be: {places.shape[1]}")
        outside = np.flatnonzero(((places < 0) | (places >= shape)).any(axis=1))
        if outside.size:
            at = int(outside[0])
            raise invalid(
                f"indices[{at}] = {shape_text(places[at])} is out of bounds: need 0 <= index < {shape_text(shape)}"
            )
        if np.shape(values) not in ((), (len(places),)):
            raise invalid(
                f"sparse_values has incorrect shape {shape_text(np.shape(values))}, should be [] or [{len(places)}]"
            )
        rows = rows_of_nd_indices(places, shape, "output shape")
        if validate and len(rows) > 1 and (np.diff(rows) <= 0).any():
            at = int(np.flatnonzero(np.diff(rows) <= 0)[0]) + 1
            how = "repeated" if rows[at] == rows[at - 1] else "out of order"
            raise invalid(f"indices[{at}] = {shape_text(places[at])} is {how}")
        out = filled(room(shape, dtype), default, dtype)
        out.reshape(-1)[rows] = values
        return out

    return sparse_to_dense


@sparse_kernel("SparseTensorDenseMatMul")
def _(node: KernelNode) -> Function:
    adjoint_a, adjoint_b = node.attr("adjoint_a"), node.attr("adjoint_b")

    def matmul(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, dense: np.ndarray) -> np.ndarray:
        right = np.conj(dense).T if adjoint_b else dense
        rows, columns, left = indices[:, 0], indices[:, 1], values
        height, width = int(shape[0]), int(shape[1])
        if adjoint_a:
            rows, columns, left, height, width = columns, rows, np.conj(values), width, height
        if width != right.shape[0]:
            raise invalid(
                f"Cannot multiply A and B because inner dimension does not match: {width} vs. {right.shape[0]}."
            )
        for name, found, limit in (("row", rows, height), ("column", columns, width)):
            bad = np.flatnonzero((found < 0) | (found >= limit))
            if bad.size:
                raise invalid(f"{name} index {found[bad[0]]} of a[{bad[0]}] is out of bounds (>= {limit})")
        out = np.zeros(room((height, right.shape[1]), right.dtype), right.dtype)
        scatter_rows(np.add, out, rows, left[:, None] * right[columns])
        return out

    return matmul


@sparse_kernel("SparseTensorDenseAdd")
def _(node: KernelNode) -> Function:
    def add(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, dense: np.ndarray) -> np.ndarray:
        if tuple(shape.tolist()) != np.shape(dense):
            raise invalid(
                f"Shapes of a and b must be equal, got {shape_text(shape.tolist())} and {shape_text(np.shape(dense))}"
            )
        out = np.array(dense, order="C")
        scatter_nd(np.add, out, indices, values)
        return out

    return add


@sparse_kernel("SparseReorder")
def _(node: KernelNode) -> Function:
    def reorder(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.lexsort(indices.T[::-1])
        return indices[order], values[order]

    return reorder


@sparse_kernel("SparseReshape")
def _(node: KernelNode) -> Function:
    def reshape(indices: np.ndarray, shape: np.ndarray, new_shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if np.ndim(indices) != 2:
            raise invalid("Input must be a matrix.")
        vector(shape, "Input shape")
        vector(new_shape, "Target shape")
        elements = int(np.prod(shape))
        dims = new_shape.copy()
        unknown = np.flatnonzero(dims == -1)
        if len(unknown) > 1:
            raise invalid(f"only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}")
        if len(unknown):
            known = int(np.prod(dims[dims != -1]))
            if not known or elements % known:
                raise invalid(
                    f"Input to reshape is a SparseTensor with {elements} dense values, but the requested shape "
                    "requires a "
                    f"multiple of {known}. input_shape={shape_text(shape)} output_shape={shape_text(dims)}"
                )
            dims[unknown[0]] = elements // known
        if int(np.prod(dims)) != elements:
            raise invalid(
                f"Input to reshape is a tensor with {elements} dense values, but the requested shape has "
                f"{int(np.prod(dims))}. "
                f"input_shape={shape_text(shape)} output_shape={shape_text(dims)}"
            )
        # Indices outside of the shape are not looked at: each is a number of its own, whose digits are the new ones.
        if len(indices) and not elements:
            raise invalid(f"Input tensor has {len(indices)} elements, but its shape {shape_text(shape)} is empty")
        flat = (indices * _strides(shape)).sum(axis=1)
        places = np.empty((len(flat), len(dims)), np.int64)
        for axis, stride in enumerate(_strides(dims)):
            places[:, axis] = _truncated_quotient(flat, stride)
            flat = flat - places[:, axis] * stride
        return places, dims

    return reshape


def _strides(shape: np.ndarray) -> np.ndarray:
    """How many elements of a dense array of this shape lie between neighbours along each axis."""
    return np.array([np.prod(shape[axis + 1 :], dtype=np.int64) for axis in range(len(shape))], np.int64)


def _truncated_quotient(x: np.ndarray, y: Array) -> np.ndarray:
    return np.sign(x) * (np.abs(x) // max(int(y), 1))


@sparse_kernel("SparseFillEmptyRows")
def _(node: KernelNode) -> Function:
    def fill_empty_rows(
        indices: np.ndarray, values: np.ndarray, shape: np.ndarray, default: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        count = int(shape[0])
        rows = indices[:, 0]
        if len(rows) and (rows.min() < 0 or rows.max() >= count):
            at = int(np.flatnonzero((rows < 0) | (rows >= count))[0])
            raise invalid(f"indices({at}, 0) is invalid: {rows[at]} >= {count}")
        room((count, indices.shape[1] + 2), np.int64)
        empty = np.ones(count, bool)
        empty[rows] = False
        missing = np.flatnonzero(empty)
        added = np.zeros((len(missing), indices.shape[1]), np.int64)
        added[:, 0] = missing
        all_indices = np.concatenate([indices, added])
        fill = filled(len(missing), default, values.dtype)
        order = np.argsort(all_indices[:, 0], kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return all_indices[order], np.concatenate([values, fill])[order], empty, place[: len(values)]

    return fill_empty_rows


@sparse_kernel("SparseFillEmptyRowsGrad")
def _(node: KernelNode) -> Function:
    if node.attr("T") == dtypes.string:
        raise invalid("SparseFillEmptyRowsGrad adds gradients up; strings have no sum.")

    def fill_empty_rows_grad(reverse_index_map: np.ndarray, grad_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        vector(reverse_index_map, "reverse_index_map")
        vector(grad_values, "grad_values")
        outside = reverse_index_map[(reverse_index_map < 0) | (reverse_index_map >= len(grad_values))]
        if outside.size:
            raise invalid(f"Elements in reverse index must be in [0, {len(grad_values)}) but got {outside[0]}")
        kept = np.zeros(len(grad_values), bool)
        kept[reverse_index_map] = True
        return grad_values[reverse_index_map], grad_values[~kept].sum(dtype=grad_values.dtype)

    return fill_empty_rows_grad


@sparse_kernel("SparseConcat")
def _(node: KernelNode) -> Function:
    count, axis = node.attr("N"), node.attr("concat_dim")

    def concat(*parts: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        indices, values, shapes = parts[:count], parts[count : 2 * count], parts[2 * count :]
        at = axis % len(shapes[0])
        for i, shape in enumerate(shapes):
            if len(shape) != len(shapes[0]) or any(shape[d] != shapes[0][d] for d in range(len(shape)) if d != at):
                raise invalid(
                    f"Concat dimensions must match: input 0 has shape {shape_text(shapes[0])}, input {i} "
                    f"{shape_text(shape)}"
                )
        moved, offset = [], 0
        for places, shape in zip(indices, shapes, strict=True):
            places = places.copy()
            places[:, at] += offset
            moved.append(places)
            offset += int(shape[at])
        whole = shapes[0].copy()
        whole[at] = offset
        joined = np.concatenate(moved)
        order = np.lexsort(joined.T[::-1])
        return joined[order], np.concatenate(values)[order], whole

    return concat


@sparse_kernel("SparseReduceSum")
def _(node: KernelNode) -> Function:
    keep_dims = node.attr("keep_dims")

    def reduce_sum(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray) -> np.ndarray:
        rank = len(shape)
        check_dimensions(shape)
        reduced = reduced_axes(axes, rank)
        kept = [axis for axis in range(rank) if axis not in reduced]
        out = np.zeros(room([int(shape[axis]) for axis in kept], values.dtype), values.dtype)
        if kept:
            scatter_nd(np.add, out, indices[:, kept], values)
        else:
            out = np.asarray(values.sum(dtype=values.dtype))
        return out.reshape([1 if axis in reduced else int(shape[axis]) for axis in range(rank)]) if keep_dims else out

    return reduce_sum
