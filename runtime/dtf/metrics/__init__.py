"""The namespace tf.metrics: figures that are gathered over many steps, in local variables.

Every function gives the figure so far, and the operation that adds one batch to it and gives the figure then. The
variables belong to the graph's LOCAL_VARIABLES and METRIC_VARIABLES: `tf.local_variables_initializer()` resets them.
`weights` is a number or a tensor that broadcasts to the values. Where nothing was counted the figure is 0, if the
function does not say otherwise. Only re-exports the functions of this package's modules.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics
"""

from __future__ import annotations

from dtf.metrics.binary import *
from dtf.metrics.classes import *
from dtf.metrics.means import *
from dtf.metrics.ranking import *
from dtf.metrics.thresholds import *
