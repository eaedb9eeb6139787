"""Files of Keras models: HDF5 files of weights and of whole models, configs as JSON, and SavedModels for serving.

Owns the layout of Keras's HDF5 files, which TensorFlow 1.x reads too: attributes `model_config` and
`training_config`, and the groups `model_weights/LAYER/VARIABLE`. HDF5 needs h5py (`pip install 'dtf[keras]'`).

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/models/load_model
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from dtf import logging
from dtf.build import nest
from dtf.build.tensor import Tensor
from dtf.keras import configs, contents, hdf5, losses, optimizer_state, optimizers
from dtf.keras.base import check_shapes
from dtf.keras.calls import InputLayer, node_of
from dtf.saved_model import constants
from dtf.saved_model.builder import simple_save
from dtf.train.checkpoint_utils import load_checkpoint
from dtf.wire import filesystems
from dtf.wire.files import file_errors

__all__ = [
    "export_saved_model", "load_from_saved_model", "load_model", "model_from_config", "model_from_json", "save_model",
]  # fmt: skip

_ENDS = (".h5", ".hdf5", ".keras")

# The classes of models by name; their modules put them here.
MODELS: dict[str, Any] = {}


def is_hdf5(path: Any) -> bool:
    """Whether a path names an HDF5 file of Keras."""
    return str(path).endswith(_ENDS)


def export_saved_model(model: Any, saved_model_path: str, **kwargs: Any) -> None:
    """Writes a model whose signature "serving_default" takes "input" and gives "output".

    The folder also has `assets/saved_model.json`, from which `load_model` makes the model again, unless the model is a
    subclass of Model.

    Raises:
      AssertionError: there is something in the folder.
      ValueError: the model's input shape is not known yet.
      OpError: writing failed.
    """
    if not model._is_made:
        raise ValueError("The model's input shape is not known: build or train the model before it is exported")
    several = len(model.inputs) > 1 or len(model.outputs) > 1
    given = dict(zip(model.input_names, model.inputs, strict=True)) if several else {"input": model.inputs[0]}
    made = dict(zip(model.output_names, model.outputs, strict=True)) if several else {"output": model.outputs[0]}
    session = model._session()
    with model._own_graph().as_default():
        simple_save(session, saved_model_path, given, made)
    try:
        config = json.loads(to_json(model))
    except NotImplementedError:  # a subclass: its code makes it
        return
    config["weights"] = [each.op.name for each in model.weights]
    if model._told is not None and kwargs.get("include_optimizer", True):
        config["training_config"] = json.loads(_training_json(model))
        config["optimizer_weights"] = [variable.op.name for _, variable in model._optimizer_state()]
    with file_errors(saved_model_path):
        filesystems.makedirs(os.path.join(saved_model_path, constants.ASSETS_DIRECTORY))
        with filesystems.open(_config_path(saved_model_path), "w") as file:
            file.write(json.dumps(config))


def load_from_saved_model(saved_model_path: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model of a folder of `export_saved_model`, not compiled. Raises as `load_model` does."""
    return load_model(saved_model_path, custom_objects, compile=False)


def _config_path(folder: str) -> str:
    return os.path.join(folder, constants.ASSETS_DIRECTORY, "saved_model.json")


def _cleared(folder: str) -> None:
    """Removes a SavedModel whose folder has nothing else."""
    own = {constants.SAVED_MODEL_FILENAME_PB, constants.VARIABLES_DIRECTORY, constants.ASSETS_DIRECTORY}
    with file_errors(folder):
        if filesystems.isfile(_config_path(folder)) and set(filesystems.listdir(folder)) <= own:
            filesystems.rmtree(folder)


def _load_folder(folder: str, compiles: bool) -> Any:
    """The model of a SavedModel's folder that has its config."""
    path = _config_path(folder)
    if not filesystems.isfile(path):
        raise ValueError(
            f"{folder} has no assets/saved_model.json, so layers cannot be made of it; use tf.saved_model.load"
        )
    with contents.reading(path):
        config = contents.parsed(filesystems.read_regular(path))
        model = _model_of(config)
        reader = load_checkpoint(os.path.join(folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME))
        values = [np.asarray(reader.get_tensor(name)) for name in contents.entry(config, "weights", list)]
        check_shapes(model.weights, values)
    if values:
        model.set_weights(values)
    told = config.get("training_config")
    if compiles and told is not None:
        with contents.reading(path):
            with contents.reading("", "training_config"):
                _compile_as(model, told)
            stored = [np.asarray(reader.get_tensor(name)) for name in config.get("optimizer_weights") or ()]
            expected = model._optimizer_state(makes=True) if stored else []
            if len(stored) == len(expected):
                check_shapes([variable for _, variable in expected], stored)
        _restore_optimizer(model, stored, path)
    return model


