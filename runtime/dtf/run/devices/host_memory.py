"""Which arguments of ops are in the host's memory, on whatever device their node is.

Shapes, axes, sizes and predicates are read by the program that starts a kernel, not by the kernel; small integers are
computed where they are read. Owns TensorFlow's choice of them, as far as its kernels agree on it; a row of the kernel
table may say otherwise (`Kernel.host`). Knows op contracts only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dtf.run.value_types import AttrValue
from dtf.wire import dtypes, opdef
from dtf.wire.text_cache import cached_by_text

__all__ = [
    "DEVICE", "EVERYTHING", "HOST", "OBJECT", "argument_names", "is_computed_there", "is_host_dtype",
    "may_be_on_accelerators", "memories",
]  # fmt: skip

HOST, DEVICE, OBJECT = "host", "device", "object"
"""Where an argument is: a numpy array, an array of its node's device, or an object of the runtime, which is nowhere."""

EVERYTHING = frozenset({"*"})
"""In place of the names: all arguments."""

_INPUTS = frozenset(
    "alg axis batch_dims begin block_shape block_size concat_dim condition counter crops delta depth dim dimension "
    "dims element_shape end fft_length filter_sizes index input_sizes k key limit loc max_size maxval minval "
    "multiples n num_elements num_lower num_samples num_segments num_upper orig_input_shape out_backprop_shape "
    "output_shape paddings perm pred reduction_indices seed shape shape_to_prepend shift size size_splits sizes "
    "slice_index split_dim start strides truncated_shape".split()
)
"""Inputs that describe others, where their dtype is an integer's or bool. No arrays of data bear these names, but for
those of the type "T"."""
_OUTPUTS = {
    "Shape": ("output",), "ShapeN": ("output",), "Size": ("output",), "Rank": ("output",),
    "Merge": ("value_index",), "RefMerge": ("value_index",), "IsVariableInitialized": ("is_initialized",),
    "VarIsInitializedOp": ("is_initialized",), "VariableShape": ("output",), "TensorArraySizeV3": ("size",),
    "TensorListLength": ("length",), "TensorListElementShape": ("element_shape",), "LoopCond": ("output",),
}  # fmt: skip
_ALL = frozenset(
    "Assert BroadcastArgs BroadcastGradientArgs Case ConcatOffset If LoopCond PartitionedCall StatefulPartitionedCall "
    "StatelessCase StatelessIf StatelessWhile While _Arg _HostCast _HostRecv _HostSend _Recv _Retval _Send".split()
)
_DATA = {"Select": ("condition",), "Range": (), "LinSpace": ()}
"""Inputs of the names above that are data."""

_INT32_THERE = frozenset(
    "Abs Add AddN AddV2 Concat ConcatV2 Const Div Enter Equal Exit ExpandDims Fill FloorDiv FloorMod Greater "
    "GreaterEqual Identity InvertPermutation Less LessEqual Max Maximum Merge Min Minimum Mod Mul Neg NextIteration "
    "NotEqual OnesLike Pack Pad Placeholder Prod Range RefEnter RefExit RefIdentity RefMerge RefSwitch Reshape Reverse "
    "ReverseV2 Sign Slice Split SplitV Square Squeeze StopGradient StridedSlice Sub Sum Switch Tile Transpose "
    "TruncateDiv Unpack ZerosLike".split()
)
"""Ops that are computed in the host's memory where they are of int32: the arithmetic of shapes."""
_VARIABLE_OPS = frozenset(
    "Assign AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp AssignVariableOp DestroyTemporaryVariable "
    "ReadVariableOp TemporaryVariable VarHandleOp Variable VariableV2".split()
)
_TYPE_ATTRS = ("T", "dtype", "Tidx", "out_type")
_HOST_DTYPES = frozenset({dtypes.string, dtypes.resource, dtypes.variant})
_DESCRIBING = frozenset({dtypes.int32, dtypes.int64, dtypes.bool, dtypes.uint64})


def is_host_dtype(enum: int) -> bool:
    """Whether values of this DataType (without its reference mark) never are in a device's memory: strings, and what
    stands for objects of the runtime.
    """
    return enum in _HOST_ENUMS


def is_computed_there(op: str, types: Mapping[str, AttrValue]) -> bool:
    """Whether a node of `op` is computed in the host's memory although it is on another device.

    Args:
      op: the op type.
      types: its attributes; those of dtypes suffice.
    """
    if op not in _INT32_THERE:
        return False
    attr = _own_type_attr(op)
    return attr is not None and types.get(attr) == dtypes.int32


def may_be_on_accelerators(op: str, types: Mapping[str, AttrValue]) -> bool:
    """Whether the dtypes of a node allow it on other devices than CPUs, whatever rows its op has: there are no strings
    there, but in control flow, and no variables of int32.
    """
    attr = _own_type_attr(op)
    own = types.get(attr) if attr is not None else None
    if own == dtypes.string:
        return False
    return not (own == dtypes.int32 and op in _VARIABLE_OPS)


def memories(
    arguments: Iterable[opdef.ArgDef], types_of: Callable[[opdef.ArgDef], Sequence[int]], host: frozenset[str]
) -> list[str]:
    """Where each tensor of these arguments is, lists being flattened: HOST, DEVICE or OBJECT.

    Args:
      arguments: inputs or outputs of an op.
      types_of: the DataTypes of the tensors of an argument, without reference marks.
      host: the names of those in the host's memory, or EVERYTHING.
    """
    found: list[str] = []
    for argument in arguments:
        is_host = host == EVERYTHING or argument.name in host
        place = HOST if is_host else DEVICE
        found.extend(OBJECT if is_host_dtype(enum) else place for enum in types_of(argument))
    return found


@cached_by_text(4096)
def argument_names(op: str) -> frozenset[str]:
    """The inputs and outputs of `op` that are in the host's memory unless its row says otherwise; EVERYTHING for all.
    Inputs and outputs of one name have both.
    """
    if op in _ALL:
        return EVERYTHING
    op_def = opdef.get(op)
    names = set(_OUTPUTS.get(op, ()))
    data = _DATA.get(op, ())
    for argument in op_def.inputs:
        if argument.name in _INPUTS and argument.name not in data and _describes(op_def, argument):
            names.add(argument.name)
    return frozenset(names)


def _describes(op_def: opdef.OpDef, argument: opdef.ArgDef) -> bool:
    """Whether the dtypes that an input may have are those of sizes and positions. "T" is the type of data."""
    if argument.type is not None:
        return argument.type in _DESCRIBING
    attr = next((each for each in op_def.attrs if each.name == argument.type_attr), None)
    if attr is None or argument.type_attr == "T":
        return False
    return attr.allowed is None or set(attr.allowed) <= _DESCRIBING | {dtypes.int16, dtypes.uint32, dtypes.uint8}


@cached_by_text(4096)
def _own_type_attr(op: str) -> str | None:
    """The attribute that holds the dtype of what the op makes."""
    if not opdef.exists(op):
        return None
    names = {attr.name for attr in opdef.get(op).attrs if attr.type == "type"}
    return next((name for name in _TYPE_ATTRS if name in names), None)


_HOST_ENUMS = frozenset(dtype.as_datatype_enum for dtype in _HOST_DTYPES)
