"""The standard hooks: stop at a step, save, summarise, count, log, watch for NaN, feed, final ops.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.train.checkpoint_hooks import CheckpointSaverHook, CheckpointSaverListener
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.step_timer import NeverTriggerTimer, SecondOrStepTimer
from dtf.train.timeline import Timeline
from dtf.train.training_util import (
    find_global_step,
    get_global_step,
    required_global_step_read,
    step_number,
)
from dtf.wire import errors, filesystems
from dtf.wire.files import file_errors

__all__ = [
    "CheckpointSaverHook", "CheckpointSaverListener", "FeedFnHook", "FinalOpsHook", "GlobalStepWaiterHook",
    "LoggingTensorHook", "NanLossDuringTrainingError", "NanTensorHook", "NeverTriggerTimer", "ProfilerHook",
    "SecondOrStepTimer", "StepCounterHook", "StopAtStepHook", "SummarySaverHook",
]  # fmt: skip


def as_graph_element(obj: Any) -> Any:
    """The element of the default graph that `obj` or its name names; a name may omit the output's number.

    Raises:
      ValueError: it is in another graph, or the graph has more than one tensor of that name.
    """
    graph = get_default_graph()
    if not isinstance(obj, str):
        element = obj._as_graph_element() if hasattr(obj, "_as_graph_element") else obj
        if getattr(element, "graph", None) is not graph:
            raise ValueError(f"Passed {obj} should have graph attribute that is equal to current graph {graph}.")
        return element
    if ":" in obj:
        return graph.as_graph_element(obj)
    element = graph.as_graph_element(obj + ":0")
    try:
        graph.as_graph_element(obj + ":1")
    except (KeyError, ValueError):
        return element
    raise ValueError(f"Name {obj} is ambiguous, as this Operation has multiple outputs (at least 2).")


class StopAtStepHook(SessionRunHook):
    """Asks for the end when the global step is reached.

    Args:
      num_steps: stop this many steps after the step at which the session starts.
      last_step: when the global step is this.

    Raises:
      ValueError: both or neither are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/StopAtStepHook
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._global_step_tensor = required_global_step_read("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = step_number(session.run(self._global_step_tensor)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last_step is not None
        # The fetched value is from before the run; read again near the end to be exact.
        if step_number(run_values.results) + 1 >= self._last_step:
            step = step_number(run_context.session.run(self._global_step_tensor))
            if step >= self._last_step:
                run_context.request_stop()


class StepCounterHook(SessionRunHook):
    """Logs and summarises the global steps per second.

    Args:
      every_n_steps, every_n_secs: the interval, one of them.
      output_dir: folder of the event file, unless `summary_writer` is given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/StepCounterHook
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        self._timer = SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_steps)
        self._output_dir = output_dir
        self._summary_writer = summary_writer
        self._steps_per_run = 1
        self._step_before: int | None = None
        self._warnings_left = 5

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        from dtf.train.summary_writer import FileWriterCache

        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step_tensor = required_global_step_read("StepCounterHook")
        self._summary_tag = get_global_step().op.name + "/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        before = step_number(run_values.results)
        if self._timer.should_trigger_for_step(before + self._steps_per_run):
            step = step_number(run_context.session.run(self._global_step_tensor))
            if self._timer.should_trigger_for_step(step):
                elapsed_s, steps = self._timer.update_last_triggered_step(step)
                if elapsed_s:
                    assert steps is not None
                    self._log_and_record(steps, elapsed_s, step)
        if before == self._step_before and self._warnings_left > 0:
            self._warnings_left -= 1
            logging.warning(
                "The global step %s stays at %d in consecutive runs. Is it passed to the optimizer's minimize?",
                self._global_step_tensor.op.name.rpartition("/")[0],
                before,
            )
        self._step_before = before

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        from dtf.wire.pb import summary_pb2

        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            value = summary_pb2.Summary.Value(tag=self._summary_tag, simple_value=rate)
            self._summary_writer.add_summary(summary_pb2.Summary(value=[value]), global_step)
        logging.info("%s: %g", self._summary_tag, rate)


class LoggingTensorHook(SessionRunHook):
    """Logs tensors every so many steps or seconds.

    Args:
      tensors: a dict of tag to tensor (or name), or a list of them.
      every_n_iter, every_n_secs: the interval, counted in runs of this hook; neither needs `at_end`.
      at_end: also log at the end.
      formatter: makes the line from the dict of tag to value.

    Raises:
      ValueError: the intervals contradict each other, or `every_n_iter` is not positive.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/LoggingTensorHook
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        log_only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not log_only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if not isinstance(tensors, Mapping):
            tensors = {getattr(item, "name", item): item for item in tensors}
        self._tensors = dict(tensors)
        self._timer: Any = (
            NeverTriggerTimer()
            if log_only_at_end
            else SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        )
        self._at_end = at_end
        self._formatter = formatter

    def begin(self) -> None:
        self._timer.reset()
        self._runs = 0
        graph = get_default_graph()
        self._current = {tag: graph.as_graph_element(item) for tag, item in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = self._timer.should_trigger_for_step(self._runs)
        return SessionRunArgs(self._current) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._due:
            self._log(run_values.results)
        self._runs += 1

    def end(self, session: Any) -> None:
        if self._at_end:
            self._log(session.run(self._current))

    def _log(self, values: dict[str, Any]) -> None:
        elapsed_s, _ = self._timer.update_last_triggered_step(self._runs)
        if self._formatter is not None:
            line = self._formatter(values)
        else:
            with np.printoptions(suppress=True):
                line = ", ".join(f"{tag} = {value}" for tag, value in values.items())
        logging.info("%s" if elapsed_s is None else f"%s ({elapsed_s:.3f} sec)", line)


class NanLossDuringTrainingError(RuntimeError):
    """The loss became NaN."""

    def __str__(self) -> str:
        return " ".join(["NaN loss during training.", *map(str, self.args)])


class NanTensorHook(SessionRunHook):
    """Watches the loss: stops, or fails with NanLossDuringTrainingError, when it is NaN. The message names the tensor
    and the last global step before it was seen.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not np.isnan(run_values.results):
            return
        what = self._described(run_context.session)
        if self._fail_on_nan_loss:
            logging.error("Model diverged with loss = NaN: %s", what)
            raise NanLossDuringTrainingError(what)
        logging.warning("Model diverged with loss = NaN: %s", what)
        run_context.request_stop()

    def _described(self, session: Any) -> str:
        name = getattr(self._loss_tensor, "name", self._loss_tensor)
        step = find_global_step(session.graph)
        where = "" if step is None else f" at global step {step_number(session.run(step))}"
        return f"{name} is NaN{where}; the newest checkpoint is from an earlier step, or may also contain NaN."


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds.

    Args:
      save_steps, save_secs: the interval, one of them.
      output_dir: folder of the event file, unless `summary_writer` is given.
      scaffold: its `summary_op` is used, unless `summary_op` is given.

    Raises:
      ValueError: both or neither of `scaffold` and `summary_op` are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/SummarySaverHook
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._scaffold = scaffold
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        from dtf.train.summary_writer import FileWriterCache

        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: int | None = None
        self._global_step_tensor = required_global_step_read("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._due = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        fetches: dict[str, Any] = {"global_step": self._global_step_tensor}
        summary_ops = self._summary_ops() if self._due else []
        if summary_ops:
            fetches["summary"] = summary_ops
        return SessionRunArgs(fetches)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        from dtf.wire.pb import event_pb2

        if not self._summary_writer:
            return
        step = step_number(run_values.results["global_step"]) + 1
        if self._next_step is None or self._due:
            step = step_number(run_context.session.run(self._global_step_tensor))
        if self._next_step is None:
            log = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._summary_writer.add_session_log(log, step)
        if self._due:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any) -> None:
        if self._summary_writer:
            self._summary_writer.flush()

    def _summary_ops(self) -> list[Any]:
        op = self._summary_op if self._summary_op is not None else self._scaffold.summary_op
        if op is None:
            return []
        return list(op) if isinstance(op, list | tuple) else [op]


class GlobalStepWaiterHook(SessionRunHook):
    """Delays a worker's first step until the global step is `wait_until_step`, so that replicas start one by one."""

    def __init__(self, wait_until_step: int, poll_secs: float = 0.5) -> None:
        self._wait_until_step = wait_until_step
        self._poll_secs = poll_secs

    def begin(self) -> None:
        self._worker_is_started = False
        self._global_step_tensor = required_global_step_read("GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        if self._worker_is_started:
            return
        began = last_logged = time.monotonic()
        if self._wait_until_step > 0:
            logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        while self._wait_until_step > 0:
            step = step_number(run_context.session.run(self._global_step_tensor))
            if step >= self._wait_until_step:
                break
            now = time.monotonic()
            if now - last_logged > 10:
                last_logged = now
                wanted = self._wait_until_step
                logging.info("Still waiting for global step %d, now %d, after %d s.", wanted, step, now - began)
            time.sleep(self._poll_secs)
        self._worker_is_started = True


class FinalOpsHook(SessionRunHook):
    """Evaluates ops at the end of the session; `final_ops_values` holds the result.

    Args:
      final_ops: fetches as `Session.run` takes them.
      final_ops_feed_dict: fed to them.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/FinalOpsHook
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: dict[Any, Any] | None = None) -> None:
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values, None before the end."""
        return self._final_ops_values

    def end(self, session: Any) -> None:
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(self._final_ops, feed_dict=self._final_ops_feed_dict)
        except (errors.OutOfRangeError, StopIteration) as error:
            logging.warning("The input ended before the final ops were evaluated: %s", error)
            raise
        except Exception as error:
            logging.error("Evaluating final ops failed: %s", error)
            raise


class FeedFnHook(SessionRunHook):
    """Calls `feed_fn` before each run and adds the dict that it returns to the feeds."""

    def __init__(self, feed_fn: Callable[[], dict[Any, Any]]) -> None:
        self._feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self._feed_fn())


class ProfilerHook(SessionRunHook):
    """Writes a Chrome trace, `timeline-<step>.json`, every so many steps or seconds.

    Args:
      save_steps, save_secs: the interval, one of them.
      output_dir: folder of the traces.
      show_dataflow, show_memory: what the trace shows in addition to the times of ops; see
          `timeline.Timeline`.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._output_dir = output_dir
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        from dtf.train.summary_writer import FileWriterCache

        self._summary_writer = FileWriterCache.get(self._output_dir) if self._output_dir else None
        self._next_step: int | None = None
        self._global_step_tensor = required_global_step_read("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        from dtf.wire.pb import config_pb2

        self._due = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs(self._global_step_tensor, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        before = step_number(run_values.results)
        step = before + 1
        if self._next_step is None:
            # The first step also pays for placing and compiling; the interval counts from it.
            self._timer.update_last_triggered_step(before)
        elif self._due:
            step = step_number(run_context.session.run(self._global_step_tensor))
            self._timer.update_last_triggered_step(step)
            path = os.path.join(self._output_dir, f"timeline-{step}.json")
            logging.info("Saving timeline for %d into '%s'.", step, path)
            trace = Timeline(run_values.run_metadata.step_stats)
            with file_errors(path), filesystems.open(path, "w") as file:
                file.write(trace.generate_chrome_trace_format(self._show_dataflow, self._show_memory))
            if self._summary_writer is not None:
                self._summary_writer.add_run_metadata(run_values.run_metadata, f"step_{step}", step)
        self._next_step = step + 1
