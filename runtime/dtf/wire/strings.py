"""Strings as tensors hold them: `bytes` in arrays of objects, 0-d ones too.

Owns the two ways to make such an array of one `bytes`. Where numpy is left to make an array of it, as by `np.asarray`
or `np.full`, that has a type of numpy's own, which drops the NULs at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def string_scalar(value: bytes | str) -> np.ndarray:
    """The scalar tensor of a string: shape [], dtype object. Text becomes UTF-8; subclasses become plain bytes."""
    array = np.empty((), object)
    array[()] = value if type(value) is bytes else value.encode() if isinstance(value, str) else bytes(value)
    return array


def filled(shape: int | Sequence[int], value: Any, dtype: Any) -> np.ndarray:
    """As `np.full`, for a `value` that may be a `bytes`."""
    array = np.empty(shape, dtype)
    array[...] = value
    return array
