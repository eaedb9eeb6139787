"""What a Saver saves: the parts of each variable and their names in a checkpoint.

Owns the reading of a Saver's `var_list` and how each kind of variable is read and restored in the graph. `saver`
builds the save and restore ops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import device, get_default_graph
from dtf.build.graph import GraphKeys, Tensor
from dtf.build.saveable_object import SaveableObject, SaveSpec
from dtf.build.variable_collections import global_variables
from dtf.build.variables import Variable
from dtf.wire.tensor_shape import TensorShape


def all_saveable_objects(scope: str | None = None) -> list[Any]:
    """The objects that a Saver saves by default: global variables and the SAVEABLE_OBJECTS
    collection."""
    graph = get_default_graph()
    return [*global_variables(scope), *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS, scope)]


class VariableSaveable(SaveableObject):
    """A variable, held by reference or by handle, or one part of a partitioned variable."""

    def __init__(self, variable: Any, slice_spec: str, name: str) -> None:
        self._is_resource = not isinstance(variable, Tensor) and not variable.dtype._is_ref_dtype
        self._variable = variable
        if self._is_resource:
            spec = SaveSpec(self._read, slice_spec, name, dtype=variable.dtype, device=variable.device)
        else:
            spec = SaveSpec(variable if isinstance(variable, Tensor) else variable._ref(), slice_spec, name)
        super().__init__(variable, [spec], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Tensor] | None) -> Any:
        value = restored_tensors[0]
        shape: TensorShape = self._variable.shape
        if restored_shapes is not None:
            value = apply_op("Reshape", None, tensor=value, shape=restored_shapes[0])
        if not self._is_resource:
            validate = restored_shapes is None and shape.is_fully_defined()
            reference = self.specs[0].tensor
            return apply_op("Assign", None, ref=reference, value=value, validate_shape=validate).op
        with device(self._variable.device or None):
            value = apply_op("Identity", None, input=value)
            value.set_shape(shape)
            return apply_op(
                "AssignVariableOp",
                None,
                resource=self._variable.handle,
                value=value,
                validate_shape=shape.is_fully_defined(),
            )

    def _read(self) -> Tensor:
        with device(self.device or None), device("/cpu:0"):
            return apply_op("Identity", None, input=self._variable.read_value())


def saveables_of(var_list: Any) -> list[SaveableObject]:
    """The saveables of a Saver's `var_list`, ordered by name.

    Args:
      var_list: variables, PartitionedVariables, lists of the parts of one, mutable tables, or SaveableObjects; or a
        dict keyed by their names in the checkpoint.

    Raises:
      ValueError: two have one name, one stands in the list twice, or a list is not of parts of one variable.
      TypeError: something cannot be saved.
    """
    named = var_list if isinstance(var_list, dict) else _names_of(var_list)
    saveables: list[SaveableObject] = []
    for name, value in sorted(named.items(), key=lambda item: item[0]):
        if not isinstance(name, str):
            raise TypeError(f"names_to_saveables must be a dict mapping string names to variables. Not: {name!r}")
        saveables.extend(_saveables_for(name, value))
    seen: set[int] = set()
    for saveable in saveables:
        element = saveable.op if isinstance(saveable.op, Tensor) else getattr(saveable.op, "op", saveable.op)
        if id(element) in seen:
            raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
        seen.add(id(element))
    return saveables


def _names_of(var_list: Iterable[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if name in named:
            raise ValueError(f"At least two variables have the same name: {name}")
        named[name] = value

    parts: dict[str, list[Any]] = {}
    for value in var_list:
        if isinstance(value, SaveableObject):
            named[value.name] = value
        elif _is_partitioned(value) or _is_table(value):
            add(value.name, value)
        elif isinstance(value, list | tuple):
            parts.setdefault(value[0]._save_slice_info.full_name, []).extend(value)
        elif isinstance(value, Variable) and value._save_slice_info is not None:
            parts.setdefault(value._save_slice_info.full_name or "", []).append(value)
        elif isinstance(value, Variable):
            add(value._shared_name, value)
        else:
            add(_variable_tensor(value).op.name, value)
    for name, values in parts.items():
        add(name, values)
    return named


def _saveables_for(name: str, value: Any) -> list[SaveableObject]:
    if isinstance(value, SaveableObject):
        return [value]
    if _is_table(value):
        return [value._saveable(name)]
    if _is_partitioned(value):
        value = list(value)
    elif isinstance(value, Variable) and value._save_slice_info is not None:
        value = [value]
    if not isinstance(value, list | tuple):
        if not isinstance(value, Variable):
            value = _variable_tensor(value)
        return [VariableSaveable(value, "", name)]
    found: list[SaveableObject] = []
    full_name = None
    for part in value:
        if not isinstance(part, Variable):
            raise ValueError(f"Slices must all be Variables: {part}")
        info = part._save_slice_info
        if info is None:
            raise ValueError(f"Slices must all be slices: {part}")
        if full_name is not None and info.full_name != full_name:
            raise ValueError(f"Slices must all be from the same tensor: {full_name} != {info.full_name}")
        full_name = info.full_name
        found.append(VariableSaveable(part, info.spec, name))
    return found


def saveable_objects_for_op(op: Any, name: str) -> list[SaveableObject]:
    """The saveables of one value of a Saver's list, with its name in the checkpoint."""
    return _saveables_for(name, op)


def _is_partitioned(value: Any) -> bool:
    # Checks behaviour, not the class, whose module need not be loaded.
    return type(value).__name__ == "PartitionedVariable"


def _is_table(value: Any) -> bool:
    return hasattr(value, "resource_handle") and hasattr(value, "_saveable")


def _variable_tensor(value: Any) -> Tensor:
    """The reference of an object that is not a Variable of this package but represents one."""
    tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, as_ref=True)
    if not isinstance(tensor, Tensor) or not tensor.dtype._is_ref_dtype:
        raise TypeError(f"Variable to save is not a Variable: {value}")
    return tensor
