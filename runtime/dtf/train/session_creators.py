"""Session creators: how the chief and the other workers of a training come to a session whose model is ready.

Own the choice between restoring, initialising and waiting; the waits themselves are `session_manager`'s.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/ChiefSessionCreator
"""

from __future__ import annotations

from typing import Any

from dtf.build.default_graph import get_default_graph
from dtf.train.checkpoint_management import remove_unfinished
from dtf.train.scaffold import Scaffold
from dtf.train.session_manager import SessionManager
from dtf.wire import filesystems


class SessionCreator:
    """Base of classes that make the sessions of a MonitoredSession."""

    def create_session(self) -> Any:
        """Returns a session whose model is ready."""
        raise NotImplementedError("a SessionCreator must have the method create_session")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions for the chief: restores the latest checkpoint, or initialises."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._session_manager: SessionManager | None = None

    def create_session(self) -> Any:
        """Returns a session whose model is ready."""
        self._scaffold.finalize()
        if self._checkpoint_dir:
            filesystems.makedirs(self._checkpoint_dir)
            remove_unfinished(self._checkpoint_dir)
        if self._session_manager is None:
            self._session_manager = _session_manager(self._scaffold)
        return self._session_manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions for a worker that is not the chief: waits until the model is ready."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs
        self._session_manager: SessionManager | None = None

    def create_session(self) -> Any:
        """Returns a session whose model is ready."""
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = _session_manager(self._scaffold)
        return self._session_manager.wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


def _session_manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
    )
