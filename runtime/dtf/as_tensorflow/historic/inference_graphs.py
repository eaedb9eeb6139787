"""tensorflow.python.tools.strip_unused_lib and optimize_for_inference_lib: frozen graphs cut down to inference.

Batch normalisations of constants are folded into the weights of the convolution before them. Resizes and pads stay
nodes of their own, as TensorFlow's fused kernels compute the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtf import graph_util
from dtf.wire.pb import graph_pb2, node_def_pb2
from dtf.wire.tensor_proto import make_ndarray, make_tensor_proto

__all__ = [
    "ensure_graph_is_valid", "fold_batch_norms", "node_from_map", "node_name_from_input", "optimize_for_inference",
    "strip_unused", "strip_unused_from_files", "values_from_const",
]  # fmt: skip

_NORMALISATIONS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")


def strip_unused(
    input_graph_def: Any, input_node_names: Sequence[str], output_node_names: Sequence[str], placeholder_type_enum: Any
) -> Any:
    """The part of a GraphDef between inputs and outputs; the inputs become placeholders.

    Args:
      input_node_names: names of the nodes to replace by placeholders.
      output_node_names: names of the last nodes.
      placeholder_type_enum: the dtype of the placeholders, as a number, or a list of one per input.

    Raises:
      ValueError: a name of `input_node_names` is that of a tensor.
      KeyError: `input_graph_def` has no node of such a name.
    """
    for name in input_node_names:
        if ":" in name:
            raise ValueError(f"Name '{name}' appears to refer to a Tensor, not an Operation.")
    missing = set(input_node_names) - {node.name for node in input_graph_def.node}
    if missing:
        raise KeyError(f"The following input nodes were not found: {missing}.")
    nodes = []
    for node in input_graph_def.node:
        copied = node_def_pb2.NodeDef()
        if node.name in input_node_names:
            kind = placeholder_type_enum
            if isinstance(kind, (list, tuple)):
                kind = kind[list(input_node_names).index(node.name)]
            copied.name, copied.op = node.name, "Placeholder"
            copied.attr["dtype"].type = kind
            for attribute in ("_output_shapes", "shape"):
                if attribute in node.attr:
                    copied.attr[attribute].CopyFrom(node.attr[attribute])
        else:
            copied.CopyFrom(node)
        nodes.append(copied)
    return graph_util.extract_sub_graph(_with_nodes(input_graph_def, nodes), list(output_node_names))


def strip_unused_from_files(
    input_graph: str, input_binary: bool, output_graph: str, output_binary: bool, input_node_names: str,
    output_node_names: str, placeholder_type_enum: Any,
) -> None:  # fmt: skip
    """`strip_unused` of a file, written to another; names with commas between."""
    from google.protobuf import text_format

    from dtf import gfile

    graph_def = graph_pb2.GraphDef()
    with gfile.GFile(input_graph, "rb") as file:
        content = file.read()
    if input_binary:
        graph_def.ParseFromString(content)
    else:
        text_format.Parse(content.decode(), graph_def)
    inputs, outputs = input_node_names.split(","), output_node_names.split(",")
    stripped = strip_unused(graph_def, inputs, outputs, placeholder_type_enum)
    with gfile.GFile(output_graph, "wb") as file:
        file.write(stripped.SerializeToString() if output_binary else text_format.MessageToString(stripped).encode())


def optimize_for_inference(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: Any,
    toco_compatible: bool = False,
    placeholder_to_const_names: Iterable[str] | None = None,
) -> Any:
    """A frozen GraphDef that computes the same outputs with fewer nodes.

    Args:
      input_node_names, output_node_names, placeholder_type_enum: as in `strip_unused`.
      toco_compatible: accepted; no node is used that other tools lack.
      placeholder_to_const_names: placeholders with defaults that become those constants.

    Raises:
      ValueError: `input_graph_def` names a node twice, or an input that it lacks.
    """
    del toco_compatible
    ensure_graph_is_valid(input_graph_def)
    inputs = list(input_node_names)
    graph_def = strip_unused(input_graph_def, inputs, output_node_names, placeholder_type_enum)
    graph_def = graph_util.remove_training_nodes(graph_def, list(output_node_names))
    graph_def = _with_constant_placeholders(graph_def, placeholder_to_const_names or ())
    graph_def = fold_batch_norms(graph_def)
    ensure_graph_is_valid(graph_def)
    return graph_def


def ensure_graph_is_valid(graph_def: Any) -> None:
    """Raises ValueError if a name of a node is there twice, or an input's node is missing."""
    names = set()
    for node in graph_def.node:
        if node.name in names:
            raise ValueError("Duplicate node names detected for ", node.name)
        names.add(node.name)
    for node in graph_def.node:
        for text in node.input:
            if node_name_from_input(text) not in names:
                raise ValueError("Input for ", node.name, " not found: ", node_name_from_input(text))


