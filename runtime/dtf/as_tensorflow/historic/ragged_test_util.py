"""tensorflow.python.ops.ragged.*: the class under unit tests of ragged tensors, and names of the modules' own."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import ragged_functions as _functions
from dtf.build.ragged import RaggedTensor, RaggedTensorValue
from dtf.build.tensor import Tensor
from dtf.test.test_case import TestCase

__all__ = [
    "RaggedTensorTestCase", "convert_to_tensor_or_ragged_tensor", "from_sparse", "from_tensor", "is_ragged",
    "ragged_tensor_getitem", "ragged_to_dense", "to_sparse", "to_tensor",
]  # fmt: skip


def is_ragged(value: Any) -> bool:
    """Whether it is a RaggedTensor or a RaggedTensorValue."""
    return isinstance(value, RaggedTensor | RaggedTensorValue)


def convert_to_tensor_or_ragged_tensor(
    value: Any, dtype: Any = None, preferred_dtype: Any = None, name: str | None = None
) -> Any:
    """A RaggedTensor as it is, a RaggedTensorValue as a RaggedTensor, other values as a Tensor.

    Raises:
      ValueError: a RaggedTensor has another dtype than the given one.
    """
    if not is_ragged(value):
        return convert_to_tensor(value, dtype, name, preferred_dtype)
    from dtf.wire.dtypes import as_dtype

    if dtype is not None and as_dtype(dtype) != as_dtype(value.dtype):
        raise ValueError(f"Tensor conversion requested dtype {as_dtype(dtype).name} for RaggedTensor with dtype "
                         f"{as_dtype(value.dtype).name}: {value!r}")  # fmt: skip
    return value if isinstance(value, RaggedTensor) else _functions.constant(value.to_list())


def from_tensor(tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """`RaggedTensor.from_tensor`."""
    return RaggedTensor.from_tensor(tensor, *args, **kwargs)


def from_sparse(st_input: Any, *args: Any, **kwargs: Any) -> Any:
    """`RaggedTensor.from_sparse`."""
    return RaggedTensor.from_sparse(st_input, *args, **kwargs)


def to_tensor(rt_input: Any, default_value: Any = None, name: str | None = None, **kwargs: Any) -> Any:
    """`RaggedTensor.to_tensor`; a Tensor as it is."""
    return rt_input.to_tensor(default_value, name, **kwargs) if isinstance(rt_input, RaggedTensor) else rt_input


ragged_to_dense = to_tensor


def to_sparse(rt_input: Any, name: str | None = None) -> Any:
    """`RaggedTensor.to_sparse`."""
    return rt_input.to_sparse(name)


def ragged_tensor_getitem(self: Any, key: Any) -> Any:
    """`ragged[key]`."""
    return self[key]



class RaggedTensorTestCase(TestCase):
    """Tests of ragged tensors."""

    def eval_to_list(self, tensor: Any) -> Any:
        """The value of a tensor, ragged or not, as nested lists."""
        value = self.evaluate(tensor) if isinstance(tensor, Tensor | RaggedTensor) else tensor
        if is_ragged(value):
            return value.to_list()
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else value

    def assertRaggedEqual(self, a: Any, b: Any) -> None:
        """Both have the same rows and values."""
        self.assertEqual(_plain(self.eval_to_list(a)), _plain(self.eval_to_list(b)))

    def assertRaggedAlmostEqual(self, a: Any, b: Any, places: int = 7) -> None:
        """Both have the same rows, and the same values up to rounding."""
        one, other = _plain(self.eval_to_list(a)), _plain(self.eval_to_list(b))
        self._almost(one, other, places, "value")

    def _almost(self, one: Any, other: Any, places: int, context: str) -> None:
        self.assertEqual(isinstance(one, list), isinstance(other, list), context)
        if not isinstance(one, list):
            self.assertAlmostEqual(one, other, places=places, msg=context)
            return
        self.assertEqual(len(one), len(other), context)
        for index, (first, second) in enumerate(zip(one, other, strict=True)):
            self._almost(first, second, places, f"{context}[{index}]")


def _plain(value: Any) -> Any:
    """Lists of Python's values, bytes as they are and text as bytes."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.encode() if isinstance(value, str) else value
