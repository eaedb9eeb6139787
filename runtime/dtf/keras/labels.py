"""tf.keras.utils: labels in other forms.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/utils/to_categorical
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["to_categorical"]


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> np.ndarray:
    """Numbers of classes [...] as [..., num_classes], 1 at the class and 0 elsewhere.

    Raises:
      IndexError: a class is not below `num_classes`.
    """
    classes = np.asarray(y, np.int64)
    if classes.ndim > 1 and classes.shape[-1] == 1:
        classes = classes[..., 0]
    return np.eye(num_classes or int(classes.max()) + 1, dtype=dtype)[classes]
