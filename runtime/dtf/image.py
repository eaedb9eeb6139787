"""The namespace tf.image. Owns nothing: the functions are those of `ops/image*`."""

from __future__ import annotations

from dtf.build.ops.image import *  # noqa: F403
from dtf.build.ops.image_functions import *  # noqa: F403
from dtf.build.ops.image_measures import *  # noqa: F403
from dtf.build.ops.random import random_crop  # noqa: F401
from dtf.build.ops.rearranging import extract_image_patches  # noqa: F401
