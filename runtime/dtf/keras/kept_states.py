"""Recurrent layers with stateful=True: the states of one batch are those that the next batch begins with.

Owns the variables of the states. They are no weights: files do not have them, and optimizers do not change them. Each
call of the layer adds the assignments that a step of the model runs, in training, evaluation and prediction.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers/RNN
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf.build.ops.filling import zeros
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.keras.backend import batch_get_value, batch_set_value
from dtf.keras.base import Layer
from dtf.wire import dtypes

__all__ = ["KeepsStates"]


class KeepsStates(Layer):
    """A layer whose states last over batches if `stateful` is true.

    Attributes:
      stateful: whether they do.
      states: their variables [batch, ...], once the layer was called; empty before.
    """

    stateful = False
    states: Sequence[Any] = ()

    def _first_states(self, shapes: Sequence[Sequence[int | None]]) -> list[Tensor]:
        """The states to begin with; the first call makes their variables, of zeros.

        Raises:
          ValueError: the number of examples in a batch, or another size, is not known.
        """
        if not self.states:
            for each in shapes:
                if None in list(each):
                    raise ValueError(
                        f"Layer {self.name} is stateful and must know the shape of its states, not {list(each)}: "
                        "give the first layer a batch_input_shape, or Input a batch_shape"
                    )
            made = [
                Variable(zeros(list(shape), dtypes.float32), trainable=False, name=f"{self.name}/states")
                for shape in shapes
            ]
            object.__setattr__(self, "states", made)
        return [each.read_value() for each in self.states]

    def _keep_states(self, states: Sequence[Tensor]) -> None:
        self._own_state_updates.extend(
            variable.assign(state).op for variable, state in zip(self.states, states, strict=True)
        )

    def reset_states(self, states: Any = None) -> None:
        """Sets the states of a stateful layer to zeros, or to arrays.

        Args:
          states: an array, or a list of one for each state.

        Raises:
          AttributeError: the layer is not stateful.
          ValueError: the layer was not called yet, or the arrays do not fit.
        """
        if not self.stateful:
            raise AttributeError(f"Layer {self.name} must be stateful: make it with stateful=True")
        if not self.states:
            raise ValueError(f"Layer {self.name} has no states before it is called: call it on something first")
        shapes = [tuple(each.shape.as_list()) for each in self.states]
        given = [np.zeros(shape, np.float32) for shape in shapes]
        if states is not None:
            several = states if isinstance(states, list | tuple) else [states]
            given = [np.asarray(each, np.float32) for each in several]
        if [each.shape for each in given] != shapes:
            raise ValueError(f"Layer {self.name} has states of shapes {shapes}, not {[each.shape for each in given]}")
        with self.states[0].graph.as_default():
            batch_set_value(list(zip(self.states, given, strict=True)))

    def get_states(self) -> list[np.ndarray]:
        """The values of `states`."""
        with self.states[0].graph.as_default():
            return batch_get_value(list(self.states))
