"""Kernels of variables: making, reading, assigning, and updating them in part.

Own the checks and the arithmetic; the array, its lock and copy-on-write are `resources.Variable`'s. What optimizers
do to variables is in `training`. Every update holds the variable's lock, so `use_locking` makes no difference.
"""

from __future__ import annotations

import math

import numpy as np

from dtf.run.devices.backends import storage_of
from dtf.run.executor.step import StepContext
from dtf.run.kernels import DEFAULT, Function, KernelNode, kernel
from dtf.run.kernels.arguments import check_indices, room, shape_of, shape_text
from dtf.run.kernels.gathering import rows_of_nd_indices, scatter_rows
from dtf.run.state.resources import DEFAULT_CONTAINER, ResourceHandle, Variable, handle_of
from dtf.run.value_types import Array, Shape
from dtf.wire import errors
from dtf.wire.slicing import slice_index
from dtf.wire.tensor_shape import TensorShape

_TEMPORARY = "_temporary"
_RESOURCE_TYPE_NAME = "tensorflow::Var"


_SCATTER = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.true_divide,
    "Min": np.minimum,
    "Max": np.maximum,
    "Update": None,
}


def read_resource(step: StepContext, handle: ResourceHandle) -> Variable:
    """The initialised variable that a handle names, for the kernels that need one.

    Raises:
      FailedPreconditionError: it does not exist or has no value.
      InvalidArgumentError: the value is not a handle.
    """
    handle = handle_of(handle)
    variable = step.resources.lookup(handle.container, handle.name, Variable)
    if variable is None or not variable.is_initialized:
        container = handle.container or DEFAULT_CONTAINER
        raise errors.FailedPreconditionError.of(
            f"Error while reading resource variable {handle.name} from Container: {container}. This could mean that "
            f"the variable was uninitialized. Not found: Resource {container}/{handle.name}/Variable does not exist.",
        )
    return variable


# -- reference variables


