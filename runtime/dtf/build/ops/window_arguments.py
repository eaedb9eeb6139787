"""Arguments of windows over one, two or three spatial dimensions, as lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.wire.window_shapes import channel_axis

FORMATS = ("NWC", "NHWC", "NDHWC"), ("NCW", "NCHW", "NCDHW")


def for_spatial(value: Any, count: int, name: str) -> list[int]:
    """One number, or one for each of `count` spatial dimensions, as a list."""
    sizes = [int(each) for each in np.ravel(value)]
    sizes = sizes * count if len(sizes) == 1 else sizes
    if len(sizes) == count + 2:
        return sizes
    if len(sizes) != count:
        raise ValueError(f"{name} should be of length 1, {count} or {count + 2} but was {len(sizes)}")
    return sizes


def for_all(value: Any, count: int, data_format: str, name: str) -> list[int]:
    """The same for all dimensions."""
    sizes = for_spatial(value, count, name)
    if len(sizes) == count + 2:
        return sizes
    return [1, *sizes, 1] if channel_axis(data_format, count + 2) == count + 1 else [1, 1, *sizes]
