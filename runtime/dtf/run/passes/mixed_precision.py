"""Rewrites a placed graph so that what runs on GPUs computes in float16 where that is safe.

Ops are of four kinds. The *allowed* ones gain (products, convolutions, recurrent cells), *denied* ones lose too much
(sums, exponentials, losses), *inferred* ones are safe between allowed ones, and *clear* ones do no arithmetic to speak
of. Allowed nodes become float16, and so do inferred and clear ones between or next to them that no denied one leads to.
Casts stand where the two types meet; variables stay float32. What is fed or fetched keeps its type.

Source: the kinds and rules of TensorFlow 2.21's grappler pass auto_mixed_precision, which `tests/interop` compares.
TensorLists stay float32 here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from dtf.run.passes import CONTROL, Nodes, op_def, parse_tensor_name, set_type, tensor_name, with_inputs
from dtf.run.passes.device_types import type_attributes
from dtf.wire import dtypes, errors, opdef
from dtf.wire.device import DeviceSpec
from dtf.wire.pb import config_pb2, node_def_pb2, rewriter_config_pb2

__all__ = ["in_mixed_precision", "is_wanted"]

_ALLOWED = frozenset(
    "BatchMatMul BatchMatMulV2 BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 Conv2D Conv2DBackpropFilter "
    "Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2 DepthwiseConv2dNative "
    "DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Einsum GRUBlockCell GRUBlockCellGrad "
    "LSTMBlockCell LSTMBlockCellGrad MatMul".split()
)
_DENIED = frozenset(
    "Exp Expm1 L2Loss Mean Pow SaveV2 SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits Sum".split()
)
_INFERRED = frozenset(
    "Add AddN AddV2 AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BiasAdd BiasAddGrad BiasAddV1 Elu EluGrad Erf Erfc "
    "FloorDiv FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 Inv LeakyRelu LeakyReluGrad "
    "Log Log1p LogSoftmax Mul Prod RealDiv Reciprocal Selu SeluGrad Sigmoid SigmoidGrad Softmax Softplus SoftplusGrad "
    "Softsign SoftsignGrad Sqrt Sub Tanh TanhGrad _FusedBatchNormEx".split()
)
_CLEAR = frozenset(
    "Abs ArgMax ArgMin BatchToSpace BatchToSpaceND BroadcastTo Ceil CheckNumerics ClipByValue Concat ConcatV2 "
    "DepthToSpace DynamicPartition DynamicStitch EnsureShape Enter Equal Exit ExpandDims Fill Floor Gather GatherNd "
    "GatherV2 Greater GreaterEqual Identity IdentityN IsFinite IsInf IsNan Less LessEqual Max MaxPool MaxPool3D "
    "MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradV2 MaxPoolV2 Maximum "
    "Merge Min Minimum MirrorPad MirrorPadGrad Neg NextIteration NotEqual OneHot OnesLike Pack Pad PadV2 "
    "PreventGradient Rank Relu Relu6 Relu6Grad ReluGrad Reshape ResizeNearestNeighbor ResizeNearestNeighborGrad "
    "Reverse ReverseSequence ReverseV2 Round Select SelectV2 Shape ShapeN Sign Size Slice Snapshot SpaceToBatch "
    "SpaceToBatchND SpaceToDepth Split SplitV Squeeze StopGradient StridedSlice StridedSliceGrad Switch Tile TopK "
    "TopKV2 Transpose Unpack Where ZerosLike".split()
)
_NEWER = {
    "FusedBatchNorm": "FusedBatchNormV2",
    "FusedBatchNormGrad": "FusedBatchNormGradV2",
}
"""Ops whose scales have the type of the images, and those whose scales stay float32."""
_VARIABLES = frozenset(("Variable", "VariableV2"))


class _Kind(NamedTuple):
    """A type attribute of a node: what is float32 or float16 together."""

    node: str
    attr: str


def is_wanted(options: config_pb2.GraphOptions) -> bool:
    """Whether a session asks for the rewrite."""
    wanted = options.rewrite_options.auto_mixed_precision
    return wanted in (rewriter_config_pb2.RewriterConfig.ON, rewriter_config_pb2.RewriterConfig.AGGRESSIVE)


def in_mixed_precision(nodes: Nodes, kept: Collection[str]) -> Nodes:
    """The graph with casts and float16 nodes; itself where no node gains.

    Args:
      nodes: placed.
      kept: the names of nodes that keep their types: those that are fed or fetched.
    """
    return _Rewrite(nodes, frozenset(kept)).run()


class _Rewrite:
    def __init__(self, nodes: Nodes, kept: frozenset[str]) -> None:
        self._may_change = {
            name for name, node in nodes.items() if name not in kept and _is_on_gpu(node)
        }
        self._nodes = {name: self._newer(node) for name, node in nodes.items()}
        self._kinds: list[_Kind] = []
        self._ports: dict[str, tuple[list[str], list[str]]] = {}
        self._sources: dict[_Kind, list[_Kind]] = {}
        self._users: dict[_Kind, list[_Kind]] = {}
        for node in self._nodes.values():
            self._ports[node.name] = _attributes_of_ports(node)
            self._kinds += [_Kind(node.name, attr) for attr in _float_attributes(node)]
        known = set(self._kinds)
        for name, node in self._nodes.items():
            for port, source, index in _data_inputs(node):
                end = _Kind(name, _at(self._ports[name][0], port))
                start = _Kind(source, _at(self._ports[source][1], index)) if source in self._ports else end
                if start is not end and start in known and end in known:
                    self._sources.setdefault(end, []).append(start)
                    self._users.setdefault(start, []).append(end)

    def run(self) -> Nodes:
        allowed = {kind for kind in self._kinds if self._is(kind, _ALLOWED) and self._may_be_narrow(kind)}
        if not allowed:
            return {name: self._nodes[name] for name in self._nodes}
        denied = self._denied()
        self._add_between(allowed, denied)
        self._add_followers(allowed, denied)
        self._add_clear_neighbours(allowed, denied)
        self._match_loops(allowed)
        self._add_casts(allowed)
        return self._rewritten(allowed)

    # -- which kinds become float16

    def _denied(self) -> set[_Kind]:
        """Those of denied ops, and what they lead to by inferred and clear ones, unless only clear ones follow."""
        counted = {kind for kind in self._kinds if self._is(kind, _DENIED | _INFERRED)}
        ahead = _reached(counted, self._sources, lambda kind: self._is(kind, _CLEAR))
        roots = {kind for kind in self._kinds if self._is(kind, _DENIED)}
        return _reached(roots, self._users, ahead.__contains__)

    def _add_between(self, allowed: set[_Kind], denied: set[_Kind]) -> None:
        roots = {kind for kind in self._kinds if self._is(kind, _ALLOWED) and kind.node in self._may_change}

        def may_follow(kind: _Kind) -> bool:
            return kind not in denied and self._may_be_narrow(kind) and self._is(kind, _CLEAR | _INFERRED)

        behind = _reached(roots, self._users, may_follow)
        allowed |= _reached(roots, self._sources, behind.__contains__)

    def _add_followers(self, allowed: set[_Kind], denied: set[_Kind]) -> None:
        for kind in self._kinds:
            if kind in denied or kind in allowed or not self._is(kind, _INFERRED) or not self._may_be_narrow(kind):
                continue
            sources = self._sources.get(kind, [])
            if any(source in allowed for source in sources) and not any(source in denied for source in sources):
                allowed.add(kind)

    def _add_clear_neighbours(self, allowed: set[_Kind], denied: set[_Kind]) -> None:
        def may_join(kind: _Kind) -> bool:
            is_free = kind not in denied and self._may_be_narrow(kind) and self._is(kind, _CLEAR)
            return is_free and not self._reads_variable(kind.node)

        both = {
            kind: self._sources.get(kind, []) + self._users.get(kind, []) for kind in self._kinds
        }
        allowed |= _reached(set(allowed), both, may_join)

    def _match_loops(self, allowed: set[_Kind]) -> None:
        """The two ends of a loop's back edge have one type."""
        for kind in self._kinds:
            if self._nodes[kind.node].op == "NextIteration":
                merges = self._users.get(kind, [])
                if all(merge in allowed for merge in merges):
                    allowed.add(kind)
                else:
                    allowed.difference_update([kind, *merges])

    def _add_casts(self, allowed: set[_Kind]) -> None:
        """A cast to float32 that only float16 nodes read may give float16 at once."""
        for kind in self._kinds:
            if kind.attr == "DstT" and kind.node in self._may_change and self._nodes[kind.node].op == "Cast":
                users = self._users.get(kind, [])
                if users and all(user in allowed for user in users):
                    allowed.add(kind)

    def _is(self, kind: _Kind, ops: frozenset[str]) -> bool:
        return self._nodes[kind.node].op in ops

    def _may_be_narrow(self, kind: _Kind) -> bool:
        if kind.node not in self._may_change:
            return False
        attr = next(each for each in op_def(self._nodes[kind.node]).attrs if each.name == kind.attr)
        return attr.allowed is None or dtypes.float16 in attr.allowed

    def _reads_variable(self, name: str) -> bool:
        node = self._nodes[name]
        if node.op not in ("Identity", "Enter") or not node.input:
            return False
        source = parse_tensor_name(node.input[0])[0]
        if source not in self._nodes:
            return False
        if node.op == "Identity":
            return self._nodes[source].op in _VARIABLES
        return self._reads_variable(source)

    def _newer(self, node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
        if node.op not in _NEWER or node.name not in self._may_change:
            return node
        changed = node_def_pb2.NodeDef()
        changed.CopyFrom(node)
        changed.op = _NEWER[node.op]
        set_type(changed, "U", dtypes.float32.as_datatype_enum)
        return changed

    # -- the rewritten graph

    def _rewritten(self, allowed: set[_Kind]) -> Nodes:
        result: Nodes = {}
        casts: dict[str, node_def_pb2.NodeDef] = {}
        devices: dict[str, int] = {}
        for name, node in self._nodes.items():
            narrow = [attr for attr in _float_attributes(node) if _Kind(name, attr) in allowed]
            inputs = list(node.input)
            for port, source, index in _data_inputs(node):
                end = _Kind(name, _at(self._ports[name][0], port))
                start = _Kind(source, _at(self._ports[source][1], index)) if source in self._ports else None
                if start is None or (start in allowed) == (end in allowed) or not self._is_float(start, end):
                    continue
                cast = _cast(self._nodes[source], index, end in allowed, node.device, devices)
                casts[cast.name] = cast
                inputs[port] = cast.name
            result[name] = _narrowed(with_inputs(node, inputs), narrow)
        return {**result, **casts}

    def _is_float(self, start: _Kind, end: _Kind) -> bool:
        """Whether an edge carries float32: one of its ends may have a fixed type."""
        return any(kind.attr in _float_attributes(self._nodes[kind.node]) for kind in (start, end))


def _reached(
    roots: Iterable[_Kind], next_ones: dict[_Kind, list[_Kind]], may_enter: Callable[[_Kind], bool]
) -> set[_Kind]:
    """The roots, and all that is reached from them by way of kinds that may be entered."""
    found = set(roots)
    waiting = list(found)
    while waiting:
        for kind in next_ones.get(waiting.pop(), ()):
            if kind not in found and may_enter(kind):
                found.add(kind)
                waiting.append(kind)
    return found


def _is_on_gpu(node: node_def_pb2.NodeDef) -> bool:
    return DeviceSpec.from_string(node.device).device_type == "GPU"


def _float_attributes(node: node_def_pb2.NodeDef) -> list[str]:
    return [name for name, dtype in type_attributes(node).items() if dtype == dtypes.float32]


def _data_inputs(node: node_def_pb2.NodeDef) -> list[tuple[int, str, int]]:
    """(position, source, its output) of the inputs that are values."""
    found = []
    for position, text in enumerate(node.input):
        source, index = parse_tensor_name(text)
        if index != CONTROL:
            found.append((position, source, index))
    return found


def _attributes_of_ports(node: node_def_pb2.NodeDef) -> tuple[list[str], list[str]]:
    """The type attribute of each input and output, lists being flattened; "" where the type is fixed."""
    try:
        contract = op_def(node)
    except errors.NotFoundError:
        return [], []
    return _flat(node, contract.inputs), _flat(node, contract.outputs)


def _flat(node: node_def_pb2.NodeDef, arguments: tuple[opdef.ArgDef, ...]) -> list[str]:
    found: list[str] = []
    for argument in arguments:
        if argument.type_list_attr is not None:
            found += [""] * len(node.attr[argument.type_list_attr].list.type)
        else:
            count = 1 if argument.number_attr is None else node.attr[argument.number_attr].i
            found += [argument.type_attr or ""] * count
    return found


def _at(ports: list[str], index: int) -> str:
    return ports[index] if index < len(ports) else ""


def _narrowed(node: node_def_pb2.NodeDef, attrs: list[str]) -> node_def_pb2.NodeDef:
    """The node with these type attributes as float16: itself without any, else a copy."""
    if not attrs:
        return node
    changed = node_def_pb2.NodeDef()
    changed.CopyFrom(node)
    for attr in attrs:
        set_type(changed, attr, dtypes.float16.as_datatype_enum)
    return changed


def _cast(
    source: node_def_pb2.NodeDef, index: int, is_narrowing: bool, device: str, devices: dict[str, int]
) -> node_def_pb2.NodeDef:
    """The node that casts an output, beside its source; for a feed, which has no device, beside the consumer.

    Args:
      source, index: the output.
      is_narrowing: to float16, else to float32.
      device: the consumer's.
      devices: numbers for the devices of consumers of feeds.
    """
    word = "Fp16" if is_narrowing else "Fp32"
    name = f"{source.name}-{index}-CastTo{word}-AutoMixedPrecision"
    if not source.device:
        name += f"-{devices.setdefault(device, len(devices))}"
    node = node_def_pb2.NodeDef(
        name=name, op="Cast", device=source.device or device, input=[tensor_name(source.name, index)]
    )
    wide, narrow = dtypes.float32.as_datatype_enum, dtypes.float16.as_datatype_enum
    set_type(node, "SrcT", wide if is_narrowing else narrow)
    set_type(node, "DstT", narrow if is_narrowing else wide)
    return node
