"""Kernels that pack sparse tensors: into serialized TensorProtos, or into a table of a task behind int64 handles.

A packed sparse tensor is three strings: its indices, values and dense shape. Several are unpacked into one sparse
tensor whose new first dimensions are those of the array of packed ones.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, numpy_dtype, shape_text
from dtf.run.kernels.sparse_components import check_dimensions, check_inside
from dtf.run.lib.growth import Growth
from dtf.run.value_types import Array, NumpyType
from dtf.wire import codec
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb.tensor_pb2 import TensorProto
from dtf.wire.varints import varint

_Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


class SparseTensorsMap:
    """Sparse tensors that wait behind handles until they are taken, once each. `_lock` owns the table."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._tensors: dict[int, _Parts] = {}
        self._growth = Growth(f"map {name} of sparse tensors")
        self._handles = itertools.count()
        self._lock = threading.Lock()

    def add(self, parts: _Parts) -> int:
        """Returns the handle under which `parts` can be taken."""
        with self._lock:
            self._growth.add(parts, len(self._tensors))
            handle = next(self._handles)
            self._tensors[handle] = parts
            return handle

    def take(self, handle: int) -> _Parts:
        """Removes and returns what is behind a handle; InvalidArgumentError when nothing is."""
        with self._lock:
            if handle not in self._tensors:
                raise invalid(f"Unable to find SparseTensor: {handle} in map: {self.name}")
            return self._tensors.pop(handle)


# -- as strings --


