"""The namespace tf.strings. Only re-exports functions of `ops/string`."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.string import *  # noqa: F403
from dtf.build.ops.string import string_format as format  # noqa: F401
from dtf.build.ops.string import (  # noqa: F401
    string_join,
    string_length,
    string_lower,
    string_strip,
    string_upper,
    unicode_transcode,
    unsorted_segment_join,
)
from dtf.build.ops.string import string_split_v2 as split  # noqa: F401
from dtf.build.ops.string import string_to_hash_bucket as to_hash_bucket  # noqa: F401
from dtf.build.ops.string import string_to_hash_bucket_fast as to_hash_bucket_fast  # noqa: F401
from dtf.build.ops.string import string_to_hash_bucket_strong as to_hash_bucket_strong  # noqa: F401
from dtf.build.ops.string import string_to_number as to_number  # noqa: F401

join = string_join
length = string_length
lower = string_lower
strip = string_strip
upper = string_upper

#: Names whose results are ragged, imported at their first use.
_RAGGED = (
    "bytes_split", "ngrams", "unicode_decode", "unicode_decode_with_offsets", "unicode_encode", "unicode_split",
    "unicode_split_with_offsets",
)  # fmt: skip

__getattr__, __dir__ = _late.names(globals(), dict.fromkeys(_RAGGED, "dtf.build.ops.ragged_strings"))
