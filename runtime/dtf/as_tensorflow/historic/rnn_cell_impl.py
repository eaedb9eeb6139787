"""tensorflow.python.ops.rnn_cell_impl: the linear map inside cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.initializers import zeros_initializer
from dtf.build.ops.joining import concat
from dtf.build.ops.linalg import matmul
from dtf.build.ops.nn import bias_add
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable, get_variable_scope, variable_scope

__all__ = ["_Linear", "_linear"]


def _linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None,
    bias_start: float | None = None, scope: Any = None,
) -> Tensor:  # fmt: skip
    """sum(args[i] @ kernel[i]) + bias, with the variables `kernel` and `bias` of the scope that is open.

    Args:
      args: a tensor [batch, n], or a list of them.
      output_size: the columns of the result.
      bias_start: the bias's first value, as in TensorFlow before 1.2.

    Raises:
      ValueError: `args` is empty, or one of them is not a matrix of known width.
    """
    if scope is not None:
        with variable_scope(scope):
            return _linear(args, output_size, bias, bias_initializer, kernel_initializer, bias_start)
    tensors = [convert_to_tensor(each) for each in (args if isinstance(args, list | tuple) else [args])]
    if not tensors:
        raise ValueError("`args` must be specified")
    for tensor in tensors:
        if tensor.get_shape().ndims != 2 or tensor.get_shape()[1].value is None:
            raise ValueError(f"linear expects matrices of known width, not {tensor.get_shape()}")
    width = sum(tensor.get_shape()[1].value for tensor in tensors)
    dtype = tensors[0].dtype.base_dtype
    with variable_scope(get_variable_scope()):
        kernel = get_variable("kernel", [width, output_size], dtype=dtype, initializer=kernel_initializer)
        product = matmul(tensors[0] if len(tensors) == 1 else concat(tensors, 1), kernel)
        if not bias:
            return product
        from dtf.build.initializers import constant_initializer

        start = bias_initializer or (zeros_initializer() if bias_start is None else constant_initializer(bias_start))
        return bias_add(product, get_variable("bias", [output_size], dtype=dtype, initializer=start))


class _Linear:
    """`_linear` as an object: its variables are made once, and used at each call."""

    def __init__(
        self, args: Any, output_size: int, build_bias: bool, bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:  # fmt: skip
        first: Sequence[Any] = args if isinstance(args, list | tuple) else [args]
        width = sum(convert_to_tensor(each).get_shape()[1].value for each in first)
        dtype = convert_to_tensor(first[0]).dtype.base_dtype
        self._weights = get_variable("kernel", [width, output_size], dtype=dtype, initializer=kernel_initializer)
        self._bias = None
        if build_bias:
            start = bias_initializer or zeros_initializer()
            self._bias = get_variable("bias", [output_size], dtype=dtype, initializer=start)

    def __call__(self, args: Any) -> Tensor:
        tensors = args if isinstance(args, list | tuple) else [args]
        product = matmul(tensors[0] if len(tensors) == 1 else concat(list(tensors), 1), self._weights)
        return product if self._bias is None else bias_add(product, self._bias)
