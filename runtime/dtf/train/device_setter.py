"""replica_device_setter: variables to the ps tasks, all other ops to the worker.

Owns the device function and the strategies that choose a ps task; knows variables only by their op types.

    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        w = tf.get_variable("w", [10])  # /job:ps/task:0

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/replica_device_setter
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtf.wire.cluster import ClusterSpec
from dtf.wire.device import DeviceSpec

STANDARD_PS_OPS = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """Returns a function for tf.device that places variables on ps tasks and other ops on the worker.

    Args:
      ps_tasks: how many ps tasks there are; taken from `cluster` when that is given.
      ps_device: device of the ps job, without a task.
      worker_device: device of the local worker.
      merge_devices: merge with the device that the op already has, which takes precedence; otherwise an op with a
        device keeps it unchanged.
      cluster: anything that ClusterSpec takes.
      ps_ops: op types that belong on ps tasks.
      ps_strategy: called with each op of these types; returns the task index. Round-robin by
          default.

    Returns:
      The function, or None when there are no ps tasks.

    Raises:
      TypeError: `cluster` or `ps_strategy` is of the wrong type.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/replica_device_setter
    """
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        ps_job = DeviceSpec.from_string(ps_device).job
        if not ps_job or ps_job not in jobs or not jobs[ps_job]:
            return None
        ps_tasks = len(jobs[ps_job])
    if ps_tasks == 0:
        return None
    strategy = ps_strategy if ps_strategy is not None else RoundRobinStrategy(ps_tasks)
    if not callable(strategy):
        raise TypeError("ps_strategy must be callable")
    ops_for_ps = frozenset(STANDARD_PS_OPS if ps_ops is None else ps_ops)
    ps_spec, worker_spec = DeviceSpec.from_string(ps_device), DeviceSpec.from_string(worker_device or "")

    def choose(op: Any) -> str:
        if not merge_devices and op.device:
            return op.device
        current = DeviceSpec.from_string(op.device or "")
        op_type = getattr(op, "type", None) or op.op  # an Operation, or a NodeDef
        if op_type not in ops_for_ps:
            return worker_spec.make_merged_spec(current).to_string()
        base = ps_spec
        if base.job and current.job in (None, base.job):
            base = base.replace(task=strategy(op))
        return base.make_merged_spec(current).to_string()

    return choose


class RoundRobinStrategy:
    """Chooses the ps tasks in turn."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next = 0

    def __call__(self, op: Any) -> int:
        task = self._next
        self._next = (task + 1) % self._num_tasks
        return task


class RandomStrategy:
    """Chooses a ps task by a seeded generator."""

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_ps_tasks
        self._random = np.random.RandomState(seed)

    def __call__(self, op: Any) -> int:
        return int(self._random.randint(self._num_tasks))


class GreedyLoadBalancingStrategy:
    """Chooses the ps task with the least load so far.

    Args:
      num_tasks: how many ps tasks there are.
      load_fn: gives the load of an op as a number, for example `byte_size_load_fn`.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._loads = np.zeros(num_tasks)
        self._load_fn = load_fn

    def __call__(self, op: Any) -> int:
        task = int(np.argmin(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Any) -> float:
    """The size in bytes of a variable op's value.

    Raises:
      ValueError: the op has several outputs, or its shape is not known in full.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    output = op.outputs[0]
    if op.type == "VarHandleOp":
        shape, dtype = op.get_attr("shape"), op.get_attr("dtype")
    else:
        shape, dtype = output.shape, output.dtype
    shape.assert_is_fully_defined()
    return float(shape.num_elements() * dtype.base_dtype.size)
