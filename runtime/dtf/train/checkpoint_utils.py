"""Looking into checkpoints, and initialising variables from them.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/load_checkpoint
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.default_graph import control_dependencies, device, name_scope
from dtf.build.variable_collections import global_variables
from dtf.build.variables import Variable
from dtf.train.checkpoint_management import latest_checkpoint
from dtf.train.saveable import VariableSaveable
from dtf.wire import filesystems
from dtf.wire.checkpoint_v1 import open_checkpoint
from dtf.wire.dtypes import DType
from dtf.wire.pb import types_pb2


class CheckpointReader:
    """Reads the names, shapes, dtypes and values of a checkpoint.

    Args:
      filepattern: its prefix.

    Raises:
      NotFoundError: the checkpoint does not exist; or, raised by the methods, the tensor is not in
          it.
      DataLossError: a file is damaged.
    """

    def __init__(self, filepattern: str) -> None:
        self._reader = open_checkpoint(os.fsdecode(filepattern))

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of that name."""
        return self._reader.has(tensor_str)

    def get_tensor(self, tensor_str: str) -> Any:
        """A tensor; the parts of a partitioned variable are put together. A scalar is given as numpy's, or as bytes."""
        return self._reader.read(tensor_str)[()]

    def get_variable_to_shape_map(self) -> dict[str, list[Any]]:
        """The shape of each tensor."""
        return {name: self._reader.shape(name).as_list() for name in self._reader.keys()}  # noqa: SIM118

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtype of each tensor."""
        return {name: self._reader.dtype(name) for name in self._reader.keys()}  # noqa: SIM118

    def debug_string(self) -> bytes:
        """One line per tensor: name, dtype, shape."""
        lines = (
            f"{name} ({types_pb2.DataType.Name(self._reader.dtype(name).as_datatype_enum)}) "
            f"[{','.join(map(str, self._reader.shape(name).as_list()))}]\n"
            for name in self._reader.keys()  # noqa: SIM118
        )
        return "".join(lines).encode()


NewCheckpointReader = CheckpointReader


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """The reader of a checkpoint, or of the latest one in a folder.

    Raises:
      ValueError: the folder contains no checkpoint.
      NotFoundError: there is no checkpoint of that prefix.
    """
    return CheckpointReader(checkpoint_prefix(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of one variable; `name` may end in ":0".

    Raises:
      ValueError, NotFoundError: as `load_checkpoint`; or the checkpoint does not contain the
          variable.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """(name, shape) of all variables, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Mapping[str, Any]) -> None:
    """Makes the initializers of existing variables read their values from a checkpoint.

    Args:
      ckpt_dir_or_file: the checkpoint, or a folder whose latest is taken.
      assignment_map: maps names in the checkpoint to variables, lists of parts of one variable, or names of
        variables; or maps scopes in the checkpoint, ending in "/", to scopes.

    Raises:
      ValueError: a variable is missing on one side, or has another shape.
    """
    prefix = checkpoint_prefix(ckpt_dir_or_file)
    reader = CheckpointReader(prefix)
    shapes = reader.get_variable_to_shape_map()
    for stored, here in assignment_map.items():
        if stored.endswith("/") or (isinstance(here, str) and here.endswith("/")):
            _init_scope(prefix, shapes, stored, here)
        else:
            _init_variable(prefix, shapes, stored, _variables_named(here) if isinstance(here, str) else here)


def checkpoint_prefix(ckpt_dir_or_file: str) -> str:
    """The prefix of a checkpoint, or of the latest one in a folder.

    Raises:
      ValueError: the folder contains no checkpoint.
    """
    path = os.fsdecode(ckpt_dir_or_file)
    if not filesystems.isdir(path):
        return path
    latest = latest_checkpoint(path)
    if latest is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
    return latest


def _init_scope(prefix: str, shapes: dict[str, list[int]], stored: str, here: Any) -> None:
    stored_scope = "" if stored == "/" else stored.rstrip("/") + "/"
    scope = "" if here == "/" else here.rstrip("/") + "/"
    found: dict[str, list[Any]] = {}
    for variable in global_variables():
        name = _checkpoint_name(variable)
        if name.startswith(scope):
            found.setdefault(name, []).append(variable)
    if not found:
        raise ValueError(f"{scope} doesn't contain any variables to initialise (at least one is needed)")
    for name, variables in found.items():
        source = stored_scope + name.removeprefix(scope)
        if source not in shapes:
            raise ValueError(f"Tensor {name} ({source} in {prefix}) is not found in {prefix} checkpoint")
        _init_variable(prefix, shapes, source, variables)


def _variables_named(name: str) -> list[Any]:
    found = [variable for variable in global_variables() if _checkpoint_name(variable) == name]
    if not found:
        raise ValueError(f"{name} is not a variable of this graph")
    return found


def _checkpoint_name(variable: Any) -> str:
    info = variable._get_save_slice_info()
    return info.full_name if info is not None else variable._shared_name


def _init_variable(prefix: str, shapes: dict[str, list[int]], stored: str, target: Any) -> None:
    if stored not in shapes:
        raise ValueError(f'Tensor "{stored}" is not found in {prefix} checkpoint: {sorted(shapes)}')
    for variable in [target] if isinstance(target, Variable) else list(target):
        info = variable._get_save_slice_info()
        shape = info.full_shape if info is not None else variable.shape.as_list()
        if list(shape) != list(shapes[stored]):
            raise ValueError(
                f"Shape of variable {variable.name} ({list(shape)}) doesn't match with shape of tensor "
                f"{stored} ({shapes[stored]}) from checkpoint reader."
            )
        with device(variable.device or None), device("/cpu:0"), control_dependencies(None):
            with name_scope(None, "checkpoint_initializer"):
                (value,) = apply_op(
                    "RestoreV2",
                    None,
                    prefix=prefix,
                    tensor_names=[stored],
                    shape_and_slices=["" if info is None else info.spec],
                    dtypes=[variable.dtype.base_dtype],
                )
            value.set_shape(variable.shape)
            variable._initializer = VariableSaveable(variable, "", stored).restore([value], None)
            variable._initial_value = value
