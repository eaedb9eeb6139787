"""Staleness: how many updates of others came between a worker's pull of the variables and its push of the gradients.

Owns the measure and the hook that makes it visible. In asynchronous training a worker's gradients belong to the
variables as they were when its step began. More workers and longer steps make gradients older. One worker alone has 0,
as have synchronous replicas; n workers that are equally fast have n - 1.

    train_op = optimizer.minimize(loss, global_step=global_step)
    hooks = [tf.train.StalenessHook(train_op, output_dir="logs/worker-1")]
"""

from __future__ import annotations

from typing import Any

from dtf import logging
from dtf.build import nest
from dtf.build.default_graph import colocate_with, control_dependencies, name_scope
from dtf.build.ops import math as math_ops
from dtf.build.tensor import Operation, Tensor
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.summary_writer import FileWriterCache
from dtf.train.training_util import get_global_step
from dtf.wire import dtypes
from dtf.wire.measures import measures
from dtf.wire.pb import summary_pb2

__all__ = ["StalenessHook", "staleness"]


def staleness(train_op: Any, global_step: Any = None, name: str = "staleness") -> Tensor:
    """The updates of others between the beginning of a step and the update that it makes. Running it runs `train_op`.

    Args:
      train_op: the result of `minimize`.
      global_step: the variable that counts the updates; the graph's by default.

    Returns:
      An int64 scalar, on the device of `global_step`. An update that comes between this one and the look at the step
      counts too.

    Raises:
      ValueError: there is no global step.
    """
    return _measure(train_op, global_step, name)[0]


class StalenessHook(SessionRunHook):
    """Logs and summarises the staleness of a worker's updates: the tags "staleness", the mean since the time before,
    and "staleness_max".

    Each worker has its own, in a folder of its own, which TensorBoard then shows as a run of its own. Runs that do not
    fetch `train_op` do not count.

    Args:
      train_op: the result of `minimize`.
      every_n_steps: the interval, in steps of this worker.
      output_dir: folder of the event file, unless `summary_writer` is given; without both it only logs.
      global_step: as of `staleness`.

    Raises:
      ValueError: `every_n_steps` is not positive, or (from `begin`) there is no global step.
    """

    def __init__(
        self,
        train_op: Any,
        every_n_steps: int = 100,
        output_dir: str | None = None,
        summary_writer: Any = None,
        global_step: Any = None,
    ) -> None:
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps must be positive, but was {every_n_steps}.")
        self._train_op = train_op
        self._every_n_steps = every_n_steps
        self._output_dir = output_dir
        self._summary_writer = summary_writer
        self._global_step = global_step
        self._seen: list[int] = []
        self._step = 0

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._measured = _measure(self._train_op, self._global_step, "staleness")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        wanted = _operation(self._train_op)
        fetched = nest.flatten(run_context.original_args.fetches)
        return SessionRunArgs(self._measured) if any(_operation(each) is wanted for each in fetched) else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results is None:
            return
        stale, self._step = (int(value) for value in run_values.results)
        self._seen.append(stale)
        measures.stale(max(0, stale))
        if len(self._seen) >= self._every_n_steps:
            self._tell()

    def end(self, session: Any) -> None:
        if self._seen:
            self._tell()
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _tell(self) -> None:
        mean, most = sum(self._seen) / len(self._seen), max(self._seen)
        self._seen.clear()
        logging.debug("staleness: %g updates on average, %d at most", mean, most)
        if self._summary_writer is not None:
            values = {"staleness": mean, "staleness_max": float(most)}
            summary = [summary_pb2.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            self._summary_writer.add_summary(summary_pb2.Summary(value=summary), self._step)


def _measure(train_op: Any, global_step: Any, name: str) -> tuple[Tensor, Tensor]:
    """(staleness, the global step after the update)."""
    if global_step is None:
        global_step = get_global_step()
    if global_step is None:
        raise ValueError("Staleness needs a global step: create one and pass it to `minimize`.")
    with name_scope(name) as scope, colocate_with(global_step):
        # Of another type, so that it is a copy, which the update does not change under it.
        pulled = math_ops.cast(global_step.read_value(), dtypes.float64, name="pulled")
        with control_dependencies([train_op]):
            pushed = math_ops.cast(global_step.read_value(), dtypes.float64, name="pushed")
        return math_ops.cast(pushed - pulled - 1.0, dtypes.int64, name=scope), math_ops.cast(pushed, dtypes.int64)


def _operation(fetch: Any) -> Operation | None:
    return fetch if isinstance(fetch, Operation) else getattr(fetch, "op", None)