# Whole models


def save_model(
    model: Any, filepath: str, overwrite: bool = True, include_optimizer: bool = True, save_format: str | None = None,
    **kwargs: Any,
) -> None:  # fmt: skip
    """Writes a model into an HDF5 file; with save_format="tf" a SavedModel, which `load_model` reads as well.

    Args:
      overwrite: whether a model of the same place is replaced; a folder with other files is not.
      include_optimizer: whether to write how it was compiled, and the state of its optimizer.

    Raises:
      ImportError: h5py is not installed.
      NotImplementedError: the model is a subclass of Model.
    """
    if save_format == "tf":
        if overwrite:
            _cleared(filepath)
        export_saved_model(model, filepath, include_optimizer=include_optimizer)
        return
    config = {"class_name": type(model).__name__, "config": model.get_config()}
    if config["class_name"] not in MODELS:
        config["class_name"] = "Model"
    with hdf5.opened(filepath, "w") as file:
        file.attrs["keras_version"] = "2.2.4-tf"
        file.attrs["backend"] = "tensorflow"
        file.attrs["model_config"] = json.dumps(config, default=configs.value_of).encode()
        hdf5.write_weights(file.create_group("model_weights"), model)
        if include_optimizer and model._told is not None:
            file.attrs["training_config"] = _training_json(model).encode()
            state = model._optimizer_state()
            if state:
                values = model._session().run([variable for _, variable in state])
                hdf5.write_arrays(file.create_group("optimizer_weights"), [f"{name}:0" for name, _ in state], values)


def _training_json(model: Any) -> str:
    """How a model was compiled."""
    training = {
        "optimizer_config": _optimizer_config(model._told.optimizer),
        "loss": configs.value_of(model._told.loss),
        "metrics": configs.value_of(model._told.metrics),
        "loss_weights": model._told.loss_weights,
        "sample_weight_mode": None,
        "weighted_metrics": None,
    }
    return json.dumps(training, default=configs.value_of)


def load_model(filepath: str, custom_objects: Mapping[str, Any] | None = None, compile: bool = True) -> Any:
    """Reads a model of `save_model`, here or in TensorFlow; it is compiled as it was, and training goes on.

    Args:
      custom_objects: the program's own classes and functions by name.
      compile: whether to compile it.

    Raises:
      ImportError: h5py is not installed.
      OSError: the file does not exist, or is not an HDF5 file.
      ValueError: it is damaged, holds weights only, or a class is unknown; the error names the file and the entry.
    """
    if filesystems.isdir(filepath):
        with configs.custom_object_scope(custom_objects or {}):
            return _load_folder(filepath, compile)
    with configs.custom_object_scope(custom_objects or {}), hdf5.opened(filepath, "r") as file:
        with contents.reading(filepath):
            if "model_config" not in file.attrs:
                raise contents.DamagedError([], "it holds no model, only weights; call load_weights of a model")
            with contents.reading("", "model_config"):
                model = _model_of(contents.parsed(hdf5.text(file.attrs["model_config"])))
            weights, training = file.get("model_weights", file), file.attrs.get("training_config")
        hdf5.read_weights(weights, model, False, filepath)
        if compile and training is not None:
            with contents.reading(filepath, "training_config"):
                _compile_as(model, contents.parsed(hdf5.text(training)))
            if "optimizer_weights" in file:
                with contents.reading(filepath, "optimizer_weights"):
                    stored = _stored_state(file["optimizer_weights"], model)
                _restore_optimizer(model, stored, filepath)
    return model


def _stored_state(group: Any, model: Any) -> list[Any]:
    """The arrays of an optimizer's state; none if the model does not know its inputs yet."""
    names = hdf5.attribute(group, "weight_names")
    if not model._is_made or not names:
        return []
    expected = model._optimizer_state(makes=True)
    shapes = [tuple(variable.shape.as_list()) for _, variable in expected]
    return hdf5.read_arrays(group, names, shapes if len(names) == len(shapes) else None)


