"""Configs: layers, functions and values as JSON, and back; names of a program's own classes.

Owns the forms {"class_name": ..., "config": {...}} and the scope of custom objects. Layers are found in
`tf.keras.layers` by name, functions in the module that their kind names.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/utils/serialize_keras_object
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = [
    "CustomObjectScope", "arguments_of", "custom_object_scope", "custom_objects", "deserialize_keras_object",
    "get_custom_objects", "serialize_keras_object", "value_of",
]  # fmt: skip

custom_objects: dict[str, Any] = {}
_OWN = ("name", "trainable", "dtype", "input_shape", "batch_input_shape", "weights", "kwargs", "args", "self")
_CLASS_NAMES = {
    "glorot_uniform_initializer": "GlorotUniform", "glorot_normal_initializer": "GlorotNormal",
    "zeros_initializer": "Zeros", "ones_initializer": "Ones", "constant_initializer": "Constant",
    "random_normal_initializer": "RandomNormal", "random_uniform_initializer": "RandomUniform",
    "truncated_normal_initializer": "TruncatedNormal", "orthogonal_initializer": "Orthogonal",
    "variance_scaling_initializer": "VarianceScaling", "identity_initializer": "Identity",
}  # fmt: skip


def get_custom_objects() -> dict[str, Any]:
    """The program's own classes and functions by name; changes of this dict hold."""
    return custom_objects


@contextmanager
def custom_object_scope(*dictionaries: Mapping[str, Any]) -> Iterator[None]:
    """Names of a program's own classes and functions, inside a `with`."""
    before = dict(custom_objects)
    for each in dictionaries:
        custom_objects.update(each)
    try:
        yield
    finally:
        custom_objects.clear()
        custom_objects.update(before)


CustomObjectScope = custom_object_scope


def serialize_keras_object(instance: Any) -> Any:
    """The name of a function, or class name and config of an object; None for None."""
    if instance is None or isinstance(instance, str):
        return instance
    if hasattr(instance, "get_config"):
        name = type(instance).__name__
        return {"class_name": _CLASS_NAMES.get(name, name), "config": instance.get_config()}
    return getattr(instance, "__name__", type(instance).__name__)


def deserialize_keras_object(
    identifier: Any,
    module_objects: Mapping[str, Any] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """The object of a config, or the function of a name.

    Raises:
      ValueError: the name is unknown.
    """
    known = {**(module_objects or {}), **globals()["custom_objects"], **(custom_objects or {})}
    if isinstance(identifier, str):
        if identifier not in known:
            raise ValueError(f"Unknown {printable_module_name}: {identifier}; pass it in custom_objects")
        return known[identifier]
    name, config = identifier["class_name"], identifier.get("config") or {}
    if name not in known:
        raise ValueError(f"Unknown {printable_module_name}: {name}; pass it in custom_objects")
    kind = known[name]
    with custom_object_scope(custom_objects or {}):
        return kind.from_config(config) if hasattr(kind, "from_config") else kind(**config)


def arguments_of(layer: Any) -> dict[str, Any]:
    """The arguments of the nearest class of tf.keras that a layer is of, with the layer's values."""
    for kind in type(layer).__mro__:
        if kind.__module__.startswith("dtf.keras") and kind.__name__ != "Layer":
            break
        if kind.__name__ == "Layer":
            return {}
    else:
        return {}
    parameters = inspect.signature(getattr(kind, "__init__")).parameters  # noqa: B009
    given: Mapping[str, Any] = {}
    try:
        bound = inspect.signature(type(layer).__init__).bind(layer, *layer._given[0], **layer._given[1])
        given = {**bound.arguments, **bound.arguments.get("kwargs", {})}
    except TypeError:
        pass
    found = {}
    for name, parameter in parameters.items():
        if name in _OWN or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        value = getattr(layer, name, given.get(name, parameter.default))
        found[name] = value_of(value)
    return found


def value_of(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [value_of(each) for each in value]
    if isinstance(value, dict):
        return {key: value_of(each) for key, each in value.items()}
    if hasattr(value, "as_list"):
        return value.as_list()
    return serialize_keras_object(value)


def class_of(kind: str, table: Mapping[str, Any], identifier: Any) -> Any:
    """The object of a config with a class name in `table`; other values unchanged."""
    if isinstance(identifier, Mapping) and "class_name" in identifier:
        return deserialize_keras_object(dict(identifier), table, None, kind)
    if isinstance(identifier, str) and identifier in custom_objects:
        found = custom_objects[identifier]
        return found() if isinstance(found, type) else found
    return identifier
