"""tf.keras.preprocessing.sequence: sequences of one length.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/preprocessing/sequence
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["pad_sequences"]


def pad_sequences(
    sequences: Sequence[Any], maxlen: int | None = None, dtype: Any = "int32", padding: str = "pre",
    truncating: str = "pre", value: Any = 0.0,
) -> np.ndarray:  # fmt: skip
    """An array [n, maxlen, ...] of sequences, cut or filled at their beginning or end.

    Args:
      maxlen: the length of the longest by default.
      padding, truncating: "pre" or "post".
      value: what short sequences are filled with.

    Raises:
      ValueError: `padding` or `truncating` is neither.
    """
    for each in (padding, truncating):
        if each not in ("pre", "post"):
            raise ValueError(f"padding and truncating must be pre or post, not {each!r}")
    length = max((len(each) for each in sequences), default=0) if maxlen is None else maxlen
    rest = next((np.shape(each)[1:] for each in sequences if len(each)), ())
    result = np.full((len(sequences), length, *rest), value, dtype)
    for row, each in zip(result, sequences, strict=True):
        kept = np.asarray(each[max(len(each) - length, 0) :] if truncating == "pre" else each[:length], dtype)
        if not len(kept):
            continue
        if padding == "post":
            row[: len(kept)] = kept
        else:
            row[-len(kept) :] = kept
    return result