def _restore_optimizer(model: Any, stored: list[Any], source: str) -> None:
    """Continues with the state of an optimizer; with a new one if the optimizer keeps other variables."""
    if not stored:
        return
    expected = model._optimizer_state(makes=True)
    if len(stored) != len(expected):
        logging.warning(
            f"{source} has {len(stored)} arrays of the optimizer, and {type(model.optimizer).__name__} has "
            f"{len(expected)}: it begins anew"
        )
        return
    session = model._session()
    for (_, variable), value in zip(expected, stored, strict=True):
        variable.load(value.astype(variable.dtype.base_dtype.as_numpy_dtype), session)
    with model._own_graph().as_default():
        for variable, number in optimizer_state.follows(model.optimizer, int(stored[0])):
            variable.load(np.asarray(number, variable.dtype.base_dtype.as_numpy_dtype), session)


def _compile_as(model: Any, told: Mapping[str, Any]) -> None:
    """Compiles a model as a training config says."""
    custom, loss = configs.custom_objects, contents.entry(told, "loss")
    if isinstance(loss, str) and loss in custom:
        loss = custom[loss]
    metrics = nest.map_structure(
        lambda each: custom.get(each, each) if isinstance(each, str) else each, told["metrics"]
    ) if told.get("metrics") else None  # fmt: skip
    optimizer = contents.entry(told, "optimizer_config")
    model.compile(
        optimizers.get(optimizer) if optimizer else "sgd",
        losses.get(loss) if isinstance(loss, Mapping) and "class_name" in loss else loss,
        metrics, told.get("loss_weights"),
    )  # fmt: skip


