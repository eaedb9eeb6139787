"""Layers called on tensors: each call is kept as a Node on its outputs, so that a model finds its layers.

Owns the layers made from recipes in a graph, the nodes, and the order of a model's layers. Inputs come first, then
layers by their distance from the outputs, as in TensorFlow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, graph_of
from dtf.build.ops.array import identity
from dtf.build.ops.array import placeholder as make_placeholder
from dtf.build.tensor import Tensor
from dtf.keras.backend import learning_phase

__all__ = ["Input", "Node", "applied", "call", "node_of", "nodes_between"]

_LAYERS = ("__keras_layers",)
_NODE = "_keras_node"


@dataclass(frozen=True, eq=False)
class Node:
    """One call of a layer.

    Attributes:
      layer: of tf.layers, or a model; None for an Input.
      inputs, outputs: structures of tensors.
      arguments: further arguments of the call.
      recipe: makes the layer in another graph; None for a layer of the user's own class.
    """

    layer: Any
    inputs: Any
    outputs: Any
    arguments: dict[str, Any]
    recipe: Any = None


def Input(  # noqa: N802
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    batch_shape: Any = None,
) -> Tensor:
    """An input of a functional model: a placeholder in the default graph.

    Args:
      shape: of one example.
      batch_size: the number of examples; any number by default.
      name: of the placeholder.
      dtype: float32 by default.
      tensor: an existing tensor to use instead.
      batch_shape: the shape with the number of examples, instead of `shape`.

    Returns:
      A Tensor [batch_size, ...].

    Raises:
      ValueError: there is no shape, or `sparse` is true.
    """
    if sparse:
        raise ValueError("Sparse inputs of Keras models are not supported; use dense inputs or tf.sparse")
    if tensor is None:
        if shape is None and batch_shape is None:
            raise ValueError("Input needs a shape or a batch_shape")
        full = list(batch_shape) if batch_shape is not None else [batch_size, *shape]
        tensor = make_placeholder(dtype or "float32", full, name or "input")
    vars(tensor)[_NODE] = Node(None, [], tensor, {})
    return tensor


def node_of(tensor: Any) -> Node | None:
    """The call that made a tensor, if a layer did."""
    return vars(tensor).get(_NODE)


def call(recipe: Any, make: Callable[[str], Any], kind: str, name: str | None, inputs: Any, arguments: Any) -> Any:
    """Calls the layer that a recipe becomes in the graph of the inputs; it is made at the first call there."""
    inputs = nest.map_structure(convert_to_tensor, inputs)
    with graph_of(nest.flatten(inputs)).as_default():
        layer = _layer(recipe, make, kind, name)
        return recorded(layer, inputs, arguments, applied(layer, inputs, arguments), recipe)


def recorded(layer: Any, inputs: Any, arguments: dict[str, Any], outputs: Any, recipe: Any = None) -> Any:
    """The outputs of a call with their node."""
    given = nest.flatten(inputs)
    outputs = nest.map_structure(
        lambda each: identity(each) if any(each is one for one in given) or node_of(each) else each, outputs
    )
    node = Node(layer, inputs, outputs, arguments, recipe)
    for each in nest.flatten(outputs):
        vars(each)[_NODE] = node
    return outputs


def applied(layer: Any, inputs: Any, arguments: dict[str, Any]) -> Any:
    """A layer's outputs; `training` is the learning phase unless it is given."""
    if "training" in inspect.signature(layer.call).parameters and arguments.get("training") is None:
        arguments = {**arguments, "training": learning_phase()}
    return layer(inputs, **arguments)


def nodes_between(inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Node]:
    """The calls on the paths from inputs to outputs, each after the calls that it needs.

    Raises:
      ValueError: an output comes from an Input that is not named, or from an operation outside layers.
    """
    depths: dict[Node, int] = {}
    met: list[Node] = []
    ends = {id(each) for each in inputs}

    def visit(tensor: Any, depth: int) -> None:
        node = node_of(tensor)
        if id(tensor) in ends:
            return
        if node is None:
            raise ValueError(
                f"Tensor {tensor.name} comes from operation {tensor.op.type}, not from a layer; put the operation into "
                "tf.keras.layers.Lambda"
            )
        if node.layer is None:
            raise ValueError(f"The outputs need the Input {tensor.name}, which is not among the inputs of the model")
        if node not in depths:
            met.append(node)
        elif depths[node] >= depth:
            return
        depths[node] = depth
        for each in _needed(node):
            visit(each, depth + 1)

    for output in outputs:
        visit(output, 0)
    return sorted(met, key=lambda node: -depths[node])


def layers_of(nodes: Sequence[Node]) -> list[Any]:
    """The layers of calls, each once."""
    found: list[Any] = []
    for node in nodes:
        if all(node.layer is not each for each in found):
            found.append(node.layer)
    return found


def _needed(node: Node) -> list[Any]:
    further = [each for each in nest.flatten(list(node.arguments.values())) if isinstance(each, Tensor)]
    return [*nest.flatten(node.inputs), *[each for each in further if node_of(each)]]


def _layer(recipe: Any, make: Callable[[str], Any], kind: str, name: str | None) -> Any:
    kept = get_default_graph().get_collection_ref(_LAYERS)
    if not kept:
        kept.append({})
    made: dict[Any, Any] = kept[0]
    if recipe not in made:
        taken = {each.name for each in made.values()}
        number, unique = 0, name or kind
        while name is None and unique in taken:
            number += 1
            unique = f"{kind}_{number}"
        made[recipe] = make(unique)
        made[recipe].trainable = recipe.trainable
    return made[recipe]
