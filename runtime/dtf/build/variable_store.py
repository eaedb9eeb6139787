"""The store of `tf.get_variable`: one variable for each name, made or found, whole or in parts.

Owns the checks of a request and the making of parts; `variable_scope` has the scopes that add names and defaults.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import add_to_collection, colocate_with, init_scope, name_scope
from dtf.build.graph import GraphKeys
from dtf.build.partitioned import PartitionedVariable
from dtf.build.save_slice_info import SaveSliceInfo
from dtf.build.variables import Variable, VariableAggregation, VariableSynchronization
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype, string
from dtf.wire.tensor_shape import TensorShape

__all__ = ["AUTO_REUSE"]


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


#: Use the variable if it exists, else make it.
AUTO_REUSE = _ReuseMode.AUTO_REUSE


class VariableStore:
    """The variables of one graph that `get_variable` has made, by full name."""

    def __init__(self) -> None:
        self._variables: dict[str, Variable] = {}
        self._partitioned: dict[str, PartitionedVariable] = {}

    @property
    def _vars(self) -> dict[str, Variable]:
        return self._variables

    @property
    def _partitioned_vars(self) -> dict[str, PartitionedVariable]:
        return self._partitioned

    def get_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Any = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        custom_getter: Any = None,
    ) -> Any:
        """The true getter, which custom getters call; see `tf.get_variable`."""
        make = functools.partial(
            Variable,
            trainable=synchronization is not VariableSynchronization.ON_READ if trainable is None else trainable,
            collections=collections,
            caching_device=caching_device,
            validate_shape=validate_shape,
            constraint=constraint,
            use_resource=use_resource,
            synchronization=synchronization,
            aggregation=aggregation,
        )
        request = _Request(
            name, None if shape is None else TensorShape(shape), as_dtype(dtype), initializer, regularizer, reuse,
            validate_shape, make,
        )  # fmt: skip
        if partitioner is not None and (shape is None or TensorShape(shape).ndims != 0):
            return self._get_partitioned(request, partitioner)
        if name in self._partitioned:
            request.check_found(self._partitioned[name])
            return self._partitioned[name]
        if f"{name}/part_0" in self._variables:
            raise ValueError(
                f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return self._get_single(request)

    def _get_single(self, request: _Request) -> Variable:
        found = self._variables.get(request.name)
        if found is not None:
            request.check_found(found)
            return found
        if request.reuse is True:
            raise ValueError(
                f"Variable {request.name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=tf.AUTO_REUSE in VarScope?"
            )
        initial_value, dtype = request.initial_value()
        variable = request.make(initial_value=initial_value, name=request.name, dtype=dtype)
        self._variables[request.name] = variable
        if request.regularizer is not None:
            self._regularize(variable, request)
        return variable

    def _regularize(self, variable: Any, request: _Request) -> None:
        with colocate_with(variable), name_scope(request.name + "/Regularizer/"), init_scope():
            loss = request.regularizer(variable)
        if loss is not None:
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def _get_partitioned(self, request: _Request, partitioner: Any) -> PartitionedVariable:
        name = request.name
        if name in self._variables:
            raise ValueError(
                f"A partitioner was provided, but an unpartitioned version of the variable was found: {name}."
            )
        if not callable(partitioner):
            raise ValueError(f"The partitioner of {name} is not a function of a shape and a dtype: {partitioner!r}")
        found = self._partitioned.get(name)
        if found is not None:
            request.check_found(found)
            partitions = _checked_partitions(name, partitioner(shape=found.shape, dtype=found.dtype), found.shape)
            if partitions != found._get_partitions():
                raise ValueError(
                    f"Trying to reuse partitioned variable {name}, but its partitioner gives {partitions}, and it has "
                    f"{found._get_partitions()}."
                )
            return found
        if request.reuse is True:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
            )
        shape = request.full_shape()
        partitions = _checked_partitions(name, partitioner(shape=shape, dtype=request.dtype), shape)
        axis = next((axis for axis, count in enumerate(partitions) if count > 1), 0)
        sizes = [int(size) for size in shape.as_list() if size is not None]
        parts = []
        for index, (offset, length) in enumerate(_slices(sizes[axis], partitions[axis])):
            offsets = [0] * len(sizes)
            offsets[axis] = offset
            part_shape = list(sizes)
            part_shape[axis] = length
            part = self._get_single(request.part(index, part_shape, offsets, sizes))
            part._set_save_slice_info(SaveSliceInfo(name, sizes, offsets, part_shape))
            parts.append(part)
        whole = PartitionedVariable(name, shape, request.dtype, parts, partitions)
        self._partitioned[name] = whole
        return whole


@dataclass(frozen=True)
class _Request:
    """One call of the getter, for a variable or for a part of one."""

    name: str
    shape: TensorShape | None
    dtype: DType
    initializer: Any
    regularizer: Any
    reuse: Any
    validate_shape: bool
    make: Callable[..., Variable]
    partition_info: Any = None

    def check_found(self, found: Any) -> None:
        """Raises ValueError unless the variable that exists may be taken."""
        if self.reuse is False:
            raise ValueError(
                f"Variable {self.name} already exists, disallowed. "
                "Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?"
            )
        if self.shape is not None and not self.shape.is_compatible_with(found.shape):
            raise ValueError(
                f"Trying to share variable {self.name}, but specified shape {self.shape} and found shape {found.shape}."
            )
        if not self.dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {self.name}, but specified dtype {self.dtype.name} and found dtype "
                f"{found.dtype.name}."
            )

    def full_shape(self) -> TensorShape:
        """The shape of the whole, which has to be known."""
        shape = self.shape
        if self.initializer is not None and not callable(self.initializer):
            shape = convert_to_tensor(self.initializer).shape
        if shape is None or not shape.is_fully_defined():
            raise ValueError(
                f"Shape of a new partitioned variable ({self.name}) must be fully defined, but instead was {shape}."
            )
        return shape

    def part(self, index: int, shape: list[int], offset: list[int], full_shape: list[int]) -> _Request:
        """The request for one part of this variable."""
        from dtf.build.initializers import PartitionInfo

        initializer = self.initializer
        if initializer is not None and not callable(initializer):
            where = tuple(slice(start, start + length) for start, length in zip(offset, shape, strict=True))
            value = constant_value(convert_to_tensor(initializer))
            initializer = convert_to_tensor(initializer)[where] if value is None else value[where]
        return replace(
            self,
            name=f"{self.name}/part_{index}",
            shape=TensorShape(shape),
            initializer=initializer,
            partition_info=PartitionInfo(full_shape, offset),
        )

    def initial_value(self) -> tuple[Any, DType | None]:
        """The initial value (or a function that makes it), and the dtype to convert it to."""
        initializer = self.initializer
        if initializer is not None and not callable(initializer):
            if self.shape is not None and self.partition_info is None:
                raise ValueError("If initializer is a constant, do not specify shape.")
            return initializer, None
        if initializer is None:
            initializer = self._default_initializer()
        if inspect.isclass(initializer):
            initializer = initializer()
        shape = self.shape
        if shape is None and not _required_arguments(initializer):
            return initializer, self.dtype.base_dtype
        if shape is None or (self.validate_shape and not shape.is_fully_defined()):
            raise ValueError(
                f"Shape of a new variable ({self.name}) must be fully defined, but instead was "
                f"{'<unknown>' if shape is None else shape}."
            )
        sizes = shape.as_list()
        arguments: dict[str, Any] = {"dtype": self.dtype.base_dtype}
        if _takes(initializer, "partition_info") and (
            self.partition_info is not None or _requires(initializer, "partition_info")
        ):
            arguments["partition_info"] = self.partition_info
        return lambda: initializer(sizes, **arguments), self.dtype.base_dtype

    def _default_initializer(self) -> Any:
        from dtf.build.initializers import glorot_uniform_initializer, zeros_initializer

        if self.dtype.is_floating:
            return glorot_uniform_initializer()
        if self.dtype.is_integer or self.dtype.is_bool:
            return zeros_initializer()
        if self.dtype.base_dtype == string:
            return zeros_initializer()
        raise ValueError(f"An initializer for variable {self.name} of {self.dtype.base_dtype} is required")


def _takes(function: Callable[..., Any], argument: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _required_arguments(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _requires(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has to be given an argument; its other required ones do not matter."""
    try:
        parameter = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.default is parameter.empty


def _checked_partitions(name: str, partitions: Any, shape: TensorShape) -> list[int]:
    if not isinstance(partitions, Sequence):
        raise ValueError(f"Partitioner must return a sequence, but saw: {partitions}")
    partitions = [int(count) for count in partitions]
    if len(partitions) != shape.ndims:
        raise ValueError(
            f"Partitioner returned a partition list that does not match the Variable's rank: {partitions} vs. {shape}"
        )
    if any(count < 1 for count in partitions):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {partitions}")
    if sum(count > 1 for count in partitions) > 1:
        raise ValueError(f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {partitions}")
    if any(count > max(size or 1, 1) for count, size in zip(partitions, shape.as_list(), strict=True)):
        raise ValueError(f"{name} of shape {shape} is too small for the parts that its partitioner gives: {partitions}")
    return partitions


def _slices(size: int, parts: int) -> Iterator[tuple[int, int]]:
    """(offset, length) of each part; the first ones are longer where the size does not divide evenly."""
    offset = 0
    for index in range(parts):
        length = size // parts + (index < size % parts)
        yield offset, length
        offset += length
