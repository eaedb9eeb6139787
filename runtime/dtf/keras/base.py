"""tf.keras.layers.Layer: the base of all layers of tf.keras, those of programs too.

Owns what Keras adds to `tf.layers.Layer`: names (dense, dense_1, ...), layers inside layers, masks, the learning
phase, weights as arrays, and configs. A layer keeps the arguments that it was made with, so that `fresh` and
`get_config` describe it. The calls are kept by `calls`, so that models find their layers.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers/Layer
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dtf import layers
from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, graph_of
from dtf.build.tensor import Tensor
from dtf.keras import configs, constraints, initializers, regularizers
from dtf.keras.backend import batch_get_value, batch_set_value, learning_phase
from dtf.keras.calls import Node, recorded
from dtf.layers.base import _snake_case
from dtf.wire.tensor_shape import TensorShape

__all__ = ["Layer", "fresh"]

_NAMES = ("__keras_names",)
_MASK = "_keras_mask"
_ACCEPTED = ("autocast", "dynamic", "sparse", "ragged", "batch_size", "implementation", "time_major")


class Layer(layers.Layer):
    """The base class of layers: subclasses write `build` and `call`.

    Args:
      trainable: whether training changes its variables.
      name: the layer's name; by default the class name in snake case, with a number after the first.
      dtype: of its variables.
      kwargs: input_shape, the shape of one example; batch_input_shape; input_dim; weights, their first values.

    Attributes:
      supports_masking: whether masks go through unchanged.
      batch_input_shape: the shape of a batch, if it was given.
    """

    _given: tuple[tuple[Any, ...], dict[str, Any]]
    _inner: list[Any]
    _own_state_updates: list[Any]
    batch_input_shape: tuple[int | None, ...] | None = None
    supports_masking = False
    stateful = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        object.__setattr__(made, "_given", (args, kwargs))
        object.__setattr__(made, "_inner", [])
        object.__setattr__(made, "_own_state_updates", [])
        return made

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        layers.Layer.__init__(self, **self._started(name, {"trainable": trainable, "dtype": dtype, **kwargs}))

    def _started(self, name: str | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for `tf.layers.Layer`; takes those of Keras alone.

        Raises:
          TypeError: there are arguments that no layer has.
        """
        given = dict(kwargs)
        shape, batch = given.pop("input_shape", None), given.pop("batch_size", None)
        batch_shape, width = given.pop("batch_input_shape", None), given.pop("input_dim", None)
        length = given.pop("input_length", None)
        self._first_values = given.pop("weights", None)
        for each in _ACCEPTED:
            given.pop(each, None)
        regularizer = regularizers.get(given.pop("activity_regularizer", None))
        own: dict[str, Any] = {key: given.pop(key) for key in ("trainable", "dtype") if key in given}
        if given:
            raise TypeError(f"Unknown arguments of a layer: {sorted(given)}")
        if batch_shape is None and shape is None and width is not None:
            shape = (width,) if length is None else (length, width)
        if batch_shape is None and shape is not None:
            batch_shape = (batch, *([shape] if isinstance(shape, int) else shape))
        self.batch_input_shape = None if batch_shape is None else tuple(TensorShape(batch_shape).as_list())
        self._nodes: list[Node] = []
        self._is_named = name is not None
        if not callable(getattr(type(self), "name", None)) and name is None:
            name = _unique(_snake_case(type(self).__name__))
        return {"name": name, "activity_regularizer": regularizer, "trainable": True, **own}

    # Layers inside layers

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name.startswith("_") or name in ("input_spec", "model"):
            return
        for each in _layers_in(value):
            if each is not self and all(each is not one for one in self._inner):
                self._inner.append(each)

    @property
    def trainable_weights(self) -> list[Any]:
        """The trainable variables, those of inner layers too."""
        own = layers.Layer.trainable_weights.fget(self)  # type: ignore[attr-defined]
        inner = [weight for each in self._inner for weight in each.trainable_weights] if self.trainable else []
        return _unique_items([*own, *inner])

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables, those of inner layers too."""
        trained = {id(each) for each in self.trainable_weights}
        own = [*self._own_trainable, *self._own_fixed]
        every = [*own, *[weight for each in self._inner for weight in each.weights]]
        return _unique_items([each for each in every if id(each) not in trained])

    @property
    def losses(self) -> list[Any]:
        """The losses of regularizers and of `add_loss`, those of inner layers too."""
        own = layers.Layer.losses.fget(self)  # type: ignore[attr-defined]
        return _unique_items([*own, *[loss for each in self._inner for loss in each.losses]])

    @property
    def updates(self) -> list[Any]:
        """The operations of a training step, those of inner layers too."""
        own = layers.Layer.updates.fget(self)  # type: ignore[attr-defined]
        return _unique_items([*own, *[update for each in self._inner if each.trainable for update in each.updates]])

    @property
    def state_updates(self) -> list[Any]:
        """The operations that keep the states of stateful layers, to run in each step, while training or not."""
        return _unique_items([*self._own_state_updates, *[each for one in self._inner for each in one.state_updates]])

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on these inputs; with None those that depend on no input."""
        own = super().get_losses_for(inputs)
        return _unique_items([*own, *[loss for each in self._inner for loss in each.get_losses_for(inputs)]])

    # Calls

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Builds if that is to be done, and calls; the call is kept, so that a model finds the layer."""
        inputs = nest.map_structure(_tensor, inputs)
        kwargs = self._named_arguments(args, kwargs)
        with graph_of([each for each in nest.flatten(inputs) if isinstance(each, Tensor)]).as_default():
            masks = nest.map_structure(mask_of, inputs)
            arguments = self._completed(kwargs, masks)
            outputs = recorded(self, inputs, kwargs, self._applied(inputs, arguments))
            mask = self.compute_mask(inputs, masks)
            if mask is not None:
                _put_masks(outputs, mask)
            if self._first_values is not None and self.built:
                values, self._first_values = self._first_values, None
                self.set_weights(values)
            return outputs

    def _applied(self, inputs: Any, arguments: dict[str, Any]) -> Any:
        return layers.Layer.__call__(self, inputs, **arguments)

    apply = __call__

    def _named_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if not args:
            return kwargs
        names = [each for each in inspect.signature(self.call).parameters if each != "self"][1:]
        return {**dict(zip(names, args, strict=False)), **kwargs}

    def _completed(self, kwargs: dict[str, Any], masks: Any) -> dict[str, Any]:
        """The arguments of `call`: `training` is the learning phase, `mask` that of the inputs, unless given."""
        taken = inspect.signature(self.call).parameters
        arguments = dict(kwargs)
        if "training" in taken and arguments.get("training") is None:
            arguments["training"] = learning_phase()
        if "mask" in taken and arguments.get("mask") is None and any(each is not None for each in nest.flatten(masks)):
            arguments["mask"] = masks
        return arguments

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs where the layer supports masks."""
        if not self.supports_masking:
            return None
        found = [each for each in nest.flatten(mask) if each is not None]
        return found[0] if found else None

    def add_weight(  # type: ignore[override]
        self,
        name: Any = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        **kwargs: Any,
    ) -> Any:
        """A variable of this layer; initializers, regularizers and constraints may be names."""
        if name is not None and not isinstance(name, str):  # Keras 1: add_weight(shape, ...)
            name, shape = None, name
        return super().add_weight(
            name or f"weight_{len(self._own_trainable) + len(self._own_fixed)}",
            () if shape is None else shape,
            dtype,
            initializers.get(initializer),
            regularizers.get(regularizer),
            trainable,
            constraints.get(constraint),
            **kwargs,
        )

    add_variable = add_weight  # type: ignore[assignment]

    # What it was called on

    @property
    def input(self) -> Any:
        """The input of its one call.

        Raises:
          AttributeError: it was not called, or several times.
        """
        return self._node().inputs

    @property
    def output(self) -> Any:
        """The output of its one call."""
        return self._node().outputs

    @property
    def input_shape(self) -> Any:
        """The shape of the input of its one call, batch included."""
        return nest.map_structure(_shape, self._node().inputs)

    @property
    def output_shape(self) -> Any:
        """The shape of the output of its one call, batch included."""
        return nest.map_structure(_shape, self._node().outputs)

    def get_input_at(self, node_index: int) -> Any:
        """The input of a call."""
        return self._nodes[node_index].inputs

    def get_output_at(self, node_index: int) -> Any:
        """The output of a call."""
        return self._nodes[node_index].outputs

    def get_input_shape_at(self, node_index: int) -> Any:
        """The shape of the input of a call, batch included."""
        return nest.map_structure(_shape, self._nodes[node_index].inputs)

    def get_output_shape_at(self, node_index: int) -> Any:
        """The shape of the output of a call, batch included."""
        return nest.map_structure(_shape, self._nodes[node_index].outputs)

    def _node(self) -> Node:
        if not self._nodes:
            raise AttributeError(f"Layer {self.name} has no inbound nodes: it was not called on a tensor yet")
        return self._nodes[0]

    # Weights

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights`, in the session of tf.keras.backend."""
        with self._in_graph():
            return batch_get_value(self.weights) if self.weights else []

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replaces the values of `weights`.

        Raises:
          ValueError: their number or shapes are others.
        """
        check_shapes(self.weights, weights)
        with self._in_graph():
            batch_set_value(list(zip(self.weights, weights, strict=True)))

    def count_params(self) -> int:
        """The number of numbers in all weights."""
        if not self.built and not self.weights:
            raise ValueError(f"Layer {self.name} has no variables before it is built: call it on something first.")
        return sum(each.shape.num_elements() or 0 for each in self.weights)

    def _in_graph(self) -> Any:
        weights = self.weights
        return (weights[0].graph if weights else get_default_graph()).as_default()

    # Copies and configs

    def get_config(self) -> dict[str, Any]:
        """The arguments that make a layer like this one, as values of JSON."""
        found: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if self.batch_input_shape is not None:
            found["batch_input_shape"] = list(self.batch_input_shape)
        found["dtype"] = "float32" if self.dtype is None else self.dtype.name
        return {**found, **configs.arguments_of(self)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """A layer from the result of `get_config`."""
        return cls(**config)

    def fresh(self, name: str | None = None) -> Any:
        """A layer made with the same arguments, without variables."""
        args, kwargs = self._given
        copied = type(self)(*map(fresh, args), **{key: fresh(value) for key, value in kwargs.items()})
        copied._name = copied._base_name = name or self.name
        copied.trainable = self.trainable
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = self.fresh()
        memo[id(self)] = copied
        return copied


def fresh(value: Any) -> Any:
    """The value with uncalled copies of the layers in it."""
    if isinstance(value, Layer):
        return value.fresh()
    if isinstance(value, list | tuple) and any(isinstance(each, Layer) for each in value):
        return type(value)(map(fresh, value))
    return value


def mask_of(tensor: Any) -> Any:
    """The mask of a tensor, or None."""
    return getattr(tensor, _MASK, None) if isinstance(tensor, Tensor) else None


def check_shapes(variables: Sequence[Any], values: Sequence[Any]) -> None:
    """Checks arrays for variables.

    Raises:
      ValueError: their number or shapes differ.
    """
    found = [np.shape(each) for each in values]
    expected = [tuple(each.shape.as_list()) for each in variables]
    if found != expected:
        raise ValueError(f"Weights of shapes {found} do not fit the model, which has {expected}")


def _put_masks(outputs: Any, mask: Any) -> None:
    tensors = nest.flatten(outputs)
    masks = list(mask) if isinstance(mask, list | tuple) else [mask] * len(tensors)
    for tensor, each in zip(tensors, masks, strict=False):
        if each is not None:
            vars(tensor)[_MASK] = each


def _layers_in(value: Any) -> Iterable[Layer]:
    if isinstance(value, Layer):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _layers_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _layers_in(each)


def _unique(base: str) -> str:
    """base, base_1, base_2, ... in this graph."""
    kept = get_default_graph().get_collection_ref(_NAMES)
    if not kept:
        kept.append(Counter())
    names: Counter[str] = kept[0]
    number = names[base]
    names[base] += 1
    return f"{base}_{number}" if number else base


def _unique_items(items: Iterable[Any]) -> list[Any]:
    return list({id(each): each for each in items}.values())


def _tensor(value: Any) -> Any:
    is_other = value is None or hasattr(value, "indices") or isinstance(value, Tensor | str)
    return value if is_other else convert_to_tensor(value)


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    return None if tensor.shape.ndims is None else tuple(tensor.shape.as_list())

