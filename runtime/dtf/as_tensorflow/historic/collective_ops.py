"""tensorflow.python.ops.collective_ops: values exchanged by the members of a group, each with its own device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import Tensor
from dtf.wire.tensor_shape import TensorShape

__all__ = ["all_gather", "all_reduce", "broadcast_recv", "broadcast_send"]


def all_reduce(
    t: Any, group_size: int, group_key: int, instance_key: int, merge_op: str, final_op: str,
    subdiv_offsets: Sequence[int] = (0,), communication_hint: str = "auto", timeout: float = 0,
) -> Tensor:  # fmt: skip
    """The sum, product, minimum or maximum over the group, for each member.

    Args:
      t: this member's value, of the shape and dtype of the other members' values.
      group_size: the number of members.
      group_key: a number of the group.
      instance_key: a number of this exchange.
      merge_op: "Add", "Mul", "Min" or "Max".
      final_op: "Div" divides the result by `group_size`; "Id" leaves it.

    Raises:
      ValueError: the group has fewer than 1 member.
    """
    _check_size(group_size, "all_reduce")
    return apply_op(
        "CollectiveReduce", input=t, group_size=group_size, group_key=group_key, instance_key=instance_key,
        merge_op=merge_op, final_op=final_op, subdiv_offsets=list(subdiv_offsets),
        communication_hint=communication_hint.lower(), timeout_seconds=timeout,
    )  # fmt: skip


def all_gather(
    t: Any, group_size: int, group_key: int, instance_key: int, communication_hint: str = "auto", timeout: float = 0
) -> Tensor:
    """The values of all members joined along the first dimension, for each member.

    Raises:
      ValueError: the group has fewer than 1 member.
    """
    _check_size(group_size, "all_gather")
    value = convert_to_tensor(t)
    shape = value.shape
    if shape.ndims is not None:
        rows = shape.as_list()[0]
        shape = TensorShape([None if rows is None else rows * group_size, *shape.as_list()[1:]])
    return apply_op(
        "CollectiveGather", input=value, shape=shape, group_size=group_size, group_key=group_key,
        instance_key=instance_key, communication_hint=communication_hint.lower(), timeout_seconds=timeout,
    )  # fmt: skip


def broadcast_send(
    t: Any, shape: Any, dtype: Any, group_size: int, group_key: int, instance_key: int,
    communication_hint: str = "auto", timeout: float = 0,
) -> Tensor:  # fmt: skip
    """Sends a value to the other members, and returns it.

    Raises:
      ValueError: the group has fewer than 2 members, or the value has another shape or dtype than was said.
    """
    _check_several(group_size, "broadcast_send")
    value = convert_to_tensor(t)
    if value.shape != TensorShape(shape):
        raise ValueError(f"Shape of broadcast_send tensor ({value.shape}) not equal to declared shape ({shape})")
    if value.dtype != dtype:
        raise ValueError(f"Type of broadcast_send tensor ({value.dtype}) not equal to declared type ({dtype})")
    return apply_op(
        "CollectiveBcastSend", input=value, shape=shape, group_size=group_size, group_key=group_key,
        instance_key=instance_key, communication_hint=communication_hint.lower(), timeout_seconds=timeout,
    )  # fmt: skip


def broadcast_recv(
    shape: Any, dtype: Any, group_size: int, group_key: int, instance_key: int, communication_hint: str = "auto",
    timeout: float = 0,
) -> Tensor:  # fmt: skip
    """The value that another member sends.

    Raises:
      ValueError: the group has fewer than 2 members.
    """
    _check_several(group_size, "broadcast_recv")
    return apply_op(
        "CollectiveBcastRecv", T=dtype, shape=shape, group_size=group_size, group_key=group_key,
        instance_key=instance_key, communication_hint=communication_hint.lower(), timeout_seconds=timeout,
    )  # fmt: skip


def _check_size(group_size: int, what: str) -> None:
    if group_size < 1:
        raise ValueError(f"Parameter `group_size` to {what} must be at least 1. Received: {group_size}.")


def _check_several(group_size: int, what: str) -> None:
    if group_size <= 1:
        raise ValueError(f"Parameter `group_size` to {what} must be at least 2. Received: {group_size}.")
