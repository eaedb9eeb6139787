"""Kernels that touch files, serialized tensors and Python functions.

Owns restoring as ops (the format itself is `checkpoint.py`; `saving` has the ops that save), reading and writing whole
files, sharded file names, and calls of registered Python functions (`py_functions.py`).
"""

from __future__ import annotations

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, scalar
from dtf.run.threads import reader_thread
from dtf.run.value_types import Array
from dtf.wire import codec, dtypes, errors, filesystems, py_functions
from dtf.wire.checkpoint_v1 import Checkpoint, open_checkpoint
from dtf.wire.files import file_errors, read_within_memory
from dtf.wire.strings import string_scalar
from dtf.wire.tensor_slices import parse_slice_spec


def _text(value: str | bytes | Array) -> str:
    """A string scalar (or an attribute) as str."""
    value = value.item() if isinstance(value, np.ndarray) else value
    return value.decode() if isinstance(value, bytes) else value


def _texts(values: np.ndarray) -> list[str]:
    return [value.decode() for value in np.ravel(values).tolist()]


# -- restoring


@kernel("Restore", stateful=True)
def _(node: KernelNode) -> Function:
    wanted = node.attr("dt")
    return lambda step, pattern, name: _restore(_text(pattern), [_text(name)], [""], [wanted])[0]


@kernel("RestoreSlice", stateful=True)
def _(node: KernelNode) -> Function:
    wanted = node.attr("dt")
    return lambda step, pattern, name, spec: _restore(_text(pattern), [_text(name)], [_text(spec)], [wanted])[0]


@kernel("RestoreV2", stateful=True)
def _(node: KernelNode) -> Function:
    wanted = list(node.attr("dtypes"))

    def restore(
        step: StepContext, prefix: np.ndarray, tensor_names: np.ndarray, shape_and_slices: np.ndarray
    ) -> np.ndarray | list[np.ndarray]:
        values = _restore(_text(prefix), _texts(tensor_names), _texts(shape_and_slices), wanted)
        return values[0] if node.num_outputs == 1 else values

    return restore


def _restore(prefix: str, names: list[str], specs: list[str], wanted: list[dtypes.DType]) -> list[np.ndarray]:
    reader = open_checkpoint(prefix)
    for name, dtype in zip(names, wanted, strict=True):
        if reader.dtype(name) != dtype:
            raise invalid(
                f"tensor_name = {name}; expected dtype {dtype.name} does not equal original dtype "
                f"{reader.dtype(name).name}"
            )
    return [_read(reader, name, spec) for name, spec in zip(names, specs, strict=True)]


def _read(reader: Checkpoint, name: str, spec: str) -> np.ndarray:
    if not spec:
        return reader.read(name)
    shape, extents = parse_slice_spec(spec)
    stored = reader.shape(name).as_list()
    if stored != shape:
        raise invalid(f"Shape in shape_and_slice spec {shape} does not match the shape in the save file: {stored}")
    return reader.read_slice(name, extents)


@kernel("ShardedFilename")
def _(node: KernelNode) -> Function:
    return lambda base, shard, count: string_scalar(
        f"{as_text(scalar(base, 'basename'))}-{scalar(shard, 'shard'):05d}-of-{scalar(count, 'num_shards'):05d}"
    )


@kernel("ShardedFilespec")
def _(node: KernelNode) -> Function:
    return lambda base, count: string_scalar(
        f"{as_text(scalar(base, 'basename'))}-?????-of-{scalar(count, 'num_shards'):05d}"
    )


# -- whole files


@kernel("ReadFile", stateful=True)
def _(node: KernelNode) -> Function:
    def read_file(step: StepContext, filename: np.ndarray) -> np.ndarray:
        path = _text(filename)
        with file_errors(path), filesystems.open(path, "rb") as file:
            return string_scalar(read_within_memory(file, path))

    return read_file


