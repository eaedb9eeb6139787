"""tf.keras: stacks of layers that train on arrays, by themselves or in a cluster.

    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

Only re-exports names: `models` and `functional` have the models, the other modules their parts. Models of
`applications` and readers of images are left out.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras
"""

from __future__ import annotations

import sys as _sys

from dtf.keras import (
    activations,
    backend,
    callbacks,
    constraints,
    estimator,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    preprocessing,
    regularizers,
    utils,
)
from dtf.keras import saving as experimental
from dtf.keras.calls import Input
from dtf.keras.models import Model, Sequential

# TensorFlow's names of these modules.
_sys.modules["dtf.keras.experimental"] = experimental


def __getattr__(name: str) -> object:
    from dtf import late

    if name == "datasets":
        import importlib

        return importlib.import_module("dtf.keras.datasets")
    raise late.missing("dtf.keras", name)
