"""Arrays of random bits, for both Pythons: of every dtype, in every memory order; and whether two are the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes  # noqa: F401  (names the dtypes that numpy lacks)
import numpy as np


def bits(dtype: str, shape: tuple[int, ...], random: np.random.RandomState) -> np.ndarray:
    """Random bits as elements of a dtype: NaNs, denormals and negative zeros among them. Strings of any bytes."""
    count = int(np.prod(shape))
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = [random.bytes(random.choice([0, 1, 5, 130])) for _ in range(count)]
        return array.reshape(shape)
    if dtype == "bool":
        return random.randint(0, 2, shape).astype(bool)
    wanted = np.dtype(dtype)
    array = np.frombuffer(bytearray(random.bytes(count * wanted.itemsize)), wanted)
    if dtype == "complex64":  # whose parts pass through Python's floats, in which no NaN is a signalling one
        parts = array.view(np.float32)
        parts[np.isnan(parts)] = np.nan
    return array.reshape(shape)


def forms(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same array in other memory orders, and in the other order of bytes."""
    yield array
    if array.ndim > 1:
        yield np.asfortranarray(array)
        yield np.repeat(array, 2, axis=-1)[..., ::2]
        yield array[::-1][::-1]
    if array.dtype.kind in "iufc" and array.dtype.itemsize > 1 and array.dtype.name not in ("bfloat16",):
        yield array.astype(array.dtype.newbyteorder(">"))


def same(a: Any, b: Any) -> bool:
    """Whether dtype, shape and every bit agree."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype == object or b.dtype == object:
        return a.shape == b.shape and a.tolist() == b.tolist()
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
