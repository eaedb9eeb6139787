"""tensorflow.python.layers.utils: helpers of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build import tensor
from dtf.build.constant_value import constant_value as _constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph_keys import GraphKeys
from dtf.build.ops.control_flow import case, cond

__all__ = [
    "constant_value", "conv_input_length", "conv_output_length", "convert_collection_to_dict", "convert_data_format",
    "deconv_output_length", "normalize_data_format", "normalize_padding", "normalize_tuple", "smart_case",
    "smart_cond", "smart_constant_value",
]  # fmt: skip


def smart_constant_value(pred: Any) -> bool | None:
    """The value of a predicate that is a Python value or a constant tensor; None if it is known only in the step."""
    if not isinstance(pred, tensor.Tensor):
        return bool(pred) if pred is not None else None
    value = _constant_value(pred)
    return None if value is None else bool(value)


constant_value = smart_constant_value


def smart_cond(
    pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None,
    name: str | None = None, fn1: Callable[[], Any] | None = None, fn2: Callable[[], Any] | None = None,
) -> Any:  # fmt: skip
    """`tf.cond`, which builds only one branch where the predicate is known.

    Raises:
      TypeError: a branch cannot be called.
    """
    first, second = true_fn or fn1, false_fn or fn2
    if not callable(first) or not callable(second):
        raise TypeError("`true_fn` and `false_fn` must be callable.")
    known = smart_constant_value(pred)
    if known is None:
        return cond(convert_to_tensor(pred), first, second, name=name)
    return first() if known else second()


def smart_case(
    pred_fn_pairs: Any, default: Callable[[], Any] | None = None, exclusive: bool = False, name: str = "smart_case"
) -> Any:
    """`tf.case`, which builds only one branch where the predicates are known."""
    known = []
    for pred, function in pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs:
        value = smart_constant_value(pred)
        if value is None:
            return case(pred_fn_pairs, default, exclusive, name=name)
        known.append((value, function))
    chosen = next((function for value, function in known if value), default)
    if chosen is None:
        raise ValueError("Argument `default` is needed: no predicate is true.")
    return chosen()


def convert_data_format(data_format: str, ndim: int) -> str:
    """"channels_last" or "channels_first" as ops write it for inputs of `ndim` dimensions: NHWC, NCW, ...

    Raises:
      ValueError: another format, or a number of dimensions other than 3 to 5.
    """
    spatial = {3: "W", 4: "HW", 5: "DHW"}.get(ndim)
    if spatial is None:
        raise ValueError(f"Input rank not supported: {ndim}")
    formats = {"channels_last": f"N{spatial}C", "channels_first": f"NC{spatial}"}
    if data_format not in formats:
        raise ValueError(f"Invalid data_format: {data_format}")
    return formats[data_format]


def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """`n` integers from one or from `n`.

    Raises:
      `value` has another type.
    """
    values = (value,) * n if isinstance(value, int) else tuple(value) if hasattr(value, "__iter__") else ()
    if len(values) != n or not all(isinstance(each, int) or hasattr(each, "__index__") for each in values):
        raise ValueError(f"The `{name}` argument must be a tuple of {n} integers. Received: {value}")
    return tuple(int(each) for each in values)


def normalize_data_format(value: str) -> str:
    """"channels_last" or "channels_first", in small letters.

    Raises:
      ValueError: another format.
    """
    return _one_of(value, "data_format", ("channels_first", "channels_last"))


def normalize_padding(value: str) -> str:
    """"valid" or "same", in small letters.

    Raises:
      ValueError: another padding.
    """
    return _one_of(value, "padding", ("valid", "same"))


def _one_of(value: str, name: str, allowed: tuple[str, str]) -> str:
    word = value.lower()
    if word not in allowed:
        raise ValueError(f"The `{name}` argument must be one of {allowed}. Received: {value!r}")
    return word


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """The number of positions of a window along one dimension; None for an unknown length.

    Args:
      padding: "same", "valid" or "full".

    Raises:
      ValueError: another padding.
    """
    if input_length is None:
        return None
    reach = (filter_size - 1) * dilation
    length = input_length + {"same": 0, "valid": -reach, "full": reach}[_known_padding(padding)]
    return -(-length // stride)


def conv_input_length(output_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """The length along one dimension that gives `output_length` positions of a window; None for an unknown length.

    Raises:
      ValueError: a padding other than "same", "valid" and "full".
    """
    if output_length is None:
        return None
    padded = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[_known_padding(padding)]
    return (output_length - 1) * stride - 2 * padded + filter_size


def deconv_output_length(input_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """The length along one dimension after a transposed convolution; None for an unknown length.

    Raises:
      ValueError: a padding other than "same", "valid" and "full".
    """
    if input_length is None:
        return None
    more = {"same": 0, "valid": max(filter_size - stride, 0), "full": 2 - stride - filter_size}
    return input_length * stride + more[_known_padding(padding)]


def _known_padding(padding: str) -> str:
    if padding not in ("same", "valid", "full"):
        raise ValueError(f"The padding must be 'same', 'valid' or 'full'. Received: {padding!r}")
    return padding


def convert_collection_to_dict(collections: Any) -> dict[str, Any]:
    """Names of collections as {name: [members]}; a name alone as one collection."""
    from dtf.build.default_graph import get_collection

    names = [collections] if isinstance(collections, str) else collections or [GraphKeys.GLOBAL_VARIABLES]
    return {name: get_collection(name) for name in names}
