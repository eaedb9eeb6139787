"""The namespace tf.initializers. Only re-exports initializers of `build.initializers`."""

from __future__ import annotations

from dtf.build.initializers import *  # noqa: F403
from dtf.build.initializers import (  # noqa: F401
    constant,
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    identity,
    lecun_normal,
    lecun_uniform,
    ones,
    orthogonal,
    random_normal,
    random_uniform,
    truncated_normal,
    uniform_unit_scaling,
    variance_scaling,
    zeros,
)
from dtf.build.ops.lookup import tables_initializer  # noqa: F401
from dtf.build.variable_collections import (  # noqa: F401
    global_variables_initializer,
    local_variables_initializer,
    variables_initializer,
)

global_variables = global_variables_initializer
local_variables = local_variables_initializer
variables = variables_initializer
