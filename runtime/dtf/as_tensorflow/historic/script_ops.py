"""tensorflow.python.ops.script_ops: the Python functions that graphs call."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.ops.python_functions import py_function
from dtf.wire.dtypes import as_dtype

__all__ = ["FuncRegistry", "eager_py_func"]


def eager_py_func(func: Any, inp: Any, Tout: Any, name: str | None = None) -> Any:  # noqa: N803
    """`tf.py_function`."""
    return py_function(func, inp, Tout, name)


class FuncRegistry:
    """The form of the values that Python functions return."""

    @staticmethod
    def _convert(value: Any, dtype: Any = None) -> Any:
        """A value as an array: texts as bytes, numbers of the dtype if one is given.

        Raises:
          ValueError: the value is neither numbers nor texts, or has no regular shape.
        """
        array = np.asarray(value, None if dtype is None else as_dtype(dtype).as_numpy_dtype, order="C")
        if array.dtype.kind == "U":
            return np.array([each.encode() for each in array.ravel()], dtype=object).reshape(array.shape)
        if array.dtype.kind == "S":
            return array.astype(object)
        return array
