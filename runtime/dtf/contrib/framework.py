"""tf.contrib.framework: aliases of names that later moved to tf and tf.train."""

from __future__ import annotations

from dtf.build import nest
from dtf.train.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
)

__all__ = ["assert_global_step", "create_global_step", "get_global_step", "get_or_create_global_step", "nest"]
