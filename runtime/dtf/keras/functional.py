"""Model: a graph of layers between inputs and outputs, trained in the session of tf.keras.backend.

    inputs = tf.keras.layers.Input((64,))
    outputs = tf.keras.layers.Dense(10, activation="softmax")(inputs)
    model = tf.keras.Model(inputs, outputs)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

The layers are in the graph of the inputs, so models with common layers have common weights. A model trains those
weights that were trainable when it was compiled.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops.array import placeholder
from dtf.build.ops.math import add_n
from dtf.build.ops.ordering import group
from dtf.build.ops.reductions import reduce_mean
from dtf.build.tensor import Operation, Tensor
from dtf.keras import backend, losses, optimizers
from dtf.keras.arrays import mini_batches
from dtf.keras.callbacks import CallbackList
from dtf.keras.calls import Input, applied, layers_of, node_of, nodes_between, recorded
from dtf.keras.epochs import History, Plan, evaluated, line_of
from dtf.keras.generators import TakesGenerators
from dtf.keras.metrics import named
from dtf.keras.printing import print_summary
from dtf.train.saver import Saver
from dtf.wire import dtypes

__all__ = ["Model"]


class Model(TakesGenerators):
    """A graph of layers.

    Args:
      inputs: a tensor of `tf.keras.layers.Input`, or a list of them.
      outputs: a tensor that layers made from the inputs, or a list of them.
      name: of the model.

    Attributes:
      inputs, outputs: lists of tensors.
      trainable: whether training changes its weights, also as a part of another model.
      stop_training: set by callbacks: no further epoch follows.

    Raises:
      TypeError: there are no inputs or outputs; a model by a subclass is not supported.
      ValueError: the outputs do not come from the inputs by layers alone.
    """

    def __init__(self, inputs: Any = None, outputs: Any = None, name: str | None = None) -> None:
        if inputs is None or outputs is None:
            raise TypeError("Model needs inputs and outputs; models by subclasses with a `call` are not supported")
        self.name = name or "model"
        self.inputs: list[Tensor] = nest.flatten(inputs)
        self.outputs: list[Tensor] = nest.flatten(outputs)
        self.trainable = True
        self.stop_training = False
        self._structure = outputs
        self._nodes = nodes_between(self.inputs, self.outputs)
        self._graph = self.inputs[0].graph
        self._program: _Program | None = None
        self._told: _Told | None = None
        self.history: History | None = None

    @property
    def input(self) -> Any:
        """The input, or the list of several."""
        return self.inputs[0] if len(self.inputs) == 1 else self.inputs

    @property
    def output(self) -> Any:
        """The output, or the list of several."""
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    @property
    def input_shape(self) -> Any:
        """The shape of the input, or a list of them, the number of examples included."""
        shapes = [backend.int_shape(each) for each in self.inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self) -> Any:
        """The shape of the output, or a list of them, the number of examples included."""
        shapes = [backend.int_shape(each) for each in self.outputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, for dicts of arrays."""
        return [each.op.name for each in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the layers that make the outputs."""
        return [_maker(each) for each in self.outputs]

    # As a layer

    def __call__(self, inputs: Any) -> Any:
        """The outputs for other tensors, by the same layers."""
        return recorded(self, inputs, {}, self.call(inputs))

    def call(self, inputs: Any) -> Any:
        """The outputs for other tensors, by the same layers.

        Raises:
          ValueError: there are not as many tensors as the model has inputs.
        """
        given = [convert_to_tensor(each) for each in nest.flatten(inputs)]
        if len(given) != len(self.inputs):
            raise ValueError(f"Model {self.name} takes {len(self.inputs)} inputs, not {len(given)}")
        values = {id(mine): each for mine, each in zip(self.inputs, given, strict=True)}

        def valued(structure: Any) -> Any:
            return nest.map_structure(
                lambda each: values.get(id(each), each) if isinstance(each, Tensor) else each, structure
            )

        with self._graph.as_default():
            for node in self._nodes:
                made = applied(node.layer, valued(node.inputs), valued(node.arguments))
                for mine, each in zip(nest.flatten(node.outputs), nest.flatten(made), strict=True):
                    values[id(mine)] = each
        return valued(self._structure)

    @property
    def layers(self) -> list[Any]:
        """The layers and models of the graph, those next to the inputs first."""
        return layers_of(self._nodes)

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
        """The variables, layer by layer."""
        return _unique([weight for layer in self.layers for weight in layer.weights])

    @property
    def trainable_weights(self) -> list[Any]:
        """Those variables that training changes."""
        if not self.trainable:
            return []
        return _unique([weight for layer in self.layers for weight in layer.trainable_weights])

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables."""
        trained = {id(each) for each in self.trainable_weights}
        return [each for each in self.weights if id(each) not in trained]

    variables = weights
    trainable_variables = trainable_weights

    @property
    def updates(self) -> list[Any]:
        """The operations that belong to a training step."""
        return [update for layer in self.layers if layer.trainable for update in layer.updates]

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """The losses of regularizers."""
        return _unique([loss for layer in self.layers for loss in layer.get_losses_for(inputs)])

    def count_params(self) -> int:
        """The number of numbers in all weights."""
        return sum(each.shape.num_elements() or 0 for each in self.weights)

    def summary(self, line_length: int | None = None, print_fn: Callable[[str], Any] = print) -> None:
        """Prints the layers, the shapes of their outputs, and how many numbers their weights have."""
        rows = [(each, backend.int_shape(each)) for each in self.inputs]
        shown = [(f"{each.op.name} (InputLayer)", str(shape), 0) for each, shape in rows]
        for layer in self.layers:
            node = next(each for each in self._nodes if each.layer is layer)
            kind = type(layer).__name__.lstrip("_")
            shape = str([backend.int_shape(each) for each in nest.flatten(node.outputs)])[1:-1]
            shown.append((f"{layer.name} ({kind})", shape, sum(each.shape.num_elements() for each in layer.weights)))
        print_summary(self.name, shown, self.count_params(), print_fn)

    # Training

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
    ) -> None:
        """Sets how the model is trained; its weights are unchanged.

        Args:
          optimizer: one of tf.train or tf.keras.optimizers, or a name.
          loss: a function of (y_true, y_pred) or its name; a list or a dict by output names for several outputs.
          metrics: a function or name, or a list of them; a list of lists or a dict for several outputs.
          loss_weights: the factors of the outputs' losses, a list or a dict; 1 by default.

        Raises:
          ValueError, TypeError: a name or function is invalid, or the loss is missing.
        """
        if loss is None:
            raise ValueError("compile needs a loss")
        names = self.output_names
        functions = [losses.get(each) for each in _by_output(loss, names, "loss", spread=True)]
        factors = [1.0] * len(names) if loss_weights is None else _by_output(loss_weights, names, "loss_weights")
        nested = isinstance(metrics, Mapping) or (bool(metrics) and isinstance(metrics[0], list | tuple))
        asked = _by_output(metrics, names, "metrics") if nested else [metrics or []] * len(names)
        asked = [[each] if isinstance(each, str) or callable(each) else list(each or []) for each in asked]
        self._told = _Told(optimizers.get(optimizer), functions, factors, asked)
        with self._graph.as_default():
            targets = [_target(output, each) for output, each in zip(self.outputs, functions, strict=True)]
            self._program = _Program(tuple(targets), self.figures(targets, self._told), list(self.trainable_weights))

    def figures(self, targets: Sequence[Any], told: _Told) -> dict[str, Tensor]:
        """The loss of a batch, the regularizers' included, the losses of several outputs, and the metrics."""
        names = self.output_names
        single = len(names) == 1
        found: dict[str, Tensor] = {}
        terms = []
        for index, (name, output, y) in enumerate(zip(names, self.outputs, targets, strict=True)):
            part = reduce_mean(told.losses[index](y, output))
            terms.append(part if told.factors[index] == 1 else told.factors[index] * part)
            if not single:
                found[f"{name}_loss"] = part
        for index, (name, output, y) in enumerate(zip(names, self.outputs, targets, strict=True)):
            for each in told.metrics[index]:
                title, metric = named(each, told.losses[index], output.shape[-1].value)
                found[title if single else f"{name}_{title}"] = reduce_mean(metric(y, output))
        terms += self.get_losses_for(None)
        return {"loss": add_n(terms) if len(terms) > 1 else terms[0], **found}

    def rebuilt(self, inputs: Sequence[Any]) -> Model:
        """The same model in the graph of other inputs, with new layers from the same recipes.

        Raises:
          ValueError: a layer has a class of the user's own, without a recipe.
        """
        values = {id(mine): Input(tensor=each) for mine, each in zip(self.inputs, inputs, strict=True)}

        def valued(structure: Any) -> Any:
            return nest.map_structure(lambda each: values.get(id(each), each), structure)

        for node in self._nodes:
            if node.recipe is None:
                raise ValueError(
                    f"Layer {node.layer.name} cannot be made in another graph; use layers of tf.keras.layers, or write "
                    "a model_fn for tf.estimator.Estimator"
                )
            made = node.recipe(valued(node.inputs), **valued(node.arguments))
            for mine, each in zip(nest.flatten(node.outputs), nest.flatten(made), strict=True):
                values[id(mine)] = each
        return Model([values[id(each)] for each in self.inputs], valued(self._structure), self.name)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
    ) -> History:
        """Trains on arrays of examples.

        Args:
          x: inputs [n, ...]; a list or a dict by names for several inputs.
          y: targets [n, ...]; a list or a dict by names for several outputs.
          batch_size: 32 by default.
          epochs: the epoch number at which to stop; counts from `initial_epoch`.
          verbose: 0 prints nothing, any other value a line an epoch.
          callbacks: of tf.keras.callbacks.
          validation_split: this part of the examples, the last ones, is evaluated after each epoch.
          validation_data: (x, y) to evaluate after each epoch instead.
          shuffle: whether each epoch has a new order (by numpy's global generator).

        Returns:
          A History.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the arrays do not fit each other or the model.
        """
        program = self._compiled()
        examples, held_out = self._examples(x, y), None
        if validation_data is not None:
            held_out = self._examples(*validation_data)
        elif validation_split:
            first = int(len(examples) * (1.0 - validation_split))
            rows = np.arange(len(examples))
            examples, held_out = examples.taken(rows[:first]), examples.taken(rows[first:])
        run = self._runner(program)
        plan = Plan(
            batch_size or 32, range(initial_epoch, epochs), shuffle, verbose, CallbackList(callbacks, self, epochs)
        )
        self.history = plan.run(run, program, examples, held_out)
        return self.history

    def train_on_batch(self, x: Any, y: Any) -> Any:
        """One training step. Returns what `evaluate` does, of this batch."""
        program, batch = self._compiled(), self._examples(x, y)
        run = self._runner(program)
        return _listed(run([program.train_op, program.train_figures], batch.feeds(program))[1])

    def evaluate(self, x: Any, y: Any, batch_size: int | None = None, verbose: int = 1) -> Any:
        """The mean loss of examples; with metrics or several outputs a list of it and of them.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the arrays do not fit each other or the model.
        """
        program, examples = self._compiled(), self._examples(x, y)
        figures: Any = evaluated(self._runner(program), program, examples, batch_size or 32)
        if verbose:
            print(line_of(figures), flush=True)
        return _listed(figures)

    def test_on_batch(self, x: Any, y: Any) -> Any:
        """`evaluate` of one batch."""
        return self.evaluate(x, y, batch_size=len(nest.flatten(x)[0]), verbose=0)

    def predict(self, x: Any, batch_size: int | None = None, verbose: int = 0) -> Any:
        """The outputs for inputs [n, ...]: an array, or a list of arrays.

        Raises:
          ValueError: the inputs do not fit the model.
        """
        arrays = self._inputs(x)
        session = self._session()
        parts = [
            session.run(self.outputs, {**self._phase(False), **_fed(self.inputs, [each[rows] for each in arrays])})
            for rows in mini_batches(np.arange(len(arrays[0])), batch_size or 32)
        ]
        if not parts:
            raise ValueError("The input has no examples")
        whole = [np.concatenate(each) for each in zip(*parts, strict=True)]
        return whole[0] if len(whole) == 1 else whole

    predict_on_batch = predict

    # Weights

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights`."""
        return self._session().run(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replaces the values of `weights`.

        Raises:
          ValueError: their number or shapes are others.
        """
        arrays = [np.asarray(each) for each in weights]
        expected = [tuple(each.shape.as_list()) for each in self.weights]
        if [each.shape for each in arrays] != expected:
            found = [each.shape for each in arrays]
            raise ValueError(f"Weights of shapes {found} do not fit the model, which has {expected}")
        session = self._session()
        for variable, array in zip(self.weights, arrays, strict=True):
            variable.load(array, session)

    def save_weights(self, filepath: str) -> None:
        """Writes a checkpoint of the weights: variables by names such as "dense/kernel"."""
        session = self._session()
        with self._graph.as_default():
            Saver(self.weights, max_to_keep=None).save(session, filepath, write_meta_graph=False, write_state=False)

    def load_weights(self, filepath: str) -> None:
        """Reads a checkpoint of `save_weights`.

        Raises:
          ValueError: the checkpoint does not exist.
          NotFoundError, InvalidArgumentError: it lacks a variable, or has another shape.
        """
        session = self._session()
        with self._graph.as_default():
            Saver(self.weights).restore(session, filepath)

    # Inside

    def _session(self) -> Any:
        with self._graph.as_default():
            return backend.get_session()

    def _phase(self, value: bool) -> dict[Any, Any]:
        with self._graph.as_default():
            phase = backend.learning_phase()
        return {} if isinstance(phase, bool) else {phase: value}

    def _compiled(self) -> _Program:
        if self._program is None:
            raise RuntimeError("The model must be compiled before it is trained or evaluated: call compile(...)")
        return self._program

    def _runner(self, program: _Program) -> Callable[..., Any]:
        """A session's `run` with the learning phase fed."""
        if program.train_op is None:
            assert self._told is not None
            with self._graph.as_default():
                own = {each.op for each in [*self.inputs, *program.targets]}
                updates = [each for each in self.updates if _only_from(each, own)]
                with control_dependencies(updates):
                    loss = program.figures["loss"]
                    program.train_op = group(self._told.optimizer.minimize(loss, var_list=program.variables))
        session = self._session()

        def run(fetches: Any, feed_dict: dict[Any, Any]) -> Any:
            training = isinstance(fetches, list) and fetches[0] is program.train_op
            return session.run(fetches, {**self._phase(training), **feed_dict})

        return run

    def _inputs(self, x: Any) -> list[np.ndarray]:
        given = _by_output(x, self.input_names, "inputs")
        arrays = [
            np.asarray(each, tensor.dtype.base_dtype.as_numpy_dtype)
            for each, tensor in zip(given, self.inputs, strict=True)
        ]
        for array, tensor in zip(arrays, self.inputs, strict=True):
            if not tensor.shape.is_compatible_with(array.shape):
                raise ValueError(f"Input {tensor.op.name} takes examples of shape {tensor.shape}, not {array.shape}")
        if len({len(each) for each in arrays}) != 1:
            raise ValueError(f"All inputs must have the same number of examples; they have {[len(a) for a in arrays]}")
        return arrays

    def _examples(self, x: Any, y: Any) -> _Examples:
        program = self._compiled()
        inputs = self._inputs(x)
        given = _by_output(y, self.output_names, "targets")
        targets = []
        for each, tensor in zip(given, program.targets, strict=True):
            array = np.asarray(each, tensor.dtype.as_numpy_dtype)
            if array.ndim == 0 or len(array) != len(inputs[0]):
                raise ValueError(
                    f"Inputs and targets must have the same number of examples; there are {len(inputs[0])} inputs, "
                    f"and the targets have the shape {array.shape}"
                )
            shape = [len(array), *[-1 if size is None else size for size in tensor.shape.as_list()[1:]]]
            try:
                targets.append(array.reshape(shape))
            except ValueError:
                message = f"Targets of shape {array.shape[1:]} differ from the model's output shape: {tuple(shape[1:])}"
                raise ValueError(message) from None
        return _Examples(self.inputs, inputs, targets)


@dataclass(frozen=True)
class _Told:
    """The arguments of `compile`: one loss, factor and list of metrics for each output."""

    optimizer: Any
    losses: list[Any]
    factors: list[Any]
    metrics: list[list[Any]]


@dataclass(eq=False)
class _Program:
    """The compiled parts of a model."""

    targets: tuple[Tensor, ...]
    figures: dict[str, Tensor]
    variables: list[Any]
    train_op: Any = None

    @property
    def train_figures(self) -> dict[str, Tensor]:
        return self.figures


@dataclass(frozen=True)
class _Examples:
    tensors: list[Tensor]
    x: list[np.ndarray]
    y: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.x[0])

    def taken(self, rows: np.ndarray) -> _Examples:
        return _Examples(self.tensors, [each[rows] for each in self.x], [each[rows] for each in self.y])

    def feeds(self, program: _Program) -> dict[Any, Any]:
        return {**_fed(self.tensors, self.x), **_fed(program.targets, self.y)}


def _fed(tensors: Sequence[Tensor], arrays: Sequence[np.ndarray]) -> dict[Any, Any]:
    return dict(zip(tensors, arrays, strict=True))


def _maker(tensor: Tensor) -> str:
    node = node_of(tensor)
    return tensor.op.name if node is None or node.layer is None else node.layer.name


def _target(output: Tensor, loss: Any) -> Tensor:
    if losses.takes_classes(loss):
        return placeholder(dtypes.int64, output.shape[:-1], name="target")
    return placeholder(output.dtype, output.shape, name="target")


def _by_output(given: Any, names: list[str], what: str, spread: bool = False) -> list[Any]:
    """One value for each name, from a list, a dict or a single value."""
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        if missing and what != "metrics":
            raise ValueError(f"The {what} lack {missing}; they are {sorted(given)}")
        return [given.get(name) for name in names]
    if len(names) == 1:
        is_one = isinstance(given, list | tuple) and len(given) == 1 and what != "metrics"
        return [given[0]] if is_one and not np.isscalar(given[0]) else [given]
    if spread and not isinstance(given, list | tuple):
        return [given] * len(names)
    if not isinstance(given, list | tuple) or len(given) != len(names):
        raise ValueError(f"The {what} must be a list or a dict, one for each of {names}")
    return list(given)


def _only_from(update: Any, own: set[Operation]) -> bool:
    """Whether an operation needs no placeholders but `own`."""
    waiting: list[Operation] = [update.op if isinstance(update, Tensor) else update]
    seen: set[Operation] = set()
    while waiting:
        op = waiting.pop()
        if op in seen or op in own:
            continue
        seen.add(op)
        if op.type == "Placeholder":
            return False
        waiting.extend([*[each.op for each in op.inputs], *op.control_inputs])
    return True


def _unique(items: list[Any]) -> list[Any]:
    return list({id(each): each for each in items}.values())


def _listed(figures: Mapping[str, Any]) -> Any:
    values = [float(value) for value in figures.values()]
    return values[0] if len(values) == 1 else values
