"""Kernels of lookup tables: they bind `lookup_tables.py` to nodes, by resource handle or by the older string
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid
from dtf.run.kernels.data_flow import node_resource, resource_of
from dtf.run.lib.number_text import number_of
from dtf.run.state.lookup_tables import LookupTable
from dtf.run.state.resources import ResourceHandle
from dtf.run.value_types import Scalar
from dtf.wire import errors, filesystems, limits
from dtf.wire.files import file_errors, read_within_memory

_WHOLE_LINE, _LINE_NUMBER = -2, -1
_LINE_BYTES = 64
"""The memory that a line takes beside its characters, at least."""


@kernel("HashTable", "HashTableV2", stateful=True)
def _(node: KernelNode) -> Function:
    return _table_maker(node, is_mutable=False)


@kernel("MutableHashTable", "MutableHashTableV2", stateful=True)
def _(node: KernelNode) -> Function:
    return _table_maker(node, is_mutable=True)


@kernel("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", stateful=True)
def _(node: KernelNode) -> Function:
    return _table_maker(node, is_mutable=True)


@kernel("MutableDenseHashTable", "MutableDenseHashTableV2", stateful=True)
def _(node: KernelNode) -> Function:
    """Tables that are laid out as TensorFlow's do not exist here: empty and deleted keys are only kept out."""
    buckets = node.attr("initial_num_buckets")
    make = _table_maker(node, is_mutable=True, buckets=buckets)

    def make_dense(step: StepContext, *keys: np.ndarray) -> LookupTable | ResourceHandle:
        if any(np.ndim(key) for key in keys):
            raise errors.UnimplementedError.of("Tables whose keys are no scalars are not supported")
        if buckets < _LEAST_BUCKETS or buckets & (buckets - 1):
            raise invalid(f"Number of buckets must be at least {_LEAST_BUCKETS} and a power of 2, got: {buckets}")
        names = dict(zip((key.item() for key in keys), ("empty_key", "deleted_key"), strict=False))
        if len(names) < len(keys):
            raise invalid("Empty and deleted keys cannot be equal")
        return make(step, names)

    return make_dense


_LEAST_BUCKETS = 4


def _table_maker(node: KernelNode, is_mutable: bool, buckets: int = 0) -> Callable[..., LookupTable | ResourceHandle]:
    types = node.attr("key_dtype"), node.attr("value_dtype")
    is_reference, by_node_name = node.op_def.outputs[0].is_ref, node.attr("use_node_name_sharing")
    value_shape = tuple(node.attrs["value_shape"].as_list()) if "value_shape" in node.attrs else ()

    def make(step: StepContext, reserved: Mapping[Scalar, str] = MappingProxyType({})) -> LookupTable | ResourceHandle:
        table, handle = node_resource(
            node,
            step,
            LookupTable,
            lambda name: LookupTable(name, *types, is_mutable, value_shape, reserved, buckets),
            always_shared=by_node_name,
        )
        table.check_same(*types)
        return table if is_reference else handle

    return make


@kernel("InitializeTable", "InitializeTableV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, keys, values: resource_of(step, handle, LookupTable).initialize(keys, values)


@kernel("InitializeTableFromTextFile", "InitializeTableFromTextFileV2", stateful=True)
def _(node: KernelNode) -> Function:
    key_index, value_index = node.attr("key_index"), node.attr("value_index")
    most, skipped, delimiter = node.attr("vocab_size"), node.attr("offset"), node.attr("delimiter")
    mark = delimiter if isinstance(delimiter, bytes) else delimiter.encode()

    def column(line: bytes, number: int, index: int, dtype: type[np.generic]) -> Scalar:
        if index == _WHOLE_LINE:
            return line
        if index == _LINE_NUMBER:
            return number
        parts = line.split(mark)
        if index >= len(parts):
            raise errors.InvalidArgumentError.of(
                f"Invalid number of columns in line {number} ({line.decode(errors='replace')}): expected {index + 1}",
            )
        if dtype is np.object_:
            return parts[index]
        try:
            return number_of(parts[index], dtype)
        except (ValueError, OverflowError):
            words = parts[index].decode(errors="replace")
            raise invalid(f"Field {words} in line {number} is not a valid {np.dtype(dtype).name}.") from None

    def initialize(step: StepContext, handle: ResourceHandle, filename: np.ndarray) -> None:
        table = resource_of(step, handle, LookupTable)
        path = filename.item().decode()
        with file_errors(path), filesystems.open(path, "rb") as file:
            text = read_within_memory(file, path)
        limits.check_free(text.count(b"\n") * _LINE_BYTES, path)
        lines = text.splitlines()[skipped:]
        if most >= 0:
            if len(lines) < most:
                raise errors.InvalidArgumentError.of(
                    f"Invalid vocab_size in {path}: expected {most} but got {len(lines)}"
                )
            lines = lines[:most]
        columns = []
        for index, dtype in ((key_index, table.key_dtype), (value_index, table.value_dtype)):
            out = np.empty(len(lines), dtype.as_numpy_dtype)
            out[:] = [column(line, number, index, dtype.as_numpy_dtype) for number, line in enumerate(lines)]
            columns.append(out)
        table.initialize(*columns)

    return initialize


@kernel("LookupTableFind", "LookupTableFindV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, keys, default: resource_of(step, handle, LookupTable).find(keys, default)


@kernel("LookupTableInsert", "LookupTableInsertV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, keys, values: resource_of(step, handle, LookupTable).insert(keys, values)


@kernel("LookupTableImport", "LookupTableImportV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, keys, values: resource_of(step, handle, LookupTable).insert(
        keys, values, replace_all=True
    )


@kernel("LookupTableRemoveV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, keys: resource_of(step, handle, LookupTable).remove(keys)


@kernel("LookupTableSize", "LookupTableSizeV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.int64(len(resource_of(step, handle, LookupTable)))


@kernel("LookupTableExport", "LookupTableExportV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: resource_of(step, handle, LookupTable).export()
