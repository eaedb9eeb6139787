"""tf.contrib.framework.nest: structures of lists, tuples and dicts; functions of their upper parts too.

Only collects names: `build.nest` has the structures, `as_tensorflow.historic.nest` the functions of upper parts.
"""

# ruff: noqa: F403
from __future__ import annotations

from dtf.as_tensorflow.historic.nest import *
from dtf.build.nest import *
