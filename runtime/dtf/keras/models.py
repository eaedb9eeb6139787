"""Sequential: a stack of layers with its weights, trained in this process or by the workers of a cluster.

    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax", input_shape=(64,))])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

By itself it is a Model in the default graph and in tf.keras.backend's session; its layers are called when its input
shape is known. In a cluster each worker runs the same program, with its own server and its own part of the data:

    model.fit(x[index::workers], y[index::workers], epochs=5, server=server, checkpoint_dir="checkpoints")

The weights are then on the ps tasks while `fit` runs, and every worker pushes its gradients without waiting for the
others. The chief (the job "chief", else worker 0) starts with its model's weights or the last checkpoint. At the end
each worker copies the weights from the ps tasks. A restarted worker begins its epochs anew, with the current weights.
A ps calls `server.join()`. `model_to_estimator` is the other way, with a number of steps for all together.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Sequential
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf.build.default_graph import device, get_default_graph
from dtf.build.graph import Graph
from dtf.keras import losses, saving
from dtf.keras.arrays import examples_of
from dtf.keras.base import Layer, check_shapes
from dtf.keras.callbacks import CallbackList
from dtf.keras.calls import InputLayer, applied, recorded
from dtf.keras.epochs import History, Plan
from dtf.keras.functional import Model
from dtf.keras.layers import Embedding, recipe_of
from dtf.keras.program import Compiled, Program, make_program
from dtf.server import Server
from dtf.train.device_setter import replica_device_setter
from dtf.train.monitored_session import MonitoredTrainingSession
from dtf.train.scaffold import Scaffold
from dtf.wire.cluster import ClusterSpec
from dtf.wire.device import task_name
from dtf.wire.pb import config_pb2

_CHIEFS = ("chief", "master")


class Sequential(Model):
    """A stack of layers.

    Args:
      layers: the layers to `add`.
      name: of the model.
    """

    def __init__(self, layers: Sequence[Any] | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._stack: list[Any] = []
        self._outputs_of: list[Any] = []
        self._first: InputLayer | None = None
        for layer in [layers] if isinstance(layers, Layer) else layers or ():
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Adds a layer at the end; the weights of the others stay.

        Raises:
          TypeError: it is neither of tf.keras.layers nor a tf.layers.Layer.
          ValueError: another layer of the model has the same name.
        """
        if isinstance(layer, InputLayer):
            if self._stack:
                raise ValueError("An InputLayer can only be the first layer of a model")
            self._first = layer
            return
        recipe_of(layer)  # raises for what is no layer
        names = Counter([*[each.name for each in self._stack], layer.name])
        double = [name for name, count in names.items() if count > 1]
        if double:
            raise ValueError(f"Layers of a model need different names; several are called {double}")
        self._stack.append(layer)
        object.__setattr__(self, "_inner", [each for each in self._stack if hasattr(each, "trainable_weights")])
        self._program = None
        if self._is_made:
            with self._own_graph().as_default():
                self._take(self.inputs, self._called_on(layer, self.outputs[0]))
            return
        self._is_made = False
        if self._first is None and len(self._stack) == 1:
            shape = getattr(layer, "batch_input_shape", None)
            if isinstance(layer, Model) and layer._is_network:
                shape = backend_shape(layer.inputs[0])
                self._first = InputLayer(batch_input_shape=shape, dtype=layer.inputs[0].dtype.base_dtype)
            elif shape is not None:
                kind = layer.dtype if getattr(layer, "dtype", None) and not isinstance(layer, Embedding) else None
                self._first = InputLayer(batch_input_shape=shape, dtype=kind or _first_kind(layer))
        if self._first is not None:
            self._call_all()

    def pop(self) -> None:
        """Removes the last layer.

        Raises:
          ValueError: the model has none.
        """
        if not self._stack:
            raise ValueError("There are no layers in the model.")
        self._stack.pop()
        object.__setattr__(self, "_inner", [each for each in self._stack if hasattr(each, "trainable_weights")])
        self._program = None
        if self._is_made and self._stack:
            with self._own_graph().as_default():
                last = self._outputs_of[len(self._stack) - 1]
                self._take(self.inputs, last)
                del self._outputs_of[len(self._stack) :]
        else:
            self._is_made = self.built = False
            self._nodes_inside = []

    def _call_all(self) -> None:
        assert self._first is not None
        if not self._stack:
            return
        with self._first.output.graph.as_default():
            outputs = self._first.output
            self._outputs_of = []
            for layer in self._stack:
                outputs = self._called_on(layer, outputs)
            self._take(self._first.output, outputs)

    def _called_on(self, layer: Any, inputs: Any) -> Any:
        is_keras = isinstance(layer, Layer)
        outputs = layer(inputs) if is_keras else recorded(layer, inputs, {}, applied(layer, inputs, {}))
        if isinstance(outputs, list | tuple):
            raise TypeError("All layers of a Sequential model have one output; for several use a functional Model")
        self._outputs_of.append(outputs)
        return outputs

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, *args: Any, **kwargs: Any) -> None:
        """Sets how the model is trained; the arguments are as in `Model.compile`."""
        if loss is None and not self._is_made:
            raise ValueError("compile needs a loss")
        super().compile(optimizer, loss, *args, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        """Makes the weights for batches of this shape, the number of examples included."""
        if self._is_made or input_shape is None:
            return
        if not self._stack:
            raise ValueError("The model has no layers: add some")
        self._graph_of_calls = get_default_graph()
        self._first = InputLayer(batch_input_shape=tuple(input_shape), dtype=_first_kind(self._stack[0]))
        self._call_all()

    def _made_for(self, x: Any) -> None:
        if not self._is_made:
            if not self._stack:
                raise ValueError("The model has no layers: add some")
            with self._own_graph().as_default():
                self.build((None, *np.shape(x)[1:]))

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for a tensor; the first call makes the weights."""
        if not self._is_made and hasattr(inputs, "shape") and self._stack:
            with inputs.graph.as_default() if hasattr(inputs, "graph") else get_default_graph().as_default():
                self._first = InputLayer(
                    batch_input_shape=(None, *tuple(inputs.shape)[1:])
                    if not hasattr(inputs.shape, "as_list") else [None, *inputs.shape.as_list()[1:]],
                    dtype=inputs.dtype.base_dtype if hasattr(inputs.dtype, "base_dtype") else inputs.dtype,
                )  # fmt: skip
                self._call_all()
        return super().__call__(inputs, *args, **kwargs)

    @property
    def layers(self) -> list[Any]:
        """The layers, without that of the input."""
        return list(self._stack)

    def _require_shape(self) -> None:
        if not self._stack:
            raise ValueError("The model has no layers: add some")
        if not self._is_made:
            raise ValueError(
                "The model's input shape is not known: give the first layer an input_shape, or call fit or build"
            )

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights`.

        Raises:
          ValueError: the input shape is not known yet.
        """
        self._require_shape()
        return super().get_weights()

    def predict(self, x: Any, batch_size: int | None = None, *args: Any, **kwargs: Any) -> Any:
        """The outputs for inputs [n, ...]."""
        if not self._stack:
            raise ValueError("The model has no layers: add some")
        return super().predict(x, batch_size, *args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The layers, as values of JSON."""
        return {"name": self.name, "layers": [saving.serialize_layer(each) for each in self._stack]}

    def fresh(self, name: str | None = None) -> Any:
        """A copy of the stack without weights."""
        made = Sequential(name=name or self.name)
        for layer in self._stack:
            made.add(recipe_of(layer).make(layer.name))
        return made

    # In a cluster

    def fit(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1, verbose: int = 1,
        callbacks: Any = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: Any = True,
        *args: Any, server: Server | None = None, checkpoint_dir: str | None = None,
        save_checkpoint_steps: int | None = None, **kwargs: Any,
    ) -> History:  # fmt: skip
        """Trains on examples; the arguments are as in `Model.fit`, and for clusters:

        Args:
          server: a tf.train.Server of this worker: train in its cluster, see above.
          checkpoint_dir: folder of the chief's checkpoints and summaries in a cluster.
          save_checkpoint_steps: steps between two of them; every ten minutes by default.

        Returns:
          A History.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the examples do not fit each other or the model.
        """
        if server is None:
            if checkpoint_dir is not None:
                raise ValueError("checkpoint_dir is for training in a cluster, with a server; see save_weights")
            return super().fit(
                x, y, batch_size, epochs, verbose, callbacks, validation_split, validation_data, shuffle, *args,
                **kwargs,
            )  # fmt: skip
        self._require_told()
        self._made_for(x)
        compiled = self._compiled_for_cluster()
        is_ids, classes = isinstance(self._stack[0], Embedding), losses.takes_classes(compiled.loss)
        examples = examples_of(x, y, is_ids, classes)
        if validation_data is not None:
            held_x, held_y = validation_data[:2]
            held_out: Any = examples_of(held_x, held_y, is_ids, classes)
        else:
            examples, held_out = examples.split(validation_split)
        first = kwargs.get("initial_epoch", 0)
        plan = Plan(batch_size or 32, range(first, epochs), shuffle, verbose, CallbackList(callbacks, self, epochs))
        return self._fit_in_cluster(examples, held_out, plan, server, checkpoint_dir, save_checkpoint_steps)

    def _compiled_for_cluster(self) -> Compiled:
        assert self._told is not None
        loss = losses.per_example(losses.get(self._told.loss))
        return Compiled(self._told.optimizer, loss, tuple(self._told.metrics or ()))

    def _fit_in_cluster(
        self, examples: Any, held_out: Any, plan: Plan, server: Server, checkpoint_dir: str | None,
        save_checkpoint_steps: int | None,
    ) -> History:  # fmt: skip
        place = server.server_def
        cluster = ClusterSpec(place.cluster)
        if place.job_name == "ps":
            raise ValueError("A ps only serves: call server.join() there, not fit")
        is_chief = place.job_name in _CHIEFS or (place.task_index == 0 and not set(_CHIEFS) & set(cluster.jobs))
        here = task_name(place.job_name, place.task_index).replace("/replica:0", "")
        begin_with = self.get_weights()
        shape = backend_shape(self.inputs[0])[1:]
        recipes = [recipe_of(each) for each in self._stack]
        with Graph().as_default(), device(replica_device_setter(worker_device=here, cluster=cluster)):
            program = make_program(recipes, shape, self._compiled_for_cluster())

            def begin(scaffold: Scaffold, session: Any) -> None:
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


def backend_shape(tensor: Any) -> tuple[int | None, ...]:
    """The static shape as a tuple."""
    return tuple(tensor.shape.as_list())


def _first_kind(layer: Any) -> str:
    return "int32" if isinstance(layer, Embedding) else "float32"


def _set_weights(session: Any, program: Program, weights: Sequence[Any]) -> None:
    variables = program.made.weights
    check_shapes(variables, weights)
    for variable, array in zip(variables, weights, strict=True):
        variable.load(array, session)


def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None) -> Any:
    """A model of new layers with the same arguments; its weights are new."""
    if clone_function is not None:
        raise ValueError("clone_model with clone_function is not supported; build the model again")
    if isinstance(model, Sequential):
        made = model.fresh()
        if model._is_made and not made._is_made:
            made.build(backend_shape(model.inputs[0]))
        return made
    if input_tensors is None:
        return model.fresh()
    given = input_tensors if isinstance(input_tensors, list | tuple) else [input_tensors]
    return model.rebuilt(list(given))


saving.MODELS["Sequential"] = Sequential
load_model, save_model = saving.load_model, saving.save_model
model_from_config, model_from_json = saving.model_from_config, saving.model_from_json