def node_name_from_input(node_name: str) -> str:
    """The node of an input "name", "name:1" or "^name"."""
    return node_name.removeprefix("^").partition(":")[0]


def node_from_map(node_map: dict[str, Any], name: str) -> Any:
    """The node that an input names; ValueError if `node_map` lacks it."""
    stripped = node_name_from_input(name)
    if stripped not in node_map:
        raise ValueError(f"No node named '{name}' found in map.")
    return node_map[stripped]


def values_from_const(node_def: Any) -> np.ndarray:
    """The array of a Const node; ValueError for other nodes."""
    if node_def.op != "Const":
        raise ValueError(f"Can not extract constant value from a node that is not Const. Got: {node_def}")
    return make_ndarray(node_def.attr["value"].tensor)


def fold_batch_norms(input_graph_def: Any) -> Any:
    """A GraphDef with the constants of batch normalisations in the convolutions before them."""
    nodes = {node.name: node for node in input_graph_def.node}
    uses: dict[str, int] = {}
    for node in input_graph_def.node:
        for text in node.input:
            uses[node_name_from_input(text)] = uses.get(node_name_from_input(text), 0) + 1
    changed: dict[str, list[Any]] = {}
    for node in input_graph_def.node:
        if node.op not in _NORMALISATIONS or node.attr["is_training"].b:
            continue
        convolution = nodes[node_name_from_input(node.input[0])]
        parts = [nodes[node_name_from_input(text)] for text in node.input[1:5]]
        if convolution.op not in _CONVOLUTIONS or uses[convolution.name] > 1 or any(p.op != "Const" for p in parts):
            continue
        kernel = nodes[node_name_from_input(convolution.input[1])]
        if kernel.op != "Const" or uses[kernel.name] > 1:
            continue
        gamma, beta, mean, variance = map(values_from_const, parts)
        scale = gamma / np.sqrt(variance + node.attr["epsilon"].f)
        weights = values_from_const(kernel)
        factors = scale if convolution.op == "Conv2D" else scale.reshape(weights.shape[2:])
        changed[kernel.name] = [_constant(kernel.name, weights * factors)]
        offset = _constant(f"{convolution.name}_bn_offset", beta - mean * scale)
        add = node_def_pb2.NodeDef(name=node.name, op="BiasAdd", input=[convolution.name, offset.name])
        add.attr["T"].CopyFrom(convolution.attr["T"])
        add.attr["data_format"].CopyFrom(convolution.attr["data_format"])
        changed[node.name] = [offset, add]
    kept = []
    for node in input_graph_def.node:
        kept.extend(changed.get(node.name, [node]))
    outputs = [node.name for node in input_graph_def.node if node.name not in uses]
    folded = _with_nodes(input_graph_def, kept)
    return graph_util.extract_sub_graph(folded, outputs) if changed else folded


def _with_constant_placeholders(graph_def: Any, names: Iterable[str]) -> Any:
    nodes = {node.name: node for node in graph_def.node}
    wanted = {name.partition("=")[0] for name in names}
    kept = []
    for node in graph_def.node:
        if node.name in wanted and node.op == "PlaceholderWithDefault":
            default = node_from_map(nodes, node.input[0])
            node = _constant(node.name, values_from_const(default))
        kept.append(node)
    return _with_nodes(graph_def, kept)


def _constant(name: str, value: np.ndarray) -> Any:
    proto = make_tensor_proto(np.asarray(value))
    node = node_def_pb2.NodeDef(name=name, op="Const")
    node.attr["dtype"].type = proto.dtype
    node.attr["value"].tensor.CopyFrom(proto)
    return node


def _with_nodes(graph_def: Any, nodes: list[Any]) -> Any:
    changed = graph_pb2.GraphDef(node=nodes)
    changed.versions.CopyFrom(graph_def.versions)
    changed.library.CopyFrom(graph_def.library)
    return changed
