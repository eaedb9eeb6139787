"""tensorflow.python.training.optimizer: how each kind of variable gets its update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.as_tensorflow.historic.resource_variable_ops import is_resource_variable
from dtf.build.graph import Tensor
from dtf.build.variables import Variable
from dtf.train import optimizer as _optimizer

__all__ = [
    "_DenseResourceVariableProcessor", "_OptimizableVariable", "_RefVariableProcessor", "_TensorProcessor",
    "_get_processor", "get_filtered_grad_fn",
]  # fmt: skip


class _OptimizableVariable:
    """A variable, or a tensor that gradients are taken for."""

    def __init__(self, v: Any) -> None:
        self._v = v

    def target(self) -> Any:
        """The tensor that the gradient is taken for."""
        return _optimizer._target(self._v)

    def update_op(self, optimizer: Any, g: Any) -> Any:
        """The operation that updates the variable by a gradient.

        Raises:
          NotImplementedError: it is a tensor.
        """
        return optimizer._update(g, self._v)


class _RefVariableProcessor(_OptimizableVariable):
    """A variable held by reference."""


class _DenseResourceVariableProcessor(_OptimizableVariable):
    """A variable held by handle."""


class _TensorProcessor(_OptimizableVariable):
    """A tensor."""

    def target(self) -> Any:
        """The tensor itself."""
        return self._v


def _get_processor(v: Any) -> _OptimizableVariable:
    """The processor of a variable or a tensor.

    Raises:
      NotImplementedError: it is neither.
    """
    if isinstance(v, Tensor):
        return _TensorProcessor(v)
    if is_resource_variable(v):
        return _DenseResourceVariableProcessor(v)
    if isinstance(v, Variable):
        return _RefVariableProcessor(v)
    raise NotImplementedError(f"Trying to optimize unsupported type {v!r}")


def get_filtered_grad_fn(grad_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without pairs whose gradient is None."""

    def filtered(*args: Any, **kwargs: Any) -> list[Any]:
        return [(grad, variable) for grad, variable in grad_fn(*args, **kwargs) if grad is not None]

    return filtered
