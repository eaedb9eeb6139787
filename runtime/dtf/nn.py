"""The namespace tf.nn. Owns nothing: its functions are those of `ops.nn`, `ops.conv`, `ops.embedding`, `ops.math`."""

from __future__ import annotations

from dtf.build.ops.candidate_sampling import *  # noqa: F403
from dtf.build.ops.conv import *  # noqa: F403
from dtf.build.ops.embedding import *  # noqa: F403
from dtf.build.ops.math import sigmoid, tanh  # noqa: F401
from dtf.build.ops.nn import *  # noqa: F403
from dtf.build.ops.volume import *  # noqa: F403
