"""The namespace tf.layers: layers as objects, and functions that make one and call it.

A layer's variables are in the variable scope of its name: "dense/kernel", and "dense_1/kernel" for the second layer
without a name. A layer that is called twice uses its variables twice; a function of the same name does so with
`reuse=True`. Only re-exports the layers of this package's modules.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers
"""

from __future__ import annotations

from dtf import late as _late
from dtf.layers.base import InputSpec, Layer
from dtf.layers.convolutional import *
from dtf.layers.core import *
from dtf.layers.normalization import *
from dtf.layers.pooling import *

__getattr__ = _late.refusals(__name__)
