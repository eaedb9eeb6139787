"""tf.keras.layers: Bidirectional and TimeDistributed, which call other layers.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/layers/Bidirectional
"""

from __future__ import annotations

import inspect
from typing import Any

from dtf.build import nest
from dtf.build.ops.array import reshape, shape_of
from dtf.build.ops.joining import concat
from dtf.build.ops.rearranging import reverse
from dtf.keras.base import Layer
from dtf.keras.calls import applied
from dtf.keras.recurrent import RNN
from dtf.keras.saving import deserialize_layer

__all__ = ["Bidirectional", "TimeDistributed", "Wrapper"]


class Wrapper(Layer):
    """The base of layers that call another layer.

    Attributes:
      layer: the other layer.
    """

    def __init__(self, layer: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.layer = layer

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        layer = {"class_name": type(self.layer).__name__, "config": self.layer.get_config()}
        return {**super().get_config(), "layer": layer}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """A layer from the result of `get_config`."""
        given = dict(config)
        return cls(deserialize_layer(given.pop("layer")), **given)


class Bidirectional(Wrapper):
    """A recurrent layer over sequences in both directions.

    Args:
      layer: an LSTM, GRU, SimpleRNN or RNN.
      merge_mode: "concat", "sum", "mul", "ave", or None for a list of both outputs.
    """

    supports_masking = True

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", weights: Any = None, name: str | None = None, **kwargs: Any
    ) -> None:
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(f"merge_mode must be concat, sum, mul, ave or None, not {merge_mode!r}")
        if not isinstance(layer, RNN):
            raise ValueError(f"Bidirectional takes an LSTM, GRU or SimpleRNN, not {type(layer).__name__}")
        shape = layer.batch_input_shape
        if shape is not None and "input_shape" not in kwargs:
            kwargs.setdefault("batch_input_shape", shape)
        super().__init__(layer, name, **kwargs)
        self._inner.clear()
        self.merge_mode = merge_mode
        self.forward_layer = layer.fresh(f"forward_{layer.name}")
        self.backward_layer = layer.fresh(f"backward_{layer.name}")
        self.backward_layer.go_backwards = not layer.go_backwards
        self._first_values = weights

    def call(self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None) -> Any:
        """The merged outputs; with `return_state` a list with the states of both."""
        states = nest.flatten(initial_state) if initial_state is not None else []
        half = len(states) // 2
        outputs = []
        for layer, own in ((self.forward_layer, states[:half]), (self.backward_layer, states[half:])):
            given: dict[str, Any] = {"training": training}
            if mask is not None:
                given["mask"] = mask
            outputs.append(layer(inputs, initial_state=own or None, **given))
        first, second = outputs
        last: list[Any] = []
        if self.layer.return_state:
            last = [*first[1:], *second[1:]]
            first, second = first[0], second[0]
        if self.layer.return_sequences:
            second = reverse(second, [1])
        merged = {
            "concat": lambda: concat([first, second], -1),
            "sum": lambda: first + second,
            "mul": lambda: first * second,
            "ave": lambda: (first + second) / 2.0,
            None: lambda: [first, second],
        }[self.merge_mode]()
        if not last:
            return merged
        return [*(merged if isinstance(merged, list) else [merged]), *last]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the steps, if they are returned."""
        found = [each for each in nest.flatten(mask) if each is not None]
        return found[0] if found and self.layer.return_sequences and not self.layer.return_state else None


class TimeDistributed(Wrapper):
    """A layer applied to each step of [batch, time, ...]."""

    supports_masking = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The outputs [batch, time, ...]."""
        sizes, shape = inputs.shape.as_list(), shape_of(inputs)
        flat = reshape(inputs, concat([[-1], shape[2:]], 0))
        flat.set_shape([None, *sizes[2:]])
        outputs = applied(self.layer, flat, {} if training is None else _training(self.layer, training))
        result = reshape(outputs, concat([shape[:2], shape_of(outputs)[1:]], 0))
        result.set_shape([*sizes[:2], *outputs.shape.as_list()[1:]])
        return result


def _training(layer: Any, training: Any) -> dict[str, Any]:
    return {"training": training} if "training" in inspect.signature(layer.call).parameters else {}
