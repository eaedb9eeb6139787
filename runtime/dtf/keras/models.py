"""Sequential: a stack of layers with its weights, trained in this process or by the workers of a cluster.

    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax", input_shape=(64,))])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

A model is its layers and its weights. By itself it has a graph and a session of its own, which are made when its input
shape is known. In a cluster the same program runs in each worker, with its own server and its own part of the data:

    model.fit(x[index::workers], y[index::workers], epochs=5, server=server, checkpoint_dir="checkpoints")

Then the weights are on the ps tasks while `fit` runs, every worker pushes its gradients without waiting for the others,
the chief (the job "chief", else worker 0) begins with its model's weights or with the last checkpoint, and at the end
each has what is on the ps tasks as its own weights. Whoever is restarted begins his epochs anew, on the model as it is
then. A ps calls `server.join()`. `model_to_estimator` is the other way, with a number of steps for all together.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Sequential
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtf.build.graph import Graph, device
from dtf.build.variables import global_variables_initializer
from dtf.keras import losses, optimizers
from dtf.keras.arrays import Examples, examples_of, mini_batches
from dtf.keras.epochs import History, Plan, evaluated, line_of
from dtf.keras.layers import Layer, recipe_of
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


class Sequential:
    """A stack of layers.

    Args:
      layers: what `add` takes.
      name: of the model.
    """

    def __init__(self, layers: Sequence[Any] | None = None, name: str | None = None) -> None:
        self.name = name or "sequential"
        self._recipes: list[Layer] = []
        self._compiled: Compiled | None = None
        self._input_shape: tuple[int | None, ...] | None = None
        self._local: _Local | None = None
        for layer in layers or ():
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Adds a layer at the end; weights that there are begin anew.

        Raises:
          TypeError: it is neither of tf.keras.layers nor a tf.layers.Layer.
        """
        recipe = recipe_of(layer)
        if not self._recipes and recipe.input_shape is not None:
            self._input_shape = recipe.input_shape
        self._recipes.append(recipe)
        self._forget()

    def pop(self) -> None:
        """Removes the last layer.

        Raises:
          ValueError: there is none.
        """
        if not self._recipes:
            raise ValueError("There are no layers in the model.")
        self._recipes.pop()
        self._forget()

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Sequence[Any] | None = None
    ) -> None:
        """Says how the model is trained; its weights stay.

        Args:
          optimizer: one of tf.train or tf.keras.optimizers, or a name.
          loss: a function of (y_true, y_pred), or its name.
          metrics: such functions or names; "accuracy" is the one that fits the loss.

        Raises:
          ValueError, TypeError: a name or a function is none.
        """
        if loss is None:
            raise ValueError("compile needs a loss")
        self._compiled = Compiled(optimizers.get(optimizer), losses.get(loss), tuple(metrics or ()))
        if self._local is not None:
            weights = self.get_weights()
            self._forget()
            self.set_weights(weights)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Makes the weights for batches of this shape, the number of examples included."""
        self._take_shape(tuple(input_shape[1:]))
        self._here()

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
    ) -> History:
        """Trains on arrays of examples.

        Args:
          x: inputs [n, ...].
          y: targets [n, ...]: as many numbers for an example as there are outputs, or the number of its class.
          batch_size: 32 by default; the last batch of an epoch may be smaller.
          epochs: the number at which to end, from `initial_epoch`.
          verbose: 0 prints nothing, anything else a line an epoch.
          validation_split: this part of the examples, the last ones, is held out and evaluated after each epoch.
          validation_data: (x, y) to evaluate after each epoch instead.
          shuffle: whether the order is drawn anew (by numpy's global generator) in each epoch.
          server: a tf.train.Server of this worker: train in its cluster, see above.
          checkpoint_dir: folder of the chief's checkpoints and summaries in a cluster.
          save_checkpoint_steps: steps between two of them; every ten minutes by default.

        Returns:
          A History.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the arrays do not fit each other or the model.
        """
        compiled = self._required_compiled()
        self._take_shape(np.shape(x)[1:])
        classes = losses.takes_classes(compiled.loss)
        if validation_data is not None:
            held_out: Examples | None = examples_of(*validation_data, self._is_ids, classes)
            examples = examples_of(x, y, self._is_ids, classes)
        else:
            examples, held_out = examples_of(x, y, self._is_ids, classes).split(validation_split)
        plan = Plan(batch_size or 32, range(initial_epoch, epochs), shuffle, verbose)
        if server is not None:
            return self._fit_in_cluster(examples, held_out, plan, server, checkpoint_dir, save_checkpoint_steps)
        if checkpoint_dir is not None:
            raise ValueError("checkpoint_dir is for training in a cluster, with a server; see save_weights")
        local = self._here()
        return plan.run(local.session.run, local.program, examples, held_out)

    def train_on_batch(self, x: Any, y: Any) -> Any:
        """One training step. Returns what `evaluate` does, of this batch."""
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
        self._take_shape(np.shape(x)[1:])
        inputs = examples_of(x, None, self._is_ids, False).x
        local = self._here()
        parts = [
            local.session.run(local.program.outputs, {local.program.x: inputs[rows]})
            for rows in mini_batches(np.arange(len(inputs)), batch_size or 32)
        ]
        if not parts:
            raise ValueError("There are no examples")
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
        return list(self._here().program.made.layers)

    @property
    def weights(self) -> list[Any]:
        """The variables, layer by layer, in the model's own graph."""
        return self._here().program.made.weights

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights`."""
        local = self._here()
        return local.session.run(local.program.made.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replaces the values of `weights`.

        Raises:
          ValueError: their number or shapes are others.
        """
        local = self._here()
        _set_weights(local.session, local.program, weights)

    def save_weights(self, filepath: str) -> None:
        """Writes a checkpoint of the weights: variables by names such as "dense/kernel"."""
        local = self._here()
        with local.graph.as_default():
            local.saver().save(local.session, filepath, write_meta_graph=False, write_state=False)

    def load_weights(self, filepath: str) -> None:
        """Reads a checkpoint, one of `save_weights` or of training in a cluster.

        Raises:
          ValueError: there is no such checkpoint.
          NotFoundError, InvalidArgumentError: it lacks a variable, or has another shape.
        """
        local = self._here()
        with local.graph.as_default():
            local.saver().restore(local.session, filepath)

    def count_params(self) -> int:
        """The number of numbers in all weights."""
        return sum(layer.count_params() for layer in self.layers)

    def summary(self, print_fn: Callable[[str], Any] = print) -> None:
        """Prints the layers, the shapes of their outputs, and how many numbers their weights have."""
        program = self._here().program
        rows = [("Layer (type)", "Output Shape", "Param #")]
        for layer, shape in zip(program.made.layers, program.shapes, strict=True):
            shown = str(tuple(shape.as_list()))
            rows.append((f"{layer.name} ({type(layer).__name__.lstrip('_')})", shown, f"{layer.count_params():,}"))
        widths = [max(len(row[column]) for row in rows) + 2 for column in range(3)]
        print_fn(f'Model: "{self.name}"')
        for row in rows:
            print_fn("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        print_fn(f"Total params: {self.count_params():,}")

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
        """The shape of one example, as told or as met first."""
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
        self, recipes: Sequence[Layer], input_shape: Sequence[int | None], compiled: Compiled | None
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
        raise ValueError(f"Weights of shapes {found} are not those of the model: {expected}")
    for variable, array in zip(variables, arrays, strict=True):
        variable.load(array, session)


def _listed(figures: Mapping[str, Any]) -> Any:
    values = [float(value) for value in figures.values()]
    return values[0] if len(values) == 1 else values
