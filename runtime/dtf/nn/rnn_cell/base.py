"""`tf.nn.rnn_cell.RNNCell`: one step of a recurrent network, and the state between steps.

Owns the protocol of cells: sizes of states and outputs, the first state, and the ownership of variables that a cell
gets with `tf.get_variable`. The cells are in the other modules of this package.

    class Counter(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return state + 1, state + 1

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/rnn_cell/RNNCell
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dtf.build import nest
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import VariableScope, variable_scope
from dtf.layers.base import Layer
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["LayerCell", "RNNCell", "check_is_cell", "sizes_with_batch"]


class RNNCell(Layer):
    """One step of a recurrent network.

    Subclasses define `state_size` and `output_size` (a number, a TensorShape without the batch, or a structure of
    these). They implement `call(inputs, state)`, which returns the output and the next state. Tensors are [batch,
    size].
    """

    @property
    def state_size(self) -> Any:
        """The sizes of the state."""
        raise NotImplementedError(f"{type(self).__name__} does not say its state_size.")

    @property
    def output_size(self) -> Any:
        """The sizes of the output."""
        raise NotImplementedError(f"{type(self).__name__} does not say its output_size.")

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step.

        Args:
          inputs: [batch, size].
          state: as `zero_state` and earlier steps give it.
          scope: a variable scope or the name of one, for the first call; by default one of the cell's name.

        Returns:
          (output, next state).
        """
        return super().__call__(inputs, state, scope=scope)

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        """Zeros in the structure of `state_size`, each [batch_size, size]."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return nest.map_structure(
                lambda size: filling_ops.zeros(sizes_with_batch(batch_size, size), dtype), self.state_size
            )

    def get_initial_state(
        self, inputs: TensorLike | None = None, batch_size: Any = None, dtype: DTypeLike | None = None
    ) -> Any:
        """`zero_state`; the batch size and dtype come from `inputs` if given.

        Raises:
          ValueError: one of them is not known.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs)
            batch_size, dtype = array_ops.shape(inputs)[0], inputs.dtype.base_dtype
        if batch_size is None or dtype is None:
            raise ValueError(f"The first state of {self.name} needs a batch_size and a dtype, or inputs.")
        return self.zero_state(batch_size, dtype)

    def _inside(self) -> AbstractContextManager[VariableScope]:
        assert self._scope is not None
        reuse = True if self.built else self._reuse
        return variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False, custom_getter=self._tracked)

    def _tracked(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        variable = getter(*args, **kwargs)
        self._track(variable, kwargs.get("trainable") is not False)
        return variable


class LayerCell(RNNCell):
    """A cell that makes its variables with `add_weight` in `build`, as a layer does."""

    def _inside(self) -> AbstractContextManager[VariableScope]:
        return Layer._inside(self)


def check_is_cell(cell: Any, argument: str = "cell") -> None:
    """Raises TypeError for an object without the methods and properties of a cell."""
    missing = [name for name in ("output_size", "state_size", "zero_state") if not _has(cell, name)]
    if not callable(cell):
        missing.append("__call__")
    if missing:
        raise TypeError(f"The argument {argument!r} ({cell}) is not an RNNCell: it has no {', '.join(missing)}.")


def sizes_with_batch(batch_size: Any, size: Any) -> Any:
    """[batch_size, *size], a list if the batch size is known, else a tensor."""
    sizes = TensorShape([size] if isinstance(size, int) else size).as_list()
    known = constant_value(convert_to_tensor(batch_size)) if isinstance(batch_size, Tensor) else int(batch_size)
    return joining.stack([batch_size, *sizes]) if known is None else [int(known), *sizes]


def _has(cell: Any, name: str) -> bool:
    try:
        return hasattr(cell, name)
    except NotImplementedError:
        return False
