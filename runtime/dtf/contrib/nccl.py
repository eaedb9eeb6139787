"""tf.contrib.nccl: sums and the like over tensors of several devices, and copies of one tensor to all of them.

NVIDIA's library is not used: values are copied from device to device, and each device combines them in the same order,
so that all have the same result to the last bit. Gradients follow from that.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/nccl
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import dtf as tf

__all__ = ["all_max", "all_min", "all_prod", "all_sum", "broadcast", "reduce_sum"]

_Combine = Callable[[Sequence[Any]], Any]


def all_sum(tensors: Sequence[Any]) -> list[Any]:
    """The sum of all tensors, on the device of each.

    Args:
      tensors: of one shape and dtype, each on a device of its own.

    Returns:
      as many sums, in the same order.

    Raises:
      ValueError: there are no tensors, one has no device, or two have the same.
    """
    return _on_all(tensors, tf.add_n)


def all_prod(tensors: Sequence[Any]) -> list[Any]:
    """The product of all tensors, on the device of each; see `all_sum`."""
    return _on_all(tensors, functools.partial(functools.reduce, tf.multiply))


def all_min(tensors: Sequence[Any]) -> list[Any]:
    """The least elements of all tensors, on the device of each; see `all_sum`."""
    return _on_all(tensors, functools.partial(functools.reduce, tf.minimum))


def all_max(tensors: Sequence[Any]) -> list[Any]:
    """The greatest elements of all tensors, on the device of each; see `all_sum`."""
    return _on_all(tensors, functools.partial(functools.reduce, tf.maximum))


def reduce_sum(tensors: Sequence[Any]) -> Any:
    """The sum of all tensors, on the device that is current; see `all_sum`."""
    _check(tensors)
    return tf.add_n(list(tensors))


def broadcast(tensor: Any) -> Any:
    """The tensor, for readers on any device: each device gets one copy.

    Raises:
      ValueError: it has no device.
    """
    _check([tensor])
    with tf.device(tensor.device):
        return tf.identity(tensor)


def _on_all(tensors: Sequence[Any], combine: _Combine) -> list[Any]:
    _check(tensors)
    results = []
    for tensor in tensors:
        with tf.device(tensor.device):
            results.append(combine(list(tensors)))
    return results


def _check(tensors: Sequence[Any]) -> None:
    if not tensors:
        raise ValueError("Must pass >0 tensors to all reduce operations")
    devices = [tensor.device for tensor in tensors]
    for tensor, device in zip(tensors, devices, strict=True):
        if not tf.DeviceSpec.from_string(device).device_type:
            raise ValueError(f"Device assignment required for nccl collective ops, but {tensor.name} has none")
    if len(set(devices)) != len(devices):
        raise ValueError(f"The tensors must be on devices of their own, but these are their devices: {devices}")
