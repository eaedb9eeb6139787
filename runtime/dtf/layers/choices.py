"""Common arguments of the layers: formats, sizes, and whether it is training time.

Does not own layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.constant_value import constant_value
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape

Activation = Callable[[Any], Any]

_FORMATS = ("channels_last", "channels_first")
_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def either(
    predicate: Any, static: bool | None, if_true: Callable[[], list[Tensor]], if_false: Callable[[], list[Tensor]]
) -> list[Tensor]:
    """Selects a branch statically if the predicate is known, else at run time."""
    if static is not None:
        return if_true() if static else if_false()
    result = control_flow_ops.cond(predicate, if_true, if_false)
    return list(result) if isinstance(result, list | tuple) else [result]


def static_bool(value: Any) -> bool | None:
    """The value of a bool, of a constant tensor, or None if only a step knows it."""
    if isinstance(value, Tensor):
        value = constant_value(value)
        return None if value is None else bool(value)
    return None if hasattr(value, "initializer") else bool(value)


def checked_activation(activation: Any) -> Activation | None:
    """The activation; a string names one of tf.keras.activations.

    Raises:
      TypeError: it is neither a function nor a string.
      ValueError: no activation has this name.
    """
    if isinstance(activation, str):
        from dtf.keras import activations

        return activations.get(activation)
    if activation is None or callable(activation):
        return activation
    raise TypeError(f"An activation is a function, such as tf.nn.relu; got {activation!r}.")


def is_channels_first(data_format: str) -> bool:
    """Whether the channels are dimension 1 rather than the last one.

    Raises:
      ValueError: the format is not one of the two.
    """
    if data_format not in _FORMATS:
        raise ValueError(f"The `data_format` argument must be one of {sorted(_FORMATS)}. Received: {data_format}")
    return data_format == "channels_first"


def op_format(data_format: str, rank: int) -> str:
    """The ops' name of a format for images with `rank` dimensions: "NHWC" or "NCHW" for two."""
    return f"NC{_LETTERS[rank]}" if is_channels_first(data_format) else f"N{_LETTERS[rank]}C"


def known_size(shape: TensorShape, axis: int, layer: str) -> int:
    """The size of a dimension of the inputs of a layer.

    Raises:
      ValueError: it is not known.
    """
    size = shape[axis].value if shape.ndims is not None else None
    if size is None:
        raise ValueError(f"Expected inputs.shape[{axis}] to be known in layer {layer}, saw shape: {shape}.")
    return size


def numbers(value: Any, rank: int, argument: str) -> tuple[int, ...]:
    """One number for each of `rank` dimensions, of one for all of them or a sequence.

    Raises:
      ValueError: there are more or fewer, or they are not integers.
    """
    found = tuple(value) if isinstance(value, Sequence) else (value,) * rank
    if len(found) != rank or not all(isinstance(each, int) for each in found):
        raise ValueError(f"The `{argument}` argument must be one integer or {rank} of them. Received: {value}")
    return found


def op_padding(padding: str) -> str:
    """The padding as ops call it.

    Raises:
      ValueError: it is neither "valid" nor "same".
    """
    if str(padding).lower() not in ("valid", "same"):
        raise ValueError(f'The `padding` argument must be "valid" or "same". Received: {padding}')
    return padding.upper()
