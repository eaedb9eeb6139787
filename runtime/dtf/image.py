"""The namespace tf.image. Only re-exports functions of `ops/image*`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.image import *  # noqa: F403
from dtf.build.ops.image_functions import *  # noqa: F403
from dtf.build.ops.image_measures import *  # noqa: F403
from dtf.build.ops.image_quality import *  # noqa: F403
from dtf.build.ops.random import random_crop  # noqa: F401
from dtf.build.ops.rearranging import extract_image_patches, extract_patches  # noqa: F401

__getattr__ = _late.refusals(__name__)
