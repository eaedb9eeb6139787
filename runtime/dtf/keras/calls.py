"""Layers called on tensors: each call is kept as a Node on its outputs, so that a model finds its layers.

Owns the nodes, the inputs of models, and the order of a model's layers: by their distance from the outputs, as in
TensorFlow. An operation between layers becomes a layer of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dtf.build import nest
from dtf.build.default_graph import get_default_graph
from dtf.build.ops.array import identity
from dtf.build.ops.array import placeholder as make_placeholder
from dtf.build.tensor import Tensor
from dtf.keras.backend import learning_phase
from dtf.wire.dtypes import as_dtype

__all__ = ["Input", "InputLayer", "Node", "applied", "layers_of", "node_of", "nodes_between", "recorded"]

_INPUTS = ("__keras_inputs",)
_NODE = "_keras_node"


@dataclass(frozen=True, eq=False)
class Node:
    """One call of a layer.

    Attributes:
      layer: the layer, model or InputLayer.
      inputs, outputs: structures of tensors.
      arguments: further arguments of the call.
    """

    layer: Any
    inputs: Any
    outputs: Any
    arguments: dict[str, Any]


class InputLayer:
    """The place where values enter a model: a placeholder, without variables.

    Attributes:
      name: by default input_1, input_2, ...
      batch_input_shape: the shape of a batch.
      output: the placeholder.
    """

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        input_tensor: Any = None,
        sparse: bool = False,
        name: str | None = None,
        batch_input_shape: Any = None,
    ) -> None:
        if sparse:
            raise ValueError("Sparse inputs of Keras models are not supported; use dense inputs or tf.sparse")
        if input_tensor is None and input_shape is None and batch_input_shape is None:
            raise ValueError("Input needs a shape or a batch_shape")
        graph = get_default_graph() if input_tensor is None else input_tensor.graph
        self.name = name or _input_name(graph)
        self.trainable = self.built = True
        self.dtype = as_dtype(dtype or "float32") if input_tensor is None else input_tensor.dtype.base_dtype
        if input_tensor is None:
            given = (input_shape,) if isinstance(input_shape, int) else input_shape
            full = batch_input_shape if batch_input_shape is not None else [batch_size, *given]
            input_tensor = make_placeholder(self.dtype, list(full), self.name)
        self.batch_input_shape = input_tensor.shape.ndims and tuple(input_tensor.shape.as_list())
        self.input_shape = self.output_shape = self.batch_input_shape
        self.input = self.output = input_tensor
        self.weights: list[Any] = []
        self.trainable_weights = self.non_trainable_weights = self.weights
        self.losses: list[Any] = []
        self.updates: list[Any] = []
        vars(input_tensor)[_NODE] = Node(self, [], input_tensor, {})

    def get_weights(self) -> list[Any]:
        """No values: the layer has no variables."""
        return []

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Nothing to set: the layer has no variables."""

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """No losses."""
        return []

    def count_params(self) -> int:
        """0."""
        return 0

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        shape = list(self.batch_input_shape or ())
        return {"batch_input_shape": shape, "dtype": self.dtype.name, "sparse": False, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputLayer:
        """A layer from the result of `get_config`."""
        known = ("batch_input_shape", "dtype", "sparse", "name")
        return cls(**{key: value for key, value in config.items() if key in known})


def Input(  # noqa: N802
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    batch_shape: Any = None,
    **kwargs: Any,
) -> Tensor:
    """An input of a functional model: a placeholder in the default graph.

    Args:
      shape: of one example.
      batch_size: the number of examples; any number by default.
      name: of the input.
      dtype: float32 by default.
      tensor: an existing tensor to use instead.
      batch_shape: the shape with the number of examples, instead of `shape`.
      kwargs: batch_input_shape, as batch_shape.

    Returns:
      A Tensor [batch_size, ...].

    Raises:
      ValueError: there is no shape, or `sparse` is true.
    """
    batch_shape = kwargs.pop("batch_input_shape", batch_shape)
    kwargs.pop("ragged", None)
    if kwargs:
        raise TypeError(f"Unknown arguments of Input: {sorted(kwargs)}")
    return InputLayer(shape, batch_size, dtype, tensor, sparse, name, batch_shape).output


def node_of(tensor: Any) -> Node | None:
    """The call that made a tensor, if a layer did."""
    return vars(tensor).get(_NODE)


def recorded(layer: Any, inputs: Any, arguments: dict[str, Any], outputs: Any) -> Any:
    """The outputs of a call with their node."""
    given = nest.flatten(inputs)
    outputs = nest.map_structure(
        lambda each: (
            identity(each)
            if isinstance(each, Tensor) and (any(each is one for one in given) or node_of(each) is not None)
            else each
        ),
        outputs,
    )
    node = Node(layer, inputs, outputs, arguments)
    for each in nest.flatten(outputs):
        if isinstance(each, Tensor):
            vars(each)[_NODE] = node
    if hasattr(layer, "_nodes"):
        layer._nodes.append(node)
    return outputs


def applied(layer: Any, inputs: Any, arguments: dict[str, Any]) -> Any:
    """A layer's outputs; `training` is the learning phase unless it is given."""
    if "training" in inspect.signature(layer.call).parameters and arguments.get("training") is None:
        arguments = {**arguments, "training": learning_phase()}
    return layer(inputs, **arguments)


def nodes_between(inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Node]:
    """The calls on the paths from inputs to outputs, each after the calls that it needs; the inputs' own first.

    Raises:
      ValueError: an output comes from an Input that is not named, or from an operation outside layers.
    """
    depths: dict[Node, int] = {}
    met: list[Node] = []
    ends = {id(each) for each in inputs}

    def visit(tensor: Any, depth: int) -> None:
        node = node_of(tensor)
        if node is None and id(tensor) not in ends:
            node = operation_node(tensor)
        if node is None:
            if id(tensor) in ends:
                return
            raise ValueError(
                f"Tensor {tensor.name} comes from operation {tensor.op.type}, not from a layer; put the operation into "
                "tf.keras.layers.Lambda"
            )
        is_end = id(tensor) in ends
        if isinstance(node.layer, InputLayer) and not is_end:
            raise ValueError(f"The outputs need the Input {tensor.name}, which is not among the inputs of the model")
        if is_end and not isinstance(node.layer, InputLayer):
            return
        if node not in depths:
            met.append(node)
        elif depths[node] >= depth:
            return
        depths[node] = depth
        for each in _needed(node):
            visit(each, depth + 1)

    for output in outputs:
        visit(output, 0)
    for each in inputs:
        node = node_of(each)
        if node is not None and isinstance(node.layer, InputLayer) and node not in depths:
            met.append(node)
            depths[node] = max(depths.values(), default=0)
    return sorted(met, key=lambda node: -depths[node])


def operation_node(tensor: Any) -> Node | None:
    """A node for an operation of the graph whose inputs come from layers; None if none of them does."""
    op = tensor.op
    if not any(_comes_from_layer(each, 64) for each in op.inputs):
        return None
    node = Node(_OperationLayer(op), list(op.inputs), list(op.outputs), {})
    for each in op.outputs:
        vars(each)[_NODE] = node
    return node


class _OperationLayer:
    """An operation between layers, as a layer: it is repeated on other inputs."""

    def __init__(self, op: Any) -> None:
        self.name = f"tf_op_layer_{op.name}"
        self.op = op
        self.trainable = self.built = True
        self.weights: list[Any] = []
        self.trainable_weights = self.non_trainable_weights = self.weights
        self.losses: list[Any] = []
        self.updates: list[Any] = []

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """No losses."""
        return []

    def call(self, inputs: Any) -> Any:
        """The outputs of the operation for other inputs."""
        return self(inputs)

    def __call__(self, inputs: Any) -> Any:
        op = self.op
        attrs = {key: value for key, value in op.node_def.attr.items() if not key.startswith("_output_shapes")}
        made = get_default_graph().create_op(
            op.type, list(inputs), [each.dtype for each in op.outputs], name=op.name.rpartition("/")[2], attrs=attrs
        )
        return list(made.outputs)


def _comes_from_layer(tensor: Any, depth: int) -> bool:
    if node_of(tensor) is not None:
        return True
    return depth > 0 and any(_comes_from_layer(each, depth - 1) for each in tensor.op.inputs)


def layers_of(nodes: Sequence[Node]) -> list[Any]:
    """The layers of calls, each once."""
    found: list[Any] = []
    for node in nodes:
        if all(node.layer is not each for each in found):
            found.append(node.layer)
    return found


def _needed(node: Node) -> list[Any]:
    further = [each for each in nest.flatten(list(node.arguments.values())) if isinstance(each, Tensor)]
    given = nest.flatten(node.inputs)
    if isinstance(node.layer, _OperationLayer):
        given = [each for each in given if node_of(each) is not None or _comes_from_layer(each, 64)]
    return [*given, *[each for each in further if node_of(each)]]


def _input_name(graph: Any) -> str:
    kept = graph.get_collection_ref(_INPUTS)
    kept.append(None)
    return f"input_{len(kept)}"
