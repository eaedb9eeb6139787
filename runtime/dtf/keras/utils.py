"""tf.keras.utils: labels in other forms, sequences of batches, and the names of a program's own classes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/utils/to_categorical
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from dtf import late
from dtf.keras.configs import (
    CustomObjectScope,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    serialize_keras_object,
)

__all__ = [
    "CustomObjectScope", "Progbar", "Sequence", "custom_object_scope", "deserialize_keras_object", "get_custom_objects",
    "multi_gpu_model", "normalize", "plot_model", "serialize_keras_object", "to_categorical",
]  # fmt: skip


class Sequence:
    """The base of data that gives batches by number: subclasses write `__len__` and `__getitem__`."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def on_epoch_end(self) -> None:
        """Called after each epoch."""


class Progbar:
    """Prints how far a loop is.

    Args:
      target: the number of steps, None if it is not known.
      verbose: 0 prints nothing.
    """

    def __init__(
        self, target: int | None, width: int = 30, verbose: int = 1, interval: float = 0.05,
        stateful_metrics: Any = None, unit_name: str = "step",
    ) -> None:  # fmt: skip
        self.target, self.verbose = target, verbose
        self._seen = 0

    def update(self, current: int, values: Any = None, finalize: bool | None = None) -> None:
        """Shows the step and values, a list of (name, value)."""
        self._seen = current
        if self.verbose:
            shown = " - ".join(f"{name}: {float(np.mean(value)):.4f}" for name, value in values or [])
            end = "\n" if finalize or current == self.target else "\r"
            print(f"{current}/{self.target or 'Unknown'} {shown}", end=end, flush=True, file=sys.stdout)

    def add(self, n: int, values: Any = None) -> None:
        """Shows `n` more steps."""
        self.update(self._seen + n, values)


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """An array with norms of 1 along an axis."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return np.asarray(x) / np.expand_dims(norms, axis)


def multi_gpu_model(model: Any, gpus: Any = None, **kwargs: Any) -> Any:
    """The model itself: it runs on one device."""
    return model


def plot_model(model: Any, to_file: str = "model.png", **kwargs: Any) -> None:
    """Pictures need graphviz, which is not supported.

    Raises:
      ImportError: always.
    """
    raise ImportError("plot_model is not supported; print model.summary(), or look at the graph in TensorBoard")


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> np.ndarray:
    """Numbers of classes [...] as [..., num_classes], 1 at the class and 0 elsewhere.

    Raises:
      IndexError: a class is not below `num_classes`.
    """
    classes = np.asarray(y, np.int64)
    if classes.ndim > 1 and classes.shape[-1] == 1:
        classes = classes[..., 0]
    return np.eye(num_classes or int(classes.max()) + 1, dtype=dtype)[classes]


def __getattr__(name: str) -> Any:
    if name == "get_file":
        raise AttributeError("tf.keras.utils.get_file downloads files, which dtf never does; open a local file instead")
    raise late.missing("dtf.keras.utils", name)
