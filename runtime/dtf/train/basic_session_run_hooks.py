"""The standard hooks: stop at a step, save, summarise, count, log, watch for NaN, feed, final ops.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtf import logging
from dtf.build.graph import GraphKeys, get_default_graph
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.timeline import Timeline
from dtf.train.training_util import get_global_step
from dtf.wire import errors
from dtf.wire.files import file_errors

Clock = Callable[[], float]


class SecondOrStepTimer:
    """Says at which steps something that happens every so many seconds or steps is due.

    Raises:
      ValueError: both or neither of the intervals are given.
    """

    def __init__(
        self, every_secs: float | None = None, every_steps: int | None = None, clock: Clock = time.monotonic
    ) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Forgets the last time, so that the next step is due."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due at `step`; never twice for one step."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._every_secs is not None:
            return self._clock() >= self._last_time + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it happened. Returns (seconds, steps) since the time before, (None, None) at the first."""
        now = self._clock()
        elapsed: tuple[float | None, int | None] = (None, None)
        if self._last_step is not None:
            elapsed = (now - self._last_time, step - self._last_step)
        self._last_time, self._last_step = now, step
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step of the last time, or None."""
        return self._last_step


class _NeverTimer:
    """Stands for a timer where nothing is ever due."""

    def reset(self) -> None:
        pass

    def should_trigger_for_step(self, step: int) -> bool:
        return False

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        return (None, None)

    def last_triggered_step(self) -> int | None:
        return None


NeverTriggerTimer = _NeverTimer


class StopAtStepHook(SessionRunHook):
    """Asks for the end when the global step is reached.

    Args:
      num_steps: this many steps after the one at which the session starts.
      last_step: when the global step is this.

    Raises:
      ValueError: both or neither are given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._global_step_tensor = _required_global_step("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._global_step_tensor)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last_step is not None
        # The value fetched beside a train op may be the one before it; one more read settles it near the end.
        if run_values.results + 1 >= self._last_step:
            step = int(run_context.session.run(self._global_step_tensor))
            if step >= self._last_step:
                run_context.request_stop()


class CheckpointSaverListener:
    """What can be done around each save of a CheckpointSaverHook; each method may be left as it is."""

    def begin(self) -> None:
        """Called when the hook begins."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """Called after a checkpoint was written. True asks for the end of the training."""
        return None

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end, after the last save."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint every so many seconds or steps, at the start and at the end.

    Args:
      checkpoint_dir: folder of the checkpoints.
      save_secs, save_steps: the interval, one of them.
      saver: a Saver; or `scaffold`, whose saver is used; or neither, for the graph's one in the SAVERS collection.
      checkpoint_basename: the checkpoints' name before "-<step>".
      listeners: CheckpointSaverListeners.
      save_graph_def: whether the first save also writes graph.pbtxt and a meta graph.

    Raises:
      ValueError: both `saver` and `scaffold` are given.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._scaffold = scaffold
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or [])
        self._save_graph_def = save_graph_def

    def add_listeners(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        """More CheckpointSaverListeners; to be called before the session is made."""
        self._listeners.extend(listeners)

    def begin(self) -> None:
        from dtf.train.summary_writer import FileWriterCache

        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step_tensor = _required_global_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        from dtf.train.graph_io import write_graph
        from dtf.train.meta_graph import create_meta_graph_def

        graph = get_default_graph()
        step = int(session.run(self._global_step_tensor))
        if self._save_graph_def:
            write_graph(graph.as_graph_def(add_shapes=True), self._checkpoint_dir, "graph.pbtxt")
        self._summary_writer.add_graph(graph)
        saver_def = self._get_saver().saver_def
        self._summary_writer.add_meta_graph(create_meta_graph_def(graph=graph, saver_def=saver_def))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._global_step_tensor))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        step = self.save_now(session)
        for listener in self._listeners:
            listener.end(session, step)

    def save_now(self, session: Any) -> int:
        """Saves, if the newest checkpoint is not of this step already. Returns the global step."""
        step = int(session.run(self._global_step_tensor))
        if step != self._timer.last_triggered_step():
            self._timer.update_last_triggered_step(step)
            self._save(session, step)
        return step

    def _save(self, session: Any, step: int) -> bool:
        """Saves. Returns whether a listener asks for the end."""
        from dtf.wire.pb import event_pb2

        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._get_saver().save(session, self._save_path, global_step=step)
        log = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)
        wanted = [listener.after_save(session, step) for listener in self._listeners]
        return any(wanted)

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = get_default_graph().get_collection(GraphKeys.SAVERS)
        if len(savers) != 1:
            problem = "No items" if not savers else "More than one item"
            raise RuntimeError(
                f"{problem} in collection {GraphKeys.SAVERS}. Please pass a saver or a scaffold to CheckpointSaverHook."
            )
        self._saver = savers[0]
        return self._saver


class StepCounterHook(SessionRunHook):
    """Logs and summarises the global steps per second.

    Args:
      every_n_steps, every_n_secs: the interval, one of them.
      output_dir: folder of the event file, unless `summary_writer` is given.
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

    def begin(self) -> None:
        from dtf.train.summary_writer import FileWriterCache

        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step_tensor = _required_global_step("StepCounterHook")
        self._summary_tag = self._global_step_tensor.op.name + "/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._global_step_tensor))
        if not self._timer.should_trigger_for_step(step):
            return
        elapsed_s, steps = self._timer.update_last_triggered_step(step)
        if elapsed_s:
            assert steps is not None
            self._log_and_record(steps, elapsed_s, step)

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
            _NeverTimer() if log_only_at_end else SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
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
    and the global step after which it was seen.
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
        step = get_global_step(session.graph)
        where = "" if step is None else f" at global step {int(session.run(step))}"
        return f"{name} is NaN{where}; the newest checkpoint may be of a step before, or hold NaN already."


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds.

    Args:
      save_steps, save_secs: the interval, one of them.
      output_dir: folder of the event file, unless `summary_writer` is given.
      scaffold: its `summary_op` is used, unless `summary_op` is given.

    Raises:
      ValueError: both or neither of `scaffold` and `summary_op` are given.
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
        self._global_step_tensor = _required_global_step("SummarySaverHook")

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
        step = int(run_values.results["global_step"]) + 1
        if self._next_step is None or self._due:
            step = int(run_context.session.run(self._global_step_tensor))
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
        self._global_step_tensor = _required_global_step("GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        if self._worker_is_started:
            return
        began = last_logged = time.monotonic()
        if self._wait_until_step > 0:
            logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        while self._wait_until_step > 0:
            step = int(run_context.session.run(self._global_step_tensor))
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
            logging.warning("The input ran out before the final ops were evaluated: %s", error)
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
      show_dataflow, show_memory: what the trace shows beside when each op ran; see `timeline.Timeline`.
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
        self._global_step_tensor = _required_global_step("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        from dtf.wire.pb import config_pb2

        self._due = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs(self._global_step_tensor, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results)
        if self._next_step is None:
            # The first step also pays for placing and compiling; the interval counts from it.
            self._timer.update_last_triggered_step(step)
        elif self._due:
            step = int(run_context.session.run(self._global_step_tensor))
            self._timer.update_last_triggered_step(step)
            path = os.path.join(self._output_dir, f"timeline-{step}.json")
            logging.info("Saving timeline for %d into '%s'.", step, path)
            trace = Timeline(run_values.run_metadata.step_stats)
            with file_errors(path), open(path, "w") as file:
                file.write(trace.generate_chrome_trace_format(self._show_dataflow, self._show_memory))
            if self._summary_writer is not None:
                self._summary_writer.add_run_metadata(run_values.run_metadata, f"step_{step}", step)
        self._next_step = step + 1


def _required_global_step(hook: str) -> Any:
    step = get_global_step()
    if step is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    return step
