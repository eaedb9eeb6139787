"""SessionRunHook adds fetches, feeds and actions around every run of a MonitoredSession.

The order of calls, for a list of hooks:

    for hook in hooks: hook.begin()                      # the graph may still be changed
    session is created; hook.after_create_session()      # also after each recovery
    while not stop requested:
        args = [hook.before_run(context) for hook in hooks]
        results = session.run(fetches of the caller and of all args)
        for hook in hooks: hook.after_run(context, its own results)
    for hook in hooks: hook.end(session)                 # not after an error
    session is closed

Source: https://www.tensorflow.org/api_docs/python/tf/estimator/SessionRunHook
"""

from __future__ import annotations

from typing import Any, NamedTuple


class SessionRunArgs(NamedTuple):
    """The fetches, feeds and options that a hook adds to a run.

    Attributes:
      fetches: as `Session.run` takes them, or None.
      feed_dict: merged into the caller's feeds; the same key twice is an error.
      options: a RunOptions message, merged into the caller's.
    """

    fetches: Any = None
    feed_dict: dict[Any, Any] | None = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """The results of a run for one hook: its fetched values, the options used, and the RunMetadata."""

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """One run as hooks see it, with a method to request the end."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """The arguments of the caller's run."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session of the run."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook has requested the end."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Ends the training loop after this run: `should_stop` will be true."""
        self._stop_requested = True


class SessionRunHook:
    """Base of all hooks; override the methods that you need.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/SessionRunHook
    """

    def begin(self) -> None:
        """Called once before the session is created; the last moment to add to the graph."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when a session was created or recreated; the graph is final, variables are ready."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run. Returns what to add to it, or None."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that raised no error."""

    def end(self, session: Any) -> None:
        """Called at the end, unless an error ended the loop."""
