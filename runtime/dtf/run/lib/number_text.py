"""Numbers as text, as TensorFlow reads them: decimal, for floats hexadecimal too, between white space of ASCII.

Python's own conversions take underscores between digits and, of `str`, digits and white space of any script.
"""

from __future__ import annotations

import re

import numpy as np

from dtf.run.value_types import Scalar

__all__ = ["number_of"]

_HEXADECIMAL = re.compile(rb"[+-]?0[xX]")


def number_of(text: bytes, dtype: type[Scalar]) -> Scalar:
    """The number of this numpy type that `text` holds. Raises ValueError or OverflowError."""
    if b"_" in text:
        raise ValueError
    if np.issubdtype(dtype, np.integer):
        return dtype(int(text))
    bare = text.strip()
    return dtype(float.fromhex(bare.decode("latin-1")) if _HEXADECIMAL.match(bare) else float(bare))
