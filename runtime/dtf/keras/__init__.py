"""tf.keras: stacks of layers that train on arrays, by themselves or in a cluster.

    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=5)

Owns nothing: the model is `models`', what it is made of in the modules beside. Of Keras this is the Sequential model
with the layers that most have; graphs of layers, callbacks and files of whole models are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras
"""

from __future__ import annotations

import sys as _sys

from dtf.keras import (
    activations,
    estimator,
    initializers,
    labels,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
)
from dtf.keras import saving as experimental
from dtf.keras.models import Sequential

# TensorFlow's names of these modules.
utils = labels
_sys.modules["dtf.keras.utils"] = labels
_sys.modules["dtf.keras.experimental"] = experimental
