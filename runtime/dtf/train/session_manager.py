"""SessionManager: makes a session whose model is ready, by restoring, initialising, or waiting for the chief.

Owns the waits and their messages; the init and readiness ops come from Scaffold.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/SessionManager
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.session import Session
from dtf.train.checkpoint_management import get_checkpoint_state, latest_checkpoint
from dtf.train.same_graph import Waiting
from dtf.wire import errors

_LOG_EVERY_S = 10.0


class SessionManager:
    """Makes sessions for one graph.

    Args:
      local_init_op: run in each new session.
      ready_op: a tensor of the names of uninitialised variables; empty when the model is ready. None: always
          ready.
      ready_for_local_init_op: the same for the variables that `local_init_op` needs.
      graph: the default graph at the time if None.
      recovery_wait_secs: seconds between two looks at whether the model is ready. Short, since a check costs one run
        in a session that remains open.
      local_init_run_options: RunOptions for `local_init_op`.
      local_init_feed_dict: fed to it.
      clock, sleep: time in seconds; passed in for tests.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/SessionManager
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Any = None,
        recovery_wait_secs: float = 0.05,
        local_init_run_options: Any = None,
        local_init_feed_dict: dict[Any, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError("If you pass a ready_for_local_init_op you must also pass a local_init_op.")
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph or get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict
        self._clock = clock
        self._sleep = sleep

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: dict[Any, Any] | None = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Returns a session whose model is restored from a checkpoint if one exists, otherwise
        initialised. A model that durable parameter servers have kept is taken as it is.

        Raises:
          RuntimeError: the model is not ready after that, or no op to initialise it is given.
        """
        session, restored = self._restore(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            if not restored:
                if init_op is None and init_fn is None and self._local_init_op is None:
                    raise RuntimeError(
                        "Model is not initialized and no init_op or init_fn or local_init_op was given"
                    )
                if init_op is not None:
                    session.run(init_op, feed_dict=init_feed_dict)
                if init_fn is not None:
                    init_fn(session)
            missing = self._try_local_init(session)
            if missing is not None:
                raise RuntimeError(
                    f"Init operations did not make model ready for local_init.  Init op: {_name(init_op)}, "
                    f"init fn: {init_fn}, error: {missing}"
                )
            missing = self._missing(self._ready_op, session)
            if missing is not None:
                raise RuntimeError(
                    f"Init operations did not make model ready.  Init op: {_name(init_op)}, init fn: {init_fn}, "
                    f"local_init_op: {_name(self._local_init_op)}, error: {missing}"
                )
        except BaseException:
            session.close()
            raise
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Any, bool]:
        """Returns (session, whether a checkpoint was restored and the model is ready)."""
        session, restored = self._restore(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        missing = self._try_local_init(session)
        if not restored:
            return session, False
        missing = missing or self._missing(self._ready_op, session)
        if missing is not None:
            logging.info("Restoring model from %s did not make model ready: %s", checkpoint_dir, missing)
            return session, False
        return session, True

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: float = float("inf")) -> Any:
        """Returns a session once the chief has made the model ready.

        A task that cannot be reached is waited for too, in a new session each time.

        Raises:
          DeadlineExceededError: the model is not ready after `max_wait_secs`; the message lists the
              missing variables.
          FailedPreconditionError: it never will be, for the chief trains without what is missing.
        """
        waiting = Waiting(self._graph, self._clock)
        began = last_logged = self._clock()
        session: Any = None
        while True:
            try:
                session = session or Session(master, graph=self._graph, config=config)
                missing = self._try_local_init(session) or self._missing(self._ready_op, session)
                if missing is not None:
                    waiting.look(session, missing)
            except errors.FailedPreconditionError:
                _close_quietly(session)
                raise
            except (errors.AbortedError, errors.UnavailableError) as error:
                missing = error.message.splitlines()[0]
                _close_quietly(session)
                session = None
            if missing is None:
                return session
            now = self._clock()
            if now - began + self._recovery_wait_secs > (max_wait_secs or 0):
                _close_quietly(session)
                message = f"Session was not ready after waiting {max_wait_secs} secs: {missing}"
                raise errors.DeadlineExceededError.of(message)
            if now - last_logged > _LOG_EVERY_S:
                last_logged = now
                logging.info("Waiting for model to be ready for %d s.  %s", now - began, missing)
            self._sleep(self._recovery_wait_secs)

    def _restore(
        self,
        master: str,
        saver: Any,
        checkpoint_dir: str | None,
        checkpoint_filename_with_path: str | None,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Any, bool]:
        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        session = Session(master, graph=self._graph, config=config)
        try:
            if self._is_kept(session):
                logging.info("The parameter servers have kept the model; it is not initialized or restored.")
                if saver is not None and checkpoint_dir and latest_checkpoint(checkpoint_dir) is not None:
                    _know_checkpoints(saver, checkpoint_dir)
                return session, True
            if saver is None or not (checkpoint_dir or checkpoint_filename_with_path):
                return session, False
            if checkpoint_filename_with_path:
                saver.restore(session, checkpoint_filename_with_path)
                return session, True
            assert checkpoint_dir is not None
            return session, self._restore_latest(session, saver, checkpoint_dir, wait_for_checkpoint, max_wait_secs)
        except BaseException:
            session.close()
            raise

    def _restore_latest(self, session: Any, saver: Any, folder: str, wait: bool, max_wait_secs: float) -> bool:
        deadline = self._clock() + max_wait_secs
        while True:
            latest = latest_checkpoint(folder)
            if latest is not None:
                break
            if not wait or self._clock() > deadline:
                return False
            self._sleep(self._recovery_wait_secs)
        saver.restore(session, latest)
        _know_checkpoints(saver, folder)
        return True

    def _is_kept(self, session: Any) -> bool:
        """Whether durable parameter servers have the model from before this process: a checkpoint would be older."""
        if self._ready_op is None or self._missing(self._ready_op, session) is not None:
            return False
        kept: bool = session._has_durable_tasks()
        return kept

    def _try_local_init(self, session: Any) -> str | None:
        """Runs the local init op when the model is ready for it. Returns what is missing, or None."""
        if self._local_init_op is None:
            return None
        missing = self._missing(self._ready_for_local_init_op, session)
        if missing is None:
            session.run(
                self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options
            )
        return missing

    def _missing(self, ready_op: Any, session: Any) -> str | None:
        """The names that a ready op reports as missing, or None."""
        if ready_op is None:
            return None
        try:
            names = session.run(ready_op)
        except errors.FailedPreconditionError as error:
            return str(error)
        if names is None or np.size(names) == 0:
            return None
        listed = ", ".join(name.decode() if isinstance(name, bytes) else str(name) for name in np.ravel(names))
        return f"Variables not initialized: {listed}"


def _know_checkpoints(saver: Any, folder: str) -> None:
    """Has the saver remove the checkpoints of the folder when their time comes."""
    state = get_checkpoint_state(folder)
    # Those of another folder are not this training's to remove, whatever a state file says that came with a model.
    own = os.path.abspath(folder)
    paths = [path for path in state.all_model_checkpoint_paths if os.path.dirname(os.path.abspath(path)) == own]
    saver.recover_last_checkpoints(paths)


def _name(op: Any) -> str:
    return getattr(op, "name", None) or str(op)


def _close_quietly(session: Any) -> None:
    if session is not None:
        try:
            session.close()
        except errors.OpError as error:
            logging.warning("Closing a session that was not ready failed: %s", error)