def model_from_config(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """A model of {"class_name": ..., "config": ...}.

    Raises:
      ValueError: the config is damaged, or a class is unknown.
    """
    with configs.custom_object_scope(custom_objects or {}), contents.reading("The config of the model"):
        return _model_of(config)


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """A model of the text of `to_json`.

    Raises:
      ValueError: the text is damaged, or a class is unknown.
    """
    with configs.custom_object_scope(custom_objects or {}), contents.reading("The JSON of the model"):
        return _model_of(contents.parsed(json_string))


def _model_of(config: Any) -> Any:
    name, inner = contents.entry(config, "class_name", str), contents.entry(config, "config", Mapping, list)
    with contents.reading("", "config"):
        if name == "Sequential":
            return _stack_of(inner)
        known = configs.custom_objects.get(name)
        if known is not None and hasattr(known, "from_config"):
            return known.from_config(inner)
        return model_of(inner)


def to_json(model: Any, **kwargs: Any) -> str:
    """The config of a model as text."""
    config = {
        "class_name": "Sequential" if hasattr(model, "_stack") else "Model", "config": model.get_config(),
        "keras_version": "2.2.4-tf", "backend": "tensorflow",
    }  # fmt: skip
    return json.dumps(config, default=configs.value_of, **kwargs)


# Layers


def serialize_layer(layer: Any) -> dict[str, Any]:
    """{"class_name": ..., "config": ...} of a layer or model."""
    name = type(layer).__name__
    if getattr(layer, "_is_network", False) and name not in MODELS:
        name = "Model"
    return {"class_name": name, "config": layer.get_config()}


def deserialize_layer(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The layer of a config.

    Raises:
      ValueError: its class is unknown.
    """
    name, inner = contents.entry(config, "class_name", str), contents.entry(config, "config", Mapping, list)
    if name in ("Sequential", "Model", "Functional"):
        with configs.custom_object_scope(custom_objects or {}):
            return _model_of({**config, "class_name": "Model" if name == "Functional" else name})
    with configs.custom_object_scope(custom_objects or {}):
        kind = configs.custom_objects.get(name)
        if kind is None:
            kind = getattr(importlib.import_module("dtf.keras.layers"), name, None)
        if kind is None:
            raise ValueError(f"Unknown layer: {name}; pass it in custom_objects")
        given = {
            key: value for key, value in inner.items()
            if not (kind is not InputLayer and key in ("ragged", "groups", "sparse"))
        }  # fmt: skip
        return kind.from_config(given)


def config_of(model: Any) -> dict[str, Any]:
    """The config of a functional model: layers, their calls, inputs and outputs."""
    calls: dict[int, list[Any]] = {}
    for node in model._nodes_inside:
        calls.setdefault(id(node.layer), []).append(node)

    def place(tensor: Any) -> list[Any]:
        node = node_of(tensor)
        assert node is not None
        index = next((i for i, each in enumerate(calls[id(node.layer)]) if each is node), 0)
        which = next(i for i, each in enumerate(nest.flatten(node.outputs)) if each is tensor)
        return [node.layer.name, index, which]

    layers = []
    for layer in model.layers:
        inbound = []
        for node in calls[id(layer)]:
            if isinstance(layer, InputLayer):
                continue
            arguments = {}
            for key, value in node.arguments.items():
                flat = nest.flatten(value)
                if flat and all(isinstance(each, Tensor) and node_of(each) is not None for each in flat):
                    arguments[key] = {"__tensors__": [place(each) for each in flat]}
                elif not any(isinstance(each, Tensor) for each in flat):
                    arguments[key] = value
            inbound.append([[*place(each), arguments] for each in nest.flatten(node.inputs)])
        layers.append({**serialize_layer(layer), "name": layer.name, "inbound_nodes": inbound})
    return {
        "name": model.name, "layers": layers, "input_layers": [place(each) for each in model.inputs],
        "output_layers": [place(each) for each in model.outputs],
    }  # fmt: skip


def model_of(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The functional model of a config."""
    made: dict[str, Any] = {}
    outputs: dict[tuple[str, int], list[Any]] = {}
    waiting = []
    for position, each in enumerate(contents.entry(config, "layers", list)):
        with contents.reading("", f"layers[{position}]"):
            layer = deserialize_layer(each, custom_objects)
            name = each.get("name") or contents.entry(each["config"], "name", str)
        made[name] = layer
        if isinstance(layer, InputLayer):
            outputs[name, 0] = [layer.output]
        for index, inbound in enumerate(each.get("inbound_nodes", [])):
            waiting.append((name, index, inbound))

    def tensor(place: Any) -> Any:
        name, call, which = place[:3]
        if (name, call) not in outputs or not 0 <= which < len(outputs[name, call]):
            raise contents.DamagedError([], f"no layer makes the tensor {place}")
        return outputs[name, call][which]

    def is_called(name: str, index: int, inbound: Any) -> bool:
        """Whether the inputs of a call are made; then it is called."""
        arguments = inbound[0][3] if len(inbound[0]) > 3 else {}
        places = [*inbound, *[one for value in arguments.values() if isinstance(value, dict)
                              for one in value.get("__tensors__", [])]]  # fmt: skip
        if any((place[0], place[1]) not in outputs for place in places):
            return False
        given = [tensor(place) for place in inbound]
        kwargs = {
            key: [tensor(one) for one in value["__tensors__"]] if isinstance(value, dict) and "__tensors__" in value
            else value for key, value in arguments.items()
        }  # fmt: skip
        result = made[name](given[0] if len(given) == 1 else given, **kwargs)
        outputs[name, index] = nest.flatten(result)
        return True

    while waiting:
        later = []
        for call in waiting:
            with contents.reading("", f"inbound_nodes of {call[0]!r}"):
                if not is_called(*call):
                    later.append(call)
        if len(later) == len(waiting):
            raise ValueError(f"The config of model {config.get('name')} has layers whose inputs nothing makes")
        waiting = later
    with contents.reading("", "input_layers"):
        inputs = [tensor(each) for each in contents.entry(config, "input_layers", list)]
    with contents.reading("", "output_layers"):
        results = [tensor(each) for each in contents.entry(config, "output_layers", list)]
    given, returned = (each[0] if len(each) == 1 else each for each in (inputs, results))
    return MODELS["Model"](given, returned, contents.entry(config, "name", str))


def _stack_of(config: Any) -> Any:
    is_mapping = isinstance(config, Mapping)
    layers, name = (contents.entry(config, "layers", list), config.get("name")) if is_mapping else (config, None)
    made = MODELS["Sequential"](name=name)
    for position, each in enumerate(layers):
        with contents.reading("", f"layers[{position}]"):
            made.add(deserialize_layer(each))
    shape = config.get("build_input_shape") if isinstance(config, Mapping) else None
    if shape and not made._is_made:
        made.build(shape)
    return made


# Weights


def save_weights_hdf5(model: Any, path: str) -> None:
    """Writes the weights of a model into an HDF5 file."""
    if hasattr(model, "_require_shape"):
        model._require_shape()
    with hdf5.opened(path, "w") as file:
        hdf5.write_weights(file, model)


def load_weights_hdf5(model: Any, path: str, by_name: bool) -> None:
    """Reads weights, or those of a whole model, from an HDF5 file.

    Raises:
      OSError: the file does not exist, or is not an HDF5 file.
      ValueError: it is damaged, or does not fit the model.
    """
    if hasattr(model, "_require_shape"):
        model._require_shape()
    with hdf5.opened(path, "r") as file:
        with contents.reading(path):
            weights = file.get("model_weights", file)
        hdf5.read_weights(weights, model, by_name, path)


def _optimizer_config(optimizer: Any) -> Any:
    return configs.serialize_keras_object(optimizer) if hasattr(optimizer, "get_config") else None
