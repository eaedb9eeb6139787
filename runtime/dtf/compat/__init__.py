"""tf.compat: `dtf.compat.v1`, which is the package `dtf` itself, and helpers for text and bytes.

    import dtf.compat.v1 as tf
"""

from __future__ import annotations

import numbers
import sys
from typing import Any

import numpy as np

import dtf as v1
from dtf import late as _late
from dtf.wire.tensor_shape import Dimension, TensorShape, dimension_value

# One namespace under two names: a second copy would have a second default graph.
sys.modules["dtf.compat.v1"] = v1


__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types", "dimension_at_index",
    "dimension_value", "forward_compatible", "integral_types", "path_to_str", "real_types", "v1",
]  # fmt: skip

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
    """Decodes bytes; returns text unchanged.

    Raises:
      TypeError: it is neither.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """`as_str` of bytes and text, `str` of other objects."""
    return as_str(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """The text of a path object; other objects unchanged."""
    return as_str_any(path.__fspath__()) if hasattr(path, "__fspath__") else path


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Dimension number `index`; unknown where the rank is."""
    return Dimension(None) if shape.ndims is None else shape.with_rank_at_least(index + 1)[index]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """False: older versions of TensorFlow can read the graphs."""
    return False

__getattr__, _ = _late.names(globals(), {}, {"v2": "dtf.compat.v2"})
