"""tf.keras.initializers: the first values of variables, by name.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/initializers
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.initializers import (
    constant_initializer,
    glorot_normal_initializer,
    glorot_uniform_initializer,
    identity_initializer,
    ones_initializer,
    orthogonal_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    truncated_normal_initializer,
    variance_scaling_initializer,
    zeros_initializer,
)
from dtf.keras import configs
from dtf.keras.names import meant

Constant, Ones, Zeros = constant_initializer, ones_initializer, zeros_initializer
GlorotNormal, GlorotUniform, Orthogonal = glorot_normal_initializer, glorot_uniform_initializer, orthogonal_initializer
VarianceScaling, Identity = variance_scaling_initializer, identity_initializer
constant, ones, zeros, orthogonal, identity = Constant, Ones, Zeros, Orthogonal, Identity
glorot_normal, glorot_uniform = GlorotNormal, GlorotUniform

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "Identity", "Initializer", "Ones", "Orthogonal", "RandomNormal",
    "RandomUniform", "TruncatedNormal", "VarianceScaling", "Zeros", "constant", "deserialize", "get", "glorot_normal",
    "glorot_uniform", "he_normal", "he_uniform", "identity", "lecun_normal", "lecun_uniform", "normal", "ones",
    "orthogonal", "random_normal", "random_uniform", "serialize", "truncated_normal", "uniform", "zeros",
]  # fmt: skip


class Initializer:
    """The base of a program's own initializers: functions of a shape and a dtype."""

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An initializer from the result of `get_config`."""
        return cls(**config)


class RandomNormal(random_normal_initializer):
    """Normal values; the standard deviation is 0.05 by default."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None, dtype: Any = None) -> None:
        super().__init__(mean, stddev, seed, *([] if dtype is None else [dtype]))


class RandomUniform(random_uniform_initializer):
    """Uniform values, between -0.05 and 0.05 by default."""

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None, dtype: Any = None
    ) -> None:
        super().__init__(minval, maxval, seed, *([] if dtype is None else [dtype]))


class TruncatedNormal(truncated_normal_initializer):
    """Normal values within two standard deviations of 0.05."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None, dtype: Any = None) -> None:
        super().__init__(mean, stddev, seed, *([] if dtype is None else [dtype]))


normal = random_normal = RandomNormal
uniform = random_uniform = RandomUniform
truncated_normal = TruncatedNormal


def he_normal(seed: int | None = None) -> Any:
    """Truncated normal values, of a variance of 2 / inputs."""
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> Any:
    """Uniform values, of a variance of 2 / inputs."""
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> Any:
    """Truncated normal values, of a variance of 1 / inputs."""
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> Any:
    """Uniform values, of a variance of 1 / inputs."""
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


def get(identifier: Any) -> Any:
    """The initializer of a name; a callable unchanged; None for None.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not an initializer.
    """
    identifier = configs.class_of("initializer", _BY_NAME, identifier)
    if identifier is None:
        return None
    found = meant("initializer", identifier, _BY_NAME)
    return found() if isinstance(identifier, str) or isinstance(found, type) else found


def serialize(initializer: Any) -> Any:
    """The config of an initializer."""
    return configs.serialize_keras_object(initializer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The initializer of a config."""
    return configs.deserialize_keras_object(config, _BY_NAME, custom_objects, "initializer")


_BY_NAME: dict[str, Callable[..., Any]] = {
    "Constant": Constant,
    "GlorotNormal": GlorotNormal,
    "GlorotUniform": GlorotUniform,
    "Identity": Identity,
    "Ones": Ones,
    "Orthogonal": Orthogonal,
    "RandomNormal": RandomNormal,
    "RandomUniform": RandomUniform,
    "TruncatedNormal": TruncatedNormal,
    "VarianceScaling": VarianceScaling,
    "Zeros": Zeros,
    "identity": Identity,
    "one": Ones,
    "zero": Zeros,
    "glorot_normal": glorot_normal_initializer,
    "glorot_uniform": glorot_uniform_initializer,
    "he_normal": he_normal,
    "he_uniform": he_uniform,
    "lecun_normal": lecun_normal,
    "lecun_uniform": lecun_uniform,
    "ones": ones_initializer,
    "orthogonal": orthogonal_initializer,
    "random_normal": RandomNormal,
    "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal,
    "uniform": RandomUniform,
    "normal": RandomNormal,
    "zeros": zeros_initializer,
}