@kernel("VariableV2", "Variable", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    container, name, dtype, shape = _container(node), _shared_name(node), node.attr("dtype"), _dims(node.attr("shape"))
    if node.op == "Variable" and shape == ():
        shape = None
    storage = storage_of(node.device)

    def create() -> Variable:
        return Variable(name, dtype, shape, storage)

    def variable(step: StepContext) -> Variable:
        found = step.resources.lookup_or_create(container, name, Variable, create)
        if found.dtype is not dtype and found.dtype != dtype:
            if not found.is_initialized:
                found.dtype, found.declared_shape = dtype, shape
                return found
            raise errors.InvalidArgumentError.of(
                f"Variable {name} holds {found.dtype.name} and is wanted as {dtype.name} by node {node.name}",
            )
        if found.declared_shape != shape:
            _check_declared(found, shape, node.name)
        return found

    return variable


@kernel("TemporaryVariable", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    name, dtype, shape = node.attr("var_name").decode() or node.name, node.attr("dtype"), _dims(node.attr("shape"))
    storage = storage_of(node.device)

    def temporary(step: StepContext) -> Variable:
        variable = Variable(name, dtype, shape, storage)
        sizes = tuple(size or 0 for size in shape or ())
        room(sizes, dtype.as_numpy_dtype)
        variable.allocate(sizes)
        step.step_resources.create(_TEMPORARY, name, Variable, variable)
        return variable

    return temporary


@kernel("DestroyTemporaryVariable", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    name = node.attr("var_name").decode()

    def destroy(step: StepContext, variable: Variable) -> np.ndarray:
        value = variable.read()
        step.step_resources.delete(_TEMPORARY, name, Variable)
        return value

    return destroy


@kernel("IsVariableInitialized", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    return lambda variable: np.bool_(variable.is_initialized)


@kernel("Assign", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    validate_shape, dtype = node.attr("validate_shape"), np.dtype(node.attr("T").as_numpy_dtype)
    is_in_host_memory = storage_of(node.device) is None

    def check(shape: Shape | None, wanted: tuple[int, ...]) -> None:
        if not _fits(shape, wanted):
            raise errors.InvalidArgumentError.of(
                "Assign requires shapes of both tensors to match. lhs shape= "
                f"{shape_text(shape or ())} rhs shape= {shape_text(wanted)}",
            )

    def assign(variable: Variable, value: Array) -> Variable:
        if (type(value) is not np.ndarray or value.dtype is not dtype) and is_in_host_memory:
            value = _as_dtype(value, dtype)
        variable.assign(value, check if validate_shape else None)
        return variable

    return assign


@kernel("AssignAdd", "AssignSub")
def _(node: KernelNode) -> Function:
    function = np.add if node.op == "AssignAdd" else np.subtract

    def update(variable: Variable, value: np.ndarray) -> Variable:
        with variable.lock:
            _check_same_size(variable, value)
            variable.update(function, value)
        return variable

    return update


@kernel("CountUpTo")
def _(node: KernelNode) -> Function:
    return _counter(node)


@kernel("ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax")
def _(node: KernelNode) -> Function:
    function = _SCATTER[node.op.removeprefix("Scatter")]

    def scatter(variable: Variable, indices: np.ndarray, updates: np.ndarray) -> Variable:
        with variable.lock:
            _check_updates(variable.read().shape, np.asarray(indices), np.asarray(updates))
            _scatter(variable, indices, updates, function)
        return variable

    return scatter


@kernel("ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub", "ScatterNdMin", "ScatterNdMax")
def _(node: KernelNode) -> Function:
    function = _SCATTER[node.op.removeprefix("ScatterNd")]

    def scatter(variable: Variable, indices: np.ndarray, updates: np.ndarray) -> Variable:
        with variable.lock:
            _scatter_nd(variable, indices, updates, function)
        return variable

    return scatter


# -- resource variables


@kernel("VarHandleOp", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    container, name = _container(node) or DEFAULT_CONTAINER, _shared_name(node)
    known = ((node.attr("dtype"), _dims(node.attr("shape"))),)
    handles: dict[str, ResourceHandle] = {}
    accelerator = node.device if storage_of(node.device) is not None else None

    def handle(step: StepContext) -> ResourceHandle:
        made = handles.get(step.device_name)
        if made is None:
            made = handles[step.device_name] = ResourceHandle(
                accelerator or step.device_name, container, name, _RESOURCE_TYPE_NAME, known
            )
        return made

    return handle


@kernel("_VarHandlesOp", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    containers, names = node.attr("containers"), node.attr("shared_names")
    kinds = zip(node.attr("dtypes"), (_dims(shape) for shape in node.attr("shapes")), strict=True)
    parts = [
        (container.decode() or DEFAULT_CONTAINER, name.decode(), _RESOURCE_TYPE_NAME, (kind,))
        for container, name, kind in zip(containers, names, kinds, strict=True)
    ]
    accelerator = node.device if storage_of(node.device) is not None else None
    return lambda step: [ResourceHandle(accelerator or step.device_name, *part) for part in parts]


@kernel("ReadVariableOp", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    dtype = node.attr("dtype")

    def read(step: StepContext, handle: ResourceHandle) -> Array:
        variable = read_resource(step, handle)
        if variable.dtype != dtype:
            raise errors.InvalidArgumentError.of(
                f"Trying to read variable with wrong dtype. Expected {dtype.name} got {variable.dtype.name}",
            )
        value = variable.read()
        if handle.dtypes_and_shapes and variable.declared_shape != handle.dtypes_and_shapes[0][1]:
            _check_declared(variable, handle.dtypes_and_shapes[0][1], node.name)
        return value

    return read


@kernel("_ReadVariablesOp", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    return lambda step, *handles: [read_resource(step, handle).read() for handle in handles]


@kernel("AssignVariableOp", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    dtype, validate_shape = node.attr("dtype"), node.attr("validate_shape")
    numpy_dtype = dtype.as_numpy_dtype
    storage = storage_of(node.device)

    def assign(step: StepContext, handle: ResourceHandle, value: Array) -> None:
        if storage is None:
            value = _as_dtype(value, numpy_dtype)
        handle = handle_of(handle)
        shape = handle.dtypes_and_shapes[0][1] if handle.dtypes_and_shapes else None
        variable = step.resources.lookup_or_create(
            handle.container, handle.name, Variable, lambda: Variable(handle.name, dtype, shape, storage)
        )
        with variable.lock:
            if variable.dtype != dtype:
                raise errors.InvalidArgumentError.of(
                    f"Trying to assign variable with wrong dtype. Expected {variable.dtype.name} got {dtype.name}",
                )
            if validate_shape and not _fits(variable.shape, value.shape):
                raise errors.InvalidArgumentError.of(
                    "Trying to assign to variable with tensor with wrong shape. Expected "
                    f"{shape_text(variable.shape or ())} got {shape_text(value.shape)}",
                )
            variable.assign(value)

    return assign


@kernel("AssignAddVariableOp", "AssignSubVariableOp", stateful=True)
def _(node: KernelNode) -> Function:
    function = np.add if node.op == "AssignAddVariableOp" else np.subtract

    def update(step: StepContext, handle: ResourceHandle, value: np.ndarray) -> None:
        variable = read_resource(step, handle)
        with variable.lock:
            _check_same_size(variable, value)
            variable.update(function, value)

    return update


@kernel("VarIsInitializedOp", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    def is_initialized(step: StepContext, handle: ResourceHandle) -> np.bool_:
        handle = handle_of(handle)
        variable = step.resources.lookup(handle.container, handle.name, Variable)
        return np.bool_(variable is not None and variable.is_initialized)

    return is_initialized


@kernel("DestroyResourceOp", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    ignore_lookup_error = node.attr("ignore_lookup_error")

    def destroy(step: StepContext, handle: ResourceHandle) -> None:
        handle = handle_of(handle)
        try:
            step.resources.delete_named(handle.container, handle.name)
        except errors.NotFoundError:
            if not ignore_lookup_error:
                raise

    return destroy


@kernel("VariableShape", stateful=True, device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    dtype = node.attr("out_type").as_numpy_dtype
    return lambda step, handle: np.array(read_resource(step, handle).shape, dtype)


@kernel("ResourceCountUpTo", stateful=True)
def _(node: KernelNode) -> Function:
    count = _counter(node)
    return lambda step, handle: count(read_resource(step, handle))


@kernel("ResourceGather", stateful=True)
def _(node: KernelNode) -> Function:
    batch_dims = node.attr("batch_dims")

    def gather(step: StepContext, handle: ResourceHandle, indices: np.ndarray) -> np.ndarray:
        return read_resource(step, handle).look(lambda value: rows(np.asarray(value), indices))

    def rows(array: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if array.ndim < 1:
            raise errors.InvalidArgumentError.of("params must be at least 1 dimensional")
        indices = np.asarray(indices)
        check_indices("indices", indices, array.shape[batch_dims])
        if not batch_dims:
            return np.asarray(np.take(array, indices, axis=0), array.dtype)
        batch = np.indices(indices.shape, sparse=True)[:batch_dims]
        return array[tuple([*batch, indices])]

    return gather


@kernel("ResourceGatherNd", stateful=True)
def _(node: KernelNode) -> Function:
    def gather(step: StepContext, handle: ResourceHandle, indices: np.ndarray) -> np.ndarray:
        return read_resource(step, handle).look(lambda value: slices(np.asarray(value), np.asarray(indices)))

    def slices(array: np.ndarray, indices: np.ndarray) -> np.ndarray:
        depth = indices.shape[-1]
        rows = rows_of_nd_indices(indices, array.shape, "param shape")
        return np.asarray(array.reshape(-1, *array.shape[depth:])[rows], array.dtype)

    return gather


@kernel(
    "ResourceScatterUpdate",
    "ResourceScatterAdd",
    "ResourceScatterSub",
    "ResourceScatterMul",
    "ResourceScatterDiv",
    "ResourceScatterMin",
    "ResourceScatterMax",
    stateful=True,
)
def _(node: KernelNode) -> Function:
    function = _SCATTER[node.op.removeprefix("ResourceScatter")]

    def scatter(step: StepContext, handle: ResourceHandle, indices: np.ndarray, updates: np.ndarray) -> None:
        variable = read_resource(step, handle)
        with variable.lock:
            _scatter(variable, indices, updates, function)

    return scatter


@kernel(
    "ResourceScatterNdUpdate",
    "ResourceScatterNdAdd",
    "ResourceScatterNdSub",
    "ResourceScatterNdMin",
    "ResourceScatterNdMax",
    stateful=True,
)
def _(node: KernelNode) -> Function:
    function = _SCATTER[node.op.removeprefix("ResourceScatterNd")]

    def scatter(step: StepContext, handle: ResourceHandle, indices: np.ndarray, updates: np.ndarray) -> None:
        variable = read_resource(step, handle)
        with variable.lock:
            _scatter_nd(variable, indices, updates, function)

    return scatter


@kernel("ResourceStridedSliceAssign", stateful=True)
def _(node: KernelNode) -> Function:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks = [node.attr(name) for name in names]

    def assign(
        step: StepContext,
        handle: ResourceHandle,
        begin: np.ndarray,
        end: np.ndarray,
        strides: np.ndarray,
        value: np.ndarray,
    ) -> None:
        variable = read_resource(step, handle)
        with variable.lock:
            array = variable.writable()
            at = slice_index(array.ndim, begin, end, strides, *masks)
            if array[at].size:
                array[at] = value

    return assign


def _container(node: KernelNode) -> str:
    return node.attr("container").decode()


def _shared_name(node: KernelNode) -> str:
    name = node.attr("shared_name").decode()
    if name.startswith("_"):
        raise errors.InvalidArgumentError.of(f"shared_name cannot start with '_': {name}")
    return name or node.name


def _dims(shape: TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.ndims is None else tuple(shape.as_list())


def _check_declared(variable: Variable, shape: Shape | None, node_name: str) -> None:
    """Refuses the node of a graph that describes the variable by another shape than the graph that made it did, unless
    its value has that shape by now. As long as there is no value, the last description counts.
    """
    declared = variable.declared_shape
    actual = variable.shape
    if declared is None or shape is None or TensorShape(shape).is_compatible_with(TensorShape(declared)):
        return
    if not variable.is_initialized:
        variable.declared_shape = shape
    elif actual is not None and not _fits(shape, actual):
        raise errors.InvalidArgumentError.of(
            f"Variable {variable.name} was made with shape {shape_text(declared)} and is wanted with "
            f"{shape_text(shape)} by node {node_name}: the graphs that share it differ.",
        )


def _fits(declared: tuple[int | None, ...] | None, actual: Shape) -> bool:
    """Whether a value of shape `actual` may go where `declared` (None: anything) is the shape."""
    if declared is None or declared == actual:
        return True
    return len(declared) == len(actual) and all(
        want is None or want == have for want, have in zip(declared, actual, strict=True)
    )


def _as_dtype(value: Array, dtype: np.dtype) -> Array:
    """The value with the dtype that the graph promises; the same object when it has it."""
    if isinstance(value, ResourceHandle) or value.dtype is dtype or value.dtype == dtype:
        return value
    return np.asarray(value, dtype)


def _check_same_size(variable: Variable, value: np.ndarray) -> None:
    have, want = shape_of(value), variable.read().shape
    if have != want:
        raise errors.InvalidArgumentError.of(
            f"Parameters and update must be the same size: {variable.name} has shape {shape_text(want)}, the update "
            f"{shape_text(have)}",
        )


def _counter(node: KernelNode) -> Function:
    limit = node.attr("limit")

    def count(variable: Variable) -> np.ndarray:
        with variable.lock:
            value = variable.read()
            if value >= limit:
                raise errors.OutOfRangeError.of(f"Reached limit of {limit}")
            variable.assign(np.asarray(value + 1, value.dtype))
        return value

    return count


def _scatter(variable: Variable, indices: np.ndarray, updates: np.ndarray, function: np.ufunc | None) -> None:
    """Combines updates into the rows that indices (of any rank) name; with no function, replaces. The lock is held."""
    shape = variable.read().shape
    indices, updates = np.asarray(indices), np.asarray(updates)
    if not shape:
        raise errors.InvalidArgumentError.of("params must be at least 1-D, got shape []")
    if not indices.size:
        return
    _check_updates(shape, indices, updates)
    check_indices("indices", indices, shape[0])
    rows = indices.ravel()
    wide = np.broadcast_to(updates, indices.shape + shape[1:]).reshape(rows.shape + shape[1:])
    _combine(variable.writable(rows), rows, wide, function)


def _check_updates(shape: tuple[int, ...], indices: np.ndarray, updates: np.ndarray) -> None:
    if updates.shape not in ((), indices.shape + shape[1:]):
        raise errors.InvalidArgumentError.of(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape "
            f"{shape_text(updates.shape)}, indices.shape {shape_text(indices.shape)}, params.shape {shape_text(shape)}",
        )


def _scatter_nd(variable: Variable, indices: np.ndarray, updates: np.ndarray, function: np.ufunc | None) -> None:
    """As `_scatter`, with each index a vector over the leading dimensions. The lock is held."""
    shape = variable.read().shape
    indices, updates = np.asarray(indices), np.asarray(updates)
    depth = indices.shape[-1] if indices.ndim else 1
    if not indices.ndim or depth > len(shape):
        raise errors.InvalidArgumentError.of(
            f"The index vectors of shape {shape_text(indices.shape)} do not fit params.shape {shape_text(shape)}",
        )
    wanted = indices.shape[:-1] + shape[depth:]
    if updates.shape != wanted:
        raise errors.InvalidArgumentError.of(
            f"Must have updates.shape = indices.shape[:-1] + params.shape[{depth}:], got updates.shape "
            f"{shape_text(updates.shape)}, indices.shape {shape_text(indices.shape)}, params.shape {shape_text(shape)}",
        )
    rows = rows_of_nd_indices(indices, shape, "params.shape").ravel()
    array = variable.writable(rows if depth == 1 else rows // math.prod(shape[1:depth]) if depth else None)
    _combine(array.reshape(-1, *shape[depth:]), rows, updates.reshape(rows.shape + shape[depth:]), function)


def _combine(array: np.ndarray, rows: np.ndarray, updates: np.ndarray, function: np.ufunc | None) -> None:
    if function is None:
        array[rows] = updates
    elif function is np.true_divide and np.issubdtype(array.dtype, np.integer):
        for row, update in zip(rows, updates, strict=True):
            array[row] = np.trunc(array[row] / update).astype(array.dtype)
    else:
        scatter_rows(function, array, rows, updates)
