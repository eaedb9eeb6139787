"""model_to_estimator: a Keras model as an Estimator, which trains in a cluster of TF_CONFIG.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/estimator/model_to_estimator
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtf.build.default_graph import control_dependencies
from dtf.build.ops.array import identity, reshape, shape
from dtf.build.ops.math import cast
from dtf.estimator import Estimator, EstimatorSpec, ModeKeys, RunConfig
from dtf.keras.backend import set_learning_phase
from dtf.keras.functional import Model
from dtf.keras.layers import recipe_of
from dtf.keras.losses import takes_classes
from dtf.keras.models import Sequential
from dtf.keras.program import LOSS, Compiled, Made, batch_figures, make_layers, training_step
from dtf.keras.saving import load_model
from dtf.metrics import mean
from dtf.train.scaffold import Scaffold
from dtf.train.training_util import get_or_create_global_step
from dtf.wire import dtypes

__all__ = ["model_to_estimator"]


def model_to_estimator(
    keras_model: Any = None, model_dir: str | None = None, config: RunConfig | None = None,
    keras_model_path: str | None = None, custom_objects: Any = None, **kwargs: Any,
) -> Estimator:  # fmt: skip
    """An Estimator of a compiled model, which begins with the weights that the model has now, if it has some.

    Features are the inputs, or a dict with them alone; predictions are {"output": outputs}. For a functional model,
    the features may be a dict keyed by the names of its inputs. Predictions, and labels of several outputs, are dicts
    keyed by the names of the layers that make the outputs.

    Raises:
      ValueError: there is no model, or it is not compiled.
    """
    if keras_model is None and keras_model_path is not None:
        keras_model = load_model(keras_model_path, custom_objects)
    if keras_model is None:
        raise ValueError("model_to_estimator needs a keras_model")
    if keras_model._told is None:
        raise ValueError("The model must be compiled before it becomes an Estimator: call compile(...)")
    if not isinstance(keras_model, Sequential):
        return _of_functional(keras_model, model_dir, config)
    compiled = keras_model._compiled_for_cluster()
    recipes = tuple(recipe_of(each) for each in keras_model._stack)
    weights = keras_model.get_weights() if keras_model._is_made else None

    def begin(made: Made) -> Scaffold:
        def load(scaffold: Scaffold, session: Any) -> None:
            if weights is not None:
                for variable, value in zip(made.weights, weights, strict=True):
                    variable.load(value, session)

        return Scaffold(init_fn=load)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        inputs = _single(features)
        inputs = cast(inputs, dtypes.int32 if recipes[0].takes_ids else dtypes.float32)
        made = make_layers(recipes)
        outputs = made(inputs, training=mode == ModeKeys.TRAIN)
        predictions = {"output": outputs}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, scaffold=begin(made))
        figures = batch_figures(made, compiled, _targets(labels, outputs, compiled), outputs)
        if mode == ModeKeys.TRAIN:
            step = training_step(compiled, figures[LOSS])
            return EstimatorSpec(mode, predictions, figures[LOSS], step, scaffold=begin(made))
        count = shape(outputs)[0]
        metrics = {name: mean(value, weights=cast(count, dtypes.float32)) for name, value in figures.items()}
        del metrics[LOSS]
        return EstimatorSpec(mode, predictions, figures[LOSS], eval_metric_ops=metrics, scaffold=begin(made))

    return Estimator(model_fn, model_dir, config)


def _of_functional(model: Model, model_dir: str | None, config: RunConfig | None) -> Estimator:
    told = model._told
    assert told is not None
    if not model._is_network:
        raise ValueError("A subclass of Model does not become an Estimator; write a model_fn for tf.estimator")
    weights = model.get_weights()
    functions = told.losses_of(model.output_names)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        set_learning_phase(mode == ModeKeys.TRAIN)
        given = [features[name] for name in model.input_names] if isinstance(features, Mapping) else [features]
        inputs = [identity(cast(each, mine.dtype)) for each, mine in zip(given, model.inputs, strict=True)]
        for each, mine in zip(inputs, model.inputs, strict=True):
            each.set_shape(mine.shape)
        made = model.rebuilt(inputs)

        def load(scaffold: Scaffold, session: Any) -> None:
            for variable, value in zip(made.weights, weights, strict=True):
                variable.load(value, session)

        predictions = dict(zip(made.output_names, made.outputs, strict=True))
        scaffold = Scaffold(init_fn=load)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, scaffold=scaffold)
        by_name = [labels[name] for name in made.output_names] if isinstance(labels, Mapping) else [labels]
        targets = [
            _target_of(y, output, loss)
            for y, output, loss in zip(by_name, made.outputs, functions, strict=True)
        ]
        figures, _, _ = made.figures(targets, told, [1.0] * len(targets))
        if mode == ModeKeys.TRAIN:
            with control_dependencies(made.updates):
                variables = made.trainable_weights
                step = told.optimizer.minimize(figures[LOSS], get_or_create_global_step(), variables)
            return EstimatorSpec(mode, predictions, figures[LOSS], step, scaffold=scaffold)
        count = cast(shape(made.outputs[0])[0], dtypes.float32)
        metrics = {name: mean(value, weights=count) for name, value in figures.items() if name != LOSS}
        return EstimatorSpec(mode, predictions, figures[LOSS], eval_metric_ops=metrics, scaffold=scaffold)

    return Estimator(model_fn, model_dir, config)


def _single(features: Any) -> Any:
    if not isinstance(features, Mapping):
        return features
    if len(features) != 1:
        raise ValueError(f"A Sequential model takes one input; the features are {sorted(features)}")
    return next(iter(features.values()))


def _targets(labels: Any, outputs: Any, compiled: Compiled) -> Any:
    """The labels in the outputs' shape, or in that without the last dimension where they are classes."""
    return _target_of(labels, outputs, compiled.loss)


def _target_of(labels: Any, outputs: Any, loss: Any) -> Any:
    if takes_classes(loss):
        return reshape(labels, shape(outputs)[:-1])
    return reshape(cast(labels, outputs.dtype), shape(outputs))
