"""HDF5 groups of Keras's files: weights by layers, and the state of optimizers.

Owns the layout below `model_weights/LAYER/VARIABLE` and `optimizer_weights/VARIABLE`. Every shape is compared before
an array is read, and all arrays are read before a variable changes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model#save_weights
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf.keras import contents

__all__ = ["attribute", "opened", "read_arrays", "read_weights", "text", "write_arrays", "write_weights"]

_ATTRIBUTE_BYTES_MAX = 64512


def opened(path: str, mode: str) -> Any:
    """The HDF5 file of a path.

    Raises:
      ImportError: h5py is not installed.
      OSError: the file does not exist, or is not an HDF5 file.
    """
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise ImportError("HDF5 files need h5py: pip install 'dtf[keras]'") from None
    try:
        return h5py.File(path, mode)
    except FileNotFoundError:
        raise
    except OSError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path} is not an HDF5 file, or is damaged: {error}") from None


def text(value: Any) -> str:
    """A text of an attribute.

    Raises:
      ValueError: it is not UTF-8.
    """
    return value.decode() if isinstance(value, bytes) else str(value)


def attribute(group: Any, name: str) -> list[str]:
    """The texts of an attribute; long ones lie in NAME0, NAME1, ...

    Raises:
      ValueError: the group lacks the attribute, or it does not hold texts.
    """
    if name in group.attrs:
        found = list(np.atleast_1d(group.attrs[name]))
    elif f"{name}0" in group.attrs:
        found, number = [], 0
        while f"{name}{number}" in group.attrs:
            found += list(np.atleast_1d(group.attrs[f"{name}{number}"]))
            number += 1
    else:
        raise contents.DamagedError([], f"the attribute {name!r} of {group.name} is missing")
    if not all(isinstance(each, bytes | str) for each in found):
        raise contents.DamagedError([], f"the attribute {name!r} of {group.name} does not hold texts")
    return [text(each) for each in found]


def write_arrays(group: Any, names: Sequence[str], values: Sequence[Any]) -> None:
    """Writes arrays and the attribute `weight_names` of them."""
    _write_attribute(group, "weight_names", names)
    for name, value in zip(names, values, strict=True):
        group.create_dataset(name, data=value)


def read_arrays(group: Any, names: Sequence[str], shapes: Sequence[tuple[int, ...]] | None = None) -> list[np.ndarray]:
    """The numbers of a group.

    Args:
      shapes: those that the arrays must have; any by default.

    Raises:
      ValueError: an array is missing, has another shape, or does not hold numbers.
    """
    sets = []
    for name in names:
        if name not in group:
            raise contents.DamagedError([], f"the array {group.name}/{name} is missing")
        found = group[name]
        if not hasattr(found, "shape") or found.shape is None or found.dtype.kind not in "fiub":
            raise contents.DamagedError([], f"{group.name}/{name} is not an array of numbers")
        sets.append(found)
    found_shapes = [tuple(each.shape) for each in sets]
    if shapes is not None and found_shapes != list(shapes):
        raise contents.DamagedError([], f"weights of shapes {list(shapes)} are expected, not {found_shapes}")
    return [np.asarray(each) for each in sets]


def write_weights(group: Any, model: Any) -> None:
    """Writes the weights of a model, a group for each layer."""
    layers = model.layers
    _write_attribute(group, "layer_names", [each.name for each in layers])
    group.attrs["backend"] = b"tensorflow"
    group.attrs["keras_version"] = b"2.2.4-tf"
    session = model._session()
    for layer in layers:
        weights = _ordered(layer)
        values = session.run(weights) if weights else []
        write_arrays(group.create_group(layer.name), [f"{each.op.name}:0" for each in weights], values)


def read_weights(group: Any, model: Any, by_name: bool, path: str) -> None:
    """Reads the weights of a model.

    Args:
      by_name: whether layers are matched by their names; the others stay as they are.

    Raises:
      ValueError: the file is damaged, or does not fit the model.
    """
    wanted, values = [], []
    with contents.reading(path):
        stored = {name: names for name in attribute(group, "layer_names") if (names := _weight_names(group, name))}
        if by_name:
            known = {each.name: each for each in model.layers}
            pairs = [(known[name], name) for name in stored if name in known]
        else:
            layers = [each for each in model.layers if each.weights]
            if len(layers) != len(stored):
                raise contents.DamagedError(
                    [], f"it has weights of {len(stored)} layers, and the model has {len(layers)} layers with weights"
                )
            pairs = list(zip(layers, stored, strict=True))
        for layer, name in pairs:
            weights = _ordered(layer)
            with contents.reading("", f"layer {name!r}"):
                values += read_arrays(group[name], stored[name], [tuple(each.shape.as_list()) for each in weights])
            wanted += weights
    session = model._session()
    for variable, value in zip(wanted, values, strict=True):
        variable.load(value, session)


def _weight_names(group: Any, name: str) -> list[str]:
    with contents.reading("", f"layer {name!r}"):
        if name not in group or not hasattr(group[name], "attrs"):
            raise contents.DamagedError([], "its group is missing")
        return attribute(group[name], "weight_names")


def _ordered(layer: Any) -> list[Any]:
    """The weights in the order of Keras's files: the trainable ones first."""
    return [*layer.trainable_weights, *layer.non_trainable_weights] if layer.weights else []


def _write_attribute(group: Any, name: str, texts: Sequence[str]) -> None:
    """Writes texts; an attribute of HDF5 holds less than 64 KiB, so more of them lie in NAME0, NAME1, ..."""
    data = np.array([each.encode() for each in texts]) if texts else np.array([], "S1")
    if data.nbytes <= _ATTRIBUTE_BYTES_MAX:
        group.attrs[name] = data
        return
    parts = -(-data.nbytes // _ATTRIBUTE_BYTES_MAX)
    while any(each.nbytes > _ATTRIBUTE_BYTES_MAX for each in np.array_split(data, parts)):
        parts += 1
    for number, each in enumerate(np.array_split(data, parts)):
        group.attrs[f"{name}{number}"] = each
