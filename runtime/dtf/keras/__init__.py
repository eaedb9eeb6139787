"""tf.keras: stacks of layers that train on arrays, by themselves or in a cluster.

    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

Only re-exports names: `models` and `functional` have the models, the other modules their parts. Of Keras these are
stacks and graphs of the layers that most models have; models by subclasses and files of whole models are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras
"""

from __future__ import annotations

import sys as _sys

from dtf.keras import (
    activations,
    backend,
    callbacks,
    estimator,
    initializers,
    labels,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    preprocessing,
    regularizers,
)
from dtf.keras import saving as experimental
from dtf.keras.calls import Input
from dtf.keras.models import Model, Sequential

# TensorFlow's names of these modules.
utils = labels
_sys.modules["dtf.keras.utils"] = labels
_sys.modules["dtf.keras.experimental"] = experimental
