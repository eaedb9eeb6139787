"""Sequential: a stack of layers with its weights, trained in this process or by the workers of a cluster.

    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax", input_shape=(64,))])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

A model is its layers and its weights. By itself it has a graph and a session of its own, which are made when its input
shape is known. In a cluster each worker runs the same program, with its own server and its own part of the data:

    model.fit(x[index::workers], y[index::workers], epochs=5, server=server, checkpoint_dir="checkpoints")

The weights are then on the ps tasks while `fit` runs, and every worker pushes its gradients without waiting for the
others. The chief (the job "chief", else worker 0) starts with its model's weights or the last checkpoint. At the end
each worker copies the weights from the ps tasks. A restarted worker begins its epochs anew, with the current weights.
A ps calls `server.join()`. `model_to_estimator` is the other way, with a number of steps for all together.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Sequential
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import device
from dtf.build.graph import Graph
from dtf.build.variable_collections import global_variables_initializer
from dtf.keras import losses, optimizers
from dtf.keras.arrays import Examples, examples_of, mini_batches
from dtf.keras.callbacks import CallbackList
from dtf.keras.calls import Input, recorded
from dtf.keras.epochs import History, Plan, evaluated, line_of
from dtf.keras.functional import Model
from dtf.keras.generators import TakesGenerators
from dtf.keras.layers import Recipe, recipe_of
from dtf.keras.printing import print_summary
from dtf.keras.program import Compiled, Program, make_program
from dtf.server import Server
from dtf.session import Session
from dtf.train.device_setter import replica_device_setter
from dtf.train.monitored_session import MonitoredTrainingSession
from dtf.train.saver import Saver
from dtf.train.scaffold import Scaffold
from dtf.wire.cluster import ClusterSpec
from dtf.wire.device import task_name
from dtf.wire.pb import config_pb2

_CHIEFS = ("chief", "master")


class Sequential(TakesGenerators):
    """A stack of layers.

    Args:
      layers: the layers to `add`.
      name: of the model.
    """

    def __init__(self, layers: Sequence[Any] | None = None, name: str | None = None) -> None:
        self.name = name or "sequential"
        self._recipes: list[Recipe] = []
        self._compiled: Compiled | None = None
        self._input_shape: tuple[int | None, ...] | None = None
        self._local: _Local | None = None
        self._called: Model | None = None
        self.trainable = True
        self.stop_training = False
        for layer in layers or ():
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Adds a layer at the end; existing weights are initialised again.

        Raises:
          TypeError: it is neither of tf.keras.layers nor a tf.layers.Layer.
        """
        self._require_uncalled()
        recipe = recipe_of(layer)
        if not self._recipes and recipe.input_shape is not None:
            self._input_shape = recipe.input_shape
        self._recipes.append(recipe)
        self._forget()

    def pop(self) -> None:
        """Removes the last layer.

        Raises:
          ValueError: the model has none.
        """
        self._require_uncalled()
        if not self._recipes:
            raise ValueError("There are no layers in the model.")
        self._recipes.pop()
        self._forget()

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Sequence[Any] | None = None
    ) -> None:
        """Sets how the model is trained; its weights are unchanged.

        Args:
          optimizer: one of tf.train or tf.keras.optimizers, or a name.
          loss: a function of (y_true, y_pred), or its name.
          metrics: a function or name; "accuracy" is the accuracy that fits the loss.

        Raises:
          ValueError, TypeError: a name or a function is none.
        """
        if loss is None:
            raise ValueError("compile needs a loss")
        if self._called is not None:
            self._called.trainable = self.trainable
            self._called.compile(optimizer, loss, metrics)
            return
        self._compiled = Compiled(optimizers.get(optimizer), losses.get(loss), tuple(metrics or ()))
        if self._local is not None:
            weights = self.get_weights()
            self._forget()
            self.set_weights(weights)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Makes the weights for batches of this shape, the number of examples included."""
        self._take_shape(tuple(input_shape[1:]))
        if self._called is None:
            self._here()

    # As a layer of a functional model

    def __call__(self, inputs: Any) -> Any:
        """The outputs for a tensor. From now on the model is in its graph, and in the session of tf.keras.backend.

        Raises:
          ValueError: the tensor has another shape than the model takes.
        """
        inputs = convert_to_tensor(inputs)
        if self._called is None:
            self._take_shape(tuple(inputs.shape.as_list()[1:]))
            assert self._input_shape is not None
            weights = self.get_weights() if self._local is not None else None
            with inputs.graph.as_default():
                first = outputs = Input(self._input_shape, dtype=inputs.dtype.base_dtype)
                for recipe in self._recipes:
                    outputs = recipe(outputs)
                self._called = Model(first, outputs, self.name)
                if weights is not None:
                    self._called.set_weights(weights)
                if self._compiled is not None:
                    compiled = self._compiled
                    self._called.compile(compiled.optimizer, compiled.loss, compiled.metrics)
            self._forget()
        self._called.trainable = self.trainable
        return recorded(self, inputs, {}, self._called.call(inputs))

    def call(self, inputs: Any) -> Any:
        """The outputs for a tensor."""
        return self(inputs)

    @property
    def trainable_weights(self) -> list[Any]:
        """Those variables that training changes."""
        if not self.trainable:
            return []
        made = self._called.layers if self._called is not None else self.layers
        return [weight for layer in made for weight in layer.trainable_weights]

    @property
    def updates(self) -> list[Any]:
        """The operations that belong to a training step."""
        return [] if self._called is None else self._called.updates

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses of regularizers."""
        return [] if self._called is None else self._called.get_losses_for(inputs)

    # Training

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        validation_split: float = 0.0,
        validation_data: tuple[Any, Any] | None = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
        server: Server | None = None,
        checkpoint_dir: str | None = None,
        save_checkpoint_steps: int | None = None,
        callbacks: Any = None,
    ) -> History:
        """Trains on arrays of examples.

        Args:
          x: inputs [n, ...].
          y: targets [n, ...]: as many numbers for an example as there are outputs, or the number of its class.
          batch_size: 32 by default; the last batch of an epoch may be smaller.
          epochs: the epoch number at which to stop; counts from `initial_epoch`.
          verbose: 0 prints nothing, any other value a line an epoch.
          validation_split: this part of the examples, the last ones, is held out and evaluated after each epoch.
          validation_data: (x, y) to evaluate after each epoch instead.
          shuffle: whether each epoch has a new order (by numpy's global generator).
          server: a tf.train.Server of this worker: train in its cluster, see above.
          checkpoint_dir: folder of the chief's checkpoints and summaries in a cluster.
          save_checkpoint_steps: steps between two of them; every ten minutes by default.
          callbacks: of tf.keras.callbacks.

        Returns:
          A History.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the arrays do not fit each other or the model.
        """
        if self._called is not None:
            return self._called.fit(
                x, y, batch_size, epochs, verbose, callbacks, validation_split, validation_data, shuffle, initial_epoch
            )
        compiled = self._required_compiled()
        self._take_shape(np.shape(x)[1:])
        classes = losses.takes_classes(compiled.loss)
        if validation_data is not None:
            held_out: Examples | None = examples_of(*validation_data, self._is_ids, classes)
            examples = examples_of(x, y, self._is_ids, classes)
        else:
            examples, held_out = examples_of(x, y, self._is_ids, classes).split(validation_split)
        called = CallbackList(callbacks, self, epochs)
        plan = Plan(batch_size or 32, range(initial_epoch, epochs), shuffle, verbose, called)
        if server is not None:
            return self._fit_in_cluster(examples, held_out, plan, server, checkpoint_dir, save_checkpoint_steps)
        if checkpoint_dir is not None:
            raise ValueError("checkpoint_dir is for training in a cluster, with a server; see save_weights")
        local = self._here()
        return plan.run(local.session.run, local.program, examples, held_out)

    def train_on_batch(self, x: Any, y: Any) -> Any:
        """One training step. Returns what `evaluate` does, of this batch."""
        if self._called is not None:
            return self._called.train_on_batch(x, y)
        batch = self._batch(x, y)
        local = self._here()
        fetches = [local.program.train_op, local.program.train_figures]
        return _listed(local.session.run(fetches, batch.feeds(local.program))[1])

    # Use

    def evaluate(self, x: Any, y: Any, batch_size: int | None = None, verbose: int = 1) -> Any:
        """The mean loss of examples; with metrics a list of it and of them.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the arrays do not fit each other or the model.
        """
        if self._called is not None:
            return self._called.evaluate(x, y, batch_size, verbose)
        examples = self._batch(x, y)
        local = self._here()
        figures = evaluated(local.session.run, local.program, examples, batch_size or 32)
        if verbose:
            print(line_of(figures), flush=True)
        return _listed(figures)

    def test_on_batch(self, x: Any, y: Any) -> Any:
        """`evaluate` of one batch."""
        return self.evaluate(x, y, batch_size=max(1, len(x)), verbose=0)

    def predict(self, x: Any, batch_size: int | None = None, verbose: int = 0) -> np.ndarray:
        """The outputs for inputs [n, ...].

        Raises:
          ValueError: the inputs do not fit the model.
        """
        if self._called is not None:
            return self._called.predict(x, batch_size)
        self._take_shape(np.shape(x)[1:])
        inputs = examples_of(x, None, self._is_ids, False).x
        local = self._here()
        parts = [
            local.session.run(local.program.outputs, {local.program.x: inputs[rows]})
            for rows in mini_batches(np.arange(len(inputs)), batch_size or 32)
        ]
        if not parts:
            raise ValueError("The input has no examples")
        return np.concatenate(parts)

    predict_on_batch = predict

    def predict_classes(self, x: Any, batch_size: int | None = None) -> np.ndarray:
        """The class with the greatest output for each example; of a single output whether it is above 0.5."""
        outputs = self.predict(x, batch_size)
        return outputs.argmax(-1) if outputs.shape[-1] > 1 else (outputs > 0.5).astype(np.int32)

    # Weights

    @property
    def layers(self) -> list[Any]:
        """The layers of `tf.layers` that the recipes have become.

        Raises:
          ValueError: the input shape is not known yet.
        """
        return self._called.layers if self._called is not None else list(self._here().program.made.layers)

    @property
    def weights(self) -> list[Any]:
        """The variables, layer by layer, in the model's own graph."""
        return self._called.weights if self._called is not None else self._here().program.made.weights

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights`."""
        if self._called is not None:
            return self._called.get_weights()
        local = self._here()
        return local.session.run(local.program.made.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replaces the values of `weights`.

        Raises:
          ValueError: their number or shapes are others.
        """
        if self._called is not None:
            self._called.set_weights(weights)
            return
        local = self._here()
        _set_weights(local.session, local.program, weights)

    def save_weights(self, filepath: str) -> None:
        """Writes a checkpoint of the weights: variables by names such as "dense/kernel"."""
        if self._called is not None:
            self._called.save_weights(filepath)
            return
        local = self._here()
        with local.graph.as_default():
            local.saver().save(local.session, filepath, write_meta_graph=False, write_state=False)

    def load_weights(self, filepath: str) -> None:
        """Reads a checkpoint, one of `save_weights` or of training in a cluster.

        Raises:
          ValueError: the checkpoint does not exist.
          NotFoundError, InvalidArgumentError: it lacks a variable, or has another shape.
        """
        if self._called is not None:
            self._called.load_weights(filepath)
            return
        local = self._here()
        with local.graph.as_default():
            local.saver().restore(local.session, filepath)

    def count_params(self) -> int:
        """The number of numbers in all weights."""
        return sum(layer.count_params() for layer in self.layers)

    def summary(self, print_fn: Callable[[str], Any] = print) -> None:
        """Prints the layers, the shapes of their outputs, and how many numbers their weights have."""
        if self._called is not None:
            self._called.summary(print_fn=print_fn)
            return
        program = self._here().program
        rows = [
            (f"{layer.name} ({type(layer).__name__.lstrip('_')})", str(tuple(shape.as_list())), layer.count_params())
            for layer, shape in zip(program.made.layers, program.shapes, strict=True)
        ]
        print_summary(self.name, rows, self.count_params(), print_fn)

    # Inside

    @property
    def _is_ids(self) -> bool:
        return bool(self._recipes) and self._recipes[0].takes_ids

    def _batch(self, x: Any, y: Any) -> Examples:
        compiled = self._required_compiled()
        self._take_shape(np.shape(x)[1:])
        return examples_of(x, y, self._is_ids, losses.takes_classes(compiled.loss))

    def _required_compiled(self) -> Compiled:
        if self._compiled is None:
            raise RuntimeError("The model must be compiled before it is trained or evaluated: call compile(...)")
        return self._compiled

    def _take_shape(self, shape: tuple[int | None, ...]) -> None:
        """The shape of one example, as given or as first fed."""
        if self._input_shape is None:
            self._input_shape = shape
        fits = len(shape) == len(self._input_shape) and all(
            None in (one, other) or one == other for one, other in zip(shape, self._input_shape, strict=True)
        )
        if not fits:
            raise ValueError(f"The model takes examples of shape {self._input_shape}, not {shape}")

    def _here(self) -> _Local:
        """The model's own graph and session."""
        if self._local is None:
            if not self._recipes:
                raise ValueError("The model has no layers: add some")
            if self._input_shape is None:
                raise ValueError(
                    "The model's input shape is not known: give the first layer an input_shape, or call fit or build"
                )
            self._local = _Local(self._recipes, self._input_shape, self._compiled)
        return self._local

    def _require_uncalled(self) -> None:
        if self._called is not None:
            raise ValueError(f"Model {self.name} was called on a tensor; its layers can no longer be changed")

    def _forget(self) -> None:
        if self._local is not None:
            self._local.session.close()
        self._local = None

    def _fit_in_cluster(
        self,
        examples: Examples,
        held_out: Examples | None,
        plan: Plan,
        server: Server,
        checkpoint_dir: str | None,
        save_checkpoint_steps: int | None,
    ) -> History:
        place = server.server_def
        cluster = ClusterSpec(place.cluster)
        if place.job_name == "ps":
            raise ValueError("A ps only serves: call server.join() there, not fit")
        assert self._input_shape is not None
        is_chief = place.job_name in _CHIEFS or (place.task_index == 0 and not set(_CHIEFS) & set(cluster.jobs))
        here = task_name(place.job_name, place.task_index).replace("/replica:0", "")
        begin_with = self.get_weights() if self._local is not None else None
        with Graph().as_default(), device(replica_device_setter(worker_device=here, cluster=cluster)):
            program = make_program(self._recipes, self._input_shape, self._compiled)

            def begin(scaffold: Scaffold, session: Any) -> None:
                if begin_with is not None:
                    _set_weights(session, program, begin_with)

            with MonitoredTrainingSession(
                server.target,
                is_chief,
                checkpoint_dir,
                Scaffold(init_fn=begin),
                save_checkpoint_steps=save_checkpoint_steps,
                save_checkpoint_secs=None if save_checkpoint_steps else 600,
                config=config_pb2.ConfigProto(device_filters=["/job:ps", here]),
            ) as session:
                history = plan.run(session.run, program, examples, held_out)
                weights = session.run(program.made.weights)
        self.set_weights(weights)
        return history


class _Local:
    """A model's graph and session in this process."""

    def __init__(
        self, recipes: Sequence[Recipe], input_shape: Sequence[int | None], compiled: Compiled | None
    ) -> None:
        self.graph = Graph()
        with self.graph.as_default():
            self.program = make_program(recipes, input_shape, compiled)
            self.session = Session()
            self.session.run(global_variables_initializer())
        self._saver: Saver | None = None

    def saver(self) -> Saver:
        """The Saver of the weights; to be called with the graph as default."""
        if self._saver is None:
            self._saver = Saver(self.program.made.weights, max_to_keep=None)
        return self._saver


def _set_weights(session: Any, program: Program, weights: Sequence[Any]) -> None:
    variables = program.made.weights
    arrays = [np.asarray(weight) for weight in weights]
    expected = [tuple(variable.shape.as_list()) for variable in variables]
    if [array.shape for array in arrays] != expected:
        found = [array.shape for array in arrays]
        raise ValueError(f"Weights of shapes {found} do not fit the model, which has {expected}")
    for variable, array in zip(variables, arrays, strict=True):
        variable.load(array, session)


def _listed(figures: Mapping[str, Any]) -> Any:
    values = [float(value) for value in figures.values()]
    return values[0] if len(values) == 1 else values
