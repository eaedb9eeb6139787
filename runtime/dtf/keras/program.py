"""A model in one graph: its layers made, its outputs, a training step, and the figures of a batch.

Owns the graph made from a Sequential; `models` and `estimator` decide where it runs, and on which data.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dtf import layers
from dtf.build.default_graph import control_dependencies, get_collection
from dtf.build.graph import GraphKeys
from dtf.build.ops.array import placeholder
from dtf.build.ops.math import add_n
from dtf.build.ops.ordering import group
from dtf.build.ops.reductions import reduce_mean
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.keras.layers import Recipe
from dtf.keras.losses import takes_classes
from dtf.keras.metrics import named
from dtf.train.training_util import get_or_create_global_step
from dtf.wire import dtypes

LOSS = "loss"


@dataclass(frozen=True)
class Compiled:
    """The arguments of `compile`.

    Attributes:
      optimizer: one of tf.train.
      loss: a function of (y_true, y_pred).
      metrics: names and functions.
    """

    optimizer: Any
    loss: Callable[[Any, Any], Any]
    metrics: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Made:
    """A model's layers in the default graph.

    Attributes:
      layers: the layers of `tf.layers`, in order.
    """

    layers: tuple[layers.Layer, ...]

    @property
    def weights(self) -> list[Variable]:
        """The variables, layer by layer."""
        return [weight for layer in self.layers for weight in layer.weights]

    @property
    def regularizers(self) -> list[Tensor]:
        """The losses of weights."""
        return [loss for layer in self.layers for loss in layer.get_losses_for(None)]

    def __call__(self, inputs: Any, training: bool) -> Any:
        """The outputs for a batch of inputs."""
        for layer in self.layers:
            takes_training = "training" in inspect.signature(layer.call).parameters
            inputs = layer(inputs, training=training) if takes_training else layer(inputs)
        return inputs


@dataclass(frozen=True)
class Program:
    """All operations of a model in one graph.

    Attributes:
      made: the layers.
      x: placeholder of a batch of inputs.
      outputs: the predictions for the examples.
      shapes: of the outputs of each layer.
      y: placeholder of the targets; None of a model that was not compiled, as everything below.
      train_op: one training step.
      train_figures, figures: name -> mean over the batch, "loss" first, while training and otherwise.
    """

    made: Made
    x: Tensor
    outputs: Tensor
    shapes: tuple[Any, ...]
    y: Tensor | None = None
    train_op: Any = None
    train_figures: dict[str, Tensor] | None = None
    figures: dict[str, Tensor] | None = None


def make_layers(recipes: Sequence[Recipe]) -> Made:
    """Makes the layers; those without a name are numbered by their kinds: dense, dense_1, ..."""
    taken = Counter(recipe.name for recipe in recipes if recipe.name)
    double = [name for name, count in taken.items() if count > 1]
    if double:
        raise ValueError(f"Layers of a model need different names; several are called {double}")
    numbers: Counter[str] = Counter()
    made = []
    for recipe in recipes:
        name = recipe.name
        while name is None or (recipe.name is None and name in taken):
            number = numbers[recipe.kind]
            numbers[recipe.kind] += 1
            name = f"{recipe.kind}_{number}" if number else recipe.kind
        layer = recipe.make(name)
        layer.trainable = recipe.trainable and layer.trainable
        made.append(layer)
    return Made(tuple(made))


def make_program(recipes: Sequence[Recipe], input_shape: Sequence[int | None], compiled: Compiled | None) -> Program:
    """Makes everything in the default graph.

    Args:
      input_shape: of one example.

    Raises:
      ValueError: the layers do not fit each other or the inputs.
    """
    made = make_layers(recipes)
    x = placeholder(dtypes.int32 if recipes[0].takes_ids else dtypes.float32, [None, *input_shape], name="x")
    # Built twice: for training, which makes the variables, and for inference with the same variables.
    training_outputs = made(x, training=True)
    outputs: Any = x
    shapes = []
    for layer in made.layers:
        outputs = Made((layer,))(outputs, training=False)
        shapes.append(outputs.shape)
    if compiled is None:
        return Program(made, x, outputs, tuple(shapes))
    is_classes = takes_classes(compiled.loss)
    y = placeholder(
        dtypes.int64 if is_classes else outputs.dtype, outputs.shape[:-1] if is_classes else outputs.shape, name="y"
    )
    train_figures = batch_figures(made, compiled, y, training_outputs)
    return Program(
        made,
        x,
        outputs,
        tuple(shapes),
        y,
        training_step(compiled, train_figures[LOSS]),
        train_figures,
        batch_figures(made, compiled, y, outputs),
    )


def batch_figures(made: Made, compiled: Compiled, y: Any, outputs: Any) -> dict[str, Tensor]:
    """The loss of a batch, the regularizers' included, and its metrics."""
    loss = reduce_mean(compiled.loss(y, outputs))
    if made.regularizers:
        loss = add_n([loss, *made.regularizers])
    figures = {LOSS: loss}
    for metric in compiled.metrics:
        name, function = named(metric, compiled.loss, outputs.shape[-1].value)
        figures[name] = reduce_mean(function(y, outputs))
    return figures


def training_step(compiled: Compiled, loss: Any) -> Any:
    """One step of the optimizer, after what layers do at each step."""
    with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):
        return group(compiled.optimizer.minimize(loss, global_step=get_or_create_global_step()))
