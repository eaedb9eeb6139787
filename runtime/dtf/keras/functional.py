"""Model: a graph of layers between inputs and outputs, or a subclass with a `call`; in tf.keras.backend's session.

    inputs = tf.keras.layers.Input((64,))
    outputs = tf.keras.layers.Dense(10, activation="softmax")(inputs)
    model = tf.keras.Model(inputs, outputs)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

The layers are in the graph of the inputs, so models with common layers have common weights. A model trains those
weights that were trainable when it was compiled. The inputs of a subclass are made for the first arrays that it gets.
`training` owns the loops, `saving` the files.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph
from dtf.build.tensor import Tensor
from dtf.keras import backend, saving
from dtf.keras.base import Layer, check_shapes
from dtf.keras.batches import in_arrays
from dtf.keras.calls import Input, InputLayer, applied, layers_of, node_of, nodes_between, recorded
from dtf.keras.layers import uncalled
from dtf.keras.printing import print_summary
from dtf.keras.training import Trains
from dtf.train.saver import Saver

__all__ = ["Model"]


class Model(Trains, Layer):
    """A graph of layers, or a subclass that makes layers in `__init__` and calls them in `call`.

    Args:
      inputs: a tensor of `tf.keras.layers.Input`, or a list of them; none for a subclass.
      outputs: a tensor that layers made from the inputs, or a list of them.
      name: of the model.

    Attributes:
      inputs, outputs: lists of tensors.
      trainable: whether training changes its weights, also as a part of another model.
      stop_training: set by callbacks: no further epoch follows.

    Raises:
      TypeError: a model that is no subclass has no inputs or outputs.
      ValueError: the outputs do not come from the inputs by layers alone.
    """

    def __init__(
        self, inputs: Any = None, outputs: Any = None, name: str | None = None, trainable: bool = True, **kwargs: Any
    ) -> None:
        if isinstance(inputs, str):  # Model("name") of a subclass
            inputs, name = None, inputs
        if type(self) is Model and (inputs is None or outputs is None):
            raise TypeError("Model needs inputs and outputs; or write a subclass with a `call`")
        Layer.__init__(self, trainable=trainable, name=name, **{k: v for k, v in kwargs.items() if k != "dynamic"})
        self.stop_training = False
        self.history: Any = None
        self._graph_of_calls: Graph | None = None
        self._program, self._told = None, None
        self._own_metrics: list[Any] = []
        self.inputs, self.outputs = [], []
        self._is_made = False
        self._nodes_inside: list[Any] = []
        if inputs is not None and outputs is not None:
            self._take(inputs, outputs)

    def _take(self, inputs: Any, outputs: Any) -> None:
        """Makes the model of tensors."""
        self._input_structure = inputs
        self.inputs, self.outputs = nest.flatten(inputs), nest.flatten(outputs)
        self._structure = outputs
        self._nodes_inside = nodes_between(self.inputs, self.outputs)
        self._graph = self._graph_of_calls = self.inputs[0].graph
        object.__setattr__(self, "_inner", [each for each in layers_of(self._nodes_inside) if _has_weights(each)])
        self._is_made = self.built = True

    def _own_graph(self) -> Graph:
        return self._graph_of_calls or self._graph or get_default_graph()

    @property
    def _is_network(self) -> bool:
        return bool(self._nodes_inside)

    @property
    def input(self) -> Any:
        """The input, or the list of several."""
        self._require_made("inputs")
        return self.inputs[0] if len(self.inputs) == 1 else self.inputs

    @property
    def output(self) -> Any:
        """The output, or the list of several."""
        self._require_made("outputs")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    @property
    def input_shape(self) -> Any:
        """The shape of the input, or a list of them, the number of examples included."""
        self._require_made("input shape")
        shapes = [backend.int_shape(each) for each in self.inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self) -> Any:
        """The shape of the output, or a list of them, the number of examples included."""
        self._require_made("output shape")
        shapes = [backend.int_shape(each) for each in self.outputs]
        return shapes[0] if len(shapes) == 1 else shapes

    def _require_made(self, what: str) -> None:
        if not self._is_made:
            raise AttributeError(f"The {what} of model {self.name} are not known before it is built or trained")

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, for dicts of arrays."""
        return [_maker(each, f"input_{number}") for number, each in enumerate(self.inputs, 1)]

    @property
    def output_names(self) -> list[str]:
        """The names of the layers that make the outputs; output_1, ... of a subclass."""
        if not self._is_network:
            return [f"output_{number}" for number in range(1, len(self.outputs) + 1)]
        names: list[str] = []
        for each in self.outputs:
            name, number = _maker(each, each.op.name), 0
            while (unique := f"{name}_{number}" if number else name) in names:
                number += 1
            names.append(unique)
        return names

    # As a layer

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for other tensors, by the same layers."""
        if not self._is_network:
            return super().__call__(inputs, *args, **kwargs)
        return recorded(self, inputs, {}, self.call(inputs, *args, **kwargs))

    apply = __call__

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for other tensors, by the same layers.

        Raises:
          ValueError: there are not as many tensors as the model has inputs.
          NotImplementedError: a subclass does not have this method.
        """
        if not self._is_network:
            raise NotImplementedError(f"{type(self).__name__} needs a method `call`, from inputs to outputs")
        if isinstance(inputs, Mapping):
            inputs = [inputs[name] for name in self.input_names]
        given = [convert_to_tensor(each) for each in nest.flatten(inputs)]
        if len(given) != len(self.inputs):
            raise ValueError(f"Model {self.name} takes {len(self.inputs)} inputs, not {len(given)}")
        values = {id(mine): each for mine, each in zip(self.inputs, given, strict=True)}

        def valued(structure: Any) -> Any:
            return nest.map_structure(
                lambda each: values.get(id(each), each) if isinstance(each, Tensor) else each, structure
            )

        with given[0].graph.as_default():
            for node in self._nodes_inside:
                if isinstance(node.layer, InputLayer):
                    continue
                arguments = valued(node.arguments)
                if training is not None and "training" not in arguments and _takes_training(node.layer):
                    arguments = {**arguments, "training": training}
                made = applied(node.layer, valued(node.inputs), arguments)
                for mine, each in zip(nest.flatten(node.outputs), nest.flatten(made), strict=True):
                    values[id(mine)] = each
        return valued(self._structure)

    def build(self, input_shape: Any) -> None:
        """Makes the weights of a subclass for batches of this shape, or of a list of shapes."""
        if self._is_made or self._is_network:
            return
        several = isinstance(input_shape, list) and any(isinstance(each, list | tuple) for each in input_shape)
        shapes = input_shape if several else [input_shape]
        if self._graph is not None and self._scope is not None and not self._is_building:
            self.built = True  # called on tensors: `call` makes the layers
            return
        self._make([np.zeros([1 if size is None else size for size in tuple(shape)]) for shape in shapes], shapes)

    _is_building = False

    def _made_for(self, x: Any) -> None:
        if self._is_made:
            return
        arrays = [each.to_numpy() if hasattr(each, "to_numpy") else np.asarray(each) for each in in_arrays(x)]
        self._make(arrays, [(None, *each.shape[1:]) for each in arrays], x if isinstance(x, Mapping) else None)

    def _make(
        self, arrays: Sequence[np.ndarray], shapes: Sequence[Any], names: Mapping[str, Any] | None = None
    ) -> None:
        """Makes the inputs for arrays, and calls the model on them."""
        self._graph_of_calls = self._graph or get_default_graph()
        with self._graph_of_calls.as_default():
            made = [
                Input(batch_shape=list(shape), dtype=array.dtype if array.dtype.kind in "iu" else "float32")
                for array, shape in zip(arrays, shapes, strict=True)
            ]
            given: Any = made[0] if len(made) == 1 else made
            if names is not None:
                given = dict(zip(names, made, strict=True))
            outputs = self(given)
        self.inputs, self.outputs = made, nest.flatten(outputs)
        self._structure = outputs
        self._is_made = True
        if self._told is not None:
            self._program = None

    @property
    def layers(self) -> list[Any]:
        """The layers and models of the graph, those next to the inputs first; of a subclass as it has made them."""
        return layers_of(self._nodes_inside) if self._is_network else list(self._inner)

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer of a name or at an index.

        Raises:
          ValueError: the layer does not exist.
        """
        layers = self.layers
        if index is not None and index < len(layers):
            return layers[index]
        found = [each for each in layers if each.name == name]
        if not found:
            names = [each.name for each in layers]
            raise ValueError(f"No such layer: {name if index is None else index}; the layers are {names}")
        return found[0]

    @property
    def weights(self) -> list[Any]:
        """The variables, layer by layer; those of a subclass the trainable ones first."""
        if not self._is_network:
            return [*self.trainable_weights, *self.non_trainable_weights]
        return _unique([weight for layer in self.layers for weight in layer.weights])

    @property
    def updates(self) -> list[Any]:
        """The operations that belong to a training step."""
        own = [each for each, _ in self._own_updates]
        return _unique([*own, *[update for each in self.layers if each.trainable for update in each.updates]])

    @property
    def losses(self) -> list[Any]:
        """The losses of regularizers and of `add_loss`."""
        own = [each for each, _ in self._own_losses]
        return _unique([*own, *[loss for each in self.layers for loss in each.losses]])

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses of regularizers."""
        return _unique([loss for layer in self.layers for loss in layer.get_losses_for(inputs)])

    @property
    def state_updates(self) -> list[Any]:
        """The operations that keep the states of stateful layers, to run in each step, while training or not."""
        return _unique([update for layer in self.layers for update in getattr(layer, "state_updates", ())])

    @property
    def stateful(self) -> bool:  # type: ignore[override]
        """Whether a layer of the model is stateful."""
        return any(getattr(each, "stateful", False) for each in self.layers)

    def reset_states(self) -> None:
        """Sets the states of stateful layers to zeros, also of those in inner models."""
        for layer in self.layers:
            if getattr(layer, "stateful", False) and hasattr(layer, "reset_states"):
                layer.reset_states()

    def reset_metrics(self) -> None:
        """Begins the metrics anew."""
        self._reset()

    def count_params(self) -> int:
        """The number of numbers in all weights."""
        return sum(each.shape.num_elements() or 0 for each in self.weights)

    def summary(
        self, line_length: int | None = None, positions: Any = None, print_fn: Callable[[str], Any] | None = None
    ) -> None:
        """Prints the layers, the shapes of their outputs, and how many numbers their weights have."""
        if callable(line_length):
            line_length, print_fn = None, line_length
        shown = []
        for layer in self.layers:
            node = next((each for each in self._nodes_inside if each.layer is layer), None)
            if node is None:
                node = layer._nodes[0] if getattr(layer, "_nodes", None) else None
            kind = type(layer).__name__.lstrip("_")
            shape = "?" if node is None else str([backend.int_shape(each) for each in nest.flatten(node.outputs)])[1:-1]
            shown.append((f"{layer.name} ({kind})", shape, sum(each.shape.num_elements() for each in layer.weights)))
        print_summary(self.name, shown, self.count_params(), print_fn or print)

    # Copies

    def rebuilt(self, inputs: Sequence[Any]) -> Model:
        """The same model in the graph of other inputs, with new layers made with the same arguments.

        Raises:
          ValueError: a layer is not one of tf.keras.
        """
        values = {id(mine): Input(tensor=each) for mine, each in zip(self.inputs, inputs, strict=True)}
        made: dict[int, Any] = {}

        def valued(structure: Any) -> Any:
            return nest.map_structure(lambda each: values.get(id(each), each), structure)

        for node in self._nodes_inside:
            layer = node.layer
            if isinstance(layer, InputLayer):
                continue
            if isinstance(layer, Model) and layer._is_network and type(layer).call is Model.call:
                outputs = layer.rebuilt([valued(each) for each in nest.flatten(node.inputs)]).outputs
            else:
                if id(layer) not in made:
                    made[id(layer)] = layer.fresh() if isinstance(layer, Layer) else uncalled(layer)
                outputs = made[id(layer)](valued(node.inputs), **valued(node.arguments))
            for mine, each in zip(nest.flatten(node.outputs), nest.flatten(outputs), strict=True):
                values[id(mine)] = each
        return Model([values[id(each)] for each in self.inputs], valued(self._structure), self.name)

    # Weights

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights`."""
        return self._session().run(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replaces the values of `weights`.

        Raises:
          ValueError: their number or shapes are others.
        """
        check_shapes(self.weights, weights)
        session = self._session()
        for variable, array in zip(self.weights, weights, strict=True):
            variable.load(np.asarray(array), session)

    def _named_weights(self) -> dict[str, Any]:
        """The weights by names for checkpoints: "dense/kernel", ...; unnamed layers are numbered within the model."""
        taken = {each.name for each in self.layers if getattr(each, "_is_named", True)}
        found: dict[str, Any] = {}
        numbers: dict[str, int] = {}
        for layer in self.layers:
            if not layer.weights:
                continue
            name = layer.name
            if not getattr(layer, "_is_named", True):
                kind = name.rstrip("0123456789").rstrip("_") if name[-1].isdigit() else name
                while True:
                    number = numbers.get(kind, 0)
                    numbers[kind] = number + 1
                    name = f"{kind}_{number}" if number else kind
                    if name not in taken:
                        break
            scope = layer._scope.name if getattr(layer, "_scope", None) is not None else ""
            for weight in layer.weights:
                own = weight.op.name
                short = own[len(scope) + 1 :] if scope and own.startswith(scope + "/") else own.rpartition("/")[2]
                key = f"{name}/{short}"
                while key in found:
                    key += "_1"
                found[key] = weight
        return found

    def save_weights(self, filepath: str, overwrite: bool = True, save_format: str | None = None) -> None:
        """Writes the weights: into an HDF5 file if the name ends in .h5, .hdf5 or .keras, else as a checkpoint.

        A checkpoint has variables by names such as "dense/kernel".
        """
        if save_format in ("h5", "hdf5") or (save_format is None and saving.is_hdf5(filepath)):
            saving.save_weights_hdf5(self, filepath)
            return
        session = self._session()
        with self._own_graph().as_default():
            saver = Saver(self._named_weights(), max_to_keep=None)
            saver.save(session, filepath, write_meta_graph=False, write_state=False)

    def load_weights(self, filepath: str, by_name: bool = False) -> None:
        """Reads the weights that `save_weights` wrote, here or in TensorFlow (HDF5).

        Args:
          by_name: whether layers are matched by their names, and others stay as they are; HDF5 files only.

        Raises:
          ValueError: the file does not exist, or does not fit.
          NotFoundError, InvalidArgumentError: a checkpoint lacks a variable, or has another shape.
        """
        if saving.is_hdf5(filepath):
            saving.load_weights_hdf5(self, filepath, by_name)
            return
        session = self._session()
        with self._own_graph().as_default():
            Saver(self._named_weights()).restore(session, filepath)

    def save(self, filepath: str, overwrite: bool = True, include_optimizer: bool = True, **kwargs: Any) -> None:
        """Writes the model, its weights, and how it was compiled, into an HDF5 file; needs h5py."""
        saving.save_model(self, filepath, overwrite, include_optimizer, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The layers and their connections, as values of JSON."""
        if not self._is_network:
            raise NotImplementedError(
                f"{type(self).__name__} is a subclass of Model: write its get_config, or call save_weights"
            )
        return saving.config_of(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Any = None) -> Any:
        """A model from the result of `get_config`."""
        if "layers" not in config:
            return cls(**config)
        return saving.model_of(config, custom_objects)

    def to_json(self, **kwargs: Any) -> str:
        """The config as text; kwargs go to json.dumps."""
        return saving.to_json(self, **kwargs)

    def fresh(self, name: str | None = None) -> Any:
        """A copy of the model without weights, in the default graph."""
        if not self._is_network or type(self).call is not Model.call:
            return super().fresh(name)
        inputs = [Input(batch_shape=each.shape.as_list(), dtype=each.dtype.base_dtype) for each in self.inputs]
        return self.rebuilt(inputs)


def _has_weights(layer: Any) -> bool:
    return hasattr(layer, "trainable_weights") and not isinstance(layer, InputLayer)


def _takes_training(layer: Any) -> bool:
    import inspect

    return "training" in inspect.signature(layer.call).parameters


def _maker(tensor: Tensor, default: str) -> str:
    node = node_of(tensor)
    return default if node is None or node.layer is None else node.layer.name


def _unique(items: Iterable[Any]) -> list[Any]:
    return list({id(each): each for each in items}.values())


saving.MODELS["Model"] = Model
