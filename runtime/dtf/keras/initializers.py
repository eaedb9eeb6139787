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
    ones_initializer,
    orthogonal_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    truncated_normal_initializer,
    variance_scaling_initializer,
    zeros_initializer,
)
from dtf.keras.names import meant

Constant, Ones, Zeros = constant_initializer, ones_initializer, zeros_initializer
GlorotNormal, GlorotUniform, Orthogonal = glorot_normal_initializer, glorot_uniform_initializer, orthogonal_initializer
VarianceScaling = variance_scaling_initializer

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "Ones", "Orthogonal", "RandomNormal", "RandomUniform",
    "TruncatedNormal", "VarianceScaling", "Zeros", "get", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform",
]  # fmt: skip


def RandomNormal(mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> Any:  # noqa: N802
    """Normal values."""
    return random_normal_initializer(mean, stddev, seed)


def RandomUniform(minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> Any:  # noqa: N802
    """Uniform values."""
    return random_uniform_initializer(minval, maxval, seed)


def TruncatedNormal(mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> Any:  # noqa: N802
    """Normal values within two standard deviations."""
    return truncated_normal_initializer(mean, stddev, seed)


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
    if identifier is None:
        return None
    found = meant("initializer", identifier, _BY_NAME)
    return found() if isinstance(identifier, str) else found


_BY_NAME: dict[str, Callable[[], Any]] = {
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
