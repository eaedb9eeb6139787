"""How a sliding window (a convolution, a pooling) divides one spatial dimension.

Owns the meaning of SAME, VALID and EXPLICIT padding and of the data formats, read by the shape rules and the kernels
alike, so that the two cannot disagree. Source: "Notes on padding" of the page tf.nn.

    >>> window_extent(5, window=3, stride=2, padding="SAME")
    Extent(output=3, before=1, after=1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """Positions of the window along one dimension, and the elements of padding before and after the input."""

    output: int
    before: int
    after: int


def window_extent(
    size: int,
    window: int,
    stride: int,
    padding: str,
    dilation: int = 1,
    explicit: Sequence[int] = (0, 0),
    may_be_empty: bool = False,
) -> Extent:
    """Returns the extent of a window over `size` elements. `explicit` is (before, after), read for padding "EXPLICIT".

    Args:
      may_be_empty: a window that is larger than the padded input by less than two strides has no position, which is
        how TensorFlow's kernels count; its shape rules refuse it.

    Raises:
      ValueError: a stride or dilation below one, an unknown padding, or a window larger than the padded input.
    """
    if stride < 1 or dilation < 1:
        raise ValueError(f"Strides and dilations must be positive, got {stride} and {dilation}")
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        output = -(-size // stride)
        total = max((output - 1) * stride + reach - size, 0)
        return Extent(output, total // 2, total - total // 2)
    if padding == "VALID":
        before = after = 0
    elif padding == "EXPLICIT":
        before, after = explicit
    else:
        raise ValueError(f"Unknown padding {padding!r}")
    padded = size + before + after
    if padded < reach and not (may_be_empty and padded + 2 * stride > reach):
        raise ValueError(f"Negative dimension size caused by subtracting {reach} from {padded}")
    return Extent(max((padded - reach) // stride + 1, 0), before, after)


def spatial_axes(data_format: str, rank: int = 4) -> tuple[int, ...]:
    """The axes of height and width (and depth) of a batch of images in NHWC or NCHW order."""
    return tuple(range(1, rank - 1)) if channel_axis(data_format, rank) == rank - 1 else tuple(range(2, rank))


def channel_axis(data_format: str, rank: int = 4) -> int:
    """The axis of the channels. Raises ValueError for an unknown format."""
    if data_format.startswith("N") and data_format.endswith("C"):
        return rank - 1
    if data_format.startswith("NC"):
        return 1
    raise ValueError(f"Unknown data format {data_format!r}")
