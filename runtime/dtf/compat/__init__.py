"""tf.compat: `dtf.compat.v1`, which is the package `dtf` itself, and helpers for text and bytes.

    import dtf.compat.v1 as tf
"""

from __future__ import annotations

import numbers
import sys
from typing import Any

import numpy as np

import dtf as v1

# One namespace under two names: a second copy would have a second default graph.
sys.modules["dtf.compat.v1"] = v1

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text encoded; bytes as they are.

    Raises:
      TypeError: it is neither.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes decoded; text as it is.

    Raises:
      TypeError: it is neither.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any) -> str:
    """`as_str` of bytes and text, `str` of anything else."""
    return as_str(value) if isinstance(value, bytes) else str(value)
