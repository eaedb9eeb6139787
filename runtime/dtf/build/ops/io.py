"""Ops that touch files, serialized tensors and Python functions: their public functions and static shapes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.default_graph import get_default_graph
from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unknown
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes, py_functions
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "matching_files",
    "merge_v2_checkpoints",
    "numpy_function",
    "parse_tensor",
    "py_func",
    "read_file",
    "restore_v2",
    "save_v2",
    "serialize_tensor",
    "sharded_filename",
    "sharded_filespec",
    "write_file",
]


def save_v2(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, tensors: Sequence[Any], name: str | None = None
) -> Operation:
    """Writes tensors as a checkpoint V2 under `prefix`.

    tensor_names, shape_and_slices: string vectors, one entry per tensor. A slice is "" for a whole tensor, else "full
    shape, then start,length per dimension" such as "4 3 0,2:-".
    """
    return apply_op(
        "SaveV2",
        name,
        prefix=prefix,
        tensor_names=tensor_names,
        shape_and_slices=shape_and_slices,
        tensors=list(tensors),
    )


def restore_v2(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, dtypes: Sequence[Any], name: str | None = None
) -> list[Tensor]:
    """Reads tensors of a checkpoint V2. Running it: NotFoundError for a missing file or name."""
    return list(
        apply_op(
            "RestoreV2",
            name,
            prefix=prefix,
            tensor_names=tensor_names,
            shape_and_slices=shape_and_slices,
            dtypes=list(dtypes),
        )
    )


def merge_v2_checkpoints(
    checkpoint_prefixes: Any, destination_prefix: Any, delete_old_dirs: bool = True, name: str | None = None
) -> Operation:
    """Makes one checkpoint of several shards."""
    return apply_op(
        "MergeV2Checkpoints",
        name,
        checkpoint_prefixes=checkpoint_prefixes,
        destination_prefix=destination_prefix,
        delete_old_dirs=delete_old_dirs,
    )


def sharded_filename(basename: Any, shard: Any, num_shards: Any, name: str | None = None) -> Tensor:
    """ "basename-00001-of-00004"."""
    return apply_op("ShardedFilename", name, basename=basename, shard=shard, num_shards=num_shards)


def sharded_filespec(basename: Any, num_shards: Any, name: str | None = None) -> Tensor:
    """The pattern of all shards: "basename-?????-of-00004"."""
    return apply_op("ShardedFilespec", name, basename=basename, num_shards=num_shards)


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The contents of a file of the task that runs it.

    Args:
      filename: a string scalar, a path on the task that runs the operation.
      name: the name of the operation.

    Returns:
      A string scalar.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/read_file
    """
    return apply_op("ReadFile", name, filename=filename)


def write_file(filename: Any, contents: TensorLike, name: str | None = None) -> Operation:
    """Writes a whole file; missing folders are made."""
    return apply_op("WriteFile", name, filename=filename, contents=contents)


def matching_files(pattern: TensorLike, name: str | None = None) -> Tensor:
    """The sorted paths that match a pattern (or any of a vector of them)."""
    return apply_op("MatchingFiles", name, pattern=pattern)


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Tensor:
    """A tensor as a serialized TensorProto."""
    return apply_op("SerializeTensor", name, tensor=tensor)


def parse_tensor(serialized: TensorLike, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """The inverse of `serialize_tensor`."""
    return apply_op("ParseTensor", name, serialized=serialized, out_type=dtypes.as_dtype(out_type))


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """Calls a Python function with the values of `inp` as arrays; its results must have the dtypes `Tout`.

    The op must run in this process. A single dtype gives a Tensor, a list of them a list.

    Args:
      func: takes arrays, one for each of `inp`, and returns arrays of the dtypes `Tout`.
      inp: a list of tensors.
      Tout: a dtype or a list of dtypes.
      stateful: False if equal inputs always give equal results.
      name: the name of the operation.

    Returns:
      A Tensor, or a list of Tensors if `Tout` is a list.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/py_func
    """
    is_list = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(each) for each in (Tout if is_list else [Tout])]
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func)}")
    token = py_functions.register(func, get_default_graph().outermost)
    made = apply_op("PyFunc" if stateful else "PyFuncStateless", name, input=list(inp), token=token, Tout=types)
    if isinstance(made, Operation):
        return made
    outputs = list(made)
    return outputs if is_list else outputs[0]


numpy_function = py_func


# -- shape rules

shape_rule("ShardedFilename", "ShardedFilespec", "ReadFile", "SerializeTensor")(scalar)
shape_rule("Save", "SaveIncrement", "SaveSlices", "SaveV2", "MergeV2Checkpoints", "WriteFile")(no_outputs)
shape_rule("Restore", "RestoreSlice", "RestoreV2", "ParseTensor", "PyFunc", "PyFuncStateless")(unknown)


@shape_rule("GenerateVocabRemapping")
def _(op):
    return [TensorShape([op.get_attr("num_new_vocab")]), TensorShape([])]


@shape_rule("LoadAndRemapMatrix")
def _(op):
    return [TensorShape([op.get_attr("num_rows"), op.get_attr("num_cols")])]


@shape_rule("MatchingFiles")
def _(op):
    return [TensorShape([None])]