@kernel("SerializeSparse")
def _(node: KernelNode) -> Function:
    pack = _packer(node)

    def serialize(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
        if np.ndim(values) != 1 or np.ndim(shape) != 1:
            found = f"{shape_text(values.shape)} and {shape_text(shape.shape)}"
            raise invalid(
                f"Input values and shape should be vectors, got {found}"
            )
        return pack((_matrix(indices), values, shape))

    return serialize


@kernel("SerializeManySparse")
def _(node: KernelNode) -> Function:
    pack = _packer(node)

    def serialize(*parts: np.ndarray) -> np.ndarray:
        _checked(parts)
        check_dimensions(parts[2])
        check_inside(parts[0], parts[2])
        if len(parts[0]) > 1 and (np.diff(np.unique(parts[0], axis=0, return_inverse=True)[1].ravel()) <= 0).any():
            raise invalid("indices are repeated or out of order")
        rows = [pack(row) for row in _rows(parts)]
        return np.stack(rows) if rows else np.empty((0, 3), object)

    return serialize


@kernel("DeserializeSparse", "DeserializeManySparse")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "dtype")

    def deserialize(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if packed.ndim < 1 or packed.shape[-1] != 3:
            raise invalid(f"Serialized sparse should have 3 as the last dimension {shape_text(packed.shape)}")
        if node.op == "DeserializeManySparse" and packed.ndim < 2:
            raise invalid(f"Serialized sparse should be a matrix: {shape_text(packed.shape)}")
        if 0 in packed.shape:
            raise invalid(f"Serialized sparse should have at least 1 element, got shape {shape_text(packed.shape)}")
        each = [_unpacked(row, dtype, number) for number, row in enumerate(packed.reshape(-1, 3))]
        return _joined(each, packed.shape[:-1], dtype)

    return deserialize


# -- behind handles --


@kernel("AddSparseToTensorsMap", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, *parts: np.int64(_map_of(node, step).add(_checked(parts)))


@kernel("AddManySparseToTensorsMap", stateful=True)
def _(node: KernelNode) -> Function:
    def add_many(step: StepContext, *parts: np.ndarray) -> np.ndarray:
        table = _map_of(node, step)
        return np.array([table.add(row) for row in _rows(parts)], np.int64)

    return add_many


@kernel("TakeManySparseFromTensorsMap", stateful=True)
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "dtype")

    def take_many(step: StepContext, handles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        table = _map_of(node, step)
        return _joined([table.take(int(handle)) for handle in handles], np.shape(handles), dtype)

    return take_many


def _map_of(node: KernelNode, step: StepContext) -> SparseTensorsMap:
    container, name = (as_text(node.attr(attr)) for attr in ("container", "shared_name"))
    name = name or node.name
    return step.resources.lookup_or_create(container, name, SparseTensorsMap, lambda: SparseTensorsMap(name))


# -- parts --


def _packer(node: KernelNode) -> Callable[[Sequence[Array]], np.ndarray]:
    """How parts are packed: as messages, or for variants, which stay at their task, as the arrays that they are."""
    return _packed if node.attr("out_type").name == "string" else _boxed


def _boxed(parts: Sequence[Array]) -> np.ndarray:
    out = np.empty(3, object)
    for index, part in enumerate(_checked(parts)):
        out[index] = part
    return out


def _matrix(indices: np.ndarray) -> np.ndarray:
    if indices.ndim != 2:
        raise invalid(f"Input indices should be a matrix but received shape {shape_text(indices.shape)}")
    return indices


def _checked(parts: Sequence[Array]) -> _Parts:
    indices, values, shape = parts
    _matrix(indices)
    if values.shape != indices.shape[:1] or shape.shape != indices.shape[1:]:
        raise invalid(
            f"Input values and shape should be vectors of {indices.shape[0]} and {indices.shape[1]} elements but "
            f"received shapes {shape_text(values.shape)} and {shape_text(shape.shape)}"
        )
    return indices, values, shape


def _packed(parts: Sequence[Array]) -> np.ndarray:
    """The three messages; the sizes of the parts are looked at only when they are unpacked, as TensorFlow does."""
    out = np.empty(3, object)
    out[:] = [_message(part) for part in parts]
    return out


def _message(array: np.ndarray) -> bytes:
    proto = codec.array_to_proto(np.ascontiguousarray(array))
    if array.dtype == object:  # strings as TensorFlow packs them: their lengths, then their bytes
        texts = array.tolist()
        proto = TensorProto(dtype=proto.dtype, tensor_shape=proto.tensor_shape)
        proto.tensor_content = b"".join([*(varint(len(text)) for text in texts), *texts])
    return proto.SerializeToString(deterministic=True)


def _rows(parts: Sequence[Array]) -> list[_Parts]:
    """The sparse tensors of rank - 1 in the rows of one."""
    indices, values, shape = _checked(parts)
    if len(shape) < 2:
        raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}")
    rows = indices[:, 0]
    if len(rows) and (rows.min() < 0 or rows.max() >= shape[0]):
        raise invalid(f"Received unexpected row index outside of [0, {shape[0]})")
    places = [np.flatnonzero(rows == row) for row in range(int(shape[0]))]
    return [(indices[place, 1:], values[place], shape[1:]) for place in places]


def _unpacked(row: np.ndarray, dtype: NumpyType, number: int) -> _Parts:
    parts = []
    for text in row:
        if isinstance(text, np.ndarray):
            parts.append(text)
            continue
        proto = TensorProto()
        try:
            proto.ParseFromString(text)
        except Exception as error:  # whatever protobuf raises for bytes that are no message
            raise invalid("Could not parse serialized_sparse") from error
        parts.append(np.asarray(codec.proto_to_array(proto)))
    indices, values, shape = parts
    if values.dtype != dtype:
        found, wanted = as_dtype(values.dtype), as_dtype(dtype)
        raise invalid(
            f"Requested SparseTensor of type {_cpp_name(wanted)} but SparseTensor[{number}].values.dtype() == "
            f"{_cpp_name(found)}"
        )
    return _checked((indices, values, shape))


def _cpp_name(dtype: DType) -> str:
    name: str = dtype.name
    return {"float32": "float", "float64": "double", "float16": "half"}.get(name, name)


def _joined(each: list[_Parts], lead: tuple[int, ...], dtype: NumpyType) -> _Parts:
    """One sparse tensor of all; what they differ in size is covered by the largest."""
    if not lead:
        return each[0]
    ranks = {len(shape) for _, _, shape in each}
    if len(ranks) > 1:
        raise invalid(f"Inconsistent rank across SparseTensors: {sorted(ranks)}")
    rank = ranks.pop() if ranks else 0
    prefixes = np.array(list(np.ndindex(lead)), np.int64).reshape(-1, len(lead))
    blocks = [
        np.concatenate([np.repeat(prefixes[number : number + 1], len(indices), axis=0), indices], axis=1)
        for number, (indices, _, _) in enumerate(each)
    ]
    largest = np.max([shape for _, _, shape in each], axis=0) if each else np.zeros(rank, np.int64)
    return (
        np.concatenate(blocks) if blocks else np.zeros((0, len(lead) + rank), np.int64),
        np.concatenate([values for _, values, _ in each]) if each else np.zeros(0, dtype),
        np.array([*lead, *largest], np.int64),
    )
