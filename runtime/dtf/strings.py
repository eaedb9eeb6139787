"""The namespace tf.strings. Owns nothing: the functions are those of `ops/string`."""

from __future__ import annotations

from dtf.build.ops.string import *  # noqa: F403
from dtf.build.ops.string import string_join, string_length, string_lower, string_strip, string_upper
from dtf.build.ops.string import string_split_v2 as split  # noqa: F401
from dtf.build.ops.string import string_to_number as to_number  # noqa: F401

join = string_join
length = string_length
lower = string_lower
strip = string_strip
upper = string_upper