@kernel("WriteFile", stateful=True)
def _(node: KernelNode) -> Function:
    def write_file(step: StepContext, filename: np.ndarray, contents: np.ndarray) -> None:
        path = _text(filename)
        with file_errors(path):
            filesystems.makedirs(filesystems.dirname(path) or ".")
            with filesystems.open(path, "wb") as file:
                file.write(contents.item())

    return write_file


@kernel("MatchingFiles", stateful=True)
def _(node: KernelNode) -> Function:
    def matching_files(step: StepContext, pattern: np.ndarray) -> np.ndarray:
        found = [path for each in _texts(pattern) for path in filesystems.glob(each)]
        return np.array([path.encode() for path in sorted(found)], object)

    return matching_files


# -- serialized tensors


@kernel("SerializeTensor")
def _(node: KernelNode) -> Function:
    dtype = node.attr("T")
    return lambda tensor: string_scalar(codec.array_to_proto(tensor, dtype).SerializeToString())


@kernel("ParseTensor")
def _(node: KernelNode) -> Function:
    wanted = node.attr("out_type")

    def parse_tensor(serialized: np.ndarray) -> np.ndarray:
        value = codec.decode_tensor(scalar(serialized, "Expected `serialized` to be a scalar: it"))
        dtype = dtypes.string if value.dtype == object else dtypes.as_dtype(value.dtype)
        if dtype != wanted:
            raise invalid(f"Type mismatch between parsed tensor ({dtype.name}) and dtype ({wanted.name})")
        return value

    return parse_tensor


# -- Python functions

_CLASS_OF_EXCEPTION: tuple[tuple[type[BaseException], type[errors.OpError]], ...] = (
    (ValueError, errors.InvalidArgumentError),
    (TypeError, errors.InvalidArgumentError),
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
)


@kernel("PyFunc", stateful=True)
def _(node: KernelNode) -> Function:
    call = _caller(node)
    return lambda step, *inputs: call(*inputs)


@kernel("PyFuncStateless")
def _(node: KernelNode) -> Function:
    return _caller(node)


def _caller(node: KernelNode) -> Function:
    token, types = _text(node.attr("token")), list(node.attr("Tout"))

    def call(*inputs: Array) -> Outputs:
        reader_thread.yield_reader()  # it may even run a session
        function = py_functions.find(token)
        if function is None:
            raise errors.InternalError.of(
                f"callback {token} is not found: the function was made in another process, or its graph is gone",
            )
        try:
            returned = function(*map(_argument, inputs))
        except errors.OpError:
            raise
        except Exception as error:
            kind = next((kind for each, kind in _CLASS_OF_EXCEPTION if isinstance(error, each)), errors.UnknownError)
            raise kind.of(f"{type(error).__name__}: {error}") from error
        values = [] if not types else list(returned) if isinstance(returned, (list, tuple)) else [returned]
        if len(values) != len(types):
            raise invalid(f"{token} returns {len(values)} values, but expects to see {len(types)} values.")
        arrays = [_returned(token, i, value, dtype) for i, (value, dtype) in enumerate(zip(values, types, strict=True))]
        return arrays[0] if len(arrays) == 1 else arrays

    return call


def _argument(value: Array) -> Array:
    """What the function is given for a tensor: bytes or a numpy scalar for a scalar, else an array of its own."""
    if not isinstance(value, np.ndarray):
        return value
    return np.array(value) if value.ndim else value[()]


def _returned(token: str, i: int, value: Array, dtype: dtypes.DType) -> np.ndarray:
    """A returned value as an array of the declared dtype; Python numbers take that dtype, arrays must have it."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "SUO":
        found = dtypes.as_dtype(value.dtype)
        if found != dtype:
            got, wanted = dtypes.runtime_name(found), dtypes.runtime_name(dtype)
            raise invalid(f"{i}-th value returned by {token} is {got}, but expects {wanted}")
        return np.asarray(value)
    try:
        return codec.values_to_array(value, dtype)[0]
    except (TypeError, ValueError) as error:
        raise invalid(f"{i}-th value returned by {token}: {error}") from None
